package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/internal/fixture"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/plan"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/search"
)

func one(name string, words ...string) catalog.Package {
	return fixture.Chain(name, "1.0.0").Bundle("1.0.0", words...).P
}

func two(name string, newer, older []string) catalog.Package {
	return fixture.Chain(name, "2.0.0", "1.0.0").Bundle("2.0.0", newer...).Bundle("1.0.0", older...).P
}

func sub(name, pkg string) resolution.Subscription { return fixture.Sub(name, pkg, "stable") }

// TestParts: a solution is planned in parts that can be carried out apart, and no smaller ones (R-RES-1, R-RES-2).
func TestParts(t *testing.T) {
	t.Parallel()
	x, words := []string{"gives:X"}, func(w ...string) []string { return w }
	both := []resolution.Subscription{sub("s", "a"), sub("t", "b")}
	for name, c := range map[string]struct {
		view   *fixture.View
		subs   []resolution.Subscription
		have   []resolution.Installed
		shared bool
		want   []string
	}{
		"one partition, nothing shared: apart": {
			fixture.New().Add("fleet", 0, two("a", nil, words("api:X")), two("b", nil, words("api:X")), one("x", x...)),
			both, nil, false,
			[]string{"a.v2.0.0", "b.v2.0.0"},
		},
		"joint plans: together": {
			fixture.New().Add("fleet", 0, one("a"), one("b")), both, nil, true, []string{"a.v1.0.0 b.v1.0.0"},
		},
		"what is installed serves: apart": {
			fixture.New().Add("fleet", 0, one("a", "api:X"), two("b", nil, nil), one("x", x...)),
			append(both, sub("u", "x")),
			[]resolution.Installed{
				fixture.Installed("x", "1.0.0", "u", x...),
				fixture.Installed("b", "1.0.0", "t", "api:X"),
			},
			false,
			[]string{"", "a.v1.0.0", "b.v2.0.0"},
		},
		"a requirement that something new meets: together, what is required first": {
			fixture.New().Add("fleet", 0, one("a", "api:X"), one("b", x...)), both, nil, false,
			[]string{"b.v1.0.0 a.v1.0.0"},
		},
		"an API moves from one to the other: together": {
			fixture.New().Add("fleet", 0, two("a", nil, x), two("b", x, nil)), both,
			[]resolution.Installed{fixture.Installed("a", "1.0.0", "s", x...), fixture.Installed("b", "1.0.0", "t")},
			false,
			[]string{"a.v2.0.0 b.v2.0.0"},
		},
		"who drops an API waits for who needs it no more: together": {
			fixture.New().Add("fleet", 0, two("a", nil, x), two("b", nil, words("api:X"))), both,
			[]resolution.Installed{
				fixture.Installed("a", "1.0.0", "s", x...),
				fixture.Installed("b", "1.0.0", "t", "api:X"),
			},
			false,
			[]string{"a.v2.0.0 b.v2.0.0"},
		},
		"who keeps the API goes alone": {
			fixture.New().Add("fleet", 0, two("a", x, x), two("b", words("api:X"), words("api:X"))), both,
			[]resolution.Installed{
				fixture.Installed("a", "1.0.0", "s", x...),
				fixture.Installed("b", "1.0.0", "t", "api:X"),
			},
			false,
			[]string{"a.v2.0.0", "b.v2.0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fixture.Input(c.view, c.subs, c.have...).Canonical()
			var got []string
			for _, part := range graph.Build(&in, graph.NewReader(in.View, in.View.Catalogs())).Partitions(c.shared) {
				s := search.Solve(part, search.MaxConflicts)
				p := plan.New(part, &s)
				for _, part := range p.Parts(c.shared) {
					var bundles []string
					for _, n := range p.InOrder(part.Bundles) {
						bundles = append(bundles, p.Bundle(n).CSV)
					}
					got = append(got, strings.Join(bundles, " "))
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
