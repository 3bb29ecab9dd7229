package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/chandler-fleet/chandler/libs/events"
)

func TestRunWritesBothDocuments(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	if err := run("../..", out); err != nil {
		t.Fatal(err)
	}
	md, err := os.ReadFile(filepath.Join(out, "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(out, "asyncapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range events.All() {
		if !strings.Contains(string(md), "\n## "+string(d.Type)+"\n") {
			t.Errorf("events.md has no section for %s", d.Type)
		}
	}
	var doc any
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	checkRefs(t, doc, doc)
}

// checkRefs proves that every $ref of the document leads somewhere inside it.
func checkRefs(t *testing.T, root, node any) {
	t.Helper()
	switch n := node.(type) {
	case map[string]any:
		if target, ok := n["$ref"].(string); ok && !resolves(root, target) {
			t.Errorf("%s leads nowhere", target)
		}
		for _, v := range n {
			checkRefs(t, root, v)
		}
	case []any:
		for _, v := range n {
			checkRefs(t, root, v)
		}
	}
}

func resolves(root any, target string) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(target, "#/"), "/") {
		m, ok := root.(map[string]any)
		if !ok {
			return false
		}
		if root, ok = m[part]; !ok {
			return false
		}
	}
	return true
}

func TestEveryFieldOfTheEnvelopeIsDescribed(t *testing.T) {
	t.Parallel()
	c, err := readComments("../..")
	if err != nil {
		t.Fatal(err)
	}
	m := describe(c)
	if len(m.envelope.fields) < 10 || m.envelope.doc == "" {
		t.Errorf("the envelope has %d fields and the text %q", len(m.envelope.fields), m.envelope.doc)
	}
}

func TestRunRefusesAFolderWithoutSource(t *testing.T) {
	t.Parallel()
	if err := run(t.TempDir(), t.TempDir()); err == nil {
		t.Error("documents were made from nothing")
	}
}
