package resolvetest_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// recorded is a scenarioView that answers what a record says was asked, and nothing else.
type recorded struct {
	*scenarioView

	t     *rapid.T
	reads []resolution.Read
}

func (r recorded) asked(kind resolution.ReadKind, c resolution.CatalogKey, name string) {
	if !slices.ContainsFunc(r.reads, func(read resolution.Read) bool {
		return read.Kind == kind && read.Catalog == c &&
			read.Name == name
	}) {
		r.t.Fatalf("asked again for %s %q of %s, which is not in the record\n%s", kind, name, c, r.w)
	}
}

func (r recorded) Package(c resolution.CatalogKey, name string) *offer.Package {
	r.asked(resolution.ReadPackage, c, name)
	return r.scenarioView.Package(c, name)
}

func (r recorded) Providers(c resolution.CatalogKey, api catalog.GVK) []string {
	r.asked(resolution.ReadAPI, c, resolution.APIName(api))
	return r.scenarioView.Providers(c, api)
}

func (r recorded) Packages(c resolution.CatalogKey) []string {
	r.asked(resolution.ReadNames, c, "")
	return r.scenarioView.Packages(c)
}

// TestEveryComponentResolvesAgain: the record of each component gives the same bytes of it again, whatever else is in
// the namespace, and however little may be looked at or searched (DESIGN D5, D10).
func TestEveryComponentResolvesAgain(t *testing.T) {
	t.Parallel()
	hard := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawScenario(t, taste{known: rapid.Bool().Draw(t, "known")})
		if rapid.Bool().Draw(t, "little") {
			w.in.Policy.MaxReach = rapid.IntRange(1, 300).Draw(t, "reach")
			w.in.Policy.MaxConflicts = rapid.IntRange(1, 4).Draw(t, "conflicts")
		}
		for _, c := range resolve.Resolve(w.in).Components {
			if c.Failure != nil && c.Failure.Class == resolution.ClassTooHard {
				hard++
			}
			want := bytesOf(t, c)
			again := resolve.Resolve(c.Input.Input(recorded{w.in.View.(*scenarioView), t, c.Input.Reads}))
			if !slices.ContainsFunc(again.Components,
				func(o resolution.Component) bool { return bytesOf(t, o) == want }) {
				t.Fatalf("the record of\n%s\ngives\n%s\n%s", want, bytesOf(t, again), w)
			}
		}
	})
	if hard == 0 {
		t.Error("nothing was too hard")
	}
}

// TestReachIsEachRootsOwn: what reaches too much fails, and nobody else: neither who has nothing to do with it nor who
// shares a requirement with it (DESIGN D10).
func TestReachIsEachRootsOwn(t *testing.T) {
	t.Parallel()
	h := &hostile{}
	h.pkg("buoy", version{})
	h.pkg("chart", version{})
	h.pkg("lighthouse", version{needs("buoy", ">=1.0.0")})
	h.pkg("whale", version{needs("buoy", ">=1.0.0"), property(
		catalog.TypeConstraint, map[string]any{"not": map[string]any{"constraints": []map[string]any{
			{"package": map[string]string{"packageName": "whale", "versionRange": ">=0.0.0"}},
		}}})})
	for _, name := range []string{"chart", "lighthouse", "whale"} {
		h.subscribe(name)
	}
	in := h.input()
	in.Policy.MaxReach = 60
	failed := map[string]resolution.Class{}
	for _, c := range resolve.Resolve(in).Components {
		for _, s := range c.Subscriptions {
			if failed[s] = ""; c.Failure != nil {
				failed[s] = c.Failure.Class
			}
		}
	}
	if len(failed) != 3 || failed["s-whale"] != resolution.ClassTooHard || failed["s-chart"] != "" ||
		failed["s-lighthouse"] != "" {
		t.Errorf("failed %v", failed)
	}
}

