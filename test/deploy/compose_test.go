package deploy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// NATS of compose, with its own configuration: who shows the token gets in, nobody else does, and JetStream is on.
func TestNATSOfComposeAsksForTheToken(t *testing.T) {
	t.Setenv("CHANDLER_NATS_TOKEN", compose(t, nil).Services["nats"].Environment["CHANDLER_NATS_TOKEN"])
	options, err := server.ProcessConfigFile(filepath.Join(root(t), "deploy", "compose", "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if options.Port != 4222 || options.Host != "0.0.0.0" || options.HTTPPort != 8222 || options.StoreDir != "/data" {
		t.Errorf("address %s:%d, health at %s:%d, data in %s", options.Host, options.Port, options.HTTPHost,
			options.HTTPPort, options.StoreDir)
	}
	options.Host, options.Port, options.HTTPPort, options.StoreDir = "127.0.0.1", server.RANDOM_PORT, 0, t.TempDir()
	options.NoSigs, options.NoLog = true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(bound) {
		t.Fatal("NATS does not start")
	}

	address := strings.Replace(compose(t, nil).Services["resolver"].Environment["CHANDLER_NATS_URL"], "nats:4222",
		s.Addr().String(), 1)
	conn, err := nats.Connect(address)
	if err != nil {
		t.Fatalf("with the URL of the services: %v", err)
	}
	defer conn.Close()
	js, err := conn.JetStream()
	if err == nil {
		_, err = js.AccountInfo()
	}
	if err != nil {
		t.Errorf("JetStream: %v", err)
	}
	if open, err := nats.Connect("nats://" + s.Addr().String()); err == nil {
		open.Close()
		t.Error("NATS lets in who shows no token")
	}
}

// Tokens are letters and digits in any order, and NATS would read some of them as numbers with a unit.
func TestNATSTakesEveryTokenAsText(t *testing.T) {
	for _, token := range []string{
		"7KZQ2", "5K4MB3VQ", "25E7AAAA", "12345G", "12345", "3E5", "0X1F", "TRUE",
		"2026-01-01",
	} {
		file := compose(t, map[string]string{"CHANDLER_NATS_TOKEN": token})
		t.Setenv("CHANDLER_NATS_TOKEN", file.Services["nats"].Environment["CHANDLER_NATS_TOKEN"])
		options, err := server.ProcessConfigFile(filepath.Join(root(t), "deploy", "compose", "nats.conf"))
		if err != nil {
			t.Errorf("token %s: %v", token, err)
			continue
		}
		if options.Authorization != token {
			t.Errorf("token %s is read as %q", token, options.Authorization)
		}
	}
}

// The health check of the images, which hold nothing else that could ask.
func TestProbe(t *testing.T) {
	t.Parallel()
	probe := filepath.Join(t.TempDir(), "probe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", probe, ".")
	build.Dir = filepath.Join(root(t), "deploy", "probe")
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "the database is away")
		}
	}))
	t.Cleanup(server.Close)
	if out, err := exec.CommandContext(t.Context(), probe, server.URL+"/readyz").CombinedOutput(); err != nil {
		t.Errorf("ready: %v: %s", err, out)
	}
	for arg, want := range map[string]string{
		server.URL + "/waiting": "the database is away",
		"http://127.0.0.1:1/":   "refused",
		"":                      "error:",
	} {
		out, err := exec.CommandContext(t.Context(), probe, arg).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("probe %q: %v: %s", arg, err, out)
		}
	}
}
