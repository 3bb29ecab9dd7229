package archtest

import (
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	// maxColumns bounds a line of code or of a comment: two files fit beside each other on a screen.
	maxColumns = 120
	// tabColumns is what a tab counts for.
	tabColumns = 4
	// wholeString is the length, in bytes, from which a string may pass the bound: messages, test data and struct tags
	// are searched for as a whole.
	wholeString = 40
)

func TestLineLength(t *testing.T) {
	t.Parallel()
	for _, p := range ours(load(t)) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if generated.Match(raw) {
				continue
			}
			for _, n := range longLines(raw) {
				t.Errorf("%s:%d has more than %d columns", path, n, maxColumns)
			}
		}
	}
}

// table matches a line of a comment that gofmt keeps as it is: what is drawn there has columns of its own.
var table = regexp.MustCompile(`^\s*//(\t| {2})`)

// longLines are the numbers of the lines that pass the bound, hold no long string and are no line of a table.
func longLines(src []byte) []int {
	excused := map[int]bool{}
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.STRING && len(lit) >= wholeString {
			for n := range strings.Count(lit, "\n") + 1 {
				excused[file.Line(pos)+n] = true
			}
		}
	}
	var list []int
	for i, line := range bytes.Split(src, []byte("\n")) {
		columns := utf8.RuneCount(line) + (tabColumns-1)*bytes.Count(line, []byte("\t"))
		if columns > maxColumns && !excused[i+1] && !table.Match(line) &&
			!bytes.Contains(line, []byte("//nolint")) {
			list = append(list, i+1)
		}
	}
	return list
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("a"), 2*maxColumns)
	for name, c := range map[string]struct {
		src  string
		want int
	}{
		"short":                  {"package a\n", 0},
		"a long name":            {"package " + string(long) + "\n", 1},
		"a long comment":         {"package a\n\n// " + string(long) + "\n", 1},
		"a long string":          {"package a\n\nvar b = \"" + string(long) + "\"\n", 0},
		"lines of a long string": {"package a\n\nvar b = `c\n" + string(long) + "`\n", 0},
		"tabs": {
			"package a\n\nvar (\n" + string(bytes.Repeat([]byte("\t"), maxColumns/tabColumns)) + "b int\n)\n", 1,
		},
	} {
		if got := longLines([]byte(c.src)); len(got) != c.want {
			t.Errorf("%s: %d lines, not %d", name, len(got), c.want)
		}
	}
}
