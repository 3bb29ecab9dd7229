package catalog_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// versionsOf gives entry "v3" the version 3.0.0.
func versionsOf(entries []catalog.Entry) map[string]string {
	out := map[string]string{}
	for _, e := range entries {
		out[e.Name] = strings.TrimPrefix(e.Name, "v") + ".0.0"
	}
	return out
}

// TestPaths proves the ways to the head (R-GRA-6, R-GRA-8, R-GRA-9, R-GRA-12).
func TestPaths(t *testing.T) {
	t.Parallel()
	chain := []catalog.Entry{
		{Name: "v4", Replaces: "v3"},
		{Name: "v3", Replaces: "v2"},
		{Name: "v2", Replaces: "v1"},
		{Name: "v1"},
	}
	jump := []catalog.Entry{
		{Name: "v4", Replaces: "v3", SkipRange: ">=2.0.0 <4.0.0"},
		{Name: "v3", Replaces: "v2", SkipRange: "<2.0.0"},
		{Name: "v2", Replaces: "v1"},
		{Name: "v1"},
	}
	// From v1 the nearest the head is v4, from where only v5 leads on; v3 leads to the head at once.
	greedy := []catalog.Entry{
		{Name: "v6", Replaces: "v5", SkipRange: "3.0.0"},
		{Name: "v5", Replaces: "v4"},
		{Name: "v4", Replaces: "v3", Skips: []string{"v1"}},
		{Name: "v3", Replaces: "v2", SkipRange: "<2.0.0"},
		{Name: "v2", Replaces: "v1"},
		{Name: "v1"},
	}
	dead := []catalog.Entry{
		{Name: "v4", Replaces: "v3", Skips: []string{"v3"}},
		{Name: "v3", Replaces: "v2"},
		{Name: "v2", Replaces: "v1"},
		{Name: "v1"},
	}
	for _, c := range []struct {
		name           string
		entries        []catalog.Entry
		installed      string
		version        string
		next, shortest string // steps, "!" behind them where the head is not reached
	}{
		{"one step at a time", chain, "v1", "1.0.0", "v2 v3 v4", "v2 v3 v4"},
		{"from the head", chain, "v4", "4.0.0", "", ""},
		{"unknown", chain, "x", "9.0.0", "!", "!"},
		{"straight to the head", jump, "v2", "2.0.0", "v4", "v4"},
		{"by a range, then to the head", jump, "v1", "1.0.0", "v3 v4", "v3 v4"},
		{"from a virtual version in a range", jump, "v2.1", "2.1.0", "v4", "v4"},
		{"greed is longer", greedy, "v1", "1.0.0", "v4 v5 v6", "v3 v6"},
		{"off a skipped one", dead, "v3", "3.0.0", "v4", "v4"},
		{"no way past a skipped one", dead, "v2", "2.0.0", "!", "!"},
		{"a way that ends", dead, "v1", "1.0.0", "v2!", "!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := graph(t, c.entries...)
			v := versionsOf(c.entries)
			if p := g.NextPath(c.installed, c.version, v); describe(p) != c.next {
				t.Errorf("next path %q, want %q", describe(p), c.next)
			}
			if p := g.ShortestPath(c.installed, c.version, v); describe(p) != c.shortest {
				t.Errorf("shortest path %q, want %q", describe(p), c.shortest)
			}
		})
	}
	d := graph(t, dead...).Dead(versionsOf(dead))
	if fmt.Sprint(d) != "{[v2] [v1 v2]}" {
		t.Errorf("dead: %v", d)
	}
}

func describe(p catalog.Path) string {
	s := names(p.Steps)
	if !p.ReachesHead {
		s += "!"
	}
	return s
}

// slow answers everything by the words of the requirements, without any index.
type slow struct {
	entries  []catalog.Entry
	versions map[string]string
}

func (s slow) entry(name string) (catalog.Entry, bool) {
	for _, e := range s.entries {
		if e.Name == name {
			return e, true
		}
	}
	return catalog.Entry{}, false
}

// head is the entry that no other one replaces or skips (R-CAT-35).
func (s slow) head() string {
	for _, e := range s.entries {
		incoming := false
		for _, o := range s.entries {
			incoming = incoming || o.Replaces == e.Name || slices.Contains(o.Skips, e.Name)
		}
		if !incoming {
			return e.Name
		}
	}
	return ""
}

func (s slow) skipped(name string) bool {
	return slices.ContainsFunc(s.entries, func(e catalog.Entry) bool {
		return e.Name != name &&
			slices.Contains(e.Skips, name)
	})
}

