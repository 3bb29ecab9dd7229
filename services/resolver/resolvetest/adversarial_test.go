package resolvetest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// hostile makes namespaces that are hard on purpose.
type hostile struct {
	packages []catalog.Package
	subs     []resolution.Subscription
}

// version is one version of a package; the first of a list is the head.
type version []catalog.Property

func (h *hostile) pkg(name string, versions ...version) {
	p := catalog.Package{Name: name, DefaultChannel: "stable", Channels: []catalog.Channel{{Name: "stable"}}}
	csv := func(i int) string { return fmt.Sprintf("%s.v1.%d.0", name, len(versions)-i) }
	for i, v := range versions {
		e := catalog.Entry{Name: csv(i)}
		if i+1 < len(versions) {
			e.Replaces = csv(i + 1)
		}
		p.Channels[0].Entries = append(p.Channels[0].Entries, e)
		number := fmt.Sprintf("1.%d.0", len(versions)-i)
		p.Bundles = append(p.Bundles, catalog.Bundle{
			Name: csv(i), Version: number,
			Properties: append(version{property(catalog.TypePackage,
				catalog.PackageProperty{PackageName: name, Version: number})}, v...),
		})
	}
	h.packages = append(h.packages, p)
}

func (h *hostile) subscribe(name string) {
	h.subs = append(h.subs, resolution.Subscription{
		Name: "s-" + name, Package: name, Channel: "stable",
		Catalog: "fleet", Approval: resolution.Automatic,
	})
}

func (h *hostile) input() resolution.Input {
	key := resolution.CatalogKey{Name: "fleet"}
	slices.SortFunc(h.packages, func(a, b catalog.Package) int { return strings.Compare(a.Name, b.Name) })
	w := &scenario{
		catalogs: []resolution.Catalog{{Key: key, Ready: true, Revision: "r1"}},
		packages: map[resolution.CatalogKey][]catalog.Package{key: h.packages},
	}
	return resolution.Input{
		Scope: resolution.Scope{Cluster: "harbour", Namespace: namespace}, View: newShelf(w), Subscriptions: h.subs,
		OperatorGroups: []resolution.OperatorGroup{{Name: "og"}},
	}
}

func gives(kind string) catalog.Property { return property(catalog.TypeGVK, api(kind)) }

func needs(name, versions string) catalog.Property {
	return property(catalog.TypePackageRequired, catalog.PackageRequired{PackageName: name, VersionRange: versions})
}

// chain: each of many packages needs the next one, in many versions; the last one's newest versions exclude what the
// first one brings. late says how far down that is found out.
func chain(length, versions int, late bool) *hostile {
	h := &hostile{}
	name := func(i int) string { return fmt.Sprintf("link%03d", i) }
	for i := range length {
		list := make([]version, versions)
		for v := range list {
			switch {
			case i+1 < length:
				list[v] = version{needs(name(i+1), fmt.Sprintf("<=1.%d.0", versions-v))}
			case late && v+1 < versions:
				list[v] = version{gives("Anchor")}
			}
			if i == 0 && late {
				list[v] = append(list[v], gives("Anchor"))
			}
		}
		h.pkg(name(i), list...)
	}
	h.subscribe(name(0))
	return h
}

// pigeonhole: each of many packages comes in a version for each API, and provides it; through says that a package of
// its own kind does, which the version needs.
func pigeonhole(pigeons, holes int, through bool) *hostile {
	h := &hostile{}
	for hole := range holes {
		list := make([]version, pigeons)
		h.pkg(fmt.Sprintf("hole%03d", hole), list...)
	}
	for p := range pigeons {
		list := make([]version, holes)
		for hole := range list {
			list[hole] = version{gives(fmt.Sprintf("Hole%d", hole))}
			if through {
				list[hole] = version{needs(fmt.Sprintf("hole%03d", hole), fmt.Sprintf("1.%d.0", p+1))}
			}
		}
		name := fmt.Sprintf("pigeon%03d", p)
		h.pkg(name, list...)
		h.subscribe(name)
	}
	return h
}

