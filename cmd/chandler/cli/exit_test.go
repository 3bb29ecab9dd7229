package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

// status runs a command and wants an exit status: status CODE COMMAND ARGS...
func status(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: status code command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d:\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	problem := func(status int) error { return &client.Problem{Status: status} }
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("a"), exitFailed},
		{usagef("a"), exitUsage},
		{fmt.Errorf("sub/a: %w", problem(http.StatusNotFound)), exitNotFound},
		{problem(http.StatusBadRequest), exitRefused},
		{problem(http.StatusConflict), exitRefused},
		{problem(http.StatusForbidden), exitRefused},
		{problem(http.StatusUnprocessableEntity), exitRefused},
		{problem(http.StatusInternalServerError), exitFailed},
		{problem(http.StatusServiceUnavailable), exitUnavailable},
		{errors.Join(problem(http.StatusNotFound), fmt.Errorf("b: %w", problem(http.StatusNotFound))), exitNotFound},
		{errors.Join(problem(http.StatusNotFound), problem(http.StatusConflict)), exitFailed},
		{refused(problem(http.StatusNotFound)), exitRefused},
	} {
		if got := exitStatus(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// run runs the command line without a server.
func run(args ...string) (status int, out, errOut string) {
	var o, e bytes.Buffer
	s := Streams{In: strings.NewReader(""), Out: &o, Err: &e, Now: time.Now, Env: func(string) (string, bool) { return "", false }}
	status = Main(context.Background(), s, args)
	return status, o.String(), e.String()
}

// TestDatabaseURL: every command that works with the database itself ends alike where its URL cannot be read, and where
// nobody answers there.
func TestDatabaseURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		url  string
		want int
		says string
	}{
		{[]string{"migrate"}, "nonsense", exitRefused, "read the database URL"},
		{[]string{"migrate"}, "postgres://db:port/chandler", exitRefused, "read the database URL"},
		{[]string{"bus", "parked"}, "nonsense", exitRefused, "read the database URL"},
		{[]string{"bus", "retry", "gateway-clusters"}, "nonsense", exitRefused, "read the database URL"},
		{[]string{"bus", "rebuild", "--nats-url", "nats://127.0.0.1:1"}, "nonsense", exitRefused, "read the database URL"},
		{[]string{"migrate"}, "postgres://127.0.0.1:1/chandler", exitUnavailable, "refused"},
	} {
		status, out, errOut := run(append(c.args, "--database-url", c.url)...)
		if status != c.want || out != "" || !strings.Contains(errOut, c.says) {
			t.Errorf("%q on %s: status %d, want %d\n%s%s", c.args, c.url, status, c.want, out, errOut)
		}
	}
}

// TestUnknownCommandsAreErrors walks all commands: a word that none of them knows below another, an unknown flag and an
// unknown topic of help end with the status of usage, and say nothing on standard output.
func TestUnknownCommandsAreErrors(t *testing.T) {
	t.Parallel()
	n := 0
	var walk func(c *cobra.Command)
	wrong := func(args ...string) {
		t.Helper()
		status, out, errOut := run(args...)
		if status != exitUsage || out != "" || !strings.HasPrefix(errOut, "error: ") || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errOut)
		}
	}
	walk = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		if c.Runnable() && c.Name() != "help" {
			wrong(append(path, "--no-such-flag")...)
		}
		if c.HasSubCommands() {
			n++
			wrong(append(path, "nonsense")...)
			wrong(append([]string{"help"}, append(path, "nonsense")...)...)
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(newRoot(Streams{Env: func(string) (string, bool) { return "", false }}))
	if n < 8 {
		t.Errorf("only %d commands have others below them", n)
	}
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"aply"}, "did you mean apply?"},
		{[]string{"catalog", "refesh"}, "did you mean refresh?"},
		{[]string{"get", "subscriptoins"}, "did you mean subscriptions?"},
		{[]string{"get", "sub", "--clutser", "a"}, "did you mean --cluster?"},
		{[]string{"help", "dscribe"}, "did you mean describe?"},
	} {
		if status, _, errOut := run(c.args...); status != exitUsage || !strings.Contains(errOut, c.want) {
			t.Errorf("%q: status %d, %s", c.args, status, errOut)
		}
	}
	for _, c := range []struct {
		name string
		want string
	}{
		{"wset-1", "west-1"}, {"west", "west-1 west-2"}, {"est-1", "east-1 west-1"}, {"north", ""}, {"a", ""}, {"WEST-1", "west-1"},
	} {
		if got := strings.Join(closest(c.name, []string{"west-1", "west-2", "east-1", "b"}), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestExitCodesAreDocumented: docs/cli.md has the table that help shows.
func TestExitCodesAreDocumented(t *testing.T) {
	t.Parallel()
	status, out, _ := run("help", "exit-codes")
	doc, err := os.ReadFile("../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range exitCodes {
		if row := fmt.Sprintf("| %d | %s | %s |", c.code, c.name, c.what); !strings.Contains(string(doc), row) {
			t.Errorf("docs/cli.md lacks %s", row)
		}
		if status != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), c.what) {
			t.Errorf("help exit-codes lacks %s: %s", c.name, out)
		}
	}
}
