package scope_test

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

var (
	first = time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC)
	later = first.Add(time.Second)

	upgraded = scope.Chain{
		{Name: "tide.v1", Created: first},
		{Name: "tide.v2", Replaces: "tide.v1", Created: later},
		{Name: "tide.v3", Replaces: "tide.v2", Created: later},
		{Name: "wind.v1", Replaces: "wind.v0", Created: first},
	}
	// A rollback brings back a version which the one that it leaves names as its predecessor: each names the other.
	wentBack = scope.Chain{{Name: "tide.v1", Replaces: "tide.v2", Back: true}, {Name: "tide.v2", Replaces: "tide.v1"}}
	// Names are written by people, too.
	ring = scope.Chain{{Name: "a", Replaces: "b"}, {Name: "b", Replaces: "a"}, {Name: "c"}}
)

// R-CSV §6.6: who follows whom decides which operator is replaced.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		line      scope.Chain
		of        string
		pre, succ string
	}{
		{"the first", upgraded, "tide.v1", "", "tide.v2"},
		{"one between two", upgraded, "tide.v2", "tide.v1", "tide.v3"},
		{"the last", upgraded, "tide.v3", "tide.v2", ""},
		{"what it followed is gone", upgraded, "wind.v1", "", ""},
		{"one that is gone", upgraded, "wind.v0", "", "wind.v1"},
		{"nobody", upgraded, "", "", ""},
		{"what came back", wentBack, "tide.v1", "tide.v2", ""},
		{"what is left", wentBack, "tide.v2", "", "tide.v1"},
	} {
		if got := c.line.Predecessor(c.of); got != c.pre {
			t.Errorf("%s: Predecessor(%q) = %q, want %q", c.name, c.of, got, c.pre)
		}
		if got := c.line.Successor(c.of); got != c.succ {
			t.Errorf("%s: Successor(%q) = %q, want %q", c.name, c.of, got, c.succ)
		}
	}
	if wentBack.RolledBack("tide.v1") || !wentBack.RolledBack("tide.v2") || upgraded.RolledBack("tide.v1") {
		t.Error("only what a rollback leaves is rolled back")
	}
}

// R-CSV §6.6: two that have nothing to do with each other may not own one API; the one that came first keeps it.
func TestApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		line           scope.Chain
		a, b           string
		related, apart bool
		cameFirst      bool // a before b
	}{
		{"through another", upgraded, "tide.v1", "tide.v3", true, false, false},
		{"the other way round", upgraded, "tide.v3", "tide.v1", true, false, false},
		{"strangers of one second, by name", upgraded, "tide.v1", "wind.v1", false, true, true},
		{"the same strangers", upgraded, "wind.v1", "tide.v1", false, true, false},
		{"strangers by age", upgraded, "wind.v1", "tide.v2", false, true, true},
		{"one that is gone is nobody's", upgraded, "tide.v1", "rain.v1", false, false, false},
		{"each names the other", wentBack, "tide.v1", "tide.v2", true, false, false},
		{"a ring ends", ring, "a", "c", false, true, true},
		{"in a ring", ring, "a", "b", true, false, false},
	} {
		if got := c.line.Related(c.a, c.b); got != c.related {
			t.Errorf("%s: Related(%q, %q) = %t", c.name, c.a, c.b, got)
		}
		if got := c.line.Apart(c.a, c.b); got != c.apart {
			t.Errorf("%s: Apart(%q, %q) = %t", c.name, c.a, c.b, got)
		}
		if got := c.line.CameFirst(c.a, c.b); got != c.cameFirst {
			t.Errorf("%s: CameFirst(%q, %q) = %t", c.name, c.a, c.b, got)
		}
	}
}