// riddle is a random formula: a package for each variable, whose two versions are its values, and one for each clause.
func riddle(variables, clauses int) *hostile {
	h := &hostile{}
	draw := rand.New(rand.NewPCG(3, 4))
	for v := range variables {
		h.pkg(fmt.Sprintf("var%03d", v), version{}, version{})
	}
	for c := range clauses {
		var parts []map[string]any
		for range 3 {
			parts = append(parts, map[string]any{"package": map[string]string{
				"packageName":  fmt.Sprintf("var%03d", draw.IntN(variables)),
				"versionRange": fmt.Sprintf("1.%d.0", 1+draw.IntN(2)),
			}})
		}
		name := fmt.Sprintf("clause%04d", c)
		h.pkg(name, version{property(catalog.TypeConstraint,
			map[string]any{"any": map[string]any{"constraints": parts}})})
		h.subscribe(name)
	}
	return h
}

// crowd is many subscriptions that share some dependencies and clash over some APIs, as in a large namespace.
func crowd(subs int) *hostile {
	h := &hostile{}
	for d := range subs / 5 {
		h.pkg(fmt.Sprintf("dep%03d", d), make([]version, 6)...)
	}
	for i := range subs {
		list := make([]version, 8)
		for v := range list {
			list[v] = version{needs(fmt.Sprintf("dep%03d", (i+v)%(subs/5)), fmt.Sprintf(">=1.%d.0", 1+(i*v)%5))}
			if v < 3 {
				list[v] = append(list[v], gives(fmt.Sprintf("Kind%d", (i+v)%(subs/2))))
			}
		}
		name := fmt.Sprintf("op%03d", i)
		h.pkg(name, list...)
		h.subscribe(name)
	}
	return h
}

// TestHostileNamespaces: an answer is found within the budget, or the failure names it (DESIGN D10).
func TestHostileNamespaces(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		h      *hostile
		failed int // subscriptions of the failure
	}{
		"a deep chain":                    {h: chain(300, 10, false)},
		"a late conflict":                 {h: chain(60, 10, true)},
		"10 pigeons, 9 holes":             {h: pigeonhole(10, 9, false), failed: 10},
		"10 pigeons, 9 holes of packages": {h: pigeonhole(10, 9, true), failed: 10},
		"30 pigeons, 29 holes":            {h: pigeonhole(30, 29, false), failed: 30},
		"as many holes as pigeons":        {h: pigeonhole(30, 30, false)},
		"50 subscriptions":                {h: crowd(50)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := c.h.input()
			list, _, _ := failures(resolve.Resolve(in))
			failed := 0
			for _, e := range list {
				if e.Class != resolution.ClassUnsatisfiable {
					t.Fatalf("failed as %s: %s", e.Class, texts(list))
				}
				failed = max(failed, len(e.Subscriptions))
			}
			if failed != c.failed {
				t.Fatalf("%d subscriptions in the knot, want %d: %s", failed, c.failed, texts(list))
			}
		})
	}
}

// TestTooHard: what takes more than the budget fails with a class of its own, which names the budget and who is in the
// knot; every subscription has an answer (DESIGN D10).
func TestTooHard(t *testing.T) {
	t.Parallel()
	in := riddle(60, 280).input()
	in.Policy.MaxConflicts = 20
	result := resolve.Resolve(in)
	list, _, _ := failures(result)
	at := slices.IndexFunc(list, func(e *resolution.Explanation) bool { return e.Class == resolution.ClassTooHard })
	if at < 0 {
		t.Fatalf("nothing was too hard: %s", texts(list))
	}
	knot := list[at]
	if got := texts(list[at : at+1]); !strings.Contains(got, "budget of 20 conflicts") ||
		!strings.Contains(got, knot.Subscriptions[0]) {
		t.Fatalf("does not name budget and subscriptions: %s", got)
	}
	answered := 0
	for _, c := range result.Components {
		answered += len(c.Subscriptions)
	}
	if answered != len(in.Subscriptions) {
		t.Fatalf("%d of %d subscriptions have an answer", answered, len(in.Subscriptions))
	}
}

// BenchmarkHostile is one whole resolution, the expansion included.
func BenchmarkHostile(b *testing.B) {
	for _, c := range []struct {
		name string
		h    *hostile
	}{
		{"chain=300x10", chain(300, 10, false)},
		{"late=60x10", chain(60, 10, true)},
		{"late=200x20", chain(200, 20, true)},
		{"pigeons=10", pigeonhole(10, 9, false)},
		{"pigeons=10through", pigeonhole(10, 9, true)},
		{"pigeons=30", pigeonhole(30, 29, false)},
		{"pigeons=50", pigeonhole(50, 49, false)},
		{"subscriptions=50", crowd(50)},
		{"riddle=60", riddle(60, 256)},
		{"riddle=120", riddle(120, 511)},
	} {
		in := c.h.input()
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resolve.Resolve(in)
			}
		})
	}
}
