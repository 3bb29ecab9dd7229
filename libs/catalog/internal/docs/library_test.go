package docs

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// TestHeapOfLibrary proves that a document of any size that the block reader leaves to the library needs little
// memory, whatever it is made of (DESIGN D10). It measures the heap, so it runs alone.
func TestHeapOfLibrary(t *testing.T) {
	const size, most = 31 << 20, 300 << 20
	worst := uint64(0)
	for name, unit := range map[string]string{
		"dashes":              strings.Repeat("- ", 150) + "x\n",
		"dashes and tabs":     strings.Repeat("-\t", 150) + "x\n",
		"dashes and old ends": "-\r", "dashes and new ends": "-\u0085", "entries": "- \n",
		"flow keys": "{a,b,c,d},", "question marks": "?,", "keys without values": "a:\n", "pairs": "[a: b],",
		"comments": "#\n\n", "marks": "- !\n", "texts": "- aaaaaaaaaaaa\n", "one text": "x", "lines": "x\n",
		"nothing": "\n", "brackets": "[", "anchors": "- &a\n", "aliases": "- *x\n",
	} {
		head := "- &x a\n"
		if strings.HasSuffix(unit, ",") {
			head = "&x [ "
		}
		text := func(n int) []byte { return []byte(head + strings.Repeat(unit, n)) }
		taken := sort.Search(maxLibraryBytes/len(unit)+1,
			func(n int) bool { return tooMuch(text(n+1), usual.Nodes) != nil })
		for _, n := range []int{taken, size / len(unit)} {
			used := peakOf(func() {
				var b jsontree.Builder
				b.Reset(usual.tree())
				_ = readYAML(text(n), &b, usual)
			})
			worst = max(worst, used)
			t.Logf("%s: %d bytes, %d MB", name, n*len(unit), used>>20)
			if used > most {
				t.Errorf("%s: %d bytes need %d MB", name, n*len(unit), used>>20)
			}
		}
	}
	if worst < 10<<20 {
		t.Error("nothing reached the library")
	}
}

// peakOf returns by how much the heap grows at most while f runs.
func peakOf(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // whatever the environment says
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, m.HeapAlloc
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			runtime.ReadMemStats(&m)
			return max(peak, m.HeapAlloc) - before
		case <-tick.C:
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}
}

// TestMarks proves that what makes many values out of few bytes is counted, and text is not.
func TestMarks(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{
		"- - -": 3, "-\t-\n": 3, "-\r-\u0085-\u2028": 4, "cert-manager-x": 0, "? a": 1, "a: b": 1, "[a,{b: c}]": 4,
		"!": 1, "": 0,
	} {
		if got := marks([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
	big := append([]byte("a: &x b\nc: "), bytes.Repeat([]byte("x"), maxLibraryBytes)...)
	var b jsontree.Builder
	if err := readYAML(big, &b, usual); err == nil || err.Limit != "bytes" || err.Line != 1 {
		t.Errorf("want the limit bytes, got %v", err)
	}
}

// TestRest proves that no text of a document is lost: what the library would leave unread is refused, with its
// line and how to fix it (R-CAT-3).
func TestRest(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" a: 1\nb: 2\n":                "2 not YAML: the document ends before this text",
		"  a: 1\n  b: 2\n{{ c : : [\n": "3 not YAML: the document ends before this text",
		"a: 1\r---\rb: 2\r":            "2 not YAML: another document begins here",
		"a: 1\u0085---\u0085b: 2":      "2 not YAML: another document begins here",
		"a: 1\u2028--- 3":              "2 not YAML: another document begins here",
		"[a]\nb: 1\n":                  "2 not YAML: the document ends before this text",
		" {a: 1}x y\n":                 "1:2 {\"a\":1}|1:8 \"x y\"",
		"a: &x 1\n# c\n":               `1:1 {"a":1}`,
		"a: &x 1\r\n\r\n":              `1:1 {"a":1}`,
	} {
		if got := strings.Join(values(t, in, wide), "|"); !strings.HasPrefix(got, want) {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

// TestTags proves that a tagged value is what its tag says in YAML 1.1, or refused.
func TestTags(t *testing.T) {
	t.Parallel()
	const no = `is not what its tag`
	for in, want := range map[string]string{
		"!!bool yes": "true", "!!bool on": "true", "!!bool y": "true", "!!bool 'Yes'": "true", "!!bool TRUE": "true",
		"!!bool no": "false", "!!bool Off": "false", "!!bool N": "false", "!!bool false": "false",
		"!!bool q": no, "!!bool": no, "!!bool tRUE": no, "!!bool 1": no,
		"!!null": "null", "!!null ~": "null", "!!null NULL": "null", "!!null x": no, "!!null 0": no,
		"!!int 12": "12", "!!int '12'": "12", "!!int 0x1F": "31", "!!int true": no, "!!int '[1,2]'": no,
		"!!int '{\"a\":1}'": no, "!!int 1.5": no, "!!int '12 '": no, "!!int": no, "!!float 1": "1",
		"!!float 1e3": "1e3", "!!float null": no, "!!float '\"x\"'": no,
		"!!float .inf": "is not a number that JSON can hold", "!!timestamp 2020-01-02": `"2020-01-02"`,
		"!!timestamp foo": no, "!!str yes": `"yes"`, "!!str": `""`, "! yes": `"yes"`, "! 12": `"12"`, "!": `""`,
		"! ~": `"~"`, "!t 1": `"1"`, "yes": "true", "y": `"y"`, "n": `"n"`, "NO": "false", "'no'": `"no"`,
		"{é: ! 1, b: [! true, 2], c: !\n }": `{"é":"1","b":["true",2],"c":""}`,
	} {
		got := strings.Join(values(t, "- "+strings.ReplaceAll(in, "\n", "\n  "), wide), "|")
		if want != no && !strings.Contains(want, " JSON ") {
			want = "1:1 [" + want + "]"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"&a b: c\n*a : d\n":   `2 key "b" occurs twice`,
		"a: &a b\n*a : d\n":   `1:1 {"a":"b","b":"d"}`,
		"x: &a [b]\n*a : d\n": `2 a key must be a plain value`,
		"!!null x: 1\n":       `1 "x" ` + no,
		"k: &k b\nm: &m {b: 1}\nn: {*k : 2, <<: *m}\n": `1:1 {"k":"b","m":{"b":1},"n":{"b":2}}`,
	} {
		if got := strings.Join(values(t, in, wide), "|"); !strings.HasPrefix(got, want) {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}
