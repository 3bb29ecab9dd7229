package eventtext_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// go test ./cmd/chandler/eventtext -update writes the golden file again.
var update = flag.Bool("update", false, "write testdata/events.txt")

const examples = "../../../libs/events/testdata"

// Every type has its own sentence; the golden file shows them all as a person reads them.
func TestEveryEventHasText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, d := range events.All() {
		raw, err := os.ReadFile(filepath.Join(examples, string(d.Type)+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var e model.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		e.Sequence = "1-42"
		if err := eventtext.Line(&out, e, 0); err != nil {
			t.Fatal(err)
		}
		if s := eventtext.Sentence(e); s == "" || strings.Contains(s, "{") || strings.Contains(s, "\n") {
			t.Errorf("%s is out as %q", d.Type, s)
		}
	}
	const golden = "testdata/events.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("out:\n%s\nwant:\n%s", out.String(), want)
	}
}

// On a terminal no line is broken but between words, and every event begins at the left.
func TestLineFitsATerminal(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(examples, "installplan.proposed.v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e model.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	for _, columns := range []int{80, 100, 120, 200} {
		var out strings.Builder
		if err := eventtext.Line(&out, e, columns); err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
			if n := len([]rune(line)); n > columns {
				t.Errorf("a line of %d columns, want %d at most: %s", n, columns, line)
			}
			if goesOn := strings.HasPrefix(line, " "); goesOn != (i > 0) {
				t.Errorf("line %d: %q", i, line)
			}
		}
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.HasSuffix(got, eventtext.Sentence(e)) {
			t.Errorf("%q does not tell %q", got, eventtext.Sentence(e))
		}
	}
}

func TestUnknownTypeShowsItsData(t *testing.T) {
	t.Parallel()
	e := model.Event{Type: "harbour.closed.v1", Data: json.RawMessage(`{"reason":"Storm"}`)}
	if got, want := eventtext.Sentence(e), `harbour.closed.v1 {"reason":"Storm"}`; got != want {
		t.Errorf("Sentence = %q, want %q", got, want)
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	b := model.PlannedBundle{Channel: "steady", Replaces: "a.v1", RequiredBy: "b.v2"}
	for reason, want := range map[string]string{
		"Subscribed": "head of channel steady", "NextStep": "follows a.v1",
		"SkipRange": "may follow a.v1 by its skip range", "RequiredPackage": "package required by b.v2",
		"RequiredAPI": "API required by b.v2", "StartingCSV": "starting version of the subscription", "Other": "Other",
	} {
		if b.Reason = reason; eventtext.Why(b) != want {
			t.Errorf("Why(%s) = %q, want %q", reason, eventtext.Why(b), want)
		}
	}
}

// TestLineIsOneLine: what a sentence holds of others begins no line of its own, and steers no terminal.
func TestLineIsOneLine(t *testing.T) {
	t.Parallel()
	e := model.Event{
		Type: "tide.turned.v9", Subject: "east\x1b[2J/a\nforged",
		Data: []byte("{\"x\": \"\x1b]0;owned\a\u202e\r\nforged\"}"),
	}
	var b strings.Builder
	if err := eventtext.Line(&b, e, 0); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\x1b\a\u202e\r") {
		t.Errorf("got %q", got)
	}
}
