package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/test/internal/gotool"
)

// document is the text of a document of the repository.
func document(t *testing.T, name string) string {
	t.Helper()
	root, err := gotool.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Documents list the scenes of each demo: all of them, in their order, in their words.
func TestDocumentsListTheScenes(t *testing.T) {
	for _, c := range []struct {
		document, section string
		scenes            []scene
	}{
		{"README.md", "## Two commands", harbour},
		{"docs/fleet.md", "## The demo", coast},
	} {
		_, text, found := strings.Cut(document(t, c.document), c.section)
		if !found {
			t.Errorf("%s has no section %q", c.document, c.section)
			continue
		}
		text, _, _ = strings.Cut(text, "\n## ")
		// A point may go on in the next line, indented.
		text = regexp.MustCompile(`\n {2,}(\S)`).ReplaceAllString(text, " $1")
		var listed []string
		for _, match := range regexp.MustCompile(`(?m)^\d+\. (.*?)[,.]?$`).FindAllStringSubmatch(text, -1) {
			listed = append(listed, match[1])
		}
		if len(listed) != len(c.scenes) {
			t.Errorf("%s lists %d scenes, the demo has %d", c.document, len(listed), len(c.scenes))
		}
		for i, s := range c.scenes {
			if i < len(listed) && listed[i] != s.title {
				t.Errorf("scene %d is %q and in %s %q", i+1, s.title, c.document, listed[i])
			}
		}
	}
}

// The recording in the README is one of the demo as it is.
func TestRecordingShowsTheScenes(t *testing.T) {
	if !strings.Contains(document(t, "README.md"), "docs/demo.svg") {
		t.Error("README.md does not show docs/demo.svg")
	}
	root, err := gotool.Root()
	if err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(root, "docs", "demo.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range harbour {
		var title bytes.Buffer
		if err := xml.EscapeText(&title, []byte(s.title)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(svg, title.Bytes()) {
			t.Errorf("docs/demo.svg does not show %q: run make recording", s.title)
		}
	}
}

func TestDrawing(t *testing.T) {
	r := &recording{}
	r.text("before the first scene")
	r.title("1. A <scene> & more")
	r.command("$ chandler get operators")
	r.text(strings.Repeat("x", columns+1))
	for range rows {
		r.text("a line")
	}
	r.title("2. Another")
	svg, err := r.draw()
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
	}
	for _, want := range []string{"1. A &lt;scene&gt; &amp; more", "(goes on)", `class="c"`, "3/3", "@keyframes p2"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("the drawing has no %q", want)
		}
	}
	if bytes.Contains(svg, []byte("before the first")) || bytes.Contains(svg, []byte(strings.Repeat("x", columns+1))) {
		t.Error("the drawing has what comes before the first scene, or a line that is too long")
	}
	var none *recording
	none.title("nothing")
	none.text("nothing")
}

func TestProgressBesideFits(t *testing.T) {
	for line, want := range map[string]string{
		"building the Kubernetes programs, 812 of 2387 packages, 1m20s": "Kubernetes, 812 of 2387",
		"building the Kubernetes programs, linking, 4m5s":               "Kubernetes, linking",
		"building the Kubernetes programs, 5s":                          "Kubernetes",
		"waiting for another process":                                   "waiting for another process",
	} {
		if got := beside(line); got != want {
			t.Errorf("%q becomes %q, want %q", line, got, want)
		}
	}
	var out bytes.Buffer
	n := &narrator{
		screen: &screen{out: &out, terminal: true, now: time.Now},
		behind: func() string { return "Kubernetes, 812 of 2387" },
	}
	n.tell("compiling the CLI, 547 of at most 1313, 1m20s")
	if strings.HasSuffix(out.String(), "…") {
		t.Errorf("too long for a terminal: %q", out.String())
	}
}

// A catalog that is not there is told before anything is compiled, and before a demo that runs is ended.
func TestCatalogThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	running := filepath.Join(dir, "demo")
	if err := os.Mkdir(running, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, catalog := range []string{filepath.Join(dir, "nowhere"), "demo_test.go"} {
		err := run(t.Context(), []string{"up", "--dir", running, "--catalog", catalog})
		if err == nil || !strings.Contains(err.Error(), filepath.Base(catalog)) {
			t.Errorf("%s: %v", catalog, err)
		}
	}
	if _, err := os.Stat(running); err != nil {
		t.Error(err)
	}
}

// Files and pipes get text only, and progress now and then.
func TestScreenOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // read below
	s := newScreen(file, func(name string) string { return map[string]string{"TERM": "xterm"}[name] })
	now := time.Unix(0, 0)
	s.now = func() time.Time { return now }
	s.line(s.bold("1. A scene") + s.dim("  (1s)"))
	for range 40 {
		s.progress("compiling")
		now = now.Add(time.Second)
	}
	s.end()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "1. A scene  (1s)\n" + strings.Repeat("   … compiling\n", 3)
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScreenOfATerminal(t *testing.T) {
	tests := map[string]struct {
		env              map[string]string
		terminal, styled bool
	}{
		"terminal": {map[string]string{"TERM": "xterm"}, true, true},
		"no color": {map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, true, false},
		"dumb":     {map[string]string{"TERM": "dumb"}, false, false},
		"unknown":  {map[string]string{}, false, false},
	}
	// A device, as a terminal is.
	device, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close() //nolint:errcheck // nothing is written
	for name, test := range tests {
		s := newScreen(device, func(name string) string { return test.env[name] })
		if s.terminal != test.terminal || s.styled != test.styled {
			t.Errorf("%s: terminal %t, styled %t", name, s.terminal, s.styled)
		}
	}
	var out bytes.Buffer
	s := &screen{out: &out, terminal: true, now: time.Now}
	s.progress(strings.Repeat("long ", 40))
	s.line("done")
	if shown, rest, _ := strings.Cut(out.String(), "\r\x1b[K"); len([]rune(shown)) != screenWidth || rest != "done\n" {
		t.Errorf("wrote %q", out.String())
	}
}
