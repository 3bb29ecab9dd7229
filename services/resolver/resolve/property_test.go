package resolve_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// fleetCase is a random small namespace: packages a to f in two catalogs, operators installed by
// subscription or without, new subscriptions.
type fleetCase struct {
	view  *catalogs
	props map[string][]catalog.Property // by CSV
	in    resolve.Input
}

func drawCase(t *rapid.T) fleetCase {
	c := fleetCase{view: newShelf(), props: map[string][]catalog.Property{}}
	names := strings.Split("abcdef", "")
	var packages []catalog.Package
	for _, name := range names {
		versions := []string{"3.0.0", "2.0.0", "1.0.0"}[rapid.IntRange(0, 2).Draw(t, "age"):]
		b := chain(name, versions...)
		for _, v := range versions {
			words := drawWords(t, names)
			b.Bundle(v, words...)
			c.props[name+".v"+v] = properties(name, v, words...)
		}
		packages = append(packages, b.P)
	}
	cut := rapid.IntRange(1, len(packages)-1).Draw(t, "cut")
	c.view.Add("fleet", 0, packages[:cut]...).Add("other", rapid.Int32Range(-1, 1).Draw(t, "priority"), packages[cut:]...)
	c.in = input(c.view, nil)
	for i, name := range names {
		c.drawIntent(t, name, i < cut, packages[i])
	}
	return c
}

func drawWords(t *rapid.T, names []string) []string {
	var words []string
	for _, kind := range []string{"X", "Y"} {
		switch rapid.IntRange(0, 9).Draw(t, "word") {
		case 0, 1:
			words = append(words, "gives:"+kind)
		case 2:
			words = append(words, "api:"+kind)
		case 3:
			words = append(words, "pkg:"+rapid.SampledFrom(names).Draw(t, "needs")+" >="+rapid.SampledFrom([]string{"1.0.0", "2.0.0"}).Draw(t, "range"))
		}
	}
	return words
}

// drawIntent subscribes to a package, has it installed, both, or neither.
func (c *fleetCase) drawIntent(t *rapid.T, name string, first bool, p catalog.Package) {
	follower := ""
	for _, who := range []string{"r-", "t-"}[:max(0, rapid.IntRange(-6, 2).Draw(t, "more subscriptions"))] {
		s := sub(who+name, name, "stable")
		if !first {
			s.Catalog = "other"
		}
		c.in.Subscriptions = append(c.in.Subscriptions, s)
	}
	if rapid.Bool().Draw(t, "subscribed") {
		s := sub("s-"+name, name, "stable")
		if !first {
			s.Catalog = "other"
		}
		c.in.Subscriptions = append(c.in.Subscriptions, s)
		follower = s.Name
	}
	if rapid.IntRange(0, 3).Draw(t, "installed") > 0 {
		return
	}
	b := p.Bundles[rapid.IntRange(0, len(p.Bundles)-1).Draw(t, "version")]
	c.in.Installed = append(c.in.Installed, resolve.Installed{
		CSV: b.Name, Package: name, Version: b.Version, Phase: "Succeeded", Subscription: follower, Properties: c.props[b.Name],
	})
}

// after is the set of operators once every plan is carried out, by CSV.
func (c *fleetCase) after(r resolve.Result) map[string][]catalog.Property {
	out := map[string][]catalog.Property{}
	for _, i := range c.in.Installed {
		out[i.CSV] = i.Properties
	}
	for _, comp := range r.Components {
		for _, b := range comp.Bundles {
			delete(out, b.Replaces)
			out[b.CSV] = c.props[b.CSV]
		}
	}
	return out
}

// TestResultsAreDeterministic: the same input in another order gives the same bytes (R-RES-7).
func TestResultsAreDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		first := bytesOf(t, resolve.Resolve(c.in))
		slices.Reverse(c.in.Subscriptions)
		slices.Reverse(c.in.Installed)
		slices.Reverse(c.view.Listed)
		if again := bytesOf(t, resolve.Resolve(c.in)); again != first {
			t.Fatalf("another order gives\n%s\nnot\n%s", again, first)
		}
	})
}

func bytesOf(t *rapid.T, r resolve.Result) string {
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
		r := resolve.Resolve(c.in)
		before, after := c.after(resolve.Result{}), c.after(r)
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
		return slices.ContainsFunc(flat(set), func(o catalog.Property) bool { return o.Type == catalog.TypeGVK && string(o.Value) == string(p.Value) })
	case catalog.TypePackageRequired:
		var need catalog.PackageRequired
		if json.Unmarshal(p.Value, &need) != nil {
			return false
		}
		in, err := catalog.ParseRange(need.VersionRange)
		if err != nil {
			return false
		}
		return slices.ContainsFunc(flat(set), func(o catalog.Property) bool { return o.Type == catalog.TypePackage && within(o, need.PackageName, in) })
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
		want := lines(resolve.Resolve(c.in))
		c.in.Subscriptions = append(c.in.Subscriptions, sub(rapid.SampledFrom([]string{"0", "s-bb", "z"}).Draw(t, "name"), "nowhere", "stable"))
		var got []string
		for _, l := range lines(resolve.Resolve(c.in)) {
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
		for _, comp := range resolve.Resolve(c.in).Components {
			for _, s := range comp.Subscriptions {
				seen[s]++
			}
		}
		for _, s := range c.in.Subscriptions {
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

// TestExplanationsAreMinimal: the reasons of a failure contradict each other, and without any one of them the
// others do not (R-RES-43).
func TestExplanationsAreMinimal(t *testing.T) {
	t.Parallel()
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		for _, x := range resolve.Contradictions(c.in) {
			found++
			if x.Solvable[0] {
				t.Fatalf("no contradiction: %v", x.Explanation.Statements)
			}
			if slices.Contains(x.Solvable[1:], false) {
				t.Fatalf("a reason can be left out (%v): %v", x.Solvable, x.Explanation.Statements)
			}
		}
	})
	if found == 0 {
		t.Error("no case had a contradiction")
	}
}
