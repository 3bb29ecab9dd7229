package resolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/explain"
)

func one(name string, words ...string) catalog.Package {
	return chain(name, "1.0.0").Bundle("1.0.0", words...).P
}

func two(name string, newer, older []string) catalog.Package {
	return chain(name, "2.0.0", "1.0.0").Bundle("2.0.0", newer...).Bundle("1.0.0", older...).P
}

func words(w ...string) []string { return w }

// nowhere is a subscription that names no catalog.
func nowhere(name, pkg, channel string) resolution.Subscription {
	s := sub(name, pkg, channel)
	s.Catalog = ""
	return s
}

// unknown is an installed CSV of which nobody knows the package.
func unknown(csv string, props ...catalog.Property) resolution.Installed {
	return resolution.Installed{CSV: csv, Phase: "Succeeded", Properties: props}
}

// TestCandidates: what a subscription may get, in the cases that the channel's order alone does not tell
// (RESOLVER-NOTES §2).
func TestCandidates(t *testing.T) {
	t.Parallel()
	older := chain("a", "1.0.0").Bundle("1.0.0").P
	newer := pkg("a", "stable").Channel("stable", "2.0.0<1.0.0").Bundle("2.0.0").P
	skipping := pkg("a", "stable").Channel("stable", "2.0.0 skips=1.0.0", "1.0.0").Bundle("2.0.0").Bundle("1.0.0").P
	heads := pkg("a", "stable").Channel("stable", "2.0.0", "1.0.0").Bundle("2.0.0").Bundle("1.0.0").P
	start := func(s resolution.Subscription, csv string) resolution.Subscription { s.StartingCSV = csv; return s }
	cases := []struct {
		name string
		view *catalogs
		sub  resolution.Subscription
		have []resolution.Installed
		want string
	}{
		{
			"two catalogs, one package, no catalog named (2.1)",
			newView().Add("fleet", 0, older).Add("other", 0, older), nowhere("s", "a", "stable"), nil,
			"a: failed invalid-channel",
		},
		{
			"the same with a starting CSV (2.1)", newView().Add("fleet", 0, older).Add("other", 0, older),
			start(nowhere("s", "a", "stable"), "a.v1.0.0"), nil, "a: failed invalid-channel",
		},
		{
			"catalogs that complete each other (2.1)", newView().Add("fleet", 0, older).Add("other", 0, newer),
			nowhere("s", "a", "stable"), nil, "a: a.v2.0.0 stable ChannelHead",
		},
		{
			"one step over two catalogs (2.1)", newView().Add("fleet", 0, older).Add("other", 0, newer),
			nowhere("s", "a", "stable"),
			[]resolution.Installed{installed("a", "1.0.0", "s")},
			"a: a.v2.0.0 stable NextStep",
		},
		{
			"a starting CSV counts again once the CSV is lost (2.3)", newView().Add("fleet", 0, two("a", nil, nil)),
			start(sub("s", "a", "stable"), "a.v1.0.0"), nil, "a: a.v1.0.0 stable StartingCSV",
		},
		{
			"a skipped entry may be the starting CSV (2.3)", newView().Add("fleet", 0, skipping),
			start(sub("s", "a", "stable"), "a.v1.0.0"), nil, "a: a.v1.0.0 stable StartingCSV",
		},
		{
			"and the shape of its channel does not matter (2.3)", newView().Add("fleet", 0, heads),
			start(sub("s", "a", "stable"), "a.v1.0.0"), nil, "a: a.v1.0.0 stable StartingCSV",
		},
		{
			"but it may not replace itself (3.1)", newView().Add(
				"fleet", 0, pkg("a", "stable").Channel("stable", "2.0.0", "1.0.0<1.0.0").Bundle("2.0.0").Bundle(
					"1.0.0").P),
			start(sub("s", "a", "stable"), "a.v1.0.0"), nil, "a: failed invalid-channel",
		},
		{
			"an older bundle with a wide range is a successor (2.4)",
			newView().Add("fleet", 0, pkg("a", "stable").Channel("stable", "1.0.0 range=>=0.0.0").Bundle("1.0.0").P),
			sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "3.0.0", "s")},
			"a: a.v1.0.0 stable SkipRange",
		},
		{
			"a range that covers its own version plans nothing (2.4)",
			newView().Add("fleet", 0, pkg("a", "stable").Channel("stable", "1.0.0 range=<=1.0.0").Bundle("1.0.0").P),
			sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "1.0.0", "s")},
			"a: nothing",
		},
		{
			"a CSV without version counts as 0.0.0 (2.4)",
			newView().Add("fleet", 0, pkg("a", "stable").Channel("stable", "1.0.0 range=<0.1.0").Bundle("1.0.0").P),
			sub("s", "a", "stable"),
			[]resolution.Installed{{CSV: "a.odd", Package: "a", Subscription: "s"}},
			"a: a.v1.0.0 stable SkipRange",
		},
		{
			"behind a skipped entry it is stuck (2.5)", newView().Add(
				"fleet", 0, pkg("a", "stable").Channel("stable", "3.0.0 skips=2.0.0", "2.0.0<1.0.0").Bundle(
					"3.0.0").Bundle(
					"2.0.0").P), sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "1.0.0", "s")},
			"a: nothing",
		},
		{
			"replaces works across packages (2.7)", newView().Add("fleet", 0, chain("b", "2.0.0").Bundle("2.0.0").P,
				pkg("a", "stable").Channel("stable", "2.0.0<1.0.0").Bundle("2.0.0").P), sub("s", "a", "stable"),
			[]resolution.Installed{{CSV: "a.v1.0.0", Package: "b", Subscription: "s"}},
			"a+b: a.v2.0.0 stable NextStep",
		},
		{
			"a malformed requirement of an old entry (2.8)",
			newView().Add("fleet", 0, two("a", nil, words(`constraint:{"some":1}`))), sub("s", "a", "stable"), nil,
			"a: failed invalid-constraint",
		},
		{
			"of an entry that could serve (2.8)", newView().Add(
				"fleet", 0, one("a", "api:B"), two("b", words("gives:B"), words("gives:B", `constraint:{"some":1}`))),
			sub("s", "a", "stable"), nil, "a: failed invalid-constraint",
		},
		{
			"a malformed channel that could serve (3.3)",
			newView().Add("fleet", 0, one("a", "api:B"), one("b", "gives:B"),
				pkg("c", "stable").Channel("stable", "2.0.0", "1.0.0").Bundle("2.0.0").Bundle("1.0.0", "gives:B").P),
			sub("s", "a", "stable"), nil, "a: failed invalid-channel",
		},
		{
			"but not one that could not (3.3)", newView().Add("fleet", 0, one("a", "api:B"), one("b", "gives:B"),
				heads),
			sub("s", "b", "stable"), nil, "b: b.v1.0.0 stable ChannelHead",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := resolve.Resolve(input(c.view, []resolution.Subscription{c.sub}, c.have...))
			if diff := cmp.Diff([]string{c.want}, lines(r)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, texts(r))
			}
		})
	}
}

