package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/test/stack"
)

// ofKeys are the services whose settings have keys.
var ofKeys = []string{"gateway", "installer", "catalog-indexer", "resolver"}

// keySetting is a variable that a file of keys has.
var keySetting = regexp.MustCompile(
	`^CHANDLER_((GRANT|HOOK|CONFIGURATION|SOURCE|ANNOTATION|REASON)_KEY|(CATALOG_)?CREDENTIALS_(IDENTITY|RECIPIENT))=`)

// fenced is a block of commands of a document.
var fenced = regexp.MustCompile("(?s)(?:\n *|^ *)```sh\n(.*?)\n *```")

// composed is who follows a document of an installation by docker compose: a file of settings, and services that are
// started again where theirs have changed.
type composed struct {
	*world
	dir string

	last map[string]string // keys that a service was started with
	has  map[string]string // what it had before there was a file: the names of its settings
}

// settings are those that a service has from the file.
func (c *composed) settings(service string) (list []string) {
	raw, err := os.ReadFile(filepath.Join(c.dir, ".env"))
	if err != nil { // before the first start
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		key, _, _ := strings.Cut(line, "=")
		if strings.Contains("\n"+c.has[service], "\n"+key+"=") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// up starts the services again whose settings have changed, as docker compose up --detach does, and waits for them.
func (c *composed) up() error {
	ctx, cancel := context.WithTimeout(c.ctx, bound)
	defer cancel()
	for _, name := range ofKeys {
		now := c.keysOf(name)
		if c.last[name] == now {
			continue
		}
		c.Kill(name)
		if err := c.Launch(name); err != nil {
			return err
		}
		if err := c.Ready(ctx, name); err != nil {
			return err
		}
		c.last[name] = now
	}
	return nil
}

// keysOf are the keys that a service is started with: the last of each setting counts.
func (c *composed) keysOf(name string) string {
	_, env := c.Command(name)
	has := map[string]string{}
	for _, e := range env {
		if keySetting.MatchString(e) {
			key, _, _ := strings.Cut(e, "=")
			has[key] = e
		}
	}
	return strings.Join(slices.Sorted(maps.Values(has)), "\n")
}

// serve is the other end of the program docker of whoever follows the document.
func (c *composed) serve(asked, answers *os.File) {
	lines := bufio.NewScanner(asked)
	for lines.Scan() {
		status := 0
		if line := lines.Text(); line != "compose up --detach" {
			c.t.Errorf("the document says docker %s, which is not known here", line)
			status = 1
		} else if err := c.up(); err != nil {
			c.t.Errorf("docker compose up: %v", err)
			status = 1
		}
		if _, err := fmt.Fprintln(answers, status); err != nil {
			return
		}
	}
}

// pipe is a named pipe that both ends of have open.
func (c *composed) pipe(name string) *os.File {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	c.must(syscall.Mkfifo(path, 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	c.must(err)
	c.t.Cleanup(func() { _ = f.Close() })
	return f
}

func (c *composed) bash(script string, env ...string) (string, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeoutCause(c.ctx, bound,
		fmt.Errorf("not done within %s; the last lines say what was waited for", bound))
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = c.dir
	cmd.Env = append([]string{
		"PATH=" + c.dir + ":" + bin + ":" + os.Getenv("PATH"), "HOME=" + c.dir,
		"CHANDLER_URL=" + c.Stack.URL(), "CHANDLER_TOKEN=" + c.Stack.Token(),
	}, env...)
	cmd.WaitDelay = time.Second // what it started may hold its output open
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(context.Cause(ctx), err)
}

// prepare makes something that each kind of keys is used for. The cluster cannot be reached, which keeps nothing from
// being encrypted and signed for it.
func (c *composed) prepare() {
	c.t.Helper()
	c.must(c.Post(c.ctx, "/api/v1/clusters", map[string]any{
		"name": spoke, "kubeconfig": `{"apiVersion":"v1",
		"kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],
		"users":[{"name":"u","user":{"token":"t"}}]}`,
	}, nil))
	c.addCatalog("harbour", example(c.t))
	c.group("ops")
	in := configured("lighthouse", "Manual", "a value")
	in["name"], in["annotations"] = "light", map[string]string{"ticket": "a note"}
	c.must(c.Post(c.ctx, scopePath("ops", "subscriptions"), in, nil))
	c.answered(func() error { // what a preview is asked about is sealed as reasons are
		return c.Post(c.ctx, "/api/v1/previews", map[string]any{"changes": []any{map[string]any{
			"subscription": map[string]any{
				"cluster": spoke, "namespace": "ops", "name": "light", "action": "replace",
				"spec": configured("lighthouse", "Manual", "another value"),
			},
		}}}, nil)
	})
	out, err := c.bash(`chandler catalog hook make harbour
echo secret | chandler catalog secret set pull --username u --password-stdin`)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	for _, purpose := range purposes {
		c.eventually("a key for "+purpose+" is in use", func() (string, bool) {
			out, err := c.bash("chandler keys list --file .env")
			c.must(err)
			return out, regexp.MustCompile(`(?m)^` + purpose + ` +\w{16} +Active +[1-9]`).MatchString(out)
		})
	}
}

var purposes = []string{
	"grant", "credentials", "catalog-credentials", "hook", "configuration", "source", "annotation", "reason",
}

// TestRotateKeys does what docs/howto/rotate-keys.md says, command by command, for each kind of keys on running
// services: what used the old key uses the new one, and the old one is gone. A key that is in use is not taken out.
func TestRotateKeys(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
	c := &composed{dir: t.TempDir(), last: map[string]string{}, has: map[string]string{}}
	c.world = newStackWith(t, func(service string) []string {
		if !slices.Contains(ofKeys, service) {
			return nil
		}
		return c.settings(service)
	})
	file := map[string]bool{} // settings of several services stand in it once
	for _, name := range ofKeys {
		c.last[name] = c.keysOf(name)
		c.has[name] = c.last[name]
		for line := range strings.Lines(c.last[name] + "\n") {
			file[line] = true
		}
	}
	c.must(os.WriteFile(filepath.Join(c.dir, ".env"), []byte(strings.Join(slices.Sorted(maps.Keys(file)), "")), 0o600))
	c.must(os.WriteFile(filepath.Join(c.dir, "docker"), []byte("#!/bin/sh\ncd "+c.dir+`
echo "$@" > asked
read status < answers
exit "$status"
`), 0o700))
	asked, answers := c.pipe("asked"), c.pipe("answers")
	docker, done := *c, make(chan struct{})
	go func() {
		defer close(done)
		docker.serve(asked, answers)
	}()
	c.prepare()
	document, err := os.ReadFile(filepath.Join(repository(t), "docs", "howto", "rotate-keys.md"))
	c.must(err)
	var script []string
	for _, block := range fenced.FindAllStringSubmatch(string(document), -1) {
		script = append(script, block[1])
	}
	if len(script) < 5 {
		t.Fatalf("the document has %d blocks of commands", len(script))
	}
	whole := c.world
	for _, purpose := range purposes {
		t.Run(purpose, func(t *testing.T) {
			c.world = whole.in(t)
			c.refusesKeyInUse(purpose)
			before := c.active(purpose)
			out, err := c.bash("set -x\n"+strings.Join(script, "\n"), "purpose="+purpose)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			now := c.active(purpose)
			if now == before {
				t.Errorf("key %s is active still", now)
			}
			list, err := c.bash("chandler keys list --file .env")
			c.must(err)
			if strings.Contains(list, before) || strings.Contains(list, "Missing") ||
				!regexp.MustCompile(`(?m)^`+purpose+` +`+now+` +Active +[1-9]`).MatchString(list) {
				t.Errorf("afterwards, with key %s before:\n%s", before, list)
			}
		})
	}
	c.world = whole
	c.must(errors.Join(asked.Close(), answers.Close()))
	<-done
	for _, name := range stack.Services {
		c.must(c.Ready(c.ctx, name))
	}
}

// active is the id of the active key.
func (c *composed) active(purpose string) string {
	c.t.Helper()
	out, err := c.bash("chandler keys list --file .env")
	c.must(err)
	found := regexp.MustCompile(`(?m)^` + purpose + ` +(\w{16}) +Active`).FindStringSubmatch(out)
	if found == nil {
		c.t.Fatalf("no active key of %s:\n%s", purpose, out)
	}
	return found[1]
}

// refusesKeyInUse: in a file in which another key is active, which no service has heard of.
func (c *composed) refusesKeyInUse(purpose string) {
	c.t.Helper()
	old := c.active(purpose)
	out, err := c.bash(fmt.Sprintf(`cp .env other.env
chandler keys activate %[1]s "$(chandler keys add %[1]s --file other.env)" --file other.env
if chandler keys retire %[1]s %[2]s --file other.env; then exit 3; fi
chandler keys list --file other.env`, purpose, old))
	if err != nil || !strings.Contains(out, "is in use") || strings.Count(out, old) < 2 {
		c.t.Errorf("a key that is in use is taken out: %v\n%s", err, out)
	}
}
