// Package installset gives tests the bundles of fifty real operators, each beside the one that it replaces.
package installset

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// Pair is the head of a channel and the bundle that it replaces, "" where it is the first one.
type Pair struct {
	Package  string `json:"package"`
	Head     string `json:"head"`
	Previous string `json:"previous"`
}

// Load returns the pairs, and the bundles by name.
func Load(tb testing.TB) ([]Pair, map[string]bundle.Content) {
	tb.Helper()
	dir := filepath.Join(catalogtest.Unpack(tb, catalogtest.InstallSet, nil), "install-set")
	raw, err := os.ReadFile(filepath.Join(dir, "set.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var pairs []Pair
	if err := json.Unmarshal(raw, &pairs); err != nil {
		tb.Fatal(err)
	}
	var mu sync.Mutex
	contents := map[string]bundle.Content{}
	_, err = load.Load(os.DirFS(dir), load.Options{Keep: func(c load.Content) error {
		var b bundle.Content
		if err := json.Unmarshal(c.Canonical, &b); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		contents[c.Bundle] = b
		return nil
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return pairs, contents
}