// chain is head → tail along replaces.
func (s slow) chain() []string {
	var out []string
	for e, ok := s.entry(s.head()); ok; e, ok = s.entry(e.Replaces) {
		out = append(out, e.Name)
	}
	return out
}

// successors is R-GRA-9, and never backwards.
func (s slow) successors(name, version string) []string {
	var out []string
	for _, n := range s.chain() {
		if n == name {
			break
		}
		e, _ := s.entry(n)
		in := false
		if v, err := semver.Parse(version); err == nil && e.SkipRange != "" {
			in = semver.MustParseRange(e.SkipRange)(v)
		}
		if !s.skipped(n) && (e.Replaces == name || slices.Contains(e.Skips, name) || in) {
			out = append(out, n)
		}
	}
	return out
}

// ways are all ways from a bundle to the head.
func (s slow) ways(name, version string) [][]string {
	if name == s.head() {
		return [][]string{{}}
	}
	var out [][]string
	for _, n := range s.successors(name, version) {
		for _, w := range s.ways(n, s.versions[n]) {
			out = append(out, append([]string{n}, w...))
		}
	}
	return out
}

// drawChannel makes a random channel with one head and no cycle in its chain.
func drawChannel(t *rapid.T) ([]catalog.Entry, *catalog.Graph) {
	n := rapid.IntRange(1, 7).Draw(t, "n")
	entries := make([]catalog.Entry, 0, n)
	for i := range n {
		e := catalog.Entry{Name: fmt.Sprintf("v%d", i)}
		if below := rapid.IntRange(0, i).Draw(t, "replaces"); below < i {
			e.Replaces = fmt.Sprintf("v%d", below)
		} else if rapid.Bool().Draw(t, "virtual") {
			e.Replaces = "gone"
		}
		e.Skips = rapid.SliceOfN(rapid.SampledFrom([]string{"v0", "v1", "v2", "v3", "v4", "v5", "gone", "away"}), 0,
			2).Draw(t, "skips")
		e.SkipRange = rapid.SampledFrom([]string{"", "", "<3.0.0", ">=1.0.0 <5.0.0", "2.0.0 || 4.0.0"}).Draw(t, "range")
		entries = append(entries, e)
	}
	g, err := catalog.NewGraph(catalog.Channel{Name: "c", Entries: rapid.Permutation(entries).Draw(t, "order")})
	if err != nil {
		t.Skip(err.Error())
	}
	return entries, g
}

// TestGraphAgainstSlow proves every function of the graph against a slow, obvious implementation, on
// random valid channels (R-GRA-1 … R-GRA-11).
func TestGraphAgainstSlow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entries, g := drawChannel(t)
		s := slow{entries, versionsOf(entries)}
		check := func(what string, got, want any) {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s: %v, want %v in %+v", what, got, want, entries)
			}
		}
		check("head", g.Head().Name, s.head())
		chain := s.chain()
		check("order", strings.Fields(names(g.Ordered())), slices.DeleteFunc(slices.Clone(chain), s.skipped))
		virtual, off, stuck, cut := map[string]bool{}, []string{}, []string{}, []string{}
		for _, e := range entries {
			for _, n := range append([]string{e.Replaces}, e.Skips...) {
				if _, is := s.entry(n); n != "" && !is {
					virtual[n] = true
				}
			}
			check("skipped "+e.Name, g.Skipped(e.Name), s.skipped(e.Name))
			if !slices.Contains(chain, e.Name) && !s.skipped(e.Name) {
				off = append(off, e.Name)
			}
			if e.Name == s.head() {
				continue
			}
			if len(s.successors(e.Name, s.versions[e.Name])) == 0 {
				stuck = append(stuck, e.Name)
			}
			if len(s.ways(e.Name, s.versions[e.Name])) == 0 {
				cut = append(cut, e.Name)
			}
		}
		check("virtual", g.Virtual(), slices.Sorted(maps.Keys(virtual)))
		check("off the chain", g.OffChain(), off)
		check("dead", g.Dead(s.versions), catalog.Dead{Stranded: stuck, Cut: cut})
		for _, installed := range []string{"v0", "v1", "v2", "v3", "v4", "v5", "v6", "gone", "away"} {
			version := strings.TrimPrefix(installed, "v") + ".0.0"
			check("successors of "+installed, strings.Fields(names(g.Successors(installed, version))),
				s.successors(installed, version))
			checkPaths(t, g, s, installed, version)
		}
	})
}

