package compare_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
)

// TestEdges proves which upgrades are compared ahead of time: R-GRA-3, R-GRA-6, R-GRA-9, R-GRA-11.
func TestEdges(t *testing.T) {
	t.Parallel()
	bundles := func(names ...string) []catalog.Bundle {
		var out []catalog.Bundle
		for _, n := range names {
			out = append(out, catalog.Bundle{Name: n, Version: n[1:] + ".0.0"})
		}
		return out
	}
	for name, c := range map[string]struct {
		bundles  []catalog.Bundle
		channels [][]catalog.Entry
		want     []compare.Edge
	}{
		"a chain": {
			bundles("v1", "v2", "v3"),
			[][]catalog.Entry{{{Name: "v3", Replaces: "v2"}, {Name: "v2", Replaces: "v1"}, {Name: "v1"}}},
			[]compare.Edge{{From: "v1", To: "v2"}, {From: "v2", To: "v3"}},
		},
		"a skip goes before a step, the step stays": {
			bundles("v1", "v2", "v3"),
			[][]catalog.Entry{{
				{Name: "v3", Replaces: "v2", Skips: []string{"v1"}},
				{Name: "v2", Replaces: "v1"},
				{Name: "v1"},
			}},
			[]compare.Edge{{From: "v1", To: "v2"}, {From: "v1", To: "v3"}, {From: "v2", To: "v3"}},
		},
		"a range reaches bundles of other channels": {
			bundles("v1", "v2", "v3"),
			[][]catalog.Entry{{{Name: "v3", SkipRange: "<3.0.0"}}, {{Name: "v2", Replaces: "v1"}, {Name: "v1"}}},
			[]compare.Edge{{From: "v1", To: "v2"}, {From: "v1", To: "v3"}, {From: "v2", To: "v3"}},
		},
		"nothing leads back": {
			bundles("v1", "v2"),
			[][]catalog.Entry{{{Name: "v2", Replaces: "v1"}, {Name: "v1", SkipRange: ">=1.0.0"}}},
			[]compare.Edge{{From: "v1", To: "v2"}},
		},
		"virtual nodes have no content": {
			bundles("v2", "v3"),
			[][]catalog.Entry{{{Name: "v3", Replaces: "v2"}, {Name: "v2", Replaces: "v1"}}},
			[]compare.Edge{{From: "v2", To: "v3"}},
		},
		"a channel with two heads offers nothing": {
			bundles("v1", "v2", "v3"),
			[][]catalog.Entry{{{Name: "v3", Replaces: "v1"}, {Name: "v2", Replaces: "v1"}, {Name: "v1"}}},
			[]compare.Edge{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := catalog.Package{Name: "p", Bundles: c.bundles}
			for i, entries := range c.channels {
				p.Channels = append(p.Channels, catalog.Channel{Name: fmt.Sprint(i), Entries: entries})
			}
			if diff := cmp.Diff(c.want, compare.Edges(p)); diff != "" {
				t.Errorf("want, got:\n%s", diff)
			}
		})
	}
}

// TestEdgesAreWhatTheRuleSays holds the edges of random chains against the words of R-GRA-9: from the
// head down to the bundle itself, the first entry that replaces or skips it or whose range holds its
// version and that nobody skips; and every direct "replaces".
func TestEdgesAreWhatTheRuleSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "bundles")
		below := make([]int, n) // the range of entry i holds versions below that
		skips := make([]int, n) // -1 is none
		p := catalog.Package{Name: "p"}
		c := catalog.Channel{Name: "c"}
		for i := range n {
			name := fmt.Sprint("v", i)
			p.Bundles = append(p.Bundles, catalog.Bundle{Name: name, Version: fmt.Sprint(i, ".0.0")})
			e := catalog.Entry{Name: name}
			skips[i] = -1
			if i > 0 {
				e.Replaces = fmt.Sprint("v", i-1)
				if skips[i] = rapid.IntRange(-1, i-1).Draw(t, "skips"); skips[i] >= 0 {
					e.Skips = []string{fmt.Sprint("v", skips[i])}
				}
				if below[i] = rapid.IntRange(0, n).Draw(t, "below"); below[i] > 0 {
					e.SkipRange = fmt.Sprintf("<%d.0.0", below[i])
				}
			}
			c.Entries = append(c.Entries, e)
		}
		p.Channels = []catalog.Channel{c}
		want := map[compare.Edge]bool{}
		for from := range n {
			first := true
			for to := n - 1; to > from; to-- {
				if slices.Contains(skips, to) || to-1 != from && skips[to] != from && from >= below[to] {
					continue
				}
				if first || to-1 == from {
					want[compare.Edge{From: fmt.Sprint("v", from), To: fmt.Sprint("v", to)}] = true
				}
				first = false
			}
		}
		got := map[compare.Edge]bool{}
		for _, e := range compare.Edges(p) {
			got[e] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("want, got:\n%s", diff)
		}
	})
}
