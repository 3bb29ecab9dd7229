package resolve_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// TestUpgradeRules: which entry of a channel comes next (R-GRA-2, 5, 6, 8, 9, 11, 12, 14, 15).
func TestUpgradeRules(t *testing.T) {
	t.Parallel()
	three := chain("a", "3.0.0", "2.0.0", "1.0.0").Bundle("3.0.0").Bundle("2.0.0").Bundle("1.0.0")
	skipping := pkg("a", "stable").Channel("stable", "3.0.0<2.0.0 skips=1.0.0,2.0.0", "2.0.0<1.0.0", "1.0.0").Bundle(
		"3.0.0").Bundle("2.0.0").Bundle("1.0.0")
	ranged := pkg("a", "stable").Channel("stable", "3.0.0<2.0.0 range=>=1.0.0_<3.0.0", "2.0.0<1.0.0", "1.0.0").Bundle(
		"3.0.0").Bundle("2.0.0").Bundle("1.0.0")
	virtual := pkg("a", "stable").Channel("stable", "3.0.0<2.0.0 skips=2.5.0", "2.0.0").Bundle("3.0.0").Bundle("2.0.0")
	older := pkg("a", "stable").Channel("stable", "9.0.0<1.0.0", "1.0.0").Channel("early", "1.0.0").Bundle(
		"9.0.0").Bundle("1.0.0")
	byGraph := pkg("a", "stable").Channel("stable", "1.0.0<2.0.0", "2.0.0").Bundle("1.0.0").Bundle("2.0.0")
	heads := pkg("a", "stable").Channel("stable", "2.0.0", "1.0.0").Bundle("2.0.0").Bundle("1.0.0")
	cycle := pkg("a", "stable").Channel("stable", "3.0.0<2.0.0", "2.0.0<1.0.0", "1.0.0<2.0.0").Bundle("3.0.0").Bundle(
		"2.0.0").Bundle("1.0.0")
	dead := chain("a", "3.0.0", "2.0.0", "1.0.0").Bundle("3.0.0").Bundle("2.0.0", "deprecated").Bundle("1.0.0")
	start := func(s resolution.Subscription, csv string) resolution.Subscription { s.StartingCSV = csv; return s }
	cases := []struct {
		name string
		p    *builder
		sub  resolution.Subscription
		have []resolution.Installed
		want string
	}{
		{"new: the head (R-GRA-5)", three, sub("s", "a", "stable"), nil, "a: a.v3.0.0 stable ChannelHead"},
		{
			"new: the head of the graph, not the highest (R-GRA-2)", byGraph, sub("s", "a", "stable"), nil,
			"a: a.v1.0.0 stable ChannelHead",
		},
		{
			"new: no channel is the default one (R-RES-35)", older, sub("s", "a", ""), nil,
			"a: a.v9.0.0 stable ChannelHead",
		},
		{
			"new: starting CSV (R-GRA-12)", three, start(sub("s", "a", "stable"), "a.v1.0.0"), nil,
			"a: a.v1.0.0 stable StartingCSV",
		},
		{
			"new: starting CSV that is not there", three, start(sub("s", "a", "stable"), "a.v7.0.0"), nil,
			"a: failed unsatisfiable",
		},
		{
			"starting CSV counts no more once installed (R-GRA-12)", three, start(sub("s", "a", "stable"), "a.v1.0.0"),
			[]resolution.Installed{installed("a", "2.0.0", "s")},
			"a: a.v3.0.0 stable NextStep",
		},
		{
			"one step at a time (R-GRA-6)", three, sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "1.0.0", "s")},
			"a: a.v2.0.0 stable NextStep",
		},
		{
			"at the head", three, sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "3.0.0", "s")},
			"a: nothing",
		},
		{
			"skips lead straight to the head (R-GRA-9)", skipping, sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "1.0.0", "s")},
			"a: a.v3.0.0 stable NextStep",
		},
		{
			"a range leads straight to the head (R-GRA-8)", ranged, sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "1.0.0", "s")},
			"a: a.v3.0.0 stable SkipRange",
		},
		{
			"replaces tells more than a range", ranged, sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "2.0.0", "s")},
			"a: a.v3.0.0 stable NextStep",
		},
		{
			"a virtual node leads on (R-GRA-11)", virtual, sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "2.5.0", "s")},
			"a: a.v3.0.0 stable NextStep",
		},
		{
			"a channel without a successor: it stays (R-GRA-14)", older, sub("s", "a", "early"),
			[]resolution.Installed{installed("a", "9.0.0", "s")},
			"a: nothing",
		},
		{"two heads (R-GRA-15)", heads, sub("s", "a", "stable"), nil, "a: failed invalid-channel"},
		{"a cycle (R-GRA-15)", cycle, sub("s", "a", "stable"), nil, "a: failed invalid-channel"},
		{
			"a deprecated step is not taken (R-RES-14)", dead, sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "1.0.0", "s")},
			"a: nothing",
		},
		{
			"the channel has gone", three, sub("s", "a", "fast"),
			[]resolution.Installed{installed("a", "1.0.0", "s")},
			"a: failed unsatisfiable",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := resolve.Resolve(input(newView().Add("fleet", 0, c.p.P), []resolution.Subscription{c.sub}, c.have...))
			if diff := cmp.Diff([]string{c.want}, lines(r)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, texts(r))
			}
		})
	}
}

