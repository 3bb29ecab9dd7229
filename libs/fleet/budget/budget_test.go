package budget_test

import (
	"slices"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/fleet/budget"
)

// TestLeft: so many clusters within an hour and no more, each counted once (issue: mass-change budget).
func TestLeft(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(cluster string, minutes int) budget.Change {
		return budget.Change{Cluster: cluster, At: now.Add(-time.Duration(minutes) * time.Minute)}
	}
	for name, c := range map[string]struct {
		limit     int
		changes   []budget.Change
		wanted    []string
		may, wait []string
	}{
		"no limit":    {0, []budget.Change{ago("a", 1)}, []string{"b", "c"}, []string{"b", "c"}, nil},
		"none so far": {2, nil, []string{"a", "b", "c"}, []string{"a", "b"}, []string{"c"}},
		"again": {
			1, []budget.Change{ago("a", 1), ago("a", 5)}, []string{"b", "a"}, []string{"a"}, []string{"b"},
		},
		"an hour ago": {1, []budget.Change{ago("a", 60)}, []string{"b"}, []string{"b"}, nil},
		"nearly":      {1, []budget.Change{ago("a", 59)}, []string{"b"}, nil, []string{"b"}},
		"lowered meanwhile": {
			1, []budget.Change{ago("a", 1), ago("b", 1)}, []string{"c", "b"}, []string{"b"}, []string{"c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			may, wait := budget.Left(c.limit, c.changes, c.wanted, now)
			if !slices.Equal(may, c.may) || !slices.Equal(wait, c.wait) {
				t.Errorf("may %v, wait %v; want %v, %v", may, wait, c.may, c.wait)
			}
		})
	}
}
