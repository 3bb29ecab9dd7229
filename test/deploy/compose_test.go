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

	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
)

// startCompose starts the NATS of compose, with its own configuration, and returns its address.
func startCompose(t *testing.T) string {
	t.Helper()
	for name, value := range compose(t, nil).Services["nats"].Environment {
		t.Setenv(name, value)
	}
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
	return s.Addr().String()
}

// NATS of compose lets in each service with its own key, as a user of its own with JetStream, and nobody without one.
func TestNATSOfComposeAsksWhoSomebodyIs(t *testing.T) {
	address := startCompose(t)
	for _, name := range services {
		env := compose(t, nil).Services[name].Environment
		access := load(t, name, env).NATS
		options, err := access.Options()
		if err != nil {
			t.Fatal(err)
		}
		url := strings.Replace(access.URL, "nats:4222", address, 1)
		conn, err := nats.Connect(url, append(options, nats.CustomInboxPrefix(natsauth.Inbox(name)))...)
		if err != nil {
			t.Fatalf("with the settings of %s: %v", name, err)
		}
		reply, err := conn.Request("$JS.API.STREAM.INFO.CHANDLER_00000000_PLANS", nil, bound)
		if err != nil || !strings.Contains(string(reply.Data), "stream not found") {
			t.Errorf("JetStream for %s: %v", name, err)
		}
		conn.Close()
	}
	if open, err := nats.Connect("nats://" + address); err == nil {
		open.Close()
		t.Error("NATS lets in who does not say who it is")
	}
	stranger, err := natsconn.NewSeed()
	if err != nil {
		t.Fatal(err)
	}
	access := natsconn.Settings{NKeySeed: stranger}
	options, err := access.Options()
	if err != nil {
		t.Fatal(err)
	}
	if open, err := nats.Connect("nats://"+address, options...); err == nil {
		open.Close()
		t.Error("NATS lets in a key that it does not know")
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
