package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
	"github.com/chandler-fleet/chandler/test/stack"
)

// rotating is a stack whose keys are in a file of settings.
type rotating struct {
	*world
	dir string // with .env, and the programs that the commands call
}

// variable is a setting of the file that services read; passwords and the token are the stack's own.
var variable = regexp.MustCompile(`(?m)^CHANDLER_[A-Z_]*(?:KEY|IDENTITY|RECIPIENT)=.*$`)

func (r *rotating) env(string) []string {
	raw, err := os.ReadFile(filepath.Join(r.dir, ".env"))
	if err != nil {
		panic(err) // the test has written it
	}
	return variable.FindAllString(string(raw), -1)
}

// restart is what docker compose does with services whose settings have changed, one after the other.
func (r *rotating) restart(w http.ResponseWriter, _ *http.Request) {
	for _, name := range stack.Services {
		r.Kill(name)
		err := r.Launch(name)
		if err == nil {
			err = r.Stack.Ready(r.ctx, name)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
}

// TestRotateKeys runs the commands of docs/howto/rotate-keys.md against running services, for each purpose: afterwards
// what was stored before can be used with the new keys alone, and the old ones are gone.
func TestRotateKeys(t *testing.T) {
	t.Parallel()
	r := &rotating{dir: t.TempDir()}
	r.writeFile(t)
	r.world = newStackWith(t, r.env)
	server := httptest.NewServer(http.HandlerFunc(r.restart))
	t.Cleanup(server.Close)
	docker := fmt.Sprintf("#!/bin/sh\n[ \"$*\" = 'compose up --detach' ] && exec curl -fsS %s\nexit 2\n", server.URL)
	r.must(os.WriteFile(filepath.Join(r.dir, "docker"), []byte(docker), 0o755)) //nolint:gosec // it is to be run
	r.store()
	before, err := os.ReadFile(filepath.Join(r.dir, ".env"))
	r.must(err)
	commands := r.commands()
	for _, p := range keys.Purposes() {
		out := r.shell("purpose=" + string(p) + "\n" + commands)
		t.Logf("%s:\n%s", p, out)
	}
	after, err := os.ReadFile(filepath.Join(r.dir, ".env"))
	r.must(err)
	for _, line := range variable.FindAllString(string(before), -1) {
		if bytes.Contains(after, []byte(line[strings.Index(line, "=")+1:])) {
			t.Errorf("%s is still in use", line[:strings.Index(line, "=")])
		}
	}
	var list struct{ Items []struct{ Purpose, Key string } }
	r.must(r.Get(r.ctx, "/api/v1/keys", &list))
	if len(list.Items) < len(keys.Purposes()) {
		t.Errorf("uses are %+v: nothing was rotated", list.Items)
	}
	// The kubeconfig is opened: a cluster that cannot be reached is in another state than one that cannot be decrypted.
	r.eventually("the installer reads the kubeconfig", func() (string, bool) {
		var c struct{ State, Message string }
		r.must(r.Get(r.ctx, "/api/v1/clusters/"+spoke, &c))
		return c.State + " " + c.Message, c.State == "Unreachable"
	})
}

// writeFile makes the keys of the installation.
func (r *rotating) writeFile(t *testing.T) {
	t.Helper()
	k, err := keys.Make()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, v := range k.Variables() {
		fmt.Fprintf(&b, "%s=%s\n", v.Name, v.Value)
	}
	if err := os.WriteFile(filepath.Join(r.dir, ".env"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// store has something use each key.
func (r *rotating) store() {
	r.t.Helper()
	r.must(r.Post(r.ctx, "/api/v1/clusters", map[string]any{"name": spoke, "kubeconfig": `{"apiVersion":"v1","kind":"Config",
		"current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"t"}}]}`}, nil))
	r.must(r.Post(r.ctx, scopePath("web", "operatorgroups"), map[string]any{"name": "all"}, nil))
	r.must(r.Post(r.ctx, "/api/v1/catalogs", map[string]any{
		"name": "harbour", "source": map[string]any{"type": "directory", "path": "/nowhere"},
	}, nil))
	r.shell(`echo word | chandler catalog secret set pull --username bot --password-stdin
		chandler catalog hook make harbour`)
}

// commands are the blocks of the page in their order.
func (r *rotating) commands() string {
	r.t.Helper()
	page, err := os.ReadFile("../../docs/howto/rotate-keys.md")
	r.must(err)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 5 {
		r.t.Fatalf("the page has %d blocks of commands, 5 are expected", len(blocks))
	}
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block[1] + "\n")
	}
	return b.String()
}

func (r *rotating) shell(script string) string {
	r.t.Helper()
	c := exec.CommandContext(r.ctx, "bash", "-euo", "pipefail", "-c", script)
	c.Dir = r.dir
	c.Env = append(os.Environ(), "PATH="+r.dir+":"+r.Bin()+":"+os.Getenv("PATH"), "CHANDLER_URL="+r.Stack.URL(),
		"CHANDLER_TOKEN="+r.Stack.Token())
	out, err := c.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v:\n%s", err, out)
	}
	return string(out)
}
