package explain_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/internal/fixture"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/explain"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/search"
)

func one(name string, words ...string) catalog.Package {
	return fixture.Chain(name, "1.0.0").Bundle("1.0.0", words...).P
}

// TestFailure: each failure names who cannot be had, what it requires and what excludes that (R-RES-43).
func TestFailure(t *testing.T) {
	t.Parallel()
	view := fixture.New().Add("fleet", 0, one("a", "gives:X"), one("b", "gives:X"), one("c", "pkg:a >=2.0.0"),
		one("old", "deprecated"))
	start := fixture.Sub("old", "old", "stable")
	start.StartingCSV = "old.v1.0.0"
	sub := func(name string) resolution.Subscription { return fixture.Sub(name, name, "stable") }
	for name, c := range map[string]struct {
		subs []resolution.Subscription
		have []resolution.Installed
		want []string
	}{
		"two providers of one API": {[]resolution.Subscription{sub("a"), sub("b")}, nil, []string{
			"unsatisfiable of [a b] []",
			"subscription a requires fleet/stable/a.v1.0.0",
			"subscription a to package a exists",
			"subscription b requires fleet/stable/b.v1.0.0",
			"subscription b to package b exists",
			"there can be only one provider of X (sea.test/v1): fleet/stable/a.v1.0.0 and fleet/stable/b.v1.0.0",
		}},
		"an installed provider": {
			[]resolution.Subscription{sub("a")},
			[]resolution.Installed{fixture.Installed("b", "1.0.0", "", "gives:X")},
			[]string{
				"unsatisfiable of [a] [b.v1.0.0]",
				"clusterserviceversion b.v1.0.0 exists and is not referenced by a subscription",
				"subscription a requires fleet/stable/a.v1.0.0",
				"subscription a to package a exists",
				"there can be only one provider of X (sea.test/v1): fleet/stable/a.v1.0.0 and installed b.v1.0.0",
			},
		},
		"a version that no catalog has": {[]resolution.Subscription{sub("c")}, nil, []string{
			"unsatisfiable of [c] []",
			"bundle fleet/stable/c.v1.0.0 requires an operator of package a in range >=2.0.0; the visible catalogs " +
				"have a 1.0.0",
			"subscription c requires fleet/stable/c.v1.0.0",
			"subscription c to package c exists",
		}},
		"a deprecated bundle": {[]resolution.Subscription{start}, nil, []string{
			"unsatisfiable of [old] []",
			"bundle fleet/stable/old.v1.0.0 is deprecated",
			"subscription old requires fleet/stable/old.v1.0.0",
			"subscription old to package old exists",
		}},
		"no such package": {[]resolution.Subscription{sub("olf")}, nil, []string{
			"unsatisfiable of [olf] []",
			"no operators found in package olf in catalog fleet referenced by subscription olf; similar packages " +
				"there are old",
			"subscription olf to package olf exists",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fixture.Input(view, c.subs, c.have...).Canonical()
			var got []string
			for _, p := range graph.Build(&in, graph.NewReader(view, view.Catalogs())).Partitions(false) {
				for _, f := range search.Solve(p, search.MaxConflicts).Failures {
					e, _ := explain.Failure(p, f)
					got = append(got, fmt.Sprintf("%s of %v %v", e.Class, e.Subscriptions, e.CSVs))
					for _, s := range e.Statements {
						got = append(got, s.Text)
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
