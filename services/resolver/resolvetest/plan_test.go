package resolvetest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// TestAnyPlansKeepEveryPromise: whichever of the components are carried out, and whichever are not, what they install
// has all that it requires, nothing loses what it has, and packages and APIs have one bearer each unless they had
// more before (R-RES-1, 2, 11, 12). Each subscription moves at most one step, from what it follows (RESOLVER-NOTES
// 2.4).
func TestAnyPlansKeepEveryPromise(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawScenario(t, taste{})
		result := resolve.Resolve(w.in)
		before := w.operators(nil)
		for some := range 1 << min(len(result.Components), 5) {
			var plans []resolution.Component
			for i, c := range result.Components {
				if some>>i&1 == 1 {
					plans = append(plans, c)
				}
			}
			after := w.operators(plans)
			for _, o := range after {
				checkKept(t, w, o, before, after)
			}
			checkBearers(t, w, before, after)
		}
	})
}

// operators are what is there once plans are carried out, with the version of what was planned.
func (w *scenario) operators(plans []resolution.Component) []*operator {
	var out []*operator
	gone := map[string]bool{}
	for _, c := range plans {
		for _, b := range c.Bundles {
			gone[b.Replaces] = true
			out = append(out, w.bundle(b.Catalog, *w.find(b.Catalog, b.Package), b.Channel, b.CSV))
		}
	}
	for _, o := range newBrute(w, none, none).installed {
		if !gone[o.name] {
			out = append(out, o)
		}
	}
	return out
}

func checkKept(t *rapid.T, w *scenario, o *operator, before, after []*operator) {
	// What is installed under the name of a bundle is taken for it, where its own package is not known.
	known := slices.Clone(after)
	for i, a := range known {
		if a.pkg == "" {
			b := *a
			b.pkg, _, _ = strings.Cut(a.name, ".v")
			known[i] = &b
		}
	}
	for _, ask := range o.asks {
		if slices.ContainsFunc(known, ask.met) || o.installed && !slices.ContainsFunc(before, ask.met) {
			continue
		}
		t.Fatalf("%s lacks %s after %v\n%s", o.name, encode(ask), names(after), w)
	}
}

func checkBearers(t *rapid.T, w *scenario, before, after []*operator) {
	was := bearers(before)
	for what, n := range bearers(after) {
		if n > 1 && n > was[what] {
			t.Fatalf("%d bearers of %v among %v\n%s", n, what, names(after), w)
		}
	}
}

func bearers(list []*operator) map[string]int {
	out := map[string]int{}
	for _, o := range list {
		if o.pkg != "" {
			out[o.pkg]++
		}
		for _, api := range o.apis {
			out[api.String()]++
		}
	}
	return out
}

func names(list []*operator) []string {
	var out []string
	for _, o := range list {
		out = append(out, o.name)
	}
	slices.Sort(out)
	return out
}

// TestOrderDoesNotMatter: the same input in another order gives the same bytes (R-RES-7).
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawScenario(t, taste{shared: rapid.Bool().Draw(t, "shared")})
		want := bytesOf(t, resolve.Resolve(w.in))
		w.in.Subscriptions = rapid.Permutation(w.in.Subscriptions).Draw(t, "subscriptions")
		w.in.Installed = rapid.Permutation(w.in.Installed).Draw(t, "installed")
		w.catalogs = rapid.Permutation(w.catalogs).Draw(t, "catalogs")
		if got := bytesOf(t, resolve.Resolve(w.in)); got != want {
			t.Fatalf("another order gives\n%s\nnot\n%s\n%s", got, want, w)
		}
	})
}

func bytesOf(t *rapid.T, v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestImpossibleSubscriptionIsAlone: one that nobody can meet fails by itself, and the components of all others, with
// their recorded inputs, are the same bytes as without it (DESIGN D5).
func TestImpossibleSubscriptionIsAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawScenario(t, taste{known: true})
		key := w.catalogs[0].Key
		w.packages[key] = append(w.packages[key], catalog.Package{
			Name: "flag", DefaultChannel: "stable",
			Channels: []catalog.Channel{{Name: "stable", Entries: []catalog.Entry{{Name: "flag.v1.0.0"}}}},
			Bundles: []catalog.Bundle{{Name: "flag.v1.0.0", Version: "1.0.0", Properties: []catalog.Property{
				property(catalog.TypePackage, catalog.PackageProperty{PackageName: "flag", Version: "1.0.0"}),
				property(catalog.TypeGVKRequired, api("Flagpole")),
			}}},
		})
		w.in.View = newShelf(w)
		want := resolve.Resolve(w.in)
		w.in.Subscriptions = append(w.in.Subscriptions, resolution.Subscription{
			Name: rapid.SampledFrom([]string{"a", "s-c", "z"}).Draw(t, "name"), Package: "flag", Catalog: key.Name,
			Approval: resolution.Automatic,
		})
		got := resolve.Resolve(w.in)
		at := slices.IndexFunc(got.Components, func(c resolution.Component) bool { return c.Name == "flag" })
		if at < 0 || got.Components[at].Failure == nil {
			t.Fatalf("the subscription does not fail by itself: %s", bytesOf(t, got))
		}
		got.Components = slices.Delete(got.Components, at, at+1)
		if a, b := bytesOf(t, got.Components), bytesOf(t, want.Components); a != b {
			t.Fatalf("with it\n%s\nwithout\n%s\n%s", a, b, w)
		}
	})
}
