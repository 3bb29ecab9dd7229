package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// namedTest matches the name of a test, a benchmark or a fuzz target in a document.
	namedTest = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9]*\b`)
	// declaredTest matches its declaration.
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9]*)\(`)
	// link matches a link to a file of the repository, without its fragment.
	link = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)\s]*)?\)`)
	// fence matches a block of code: what is shown there is no link.
	fence = regexp.MustCompile("(?s)\n```.*?\n```")
)

// A document that names a test which nobody runs proves nothing.
func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	for _, p := range ours(load(t)) {
		for _, path := range files(t, filepath.Join(p.Dir, "*_test.go")) {
			for _, m := range declaredTest.FindAllSubmatch(read(t, path), -1) {
				declared[string(m[1])] = true
			}
		}
	}
	if len(declared) < 1000 {
		t.Fatalf("only %d tests were found", len(declared))
	}
	named := 0
	for _, path := range documents(t) {
		text := string(read(t, path))
		for _, name := range namedTest.FindAllString(text, -1) {
			named++
			if !declared[name] {
				t.Errorf("%s names %s, which no package declares", path, name)
			}
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
	}
	if named < 100 {
		t.Fatalf("only %d names of tests were found in the documents", named)
	}
}

// Two branches that each add a decision take the same number.
func TestDecisionsHaveOneNumberEach(t *testing.T) {
	t.Parallel()
	index := string(read(t, filepath.Join(base(t), "docs", "adr", "README.md")))
	numbers := map[string]string{}
	for _, path := range files(t, filepath.Join(base(t), "docs", "adr", "[0-9]*.md")) {
		name := filepath.Base(path)
		number := name[:4]
		if other := numbers[number]; other != "" {
			t.Errorf("%s and %s have one number", other, name)
		}
		numbers[number] = name
		if !strings.Contains(index, "| ["+number+"]("+name+") |") {
			t.Errorf("docs/adr/README.md has no line for %s", name)
		}
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{
		"*.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "deploy/*/*/*.md", "migrations/*.md", "migrations/*/*.md",
		"test/*/*.md", "clients/*.md", "clients/*/*.md",
	} {
		list = append(list, files(t, filepath.Join(base(t), pattern))...)
	}
	return list
}

// base is the folder of the workspace.
func base(t *testing.T) string {
	t.Helper()
	dir, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
