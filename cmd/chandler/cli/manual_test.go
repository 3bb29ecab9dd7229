package cli

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/manual"
)

// fewPages is less than there are commands below the root: fewer pages would mean that the tree was not read.
const fewPages = 30

// TestCommandPages: docs/cli has a page for each command, as its help is now, and no other; -update writes them.
func TestCommandPages(t *testing.T) {
	t.Parallel()
	root := documentedRoot(t)
	root.InitDefaultCompletionCmd()
	pages, err := manual.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < fewPages {
		t.Errorf("%d pages: is every command there?", len(pages))
	}
	dir := filepath.Join("..", "..", "..", "docs", "cli")
	if *updateSeen {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		path := filepath.Join(dir, name)
		if *updateSeen {
			if err := os.WriteFile(path, pages[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, pages[name]) {
			t.Errorf("docs/cli/%s is not what the help says: run make generate (%v)", name, err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if pages[f.Name()] == nil {
			t.Errorf("docs/cli/%s is of no command: run make generate", f.Name())
		}
	}
}
