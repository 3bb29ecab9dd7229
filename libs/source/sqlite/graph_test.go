package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// fan is a channel in which one bundle skips n others, each named by two rows.
func fan(n int) []entry {
	rows := []entry{{id: "h", bundle: "head"}}
	for i := range n {
		to := fmt.Sprintf("t%d", i)
		rows = append(rows, entry{id: to, bundle: fmt.Sprintf("skip%08d", i)},
			entry{id: "r" + to, bundle: "b", replaces: to}, entry{id: "s" + to, bundle: "b", replaces: to})
	}
	return rows
}

// TestManySkips proves that a bundle may skip as many others as a table has rows, in a time that grows with
// their number and not with its square (R-CAT-75; issue: hostile input).
func TestManySkips(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"head": true, "b": true}
	took := func(n int) time.Duration {
		rows := fan(n)
		began := time.Now()
		list, err := graph(t.Context(), rows, "head", known)
		if err != nil || len(list) != 2 || len(list[0].Skips) != n {
			t.Fatalf("%d entries, %v; want 2, the first with %d skips", len(list), err, n)
		}
		return time.Since(began)
	}
	took(1000)
	// Eight times as many took 64 times as long. A machine that is busy with something else in one of the two moments
	// says nothing, so that one fair comparison of several is enough: a time that grows with the square never has one.
	var seen []string
	for range 8 {
		few, many := took(5000), took(40_000)
		if many <= 40*few {
			return
		}
		seen = append(seen, few.String()+" and "+many.String())
	}
	t.Errorf("5000 and 40000 skips take %s", strings.Join(seen, ", "))
}

// TestGraphEnds proves that a look that ended makes no graph.
func TestGraphEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, err := graph(ctx, fan(10), "head", map[string]bool{"b": true}); !errors.Is(err, context.Canceled) ||
		list != nil {
		t.Errorf("%v, %v", list, err)
	}
}
