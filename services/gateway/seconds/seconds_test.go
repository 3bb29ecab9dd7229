package seconds_test

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/seconds"
)

type node struct {
	At    time.Time            `json:"at"`
	Until *time.Time           `json:"until,omitempty"`
	Named map[string]time.Time `json:"named,omitempty"`
	Nodes []node               `json:"nodes,omitempty"`
	Any   any                  `json:"any,omitempty"`
	Next  *node                `json:"next,omitempty"`
	Pair  [1]time.Time         `json:"pair"`
	Raw   json.RawMessage      `json:"raw,omitempty"`
}

type outer struct {
	node // its times stay, since nobody else writes what is not exported
	None *node
}

// at has a zone and parts of a second.
var at = time.Date(2026, 3, 4, 1, 2, 3, 456789123, time.FixedZone("", 2*60*60))

// TestOf: wherever a time stands, it is written in whole seconds of UTC; what was given stays as it is.
func TestOf(t *testing.T) {
	t.Parallel()
	given := func() node {
		return node{
			At: at, Until: new(at), Named: map[string]time.Time{"a": at}, Pair: [1]time.Time{at},
			Nodes: []node{{At: at}}, Any: []any{at, map[string]any{"x": &node{At: at}}, nil, "2026-01-01T00:00:00.5Z"},
			Next: &node{At: at, Next: &node{At: at}}, Raw: json.RawMessage(`"2026-01-01T00:00:00.5Z"`),
		}
	}
	v := given()
	raw, err := json.Marshal(seconds.Of(&v))
	if err != nil {
		t.Fatal(err)
	}
	const s, zero = `"2026-03-03T23:02:03Z"`, `"pair":["0001-01-01T00:00:00Z"]`
	const one = `{"at":` + s + `,` + zero + `}`
	const want = `{"at":` + s + `,"until":` + s + `,"named":{"a":` + s + `},"nodes":[` + one + `],` +
		`"any":[` + s + `,{"x":` + one + `},null,"2026-01-01T00:00:00.5Z"],` +
		`"next":{"at":` + s + `,"next":` + one + `,` + zero + `},"pair":[` + s + `],"raw":"2026-01-01T00:00:00.5Z"}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
	before, _ := json.Marshal(given()) //nolint:errchkjson // compared below
	after, _ := json.Marshal(v)        //nolint:errchkjson // compared below
	if !bytes.Equal(before, after) {
		t.Errorf("what was given became %s", after)
	}
	if seconds.Of(nil) != nil {
		t.Error("nil became something")
	}
	if got, ok := seconds.Of(outer{node: node{At: at}}).(outer); !ok || !got.At.Equal(at) || got.None != nil {
		t.Errorf("an unexported part became %v", got)
	}
}

// TestOfShared: values that several answers share may be read meanwhile.
func TestOfShared(t *testing.T) {
	t.Parallel()
	shared := &node{At: at, Nodes: []node{{At: at}}, Named: map[string]time.Time{"a": at}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { seconds.Of(shared) })
	}
	wg.Wait()
}
