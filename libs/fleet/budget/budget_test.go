package budget_test

import (
	"slices"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/fleet/budget"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }

// TestLeft: so many clusters within an hour and no more, each counted once (issue 14: mass-change budget).
func TestLeft(t *testing.T) {
	t.Parallel()
	type changes = map[string]time.Time
	for name, c := range map[string]struct {
		limit     int
		changes   changes
		wanted    []string
		may, wait []string
		until     time.Time
	}{
		"no limit":     {0, changes{"a": ago(1)}, []string{"b", "c"}, []string{"b", "c"}, nil, noon},
		"none so far":  {2, nil, []string{"a", "b", "c"}, []string{"a", "b"}, []string{"c"}, noon},
		"again":        {1, changes{"a": ago(1)}, []string{"b", "a"}, []string{"a"}, []string{"b"}, ago(-59)},
		"an hour ago":  {1, changes{"a": ago(60)}, []string{"b"}, []string{"b"}, nil, noon},
		"nearly":       {1, changes{"a": ago(59)}, []string{"b"}, nil, []string{"b"}, ago(-1)},
		"other clocks": {1, changes{"a": ago(-1)}, []string{"b"}, nil, []string{"b"}, ago(-61)},
		"lowered meanwhile": {
			1, changes{"a": ago(1), "b": ago(5)}, []string{"c", "b"}, []string{"b"}, []string{"c"}, ago(-59),
		},
	} {
		b := budget.Budget{Limit: c.limit, Changes: c.changes}
		may, wait := b.Left(c.wanted, noon)
		if !slices.Equal(may, c.may) || !slices.Equal(wait, c.wait) {
			t.Errorf("%s: may %v, wait %v; want %v, %v", name, may, wait, c.may, c.wait)
		}
		if until := b.Until(noon); !until.Equal(c.until) {
			t.Errorf("%s: until %v, want %v", name, until, c.until)
		}
	}
}

// TestRaised: what a person allows holds for an hour, and bounds nothing where nothing is bounded.
func TestRaised(t *testing.T) {
	t.Parallel()
	allowed := []budget.Allowance{{More: 5, At: ago(59)}, {More: 7, At: ago(60)}, {More: 2, At: ago(0)}}
	if got := budget.Raised(10, allowed, noon); got != 17 {
		t.Errorf("10 are raised to %d, want 17", got)
	}
	if got := budget.Raised(0, allowed, noon); got != 0 {
		t.Errorf("no limit is raised to %d", got)
	}
}