// TestRequirements: what comes along, and what prevents it (R-RES-1, 2, 11, 12, 13, 15, 22, 27, 35, 60, 61).
func TestRequirements(t *testing.T) {
	t.Parallel()
	two := func(name string, newer, older []string) catalog.Package {
		return chain(name, "2.0.0", "1.0.0").Bundle("2.0.0", newer...).Bundle("1.0.0", older...).P
	}
	words := func(w ...string) []string { return w }
	cases := []struct {
		name string
		view *catalogs
		subs []resolution.Subscription
		have []resolution.Installed
		want []string
	}{
		{
			"an API, transitively, what is required first",
			newView().Add("fleet", 0, one("a", "api:B"), one("b", "gives:B", "pkg:c >=1.0.0"), one("c")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			nil,
			[]string{
				"a+b+c: c.v1.0.0 stable RequiredPackage, b.v1.0.0 stable RequiredAPI, a.v1.0.0 stable ChannelHead",
			},
		}, {
			"what is installed serves (R-RES-35 rule 1)",
			newView().Add("fleet", 0, one("a", "api:B"), one("b", "gives:B"), one("z", "gives:B")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			[]resolution.Installed{installed("z", "1.0.0", "", "gives:B")},
			[]string{"a: a.v1.0.0 stable ChannelHead"},
		}, {
			"own catalog before priority (R-RES-35 rule 2)",
			newView().Add("fleet", 0, one("a", "api:B"), one("b", "gives:B")).Add("other", 9, one("aa", "gives:B")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			nil,
			[]string{"a+b: b.v1.0.0 stable RequiredAPI, a.v1.0.0 stable ChannelHead"},
		}, {
			"then priority, then name (R-RES-35 rules 3 and 4)",
			newView().Add("fleet", 0, one("a", "api:B")).Add("x", 1, one("bx", "gives:B")).Add(
				"y", 2, one("by", "gives:B")).Add("w", 2, one("bw", "gives:B")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			nil,
			[]string{"a+bw: bw.v1.0.0 stable RequiredAPI, a.v1.0.0 stable ChannelHead"},
		}, {
			"an older head where the newest cannot be had",
			newView().Add("fleet", 0, two("a", words("api:Nobody"), words())),
			[]resolution.Subscription{sub("s", "a", "stable")},
			nil,
			[]string{"a: a.v1.0.0 stable Subscribed"},
		}, {
			"one bundle serves two requirements where it can",
			newView().Add("fleet", 0, one("a", "api:B", "pkg:b <2.0.0"), two("b", words("gives:B"), words("gives:B"))),
			[]resolution.Subscription{sub("s", "a", "stable")},
			nil,
			[]string{"a+b: b.v1.0.0 stable RequiredAPI, a.v1.0.0 stable ChannelHead"},
		}, {
			"circles are fine",
			newView().Add("fleet", 0, one("a", "api:B", "gives:A"), one("b", "gives:B", "api:A")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			nil,
			[]string{"a+b: b.v1.0.0 stable RequiredAPI, a.v1.0.0 stable ChannelHead"},
		}, {
			"retired API: the update is withheld (R-RES-60)",
			newView().Add("fleet", 0, one("a", "api:B"), two("b", words("gives:C"), words("gives:B"))),
			[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "b", "stable")},
			[]resolution.Installed{installed("a", "1.0.0", "s", "api:B"), installed("b", "1.0.0", "t", "gives:B")},
			[]string{"a: nothing", "b: nothing"},
		}, {
			"version deadlock: both move together (R-RES-61)",
			newView().Add("fleet", 0, two("a", words("gives:A2", "api:B2"), words("gives:A", "api:B")),
				two("b", words("gives:B2", "api:A2"), words("gives:B", "api:A"))),
			[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "b", "stable")},
			[]resolution.Installed{
				installed("a", "1.0.0", "s", "gives:A", "api:B"),
				installed("b", "1.0.0", "t", "gives:B", "api:A"),
			},
			[]string{"a+b: b.v2.0.0 stable NextStep, a.v2.0.0 stable NextStep"},
		}, {
			"one provider of an API (R-RES-12): neither of two new ones",
			newView().Add("fleet", 0, one("a", "gives:X"), one("b", "gives:X"), one("c")),
			[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "b", "stable"), sub("u", "c", "stable")},
			nil,
			[]string{"a+b: failed unsatisfiable", "c: c.v1.0.0 stable ChannelHead"},
		}, {
			"an operator without subscription stays (R-RES-13)",
			newView().Add("fleet", 0, one("a", "gives:X")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			[]resolution.Installed{installed("z", "1.0.0", "", "gives:X")},
			[]string{"a: failed unsatisfiable"},
		}, {
			"independent subscriptions have plans of their own",
			newView().Add("fleet", 0, one("a"), one("b", "api:C"), one("c", "gives:C")),
			[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "b", "stable")},
			nil,
			[]string{"a: a.v1.0.0 stable ChannelHead", "b+c: c.v1.0.0 stable RequiredAPI, b.v1.0.0 stable ChannelHead"},
		}, {
			"a shared dependency joins them",
			newView().Add("fleet", 0, one("a", "api:C"), one("b", "api:C"), one("c", "gives:C")),
			[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "b", "stable")},
			nil,
			[]string{"a+b+c: c.v1.0.0 stable RequiredAPI, a.v1.0.0 stable ChannelHead, b.v1.0.0 stable ChannelHead"},
		}, {
			"a subscription to what another one requires joins them, too",
			newView().Add("fleet", 0,
				one("a", "constraint:{\"any\":{\"constraints\":[{\"package\":{\"packageName\":\"x\",\"versionRange\":\">=0.0.0\"}},{\"package\":{\"packageName\":\"y\",\"versionRange\":\">=0.0.0\"}}]}}"), one("x"), one("y")),
			[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "y", "stable")},
			nil,
			[]string{"a+y: y.v1.0.0 stable ChannelHead, a.v1.0.0 stable ChannelHead"},
		}, {
			"all asks one bundle for everything (R-RES-22)",
			newView().Add("fleet", 0,
				one("a", "constraint:{\"all\":{\"constraints\":[{\"gvk\":{\"group\":\"sea.test\",\"version\":\"v1\",\"kind\":\"B\"}},{\"package\":{\"packageName\":\"c\",\"versionRange\":\">=0.0.0\"}}]}}"), one("b", "gives:B"), one("c")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			nil,
			[]string{"a: failed unsatisfiable"},
		}, {
			"not removes candidates (R-RES-27)",
			newView().Add("fleet", 0,
				one("a", "constraint:{\"all\":{\"constraints\":[{\"gvk\":{\"group\":\"sea.test\",\"version\":\"v1\",\"kind\":\"B\"}},{\"not\":{\"constraints\":[{\"package\":{\"packageName\":\"b\",\"versionRange\":\">=0.0.0\"}}]}}]}}"), one("b", "gives:B"), one("c", "gives:B")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			nil,
			[]string{"a+c: c.v1.0.0 stable RequiredConstraint, a.v1.0.0 stable ChannelHead"},
		}, {
			"a rule that a bundle meets, and one that none does (R-RES-26)",
			newView().Add("fleet", 0, one("a", "constraint:{\"cel\":{\"rule\":\"true\"}}"),
				one("b", "constraint:{\"cel\":{\"rule\":\"false\"}}")),
			[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "b", "stable")},
			nil,
			[]string{"a: a.v1.0.0 stable ChannelHead", "b: failed unsatisfiable"},
		}, {
			"a requirement that cannot be read (R-RES-30)",
			newView().Add("fleet", 0, one("a", "constraint:{\"some\":1}")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			nil,
			[]string{"a: failed invalid-constraint"},
		}, {
			"a catalog that is not ready fails only who needs it",
			newView().Add("fleet", 0, one("a")).Add("late", 0),
			[]resolution.Subscription{
				sub("s", "a", "stable"),
				{Name: "t", Package: "b", Catalog: "late", Approval: "Automatic"},
			},
			nil,
			[]string{"a: a.v1.0.0 stable ChannelHead", "b: failed catalog-unavailable"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := resolve.Resolve(input(c.view, c.subs, c.have...))
			if diff := cmp.Diff(c.want, lines(r)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, texts(r))
			}
		})
	}
}

// TestSharedColocation: the operator group may ask for OLM's joint plans, with one approval (R-RES-63, R-SUB-4).
func TestSharedColocation(t *testing.T) {
	t.Parallel()
	view := newView().Add("fleet", 0, chain("a", "1.0.0").Bundle("1.0.0").P, chain("b", "1.0.0").Bundle("1.0.0").P)
	in := input(view, []resolution.Subscription{sub("s", "a", "stable"), sub("t", "b", "stable")})
	in.Subscriptions[1].Approval = resolution.Manual
	in.OperatorGroups[0].Shared = true
	r := resolve.Resolve(in)
	if diff := cmp.Diff([]string{"a+b: a.v1.0.0 stable ChannelHead, b.v1.0.0 stable ChannelHead"},
		lines(r)); diff != "" {
		t.Fatal(diff)
	}
	if r.Components[0].Approval != resolution.Manual {
		t.Errorf("approval is %s", r.Components[0].Approval)
	}
}

// TestExplanations: who asks, who forbids, and what exists instead (R-RES-41, R-RES-43, R-RES-25).
func TestExplanations(t *testing.T) {
	t.Parallel()
	a := chain("anchor", "2.0.0", "1.0.0").Bundle("2.0.0", "pkg:brine >=3.0.0").Bundle("1.0.0", "pkg:brine >=3.0.0")
	b := chain("brine", "2.1.0").Bundle("2.1.0", "gives:Brine")
	view := newView().Add("fleet", 0, a.P, b.P, chain("clash", "1.0.0").Bundle("1.0.0", "gives:Brine").P)
	with := func(s resolution.Subscription, f func(*resolution.Subscription)) resolution.Subscription {
		f(&s)
		return s
	}
	cases := map[string]struct {
		subs []resolution.Subscription
		have []resolution.Installed
		says []string
	}{
		"catalog": {
			subs: []resolution.Subscription{
				with(sub("s", "anchor", "stable"), func(s *resolution.Subscription) { s.Catalog = "none" }),
			},
			says: []string{"subscription s", "no operators found from catalog none", "visible catalogs are fleet"},
		},
		"package": {
			subs: []resolution.Subscription{sub("s", "anchr", "stable")},
			says: []string{"no operators found in package anchr", "similar packages there are anchor"},
		},
		"channel": {
			subs: []resolution.Subscription{sub("s", "anchor", "fast")},
			says: []string{"no operators found in channel fast of package anchor", "its channels are stable"},
		},
		"start": {
			subs: []resolution.Subscription{
				with(sub("s", "anchor", "stable"), func(s *resolution.Subscription) { s.StartingCSV = "anchor.v9" }),
			},
			says: []string{"no operators found with name anchor.v9 in channel stable"},
		},
		"requirement": {
			subs: []resolution.Subscription{sub("s", "anchor", "stable")},
			says: []string{
				"bundle fleet/stable/anchor.v2.0.0 requires an operator of package brine in range >=3.0.0",
				"the visible catalogs have brine 2.1.0",
			},
		},
		"conflict": {
			subs: []resolution.Subscription{sub("s", "clash", "stable"), sub("t", "brine", "stable")},
			says: []string{
				"there can be only one provider of Brine (sea.test/v1)",
				"subscription s to package clash exists", "subscription t to package brine exists",
			},
		},
		"unmanaged": {
			subs: []resolution.Subscription{sub("s", "clash", "stable")},
			have: []resolution.Installed{installed("brine", "2.1.0", "", "gives:Brine")},
			says: []string{"fleet/stable/clash.v1.0.0 and installed brine.v2.1.0"},
		},
		"follower": {
			subs: []resolution.Subscription{sub("s", "clash", "stable"), sub("t", "brine", "stable")},
			have: []resolution.Installed{installed("brine", "2.1.0", "t", "gives:Brine")},
			says: []string{"subscription t follows installed brine.v2.1.0"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := texts(resolve.Resolve(input(view, c.subs, c.have...)))
			for _, s := range c.says {
				if !strings.Contains(got, s) {
					t.Errorf("it does not say %q:\n%s", s, got)
				}
			}
		})
	}
}

// TestOperatorGroups: exactly one is needed (R-RES-5).
func TestOperatorGroups(t *testing.T) {
	t.Parallel()
	in := input(newView().Add("fleet", 0, chain("a", "1.0.0").Bundle("1.0.0").P),
		[]resolution.Subscription{sub("s", "a", "stable")})
	in.OperatorGroups = nil
	if got := texts(resolve.Resolve(in)); got != "expected 1 OperatorGroup in the namespace, found 0" {
		t.Error(got)
	}
}

// TestReadSet: what was asked is told, misses included, and what was not needed is not (DESIGN D4).
func TestReadSet(t *testing.T) {
	t.Parallel()
	view := newView().Add("fleet", 0, chain("a", "1.0.0").Bundle("1.0.0", "api:B").P,
		chain("b", "1.0.0").Bundle("1.0.0", "gives:B").P, chain("c", "1.0.0").Bundle("1.0.0").P).
		Add("other", 0, chain("c", "1.0.0").Bundle("1.0.0").P)
	r := resolve.Resolve(input(view, []resolution.Subscription{sub("s", "a", "stable")}))
	var got []string
	for _, read := range r.Reads {
		miss := ""
		if read.Answer == "" {
			miss = " missed"
		}
		got = append(got, strings.TrimSpace(string(read.Kind)+" "+read.Catalog.String()+" "+read.Name)+miss)
	}
	want := []string{
		"api fleet sea.test/v1/B", "api other sea.test/v1/B missed", "catalog fleet", "package fleet a",
		"package fleet b", "visible missed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r = resolve.Resolve(input(view, []resolution.Subscription{sub("s", "c", "stable")}))
	if n := len(r.Reads); n != 2 {
		t.Errorf("a subscription without requirements asked %d questions: %v", n, r.Reads)
	}
}

// TestTooHardIsBounded: a hostile namespace meets a fixed bound and a named error (DESIGN D10).
func TestTooHardIsBounded(t *testing.T) {
	t.Parallel()
	var packages []catalog.Package
	var subs []resolution.Subscription
	for name := range strings.SplitSeq("abcdefghijkl", "") { // 12 operators for 11 places
		b := pkg(name, "stable")
		var entries []string
		for i := range 11 {
			v := string(rune('1'+i/10)) + string(rune('0'+i%10)) + ".0.0"
			entry := v
			if len(entries) > 0 {
				entry += "<" + strings.Split(entries[len(entries)-1], "<")[0]
			}
			entries = append(entries, entry)
			b.Bundle(v, "gives:Place"+v[:2])
		}
		slices.Reverse(entries)
		packages = append(packages, b.Channel("stable", entries...).P)
		subs = append(subs, sub(name, name, "stable"))
	}
	in := input(newView().Add("fleet", 0, append(packages, chain("z", "1.0.0").Bundle("1.0.0").P)...),
		append(subs, sub("z", "z", "stable")))
	if got, want := lines(resolve.Resolve(in)), []string{
		"a+b+c+d+e+f+g+h+i+j+k+l: failed unsatisfiable",
		"z: z.v1.0.0 stable ChannelHead",
	}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	in.Policy.MaxConflicts = 3
	r := resolve.Resolve(in)
	if got, want := lines(r), "l: failed too-hard"; len(got) != 13 || got[11] != want {
		t.Errorf("got %v", got)
	}
	if got := texts(r); !strings.Contains(
		got, "budget of 3 conflicts for subscription l beside subscription a, subscription b") {
		t.Error(got)
	}
}

// TestSemanticsAreNamed: a decision of a version that is not known here is refused and not guessed (DESIGN D5, ADR
// 0022).
func TestSemanticsAreNamed(t *testing.T) {
	t.Parallel()
	for _, semantics := range []string{"chandler.resolve.v0", "chandler.resolve.v1", "chandler.resolve.v2"} {
		in := input(newView(), []resolution.Subscription{sub("s", "a", "stable")})
		in.Semantics = semantics
		r := resolve.Resolve(in)
		if got := texts(r); !strings.Contains(got, semantics) ||
			r.Components[0].Failure.Class != resolution.ClassSemantics {
			t.Error(got)
		}
	}
}

// TestHiddenCatalog: where the namespace that a subscription names has a catalog that is not seen here, the hub's of
// that name is not meant (R-CAT-85); the record says so and gives the same again.
func TestHiddenCatalog(t *testing.T) {
	t.Parallel()
	view := newView().Add("fleet", 0, chain("buoy", "1.0.0").Bundle("1.0.0").P)
	named := sub("s", "buoy", "stable")
	named.Catalog, named.CatalogNamespace = "fleet", "dev"
	in := input(view, []resolution.Subscription{named})
	if diff := cmp.Diff([]string{"buoy: buoy.v1.0.0 stable ChannelHead"}, lines(resolve.Resolve(in))); diff != "" {
		t.Errorf("the namespace has no such catalog (-want +got):\n%s", diff)
	}
	in.Subscriptions[0].CatalogHidden = true
	r := resolve.Resolve(in)
	if got := texts(r); !strings.Contains(
		got, "from catalog dev/fleet referenced by subscription s: no such catalog is visible here") {
		t.Errorf("a namespace with one: %q, %q", lines(r), got)
	}
	again := resolve.Resolve(r.Components[0].Input.Input(view))
	if diff := cmp.Diff(r.Components, again.Components); diff != "" {
		t.Errorf("from its record (-before +again):\n%s", diff)
	}
}
