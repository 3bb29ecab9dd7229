package layout_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/layout"
)

func limits() docs.Limits {
	return docs.Limits{FileBytes: 1 << 20, DocumentBytes: 1 << 20, Documents: 100, Depth: 50, Nodes: 1000}
}

// TestReadMode proves the values of updateGraph, and that hostile files end in an error (R-CAT-75, DESIGN D10).
func TestReadMode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want layout.Mode
		says string
	}{
		{"", layout.Replaces, ""},
		{"# nothing\n", layout.Replaces, ""},
		{"- a\n", layout.Replaces, ""},
		{"reviewers: [a]\n", layout.Replaces, ""},
		{"updateGraph: replaces-mode\n", layout.Replaces, ""},
		{"updateGraph: semver-mode\n", layout.Semver, ""},
		{"{\"updateGraph\": \"semver-skippatch-mode\"}", layout.SemverSkipPatch, ""},
		{"a: &m semver-mode\nupdateGraph: *m\n", layout.Semver, ""},
		{"updateGraph: semver\n", layout.Replaces, "semver-skippatch-mode"},
		{"updateGraph: 1\n", layout.Replaces, "not known"},
		{"updateGraph: semver-mode\nupdateGraph: semver-mode\n", layout.Replaces, "updateGraph"},
		{"updateGraph: [\n", layout.Replaces, "not YAML"},
		{strings.Repeat("[", 5000), layout.Replaces, "deep"},
	} {
		got, err := layout.ReadMode([]byte(c.text), limits())
		if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Message, c.says) {
			t.Errorf("%.40q: %s, %v", c.text, got, err)
		}
	}
}

// TestNamed proves which files may be package manifests (R-CAT-76).
func TestNamed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"buoy.package.yaml": true, "package.yaml": true, "a.package.yml": true, "package.json": true,
		"buoy-package.yaml": false, "package": false, "package.md": false, "packages.yaml": false, ".yaml": false,
	} {
		if layout.Named(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}
