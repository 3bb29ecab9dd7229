package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
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

// run runs the command line without a server.
func run(args ...string) (status int, out, errOut string) {
	var o, e bytes.Buffer
	s := command.Streams{
		In: strings.NewReader(""), Out: &o, Err: &e, Now: time.Now,
		Env: func(string) (string, bool) { return "", false },
	}
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
		{[]string{"migrate"}, "nonsense", command.ExitRefused, "read the database URL"},
		{[]string{"migrate"}, "postgres://db:port/chandler", command.ExitRefused, "read the database URL"},
		{
			[]string{"bus", "rebuild", "--nats-url", "nats://127.0.0.1:1"},
			"nonsense", command.ExitRefused,
			"read the database URL",
		},
		{[]string{"migrate"}, "postgres://127.0.0.1:1/chandler", command.ExitUnavailable, "refused"},
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
		if status != command.ExitUsage || out != "" || !strings.HasPrefix(errOut, "error: ") ||
			strings.Count(errOut, "\n") != 1 {
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
	walk(newRoot(command.Streams{Env: func(string) (string, bool) { return "", false }}))
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
		if status, _, errOut := run(c.args...); status != command.ExitUsage || !strings.Contains(errOut, c.want) {
			t.Errorf("%q: status %d, %s", c.args, status, errOut)
		}
	}
	if _, _, text := run("apply", "-f", "a\x1b[31mb\u202e", "--cluster", "a"); strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("control characters reach the terminal: %q", text)
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
