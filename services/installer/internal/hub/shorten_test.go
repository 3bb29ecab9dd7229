package hub

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestShorten: a message that is too large loses what can wait, in a fixed order, and never the stop or what is to be
// removed.
func TestShorten(t *testing.T) {
	t.Parallel()
	m := protocol.ScopePlans{
		Stopped: true, Subscriptions: []protocol.Subscription{{Name: "s"}}, Removals: []protocol.Removal{{ID: "r"}},
		Installed: []protocol.Installed{{CSV: "a", Config: json.RawMessage(`{}`)}, {CSV: "b"}},
		Plans:     []protocol.Plan{{Name: "old"}, {Name: "new"}},
	}
	var left []string
	for {
		what := shrink(&m)
		if what == "" {
			break
		}
		left = append(left, what)
	}
	if want := []string{
		"subscriptions and waiting plans", "configurations of what is installed", "plan new",
		"plan old",
	}; !slices.Equal(left, want) {
		t.Errorf("left out %q, want %q", left, want)
	}
	if !m.Stopped || len(m.Removals) != 1 || len(m.Installed) != 2 {
		t.Errorf("what is left is %+v", m)
	}
}

// TestStopFitsAlways: the stop switch reaches an executor however much else is to be told.
func TestStopFitsAlways(t *testing.T) {
	t.Parallel()
	d := newFixture(t, time.Now())
	huge := json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)
	w := wanted{message: protocol.ScopePlans{
		Stopped: true, Installed: []protocol.Installed{{CSV: "a", Config: huge}},
		Plans: []protocol.Plan{{Name: "p", Document: huge}},
	}}
	body, err := d.h.encode(&w)
	if err != nil {
		t.Fatal(err)
	}
	var m protocol.ScopePlans
	if err := json.Unmarshal(body, &m); err != nil || !m.Stopped || len(m.Installed) != 1 || len(m.Plans) != 0 {
		t.Errorf("sent %d bytes, stopped %v, %v", len(body), m.Stopped, err)
	}
}
