package author_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
)

// TestMain also makes the scripts' command chandler, which has the commands for authors alone.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"chandler": func() { os.Exit(run(os.Args[1:])) }})
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	env := author.Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Lookup: os.LookupEnv}
	root := &cobra.Command{Use: "chandler", SilenceErrors: true, SilenceUsage: true}
	parent, list := &cobra.Command{Use: "catalog"}, &cobra.Command{Use: "list"}
	root.AddCommand(parent)
	parent.AddCommand(list)
	list.AddCommand(author.ListCommands(env)...)
	parent.AddCommand(author.Commands(env)...)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
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

// TestScripts are what a person types and reads, command by command: R-CAT-18, R-CAT-43, R-CAT-58,
// R-CAT-59, R-CAT-62 … R-CAT-67, R-CAT-80 … R-CAT-82, R-DIS-2.
func TestScripts(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	documents := filepath.Join(t.TempDir(), "documents")
	if code := run([]string{"catalog", "migrate", filepath.Join(root, "examples", "catalog"), documents}); code != 0 {
		t.Fatalf("migrate: status %d", code)
	}
	host := registryOf(t, filepath.Join(root, "examples", "catalog"), documents)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CATALOG", filepath.Join(root, "examples", "catalog"))
			next := filepath.Join(e.WorkDir, "next")
			for _, from := range []string{"catalog", "catalog-next"} {
				// The second is laid over the first, as the examples say.
				if err := overlayDir(filepath.Join(root, "examples", from), next); err != nil {
					return err
				}
			}
			e.Setenv("NEXT", next)
			e.Setenv("REGISTRY", host)
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status, "expand": expand},
	})
}

// status runs chandler and wants an exit status: status 1 catalog validate broken.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE ARGS...")
	}
	err := ts.Exec("chandler", args[1:]...)
	code := 0
	if err != nil {
		exit, ok := errors.AsType[interface {
			error
			ExitCode() int
		}](err)
		if !ok {
			ts.Fatalf("chandler: %v", err)
		}
		code = exit.ExitCode()
	}
	if want := args[0]; fmt.Sprint(code) != want {
		ts.Fatalf("the status is %d, not %s", code, want)
	}
}

// expand puts the script's variables into files: expand FILE...
func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

func overlayDir(from, to string) error {
	return filepath.WalkDir(from, func(file string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		into := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(into, 0o755)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(into, raw, 0o644)
	})
}
