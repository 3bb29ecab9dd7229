package cli

import (
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chandler-fleet/chandler/libs/doccommand"
)

// document writes what the shell blocks of a document hold into a file: document docs/NAME.md FILE.
func document(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 2 {
		ts.Fatalf("usage: document name file")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(args[0])))
	ts.Check(err)
	script := doccommand.Script(string(text))
	if script == "" {
		ts.Fatalf("%s has no shell block", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(script), 0o600))
}