// TestTwoFollowersEnd: two subscriptions follow one CSV that may not be there at all, and the answer comes.
func TestTwoFollowersEnd(t *testing.T) {
	t.Parallel()
	h := &hostile{}
	h.pkg("anchor", version{}, version{})
	h.subscribe("anchor")
	in := h.input()
	second := in.Subscriptions[0]
	second.Name, second.InstalledCSV = "a-anchor", "anchor.v1.1.0"
	in.Subscriptions = append(in.Subscriptions, second)
	in.Installed = []resolution.Installed{{
		CSV: "anchor.v1.1.0", Package: "anchor", Version: "1.1.0", Phase: "Succeeded", Subscription: "s-anchor",
		Properties: []catalog.Property{needs("nowhere", ">=1.0.0"), property(catalog.TypeDeprecated, map[string]any{})},
	}}
	for _, versions := range []string{"stable", "gone"} {
		in.Subscriptions[0].Channel = versions
		done := make(chan resolution.Result, 1)
		go func() { done <- resolve.Resolve(in) }()
		select {
		case r := <-done:
			if subs := answered(r); len(subs) != 2 {
				t.Errorf("channel %s: answers for %v", versions, subs)
			}
		case <-time.After(time.Minute):
			t.Fatalf("channel %s: no end", versions)
		}
	}
}

// answered are the subscriptions that have an answer.
func answered(r resolution.Result) []string {
	var out []string
	for _, c := range r.Components {
		out = append(out, c.Subscriptions...)
	}
	return out
}

// TestTakeoversLeaveNobodyShort: a bundle does not take over a CSV that it, or another operator, cannot do without;
// where nobody needs the CSV, it does (R-RES-2, RESOLVER-NOTES 7.1).
func TestTakeoversLeaveNobodyShort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asks    version
		beside  []catalog.Property // of another installed CSV
		planned bool
	}{
		"nobody needs it":      {planned: true},
		"it needs it itself":   {asks: version{needs("crane", "1.0.0")}},
		"another one needs it": {beside: []catalog.Property{needs("crane", "1.0.0")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hostile{}
			h.pkg("anchor", c.asks)
			h.packages[0].Channels[0].Entries[0].Replaces = "crane.v1.0.0"
			h.subscribe("anchor")
			in := h.input()
			in.Installed = []resolution.Installed{
				{CSV: "crane.v1.0.0", Package: "crane", Version: "1.0.0", Phase: "Succeeded"},
				{CSV: "davit.v1.0.0", Package: "davit", Version: "1.0.0", Phase: "Succeeded", Properties: c.beside},
			}
			r := resolve.Resolve(in)
			list, _, _ := failures(r)
			if !c.planned {
				if len(list) != 1 || !slices.ContainsFunc(
					list[0].Statements,
					func(s resolution.Statement) bool { return s.Kind == resolution.ReplacesConflict }) {
					t.Fatalf("failures %s", texts(list))
				}
				return
			}
			if len(list) > 0 || len(r.Components) != 1 || r.Components[0].Bundles[0].Replaces != "crane.v1.0.0" {
				t.Fatalf("failures %s, result %+v", texts(list), r.Components)
			}
		})
	}
}

// TestCoarseExplanations: where a conflict is too hard to be told in the fewest words, the explanation says so.
func TestCoarseExplanations(t *testing.T) {
	t.Parallel()
	in := pigeonhole(7, 6, false).input()
	for coarse := range 2 {
		in.Policy.MaxConflicts = []int{0, 120}[coarse]
		list, _, _ := failures(resolve.Resolve(in))
		said := slices.ContainsFunc(list, func(e *resolution.Explanation) bool {
			return e.Coarse && e.Class == resolution.ClassUnsatisfiable &&
				slices.ContainsFunc(e.Statements,
					func(s resolution.Statement) bool { return s.Kind == resolution.SearchTooLong })
		})
		if said != (coarse == 1) {
			t.Errorf("budget %d: %s", in.Policy.MaxConflicts, texts(list))
		}
	}
}
