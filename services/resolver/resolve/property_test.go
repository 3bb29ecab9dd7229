package resolve_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/blang/semver/v4"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/internal/fixture"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// fleetCase is a random namespace.
type fleetCase struct{ fixture.Case }

func drawCase(t *rapid.T) fleetCase {
	return fleetCase{fixture.Draw(func(low, high int) int { return rapid.IntRange(low, high).Draw(t, "number") })}
}

// after is the set of operators once every plan is carried out, by CSV.
func (c fleetCase) after(r resolution.Result) map[string][]catalog.Property {
	out := map[string][]catalog.Property{}
	for _, i := range c.Input.Installed {
		out[i.CSV] = i.Properties
	}
	for _, comp := range r.Components {
		for _, b := range comp.Bundles {
			delete(out, b.Replaces)
			out[b.CSV] = c.Properties[b.CSV]
		}
	}
	return out
}

// TestResultsAreDeterministic: the same input in another order gives the same bytes (R-RES-7).
func TestResultsAreDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		first := bytesOf(t, resolve.Resolve(c.Input))
		slices.Reverse(c.Input.Subscriptions)
		slices.Reverse(c.Input.Installed)
		slices.Reverse(c.View.Listed)
		if again := bytesOf(t, resolve.Resolve(c.Input)); again != first {
			t.Fatalf("another order gives\n%s\nnot\n%s", again, first)
		}
	})
}

func bytesOf(t *rapid.T, r resolution.Result) string {
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPlansKeepEveryPromise: what is planned has its requirements met by what is planned or stays, what was
// met stays met, and packages and APIs have one bearer each unless they had more before (R-RES-1, 2, 11, 12).
func TestPlansKeepEveryPromise(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		r := resolve.Resolve(c.Input)
		before, after := c.after(resolution.Result{}), c.after(r)
		planned := map[string]bool{}
		for _, comp := range r.Components {
			for _, b := range comp.Bundles {
				planned[b.CSV] = true
			}
		}
		for csv, props := range after {
			for _, p := range props {
				if meets(after, p) || !planned[csv] && !meets(before, p) {
					continue
				}
				t.Fatalf("%s lacks %s %s after %v", csv, p.Type, p.Value, lines(r))
			}
		}
		was, is := bearers(before), bearers(after)
		for what, n := range is {
			if n > 1 && n > was[what] {
				t.Fatalf("%d bearers of %s after %v", n, what, lines(r))
			}
		}
	})
}

// meets says whether a requirement is met by somebody; other properties always are.
func meets(set map[string][]catalog.Property, p catalog.Property) bool {
	switch p.Type {
	case catalog.TypeGVKRequired:
		return slices.ContainsFunc(flat(set), func(o catalog.Property) bool {
			return o.Type == catalog.TypeGVK &&
				string(o.Value) == string(p.Value)
		})
	case catalog.TypePackageRequired:
		var need catalog.PackageRequired
		if json.Unmarshal(p.Value, &need) != nil {
			return false
		}
		in, err := catalog.ParseRange(need.VersionRange)
		if err != nil {
			return false
		}
		return slices.ContainsFunc(flat(set), func(o catalog.Property) bool {
			return o.Type == catalog.TypePackage &&
				within(o, need.PackageName, in)
		})
	}
	return true
}

func flat(set map[string][]catalog.Property) []catalog.Property {
	var out []catalog.Property
	for _, props := range set {
		out = append(out, props...)
	}
	return out
}

func bearers(set map[string][]catalog.Property) map[string]int {
	out := map[string]int{}
	for _, props := range set {
		for _, p := range props {
			switch p.Type {
			case catalog.TypeGVK:
				out[string(p.Value)]++
			case catalog.TypePackage:
				var v catalog.PackageProperty
				if json.Unmarshal(p.Value, &v) == nil {
					out["package "+v.PackageName]++
				}
			}
		}
	}
	return out
}

// TestOneBadSubscriptionBlocksNobody: a subscription to a package that nobody has fails alone; everything
// else comes to what it comes to without it (DESIGN D5).
func TestOneBadSubscriptionBlocksNobody(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		want := lines(resolve.Resolve(c.Input))
		c.Input.Subscriptions = append(c.Input.Subscriptions,
			sub(rapid.SampledFrom([]string{"0", "s-bb", "z"}).Draw(t, "name"), "nowhere", "stable"))
		var got []string
		for _, l := range lines(resolve.Resolve(c.Input)) {
			if l != "nowhere: failed unsatisfiable" {
				got = append(got, l)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("with a bad subscription\n%v\nwithout\n%v", got, want)
		}
	})
}

// TestEverySubscriptionIsAnswered: each stands in exactly one component.
func TestEverySubscriptionIsAnswered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		seen := map[string]int{}
		for _, comp := range resolve.Resolve(c.Input).Components {
			for _, s := range comp.Subscriptions {
				seen[s]++
			}
		}
		for _, s := range c.Input.Subscriptions {
			if seen[s.Name] != 1 {
				t.Fatalf("subscription %s stands in %d components", s.Name, seen[s.Name])
			}
		}
	})
}

func within(p catalog.Property, name string, in semver.Range) bool {
	var v catalog.PackageProperty
	if json.Unmarshal(p.Value, &v) != nil || v.PackageName != name {
		return false
	}
	parsed, err := semver.Parse(v.Version)
	return err == nil && in(parsed)
}