// checkPaths compares the two ways with what an exhaustive search finds.
func checkPaths(t *rapid.T, g *catalog.Graph, s slow, installed, version string) {
	var next []string
	at, v := installed, version
	for at != s.head() {
		succ := s.successors(at, v)
		if len(succ) == 0 {
			break
		}
		at = succ[0]
		v = s.versions[at]
		next = append(next, at)
	}
	p := g.NextPath(installed, version, s.versions)
	if fmt.Sprint(strings.Fields(names(p.Steps)), p.ReachesHead) != fmt.Sprint(next, at == s.head()) {
		t.Fatalf("next path from %s: %s, want %v in %+v", installed, describe(p), next, s.entries)
	}
	ways := s.ways(installed, version)
	short := g.ShortestPath(installed, version, s.versions)
	if short.ReachesHead != (len(ways) > 0) {
		t.Fatalf("shortest path from %s: %s, but there are %d ways in %+v", installed, describe(short), len(ways),
			s.entries)
	}
	if len(ways) == 0 {
		return
	}
	// ways lists those nearest the head first, so that the first of the shortest is the one.
	best := slices.MinFunc(ways, func(a, b []string) int { return len(a) - len(b) })
	if fmt.Sprint(strings.Fields(names(short.Steps))) != fmt.Sprint(best) {
		t.Fatalf("shortest path from %s: %s, want %v in %+v", installed, describe(short), best, s.entries)
	}
}

// TestHostileGraphs proves that channels of 100,000 entries, of any shape, meet a bound (DESIGN D10).
func TestHostileGraphs(t *testing.T) {
	t.Parallel()
	const n = 100_000
	name := func(i int) string { return fmt.Sprintf("v%d", i) }
	for what, entry := range map[string]func(i int) catalog.Entry{
		"chain": func(i int) catalog.Entry { return catalog.Entry{Name: name(i), Replaces: name(i - 1)} },
		"ring": func(i int) catalog.Entry {
			return catalog.Entry{
				Name: name(i), Replaces: name((i + n - 1) % n),
			}
		},
		"ring and a head": func(i int) catalog.Entry {
			return catalog.Entry{
				Name: name(i), Replaces: name((i + n - 2) % (n - 1)),
			}
		},
		"skips": func(i int) catalog.Entry {
			return catalog.Entry{
				Name: name(i), Replaces: name(i - 1),
				Skips: []string{name(i - 2), name(i - 3), name(i / 2)},
			}
		},
		"ranges": func(i int) catalog.Entry {
			return catalog.Entry{Name: name(i), Replaces: name(i - 1), SkipRange: fmt.Sprintf("<0.0.%d", i)}
		},
		"no edges": func(i int) catalog.Entry { return catalog.Entry{Name: name(i)} },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := catalog.Channel{Name: "c"}
			for i := range n {
				c.Entries = append(c.Entries, entry(i))
			}
			versions := versionsOf(c.Entries)
			start := time.Now()
			g, err := catalog.NewGraph(c)
			if err == nil {
				g.Virtual()
				g.OffChain()
				g.Dead(versions)
				g.NextPath(name(0), "1.0.0", versions)
				p := g.ShortestPath(name(0), "1.0.0", versions)
				if what == "chain" && (len(p.Steps) != n-1 || p.Limited) {
					t.Errorf("a chain of %d is walked in %d steps", n, len(p.Steps))
				}
				if what == "ranges" && !p.Limited {
					t.Error("10^10 questions met no limit")
				}
			}
			// Anything but a walk in proportion to the entries would take hours.
			if d := time.Since(start); d > time.Minute {
				t.Errorf("took %v", d)
			}
		})
	}
}

// TestDeprecations proves R-CAT-13: three levels, none implies another.
func TestDeprecations(t *testing.T) {
	t.Parallel()
	p := catalog.Package{
		DefaultChannel: "steady", Channels: []catalog.Channel{{Name: "fast"}, {Name: "steady"}},
		Deprecations: []catalog.Deprecation{
			{Schema: catalog.SchemaBundle, Name: "b1", Message: "bundle"},
			{Schema: catalog.SchemaChannel, Name: "fast", Message: "channel"},
			{Schema: catalog.SchemaChannel, Name: "b1", Message: "another channel"},
			{Schema: catalog.SchemaPackage, Message: "package"},
		},
	}
	for _, c := range []struct{ channel, bundle, want string }{
		{"fast", "b1", "package, channel, bundle"},
		{"fast", "b2", "package, channel"},
		{"steady", "b1", "package, bundle"},
		{"", "", "package"},
	} {
		var got []string
		for _, d := range p.DeprecationsOf(c.channel, c.bundle) {
			got = append(got, d.Message)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s of %s: %v, want %s", c.bundle, c.channel, got, c.want)
		}
	}
	if c, ok := p.Default(); !ok || c.Name != "steady" {
		t.Errorf("default channel %+v, %v", c, ok)
	}
}
