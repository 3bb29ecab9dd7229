package conformance_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/conformance"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	rules "github.com/chandler-fleet/chandler/services/resolver/conformance"
)

// TestMain also makes the scripts' command chandler, which has the commands of this package alone.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"chandler": func() { os.Exit(run(os.Args[1:])) }})
}

func run(args []string) int {
	root := &cobra.Command{Use: "chandler", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(conformance.Commands(conformance.Env{In: os.Stdin, Out: os.Stdout})...)
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return 0
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(os.Stderr, "error:", text)
	}
	if status, ok := errors.AsType[*author.ExitError](err); ok {
		return status.Code
	}
	return 99 // every error has a status
}

// TestScripts are what a person types and reads: R-RES-43, and exit statuses for programs.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}

// status runs chandler and wants an exit status: status 1 conformance cases.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE ARGUMENT…")
	}
	err := ts.Exec("chandler", args[1:]...)
	code := 0
	if exit, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit status %d, want %s", code, args[0])
	}
}

// TestConformance: every case comes out as OLM did it, or differs for a reason that is meant and asserted
// (R-RES-1 … R-RES-45). What is meant is counted, so that nothing slips into it.
func TestConformance(t *testing.T) {
	t.Parallel()
	judged(t, catalogtest.Conformance(t), 550, map[rules.Reason]int{
		rules.ReasonIndependent: 50, rules.ReasonRandom: 5, rules.ReasonAway: 2, rules.ReasonIdentity: 2,
		rules.ReasonClaim: 1, rules.ReasonThere: 1,
	})
}

// TestOwnCases are further ones, whose expectation is taken from the notes on OLM's resolver; the description
// of each names the paragraph.
func TestOwnCases(t *testing.T) {
	t.Parallel()
	judged(t, "../../../services/resolver/conformance/testdata", 86,
		map[rules.Reason]int{rules.ReasonIndependent: 4, rules.ReasonThere: 1, rules.ReasonKept: 1})
}

func judged(t *testing.T, dir string, cases int, meant map[rules.Reason]int) {
	t.Helper()
	files, err := conformance.FindCases(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != cases {
		t.Errorf("%d cases, want %d", len(files), cases)
	}
	got := map[rules.Reason]int{}
	for _, c := range conformance.Compare(dir, files) {
		switch {
		case c.Error != "":
			t.Error(c.Error)
		case c.Verdict == rules.Different:
			t.Errorf("%s:\n  %s", c.File, strings.Join(c.Differences, "\n  "))
		case c.Verdict == rules.Meant:
			got[c.Reason]++
		}
	}
	if diff := cmp.Diff(meant, got); diff != "" {
		t.Errorf("meant to differ: %s", diff)
	}
}
