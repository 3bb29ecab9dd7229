package story_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/story"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// go test ./cmd/chandler/story -update writes the golden file again.
var update = flag.Bool("update", false, "write testdata/story.txt")

const examples = "../../../libs/events/testdata"

// Every type has its own sentence; the golden file shows them all as a person reads them.
func TestEveryEventIsTold(t *testing.T) {
	t.Parallel()
	var told strings.Builder
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
		if err := story.Line(&told, e); err != nil {
			t.Fatal(err)
		}
		if s := story.Sentence(e); s == "" || strings.Contains(s, "{") || strings.Contains(s, "\n") {
			t.Errorf("%s is told as %q", d.Type, s)
		}
	}
	const golden = "testdata/story.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(told.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if told.String() != string(want) {
		t.Errorf("told:\n%s\nwant:\n%s", told.String(), want)
	}
}

func TestAnUnknownTypeIsToldByItsData(t *testing.T) {
	t.Parallel()
	e := model.Event{Type: "harbour.closed.v1", Data: json.RawMessage(`{"reason":"Storm"}`)}
	if got, want := story.Sentence(e), `harbour.closed.v1 {"reason":"Storm"}`; got != want {
		t.Errorf("Sentence = %q, want %q", got, want)
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	b := model.PlannedBundle{Channel: "steady", Replaces: "a.v1", RequiredBy: "b.v2"}
	for reason, want := range map[string]string{
		"Subscribed": "head of channel steady", "NextStep": "follows a.v1", "SkipRange": "may follow a.v1 by its skip range",
		"RequiredPackage": "package required by b.v2", "RequiredAPI": "API required by b.v2", "StartingCSV": "starting version of the subscription", "Other": "Other",
	} {
		if b.Reason = reason; story.Why(b) != want {
			t.Errorf("Why(%s) = %q, want %q", reason, story.Why(b), want)
		}
	}
}
