package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

func graph(t *testing.T, entries ...catalog.Entry) *catalog.Graph {
	t.Helper()
	g, err := catalog.NewGraph(catalog.Channel{Name: "steady", Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func names(entries []catalog.Entry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}

// TestSuccessors proves the candidate rule of R-GRA-9 with R-GRA-3, 6, 8, 11 and 14.
func TestSuccessors(t *testing.T) {
	t.Parallel()
	chain := []catalog.Entry{{Name: "v3", Replaces: "v2"}, {Name: "v2", Replaces: "v1"}, {Name: "v1"}}
	skips := []catalog.Entry{
		{Name: "v3", Replaces: "v1", Skips: []string{"v2", "gone"}},
		{Name: "v2", Replaces: "v1"},
		{Name: "v1", Replaces: "v0"},
	}
	ranged := []catalog.Entry{
		{Name: "v3", Replaces: "v2", SkipRange: ">=1.0.0 <3.0.0"},
		{Name: "v2", Replaces: "v1", SkipRange: "<2.0.0"},
		{Name: "v1"},
	}
	for _, c := range []struct {
		name            string
		entries         []catalog.Entry
		installed, vers string
		want            string
	}{
		{"one step at a time", chain, "v1", "1.0.0", "v2"},
		{"the last step", chain, "v2", "2.0.0", "v3"},
		{"the head has none", chain, "v3", "3.0.0", ""},
		{"unknown to the channel", chain, "x", "1.0.0", ""},
		{"off a bad one", skips, "v2", "2.0.0", "v3"},
		{"past a bad one", skips, "v1", "1.0.0", "v3"},
		{"off a virtual one", skips, "gone", "1.5.0", "v3"},
		{"replaced virtual one", skips, "v0", "0.9.0", "v1"},
		{"range prefers the head", ranged, "v1", "1.0.0", "v3 v2"},
		{"range of a version that the channel does not have", ranged, "other", "1.2.3", "v3 v2"},
		{"below the head's range", ranged, "old", "0.5.0", "v2"},
		{"version unknown", ranged, "v2", "", "v3"},
		{
			"nothing moves backwards",
			[]catalog.Entry{{Name: "v2", Replaces: "v1"}, {Name: "v1", SkipRange: ">=0.0.0"}},
			"v2", "2.0.0", "",
		},
		{"not onto itself", []catalog.Entry{{Name: "v2", SkipRange: "<=2.0.0"}}, "v2", "2.0.0", ""},
		{"a range that is none", []catalog.Entry{{Name: "v2", SkipRange: "latest"}}, "v1", "1.0.0", ""},
		{
			"pre-release in range",
			[]catalog.Entry{{Name: "v2", SkipRange: ">=1.0.0 <2.0.0"}},
			"v2-rc", "2.0.0-rc.1",
			"v2",
		},
	} {
		if got := names(graph(t, c.entries...).Successors(c.installed, c.vers)); got != c.want {
			t.Errorf("%s: successors of %s are %q, want %q", c.name, c.installed, got, c.want)
		}
	}
}

// TestGraphOrder proves head, order and virtual nodes (R-GRA-1, R-GRA-9, R-GRA-11).
func TestGraphOrder(t *testing.T) {
	t.Parallel()
	g := graph(t, catalog.Entry{Name: "a"}, catalog.Entry{Name: "d", Replaces: "c", Skips: []string{"b", "x"}},
		catalog.Entry{Name: "c", Replaces: "b"}, catalog.Entry{Name: "b", Replaces: "a"})
	if g.Head().Name != "d" || names(g.Ordered()) != "d c a" || !slices.Equal(g.Virtual(), []string{"x"}) ||
		!g.Skipped("b") || g.Skipped("a") {
		t.Errorf("head %s, order %s, virtual %v", g.Head().Name, names(g.Ordered()), g.Virtual())
	}
	if e, ok := g.Entry("c"); !ok || e.Replaces != "b" {
		t.Errorf("entry c: %+v, %v", e, ok)
	}
}

// TestGraphErrors proves the messages of R-GRA-15.
func TestGraphErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		entries []catalog.Entry
		reason  catalog.GraphReason
		says    string
	}{
		{nil, catalog.ReasonEmpty, "has no entries"},
		{
			[]catalog.Entry{{Name: "a", Replaces: "b"}, {Name: "b", Replaces: "a"}},
			catalog.ReasonNoHead,
			"no channel heads (entries not replaced by another entry) found in channel \"steady\": a, b",
		},
		{
			[]catalog.Entry{{Name: "b"}, {Name: "a"}},
			catalog.ReasonManyChains,
			"a unique replacement chain within a channel is required to determine the relative order between channel " +
				"entries, but 2 heads were found in channel \"steady\": a, b",
		},
		{
			[]catalog.Entry{{Name: "c", Replaces: "b"}, {Name: "b", Replaces: "a"}, {Name: "a", Replaces: "b"}},
			catalog.ReasonCycle, "a cycle exists in the chain of replacement of channel \"steady\": c -> b -> a -> b",
		},
	} {
		_, err := catalog.NewGraph(catalog.Channel{Name: "steady", Entries: c.entries})
		var g *catalog.GraphError
		if !errors.As(err, &g) || g.Reason != c.reason || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.entries, err)
		}
	}
}

// TestGraphDoesNotDependOnOrder proves R-CAT-5 and that walking always ends: any entries, in any order,
// give the same answers, and every successor is nearer the head.
func TestGraphDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		entries := make([]catalog.Entry, 0, n)
		name := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf(
				"v%d", rapid.IntRange(0, 9).Draw(t, "name"))
		})
		for i := range n {
			e := catalog.Entry{Name: fmt.Sprintf("v%d", i)}
			if rapid.Bool().Draw(t, "replaces") {
				e.Replaces = name.Draw(t, "replaced")
			}
			e.Skips = rapid.SliceOfN(name, 0, 2).Draw(t, "skips")
			e.SkipRange = rapid.SampledFrom([]string{"", "<3.0.0", ">=1.0.0 <5.0.0"}).Draw(t, "range")
			entries = append(entries, e)
		}
		shuffled := rapid.Permutation(entries).Draw(t, "shuffled")
		a, errA := catalog.NewGraph(catalog.Channel{Name: "c", Entries: entries})
		b, errB := catalog.NewGraph(catalog.Channel{Name: "c", Entries: shuffled})
		if fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Fatalf("%v or %v", errA, errB)
		}
		if errA != nil {
			return
		}
		order := strings.Fields(names(a.Ordered()))
		if names(a.Ordered()) != names(b.Ordered()) || order[0] != a.Head().Name {
			t.Fatalf("order %v, shuffled %s", order, names(b.Ordered()))
		}
		for i := range 10 {
			installed, version := fmt.Sprintf("v%d", i), fmt.Sprintf("%d.0.0", i)
			got := a.Successors(installed, version)
			if names(got) != names(b.Successors(installed, version)) {
				t.Fatalf("successors of %s differ", installed)
			}
			at := slices.Index(order, installed)
			for _, e := range got {
				if p := slices.Index(order, e.Name); p < 0 || at >= 0 && p >= at {
					t.Fatalf("%s is no step towards the head from %s in %v", e.Name, installed, order)
				}
			}
		}
	})
}