// TestInstalled: what CSVs of the namespace mean for the others (RESOLVER-NOTES §3, §7, §8).
func TestInstalled(t *testing.T) {
	t.Parallel()
	b := installed("b", "1.0.0", "", "gives:B")
	other := installed("b", "2.0.0", "t", "gives:B")
	cases := []struct {
		name string
		view *catalogs
		subs []resolution.Subscription
		have []resolution.Installed
		want []string
	}{
		{
			"of two of one package nobody knows which serves (3.4)",
			newView().Add("fleet", 0, one("a", "api:B"), two("b", words("gives:B"), words("gives:B"))),
			[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "b", "stable")},
			[]resolution.Installed{b, other},
			[]string{"a: failed invalid-channel", "b: failed unsatisfiable"},
		}, {
			"of those that nobody follows one is looked at (3.4)",
			newView().Add("fleet", 0,
				one("a", `constraint:{"any":{"constraints":[{"gvk":{"group":"sea.test","version":"v1","kind":"X"}},{"gvk":{"group":"sea.test","version":"v1","kind":"Y"}}]}}`)),
			[]resolution.Subscription{sub("s", "a", "stable")},
			[]resolution.Installed{
				unknown("m", property(catalog.TypeGVK, api("X"))),
				unknown("n", property(catalog.TypeGVK, api("Y"))),
			},
			[]string{"a: a.v1.0.0 stable ChannelHead"},
		}, {
			"one without package is taken up by its name",
			newView().Add("fleet", 0, one("a")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			[]resolution.Installed{unknown("a.v1.0.0")},
			[]string{"a: nothing"},
		}, {
			"two subscriptions record one CSV: one answer for both",
			newView().Add("fleet", 0, two("a", nil, nil)),
			[]resolution.Subscription{
				sub("s", "a", "stable"),
				{Name: "t", Package: "a", Channel: "stable", Catalog: "fleet", InstalledCSV: "a.v1.0.0"},
			},
			[]resolution.Installed{installed("a", "1.0.0", "s")},
			[]string{"a: a.v2.0.0 stable NextStep"},
		}, {
			"one that requires something has it installed (5.8)",
			newView().Add("fleet", 0, one("b", "gives:B")), nil,
			[]resolution.Installed{installed("z", "1.0.0", "", "api:B")},
			[]string{"b+z: b.v1.0.0 stable RequiredAPI"},
		}, {
			"one that lists an API twice fails, and nobody else (6.2)",
			newView().Add("fleet", 0, one("a")),
			[]resolution.Subscription{sub("s", "a", "stable")},
			[]resolution.Installed{installed("z", "1.0.0", "", "gives:B", "gives:B")},
			[]string{"a: a.v1.0.0 stable ChannelHead", "z: failed unsatisfiable"},
		}, {
			"a deprecated one has to move (8.2)",
			newView().Add("fleet", 0, two("a", nil, nil), two("c", nil, nil)),
			[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "c", "stable")},
			[]resolution.Installed{
				installed("a", "1.0.0", "s", "deprecated"),
				installed("c", "2.0.0", "t", "deprecated"),
			},
			[]string{"a: a.v2.0.0 stable NextStep", "c: failed unsatisfiable"},
		}, {
			"what stays keeps what it has, though who has it to give fails (R-RES-2)",
			newView().Add("fleet", 0, two("f", nil, words("pkg:p >=1.0.0", "gives:Y")), one("p", "gives:X")),
			[]resolution.Subscription{sub("s", "f", "stable")},
			[]resolution.Installed{
				installed("d", "1.0.0", "", "gives:X", "api:Y"),
				installed("f", "1.0.0", "s", "pkg:p >=1.0.0", "gives:Y"),
			},
			[]string{"d: failed unsatisfiable", "f: failed unsatisfiable"},
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

// TestTakenOver: a bundle that replaces a CSV of which nobody knows the package takes its place (RESOLVER-NOTES 7.1).
func TestTakenOver(t *testing.T) {
	t.Parallel()
	r := resolve.Resolve(input(newView().Add("fleet", 0, two("a", nil, nil)),
		[]resolution.Subscription{sub("s", "a", "stable")}, unknown("a.v1.0.0")))
	if diff := cmp.Diff([]string{"a: a.v2.0.0 stable ChannelHead"}, lines(r)); diff != "" {
		t.Fatal(diff)
	}
	if got := r.Components[0].Bundles[0].Replaces; got != "a.v1.0.0" {
		t.Errorf("replaces %q", got)
	}
}

// TestNewcomerBesideFollower: a new subscription to what another one follows moves both, and the CSV goes.
func TestNewcomerBesideFollower(t *testing.T) {
	t.Parallel()
	in := input(newView().Add("fleet", 0, two("a", nil, nil)),
		[]resolution.Subscription{sub("a", "a", "stable"), sub("follower", "a", "stable")},
		installed("a", "1.0.0", "follower"))
	r := resolve.Resolve(in)
	if diff := cmp.Diff([]string{"a: a.v2.0.0 stable NextStep"}, lines(r)); diff != "" {
		t.Fatal(diff)
	}
	b := r.Components[0].Bundles[0]
	if b.Replaces != "a.v1.0.0" || !slices.Equal(b.Subscriptions, []string{"a", "follower"}) {
		t.Errorf("bundle %+v", b)
	}
}

// TestFollowedIsNotTakenOver: what another subscription follows is its business, whatever a bundle says to replace.
func TestFollowedIsNotTakenOver(t *testing.T) {
	t.Parallel()
	mover := pkg("b", "stable").Bundle("2.0.0").P
	mover.Channels = []catalog.Channel{{Name: "stable", Entries: []catalog.Entry{
		{Name: "b.v2.0.0", Replaces: "a.v1.0.0"},
	}}}
	r := resolve.Resolve(input(newView().Add("fleet", 0, one("a"), mover),
		[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "b", "stable")}, installed("a", "1.0.0", "s")))
	if diff := cmp.Diff([]string{"a: nothing", "b: b.v2.0.0 stable ChannelHead"}, lines(r)); diff != "" {
		t.Fatal(diff)
	}
	if got := r.Components[1].Bundles[0].Replaces; got != "" {
		t.Errorf("replaces %q", got)
	}
}

// TestFailForward: who is being replaced by one that failed does not count; a chain that makes no sense is said
// (R-RES-44, RESOLVER-NOTES 7.4).
func TestFailForward(t *testing.T) {
	t.Parallel()
	phase := func(version, phase, replaces, follower string) resolution.Installed {
		i := installed("a", version, follower)
		i.Phase, i.Replaces = phase, replaces
		return i
	}
	cases := map[string]struct {
		have []resolution.Installed
		want string
	}{
		"ends in failure": {[]resolution.Installed{
			phase("1.0.0", "Replacing", "", ""),
			phase("2.0.0", "Failed", "a.v1.0.0", "s"),
		}, "a: a.v3.0.0 stable NextStep"},
		"ends well": {[]resolution.Installed{
			phase("1.0.0", "Replacing", "", ""),
			phase("2.0.0", "Succeeded", "a.v1.0.0", "s"),
		}, "a: failed unsatisfiable"},
		"one alone, failed": {
			[]resolution.Installed{phase("2.0.0", "Failed", "", "s")},
			"a: a.v3.0.0 stable NextStep",
		},
		"broken in the midst": {[]resolution.Installed{
			phase("1.0.0", "Failed", "", ""),
			phase("2.0.0", "Failed", "a.v1.0.0", "s"),
		}, "a: failed installed-state"},
		"a loop": {[]resolution.Installed{
			phase("1.0.0", "Replacing", "a.v2.0.0", ""),
			phase("2.0.0", "Replacing", "a.v1.0.0", "s"),
		}, "a: failed installed-state"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := newView().Add("fleet", 0, chain("a", "3.0.0", "2.0.0", "1.0.0").Bundle("3.0.0").Bundle(
				"2.0.0").Bundle("1.0.0").P)
			in := input(view, []resolution.Subscription{sub("s", "a", "stable")}, c.have...)
			in.OperatorGroups[0].FailForward = true
			if diff := cmp.Diff([]string{c.want}, lines(resolve.Resolve(in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestExplainedInstead: an explanation says what exists instead, and from which document (R-RES-43).
func TestExplainedInstead(t *testing.T) {
	t.Parallel()
	view := newView().Add("fleet", 0, pkg("anchor", "stable").Channel("stable", "2.0.0 skips=1.0.0", "1.0.0").Bundle(
		"1.0.0").P, one("clash", "gives:X", "gives:X")).
		Add("empty", 0, catalog.Package{Name: "none"})
	view.Documents[resolution.CatalogKey{Name: "empty"}] = nil
	start := sub("s", "anchor", "stable")
	start.StartingCSV = "anchor.v1.0.1"
	empty := sub("s", "anchor", "stable")
	empty.Catalog = "empty"
	for _, c := range []struct {
		sub  resolution.Subscription
		kind resolution.StatementKind
		says string
	}{
		{start, resolution.StartingCSVNotFound, "similar ones are anchor.v1.0.0"},
		{empty, resolution.CatalogMissing, "no operators found from catalog empty"},
		{sub("s", "anchor", "stable"), resolution.NoCandidates, "every entry of channel stable"},
		{sub("s", "clash", "stable"), resolution.DuplicateAPI, "lists X (sea.test/v1) twice"},
	} {
		r := resolve.Resolve(input(view, []resolution.Subscription{c.sub}))
		f := r.Components[0].Failure
		if f == nil {
			t.Fatalf("%s did not fail: %v", c.kind, lines(r))
		}
		i := slices.IndexFunc(f.Statements, func(s resolution.Statement) bool { return s.Kind == c.kind })
		if i < 0 || !strings.Contains(f.Statements[i].Text, c.says) {
			t.Errorf("it does not say %s: %q\n%s", c.kind, c.says, texts(r))
			continue
		}
		if c.sub.Catalog == "fleet" && f.Statements[i].Revision == "" {
			t.Errorf("%s names no document", c.kind)
		}
	}
}

// TestLongExplanations: a person reads some lines, and is told how many there are more (DESIGN D10).
func TestLongExplanations(t *testing.T) {
	t.Parallel()
	const n = 250
	var versions []string
	for i := range n {
		versions = append(versions, fmt.Sprintf("1.0.%d", n-i))
	}
	a := chain("a", versions...)
	for i, v := range versions {
		a.Bundle(v, fmt.Sprintf("pkg:b >0.0.%d", i))
	}
	f := resolve.Resolve(input(newView().Add("fleet", 0, a.P),
		[]resolution.Subscription{sub("s", "a", "stable")})).Components[0].Failure
	if f == nil || len(f.Statements) != explain.MaxStatements || f.More != n+2-explain.MaxStatements {
		t.Errorf("got %+v", f)
	}
}
