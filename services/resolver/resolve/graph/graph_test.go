package graph_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/internal/fixture"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
)

func one(name string, words ...string) catalog.Package {
	return fixture.Chain(name, "1.0.0").Bundle("1.0.0", words...).P
}

func sub(name string) resolution.Subscription { return fixture.Sub(name, name, "stable") }

// roots are the names of the roots of each partition.
func roots(list []*graph.Partition) []string {
	var out []string
	for _, p := range list {
		var names []string
		for _, r := range p.Roots {
			if r.Sub != nil {
				names = append(names, r.Sub.Name)
			} else {
				names = append(names, r.CSV())
			}
		}
		out = append(out, strings.Join(names, " "))
	}
	return out
}

// TestPartitions: what can touch each other is solved together, and nothing else is.
func TestPartitions(t *testing.T) {
	t.Parallel()
	view := fixture.New().Add("fleet", 0,
		one("a", "api:X"), one("b", "gives:X"), one("c"), one("d", "gives:Y"), one("e", "gives:Y"),
		one("f", "pkg:c >=1.0.0"), fixture.Pkg("g", "stable").Bundle("2.0.0").Channel("stable", "2.0.0<1.0.0").P)
	for name, c := range map[string]struct {
		subs   []resolution.Subscription
		have   []resolution.Installed
		shared bool
		want   []string
	}{
		"nothing in common": {
			[]resolution.Subscription{sub("b"), sub("c")},
			nil, false,
			[]string{"b", "c"},
		},
		"joint plans": {
			[]resolution.Subscription{sub("b"), sub("c")},
			nil, true,
			[]string{"b c"},
		},
		"a requirement": {
			[]resolution.Subscription{sub("a"), sub("b"), sub("c")},
			nil, false,
			[]string{"a b", "c"},
		},
		"one package": {
			[]resolution.Subscription{sub("c"), sub("f")},
			nil, false,
			[]string{"c f"},
		},
		"one API": {
			[]resolution.Subscription{sub("d"), sub("e")},
			nil, false,
			[]string{"d e"},
		},
		"what is installed provides": {
			[]resolution.Subscription{sub("a")},
			[]resolution.Installed{fixture.Installed("z", "1.0.0", "", "gives:X")},
			false,
			[]string{"a z.v1.0.0"},
		},
		"a bundle that replaces what is there": {
			[]resolution.Subscription{sub("g")},
			[]resolution.Installed{{CSV: "g.v1.0.0"}},
			false,
			[]string{"g g.v1.0.0"},
		},
		"what is installed and touches nothing": {
			[]resolution.Subscription{sub("c")},
			[]resolution.Installed{fixture.Installed("z", "1.0.0", "")},
			false,
			[]string{"c", "z.v1.0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fixture.Input(view, c.subs, c.have...).Canonical()
			g := graph.Build(&in, graph.NewReader(view, view.Catalogs()))
			if diff := cmp.Diff(c.want, roots(g.Partitions(c.shared))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCandidatesByPreference: the default channel first, each from the head down; of something installed its
// successors, nearest the head first, then itself (R-RES-35, R-GRA-6, R-GRA-9).
func TestCandidatesByPreference(t *testing.T) {
	t.Parallel()
	b := fixture.Pkg("a", "stable").Bundle("1.0.0").Bundle("2.0.0").Bundle("3.0.0").
		Channel("alpha", "3.0.0<2.0.0", "2.0.0").Channel("stable", "2.0.0<1.0.0", "1.0.0")
	view := fixture.New().Add("fleet", 0, b.P)
	starting := fixture.Sub("s", "a", "alpha")
	starting.StartingCSV = "a.v2.0.0"
	for name, c := range map[string]struct {
		sub  resolution.Subscription
		have []resolution.Installed
		want []string
	}{
		"a channel": {
			fixture.Sub("s", "a", "alpha"), nil,
			[]string{"fleet/alpha/a.v3.0.0", "fleet/alpha/a.v2.0.0"},
		},
		"any channel": {
			fixture.Sub("s", "a", ""), nil,
			[]string{"fleet/stable/a.v2.0.0", "fleet/stable/a.v1.0.0", "fleet/alpha/a.v3.0.0", "fleet/alpha/a.v2.0.0"},
		},
		"a starting CSV": {starting, nil, []string{"fleet/alpha/a.v2.0.0"}},
		"successors": {
			fixture.Sub("s", "a", "stable"),
			[]resolution.Installed{fixture.Installed("a", "1.0.0", "s")},
			[]string{"fleet/stable/a.v2.0.0", "installed a.v1.0.0"},
		},
		"none, but what it has": {
			fixture.Sub("s", "a", "alpha"),
			[]resolution.Installed{fixture.Installed("a", "1.0.0", "s")},
			[]string{"installed a.v1.0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fixture.Input(view, []resolution.Subscription{c.sub}, c.have...).Canonical()
			p := graph.Build(&in, graph.NewReader(view, view.Catalogs())).Partitions(false)[0]
			var got []string
			for _, n := range p.Roots[0].Candidates {
				got = append(got, p.ID(n))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
