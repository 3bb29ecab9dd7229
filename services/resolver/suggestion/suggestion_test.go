package suggestion_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
	"github.com/chandler-fleet/chandler/services/resolver/suggestion"
)

// told is an answer as "kind target: text", with what would come of it behind " | ".
func told(a suggestion.Answer) []string {
	out := []string{}
	for _, r := range a.Suggestions {
		out = append(out, fmt.Sprintf("%s %s: %s | %s", r.Kind, r.Target, r.Text, strings.Join(r.Also, "; ")))
	}
	return out
}

func suggest(in resolution.Input, sub string) suggestion.Answer {
	return suggestion.Suggest(suggestion.Question{Input: in, Before: resolve.Resolve(in), Subscription: sub})
}

// TestSuggest: the nearest change that helps comes first, in the user's terms, with what would come of it (P1).
func TestSuggest(t *testing.T) {
	t.Parallel()
	change := func(s resolution.Subscription, f func(*resolution.Subscription)) resolution.Subscription {
		f(&s)
		return s
	}
	gauge := chain("gauge", "2.0.0", "1.0.0").Bundle("2.0.0", "gives:Gauge").Bundle("1.0.0", "gives:Gauge").P
	meter := chain("meter", "1.0.0").Bundle("1.0.0", "gives:Gauge").P
	buoy := pkg("buoy", "stable").Channel("stable", "2.0.0").Channel("old", "1.0.0").Bundle(
		"2.0.0", "pkg:gauge >=3.0.0").Bundle("1.0.0", "pkg:gauge >=1.0.0").P
	rival := pkg("rival", "stable").Channel("stable", "1.0.0").Channel("quiet", "1.0.1").Bundle(
		"1.0.0", "gives:Gauge").Bundle("1.0.1").P
	needy := input(newView().Add("fleet", 0, gauge, chain("kelp", "1.0.0").Bundle("1.0.0", "pkg:gauge >=2.0.0").P),
		[]resolution.Subscription{sub("k", "kelp", "stable")})
	for _, c := range []struct {
		name string
		in   resolution.Input
		ask  string
		want []string
	}{
		{
			"all is well", input(newView().Add("fleet", 0, gauge),
				[]resolution.Subscription{sub("g", "gauge", "stable")}),
			"g",
			[]string{},
		},
		{"no operator group", func() resolution.Input {
			in := input(newView().Add("fleet", 0, gauge), []resolution.Subscription{sub("g", "gauge", "stable")})
			in.OperatorGroups = nil
			return in
		}(), "g", []string{
			"add-operator-group operatorgroup/default: create an operator group in namespace ops that targets " +
				"namespace ops only | subscription g then gets gauge.v2.0.0",
			"add-operator-group operatorgroup/default: create an operator group in namespace ops that targets all " +
				"namespaces | subscription g then gets gauge.v2.0.0",
		}},
		{"two operator groups", func() resolution.Input {
			in := input(newView().Add("fleet", 0, gauge), []resolution.Subscription{sub("g", "gauge", "stable")})
			in.OperatorGroups = []resolution.OperatorGroup{{Name: "b"}, {Name: "a"}}
			return in
		}(), "g", []string{
			"keep-operator-group operatorgroup/a: keep operator group a and delete b | subscription g then gets " +
				"gauge.v2.0.0",
			"keep-operator-group operatorgroup/b: keep operator group b and delete a | subscription g then gets " +
				"gauge.v2.0.0",
		}},
		{"a channel that is not there", input(newView().Add("fleet", 0, gauge),
			[]resolution.Subscription{sub("g", "gauge", "fast")}), "g", []string{
			"channel subscription/g: move subscription g from channel fast to channel stable | subscription g then " +
				"gets gauge.v2.0.0",
		}},
		{"a name that is nearly right", input(newView().Add("fleet", 0, gauge),
			[]resolution.Subscription{sub("g", "gaugge", "stable")}), "g", []string{
			"package subscription/g: let subscription g name package gauge instead of gaugge | subscription g then " +
				"gets gauge.v2.0.0",
		}},
		{"the package is in another catalog", input(newView().Add("fleet", 0, meter).Add("other", 0, gauge),
			[]resolution.Subscription{sub("g", "gauge", "fast")}), "g", []string{
			"catalog subscription/g: let subscription g follow catalog other instead of fleet, in channel stable | " +
				"subscription g then gets gauge.v2.0.0",
		}},
		{"a catalog that is not there", input(newView().Add("other", 0, gauge),
			[]resolution.Subscription{sub("g", "gauge", "stable")}), "g", []string{
			"catalog subscription/g: let subscription g follow catalog other instead of fleet | subscription g then " +
				"gets gauge.v2.0.0",
		}},
		{"a first version that is not there", input(newView().Add("fleet", 0, gauge),
			[]resolution.Subscription{change(sub("g", "gauge", "stable"),
				func(s *resolution.Subscription) { s.StartingCSV = "gauge.v9" })}), "g", []string{
			"starting-csv subscription/g: take startingCSV gauge.v9 out of subscription g | subscription g then gets " +
				"gauge.v2.0.0",
			"starting-csv subscription/g: let subscription g start with gauge.v2.0.0 instead of gauge.v9 | " +
				"subscription g then gets gauge.v2.0.0",
		}},
		{"a requirement that nobody meets", input(newView().Add("fleet", 0, gauge, buoy),
			[]resolution.Subscription{sub("b", "buoy", "stable")}), "b", []string{
			"channel subscription/b: move subscription b from channel stable to channel old | subscription b then " +
				"gets buoy.v1.0.0; gauge.v2.0.0 is then installed, too",
		}},
		{"two that provide the same", input(newView().Add("fleet", 0, gauge, rival),
			[]resolution.Subscription{sub("g", "gauge", "stable"), sub("r", "rival", "stable")}), "g", []string{
			"channel subscription/r: move subscription r from channel stable to channel quiet | subscription g then " +
				"gets gauge.v2.0.0; subscription r then gets rival.v1.0.1",
			"leave-out subscription/r: delete subscription r | subscription g then gets gauge.v2.0.0",
		}},
		{
			"an operator in the way", input(newView().Add("fleet", 0, gauge),
				[]resolution.Subscription{sub("g", "gauge", "stable")}, installed("meter", "1.0.0", "", "gives:Gauge")),
			"g",
			[]string{
				"remove-operator operator/meter.v1.0.0: remove operator meter.v1.0.0, which no subscription follows " +
					"| subscription g then gets gauge.v2.0.0",
			},
		},
		{
			"an operator that has to be upgraded first", input(
				newView().Add("fleet", 0, gauge, chain("kelp", "1.0.0").Bundle("1.0.0", "pkg:gauge >=2.0.0").P),
				[]resolution.Subscription{sub("k", "kelp", "stable")}, installed("gauge", "1.0.0", "", "gives:Gauge")),
			"k",
			[]string{
				"subscribe operator/gauge.v1.0.0: subscribe to channel stable of package gauge in catalog fleet, so " +
					"that the installed gauge.v1.0.0 may be upgraded | subscription k then gets kelp.v1.0.0; " +
					"gauge.v2.0.0 is then installed, too",
				"remove-operator operator/gauge.v1.0.0: remove operator gauge.v1.0.0, which no subscription follows " +
					"| subscription k then gets kelp.v1.0.0; gauge.v2.0.0 is then installed, too",
			},
		},
		{"hidden catalogs", func() resolution.Input {
			in := input(newView().Add("fleet", 0, gauge), []resolution.Subscription{sub("g", "gauge", "stable")})
			in.OperatorGroups[0].ExcludeGlobalCatalogs = true
			return in
		}(), "g", []string{
			"show-global-catalogs operatorgroup/og: let operator group og see the catalogs of the hub | subscription " +
				"g then gets gauge.v2.0.0",
		}},
		{"a ceiling that is too low", bounded(needy, resolution.Bound{
			Policy: "calm", Packages: []string{"ga*"},
			Ceiling: "1.5.0",
		}), "k", []string{
			"raise-policy-bound policy/calm: raise the ceiling of approval policy calm from 1.5.0 to 2.0.0 | " +
				"subscription k then gets kelp.v1.0.0; gauge.v2.0.0 is then installed, too",
		}},
		{"a pin to an old version", bounded(needy, resolution.Bound{
			Policy: "freeze", Packages: []string{"gauge"},
			Pin: "1.0.0",
		}), "k", []string{
			"raise-policy-bound policy/freeze: move the pin of approval policy freeze from 1.0.0 to 2.0.0 | " +
				"subscription k then gets kelp.v1.0.0; gauge.v2.0.0 is then installed, too",
		}},
		{"a range that leaves it out", bounded(needy, resolution.Bound{
			Policy: "band", Packages: []string{"gauge"},
			Range: "<2.0.0",
		}), "k", []string{
			"lift-policy-bound policy/band: lift the version bounds of approval policy band | subscription k then " +
				"gets kelp.v1.0.0; gauge.v2.0.0 is then installed, too",
		}},
		{"a strict catalog is sick", func() resolution.Input {
			s := newView().Add("fleet", 0, gauge).Add("sick", 0, meter)
			s.Healths = map[resolution.CatalogKey]resolution.Health{
				{Name: "sick"}: resolution.Unhealthy("InvalidCatalog"), {Name: "fleet"}: resolution.Healthy,
			}
			return input(s, []resolution.Subscription{sub("g", "gauge", "stable")})
		}(), "g", []string{
			"disable-catalog catalog/sick: disable catalog sick until it is repaired | subscription g then gets " +
				"gauge.v2.0.0",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := suggest(c.in, c.ask)
			if diff := cmp.Diff(c.want, told(a)); diff != "" || a.Resolves != (len(c.want) == 0) {
				t.Errorf("resolves: %t, answer (-want +got):\n%s", a.Resolves, diff)
			}
		})
	}
}

func bounded(in resolution.Input, b resolution.Bound) resolution.Input {
	in.Policy.Bounds = []resolution.Bound{b}
	return in
}

// kinds are those of seeded conflicts.
const kinds = 9

// conflict is a namespace with one thing wrong in it, made from a seed, with company that must stay as it is.
func conflict(seed uint64) (in resolution.Input, ask string) {
	r := rand.New(rand.NewPCG(seed, 4))
	ask = "asked"
	company := chain("company", "1.1.0", "1.0.0").Bundle("1.1.0").Bundle("1.0.0").P
	subs := []resolution.Subscription{sub("company", "company", "stable")}
	n := 1 + r.IntN(4)
	var versions []string
	for v := n; v >= 0; v-- {
		versions = append(versions, fmt.Sprintf("1.%d.0", v))
	}
	plain := func(name string, words ...string) *builder {
		b := chain(name, versions...)
		for _, v := range versions {
			b.Bundle(v, words...)
		}
		return b
	}
	s := newView()
	asked := sub(ask, "asked", "stable")
	var have []resolution.Installed
	var bound []resolution.Bound
	switch seed % kinds {
	case 0: // one provider of an API too many
		s.Add("fleet", 0, company, plain("asked", "gives:A").P, plain("rival", "gives:A").P)
		subs = append(subs, sub("rival", "rival", "stable"))
	case 1: // an unmanaged operator holds the API
		s.Add("fleet", 0, company, plain("asked", "gives:A").P)
		have = append(have, installed("stranger", "1.0.0", "", "gives:A"))
	case 2: // the channel asks for what nobody has, another one does not
		b := plain("asked", "api:Nothing").Bundle("0.9.0").Channel("old", "0.9.0")
		s.Add("fleet", 0, company, b.P)
	case 3: // the package is elsewhere
		s.Add("fleet", 0, company).Add("other", int32(r.IntN(3)), plain("asked").P)
	case 4: // a first version that is not there
		s.Add("fleet", 0, company, plain("asked").P)
		asked.StartingCSV = "asked.v7"
	case 5: // two subscriptions to one package that want different versions of it
		s.Add("fleet", 0, company, plain("asked").Bundle("0.9.0").Channel("side", "0.9.0").P)
		subs = append(subs, sub("twin", "asked", "side"))
	case 6: // an unmanaged operator is too old for what is asked
		s.Add("fleet", 0, company, plain("asked", "pkg:base >=2.0.0").P,
			chain("base", "2.0.0", "1.0.0").Bundle("2.0.0").Bundle("1.0.0").P)
		have = append(have, installed("base", "1.0.0", ""))
	case 7: // a policy that allows none of what is asked for
		s.Add("fleet", 0, company, plain("asked", "pkg:base >=2.0.0").P,
			chain("base", "2.0.0", "1.0.0").Bundle("2.0.0").Bundle("1.0.0").P)
		bound = []resolution.Bound{{Policy: "p", Packages: []string{"base"}, Ceiling: "1.0.0"}}
	default: // a typing error in the channel
		s.Add("fleet", 0, company, plain("asked").P)
		asked.Channel = "stabel"
	}
	in = input(s, append(subs, asked), have...)
	in.Policy.Bounds = bound
	return in, ask
}

// TestEveryRemedyHelps: for 270 seeded conflicts something is offered, and each offer, applied to the input as its
// structure says, makes every blamed subscription that is left resolve and leaves the company alone (P1).
func TestEveryRemedyHelps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(270) {
		in, ask := conflict(seed)
		before := resolve.Resolve(in)
		var blamed []string
		for _, c := range before.Components {
			if c.Failure != nil && slices.Contains(c.Subscriptions, ask) {
				blamed = c.Failure.Subscriptions
			}
		}
		if blamed == nil {
			t.Fatalf("seed %d: %s is not blamed: %+v", seed, ask, before.Components)
		}
		answer := suggestion.Suggest(suggestion.Question{Input: in, Before: before, Subscription: ask})
		if len(answer.Suggestions) == 0 {
			t.Errorf("seed %d (case %d): nothing is offered", seed, seed%kinds)
		}
		for _, r := range answer.Suggestions {
			changed, ok := r.Apply(in)
			if !ok {
				t.Errorf("seed %d: %s does not apply", seed, r.Text)
			}
			after := resolve.Resolve(changed)
			resolved := map[string]bool{}
			for _, c := range after.Components {
				for _, name := range c.Subscriptions {
					resolved[name] = c.Failure == nil && c.Blocked == nil
				}
			}
			for _, sub := range changed.Subscriptions {
				if (slices.Contains(blamed, sub.Name) || sub.Name == "company") && !resolved[sub.Name] {
					t.Errorf("seed %d: after %q %s does not resolve", seed, r.Text, sub.Name)
				}
			}
			if !slices.ContainsFunc(changed.Subscriptions,
				func(s resolution.Subscription) bool { return s.Name == ask }) {
				t.Errorf("seed %d: %q takes the subscription away that was asked about", seed, r.Text)
			}
		}
		if again := suggestion.Suggest(suggestion.Question{Input: in, Before: before, Subscription: ask}); !cmp.Equal(
			answer, again) {
			t.Errorf("seed %d: the same input gets other answer: %v, %v", seed, told(answer), told(again))
		}
	}
}

// TestSuggestIgnoresTheOrderOfCatalogs: a View gives catalogs in any order, and the same answer comes of each.
func TestSuggestIgnoresTheOrderOfCatalogs(t *testing.T) {
	t.Parallel()
	base := func() catalog.Package { return chain("base", "2.0.0", "1.0.0").Bundle("2.0.0").Bundle("1.0.0").P }
	s := newView().Add("fleet", 0, chain("asked", "1.0.0").Bundle("1.0.0", "pkg:base >=2.0.0").P)
	s.Add("b", 0, base()).Add("a", 0, base()).Add("c", 7, base())
	in := input(s, []resolution.Subscription{sub("asked", "asked", "stable")}, installed("base", "1.0.0", ""))
	want := suggest(in, "asked")
	if len(want.Suggestions) < 2 || want.Suggestions[0].Kind != suggestion.Subscribe {
		t.Fatalf("no subscription is offered: %v", told(want))
	}
	for range len(s.Listed) {
		s.Listed = append(s.Listed[1:], s.Listed[0])
		if diff := cmp.Diff(want, suggest(in, "asked")); diff != "" {
			t.Errorf("with the catalogs in another order (-want +got):\n%s", diff)
		}
	}
}

// TestSuggestIsBounded: a conflict with very many ways out costs no more than MaxTrials, and says that there are more.
func TestSuggestIsBounded(t *testing.T) {
	t.Parallel()
	s := newView()
	b := pkg("asked", "c000")
	for i := range 2 * suggestion.MaxTrials {
		b.Channel(fmt.Sprintf("c%03d", i), fmt.Sprintf("1.%d.0", i)).Bundle(fmt.Sprintf("1.%d.0", i), "api:Nothing")
	}
	s.Add("fleet", 0, b.P)
	answer := suggest(input(s, []resolution.Subscription{sub("asked", "asked", "c000")}), "asked")
	if len(answer.Suggestions) != 0 || answer.Tried != suggestion.MaxTrials || !answer.Exhausted {
		t.Errorf("answer %+v", answer)
	}
}

// riddle is a namespace that is hard to resolve: a package for each variable of a random formula, whose two versions
// are its values, and a subscription for each clause, which may move to another channel that asks for no less.
func riddle(variables, clauses int) resolution.Input {
	draw := rand.New(rand.NewPCG(3, 4))
	var packages []catalog.Package
	for v := range variables {
		packages = append(packages, chain(fmt.Sprintf("var%03d", v), "2.0.0", "1.0.0").Bundle("2.0.0").Bundle(
			"1.0.0").P)
	}
	var subs []resolution.Subscription
	for c := range clauses {
		var parts []string
		for range 3 {
			parts = append(parts, fmt.Sprintf(`{"package":{"packageName":"var%03d","versionRange":"%d.0.0"}}`,
				draw.IntN(variables), 1+draw.IntN(2)))
		}
		word := `constraint:{"any":{"constraints":[` + strings.Join(parts, ",") + `]}}`
		name := fmt.Sprintf("clause%04d", c)
		packages = append(packages, pkg(name, "stable").Channel("stable", "2.0.0").Channel("old", "1.0.0").Bundle(
			"2.0.0", word).Bundle("1.0.0", word).P)
		subs = append(subs, sub(name, name, "stable"))
	}
	return input(newView().Add("fleet", 0, packages...), subs)
}

// TestSuggestIsBoundedWhereTheNamespaceIsHard: the searches of one answer share one budget, and it ends where nobody
// waits.
func TestSuggestIsBoundedWhereTheNamespaceIsHard(t *testing.T) {
	t.Parallel()
	in := riddle(150, 640)
	in.Policy.MaxConflicts = 200
	before := resolve.Resolve(in)
	i := slices.IndexFunc(before.Components, func(c resolution.Component) bool {
		return c.Failure != nil && c.Failure.Class == resolution.ClassTooHard
	})
	if i < 0 {
		t.Fatal("the namespace is not hard")
	}
	ask := before.Components[i].Failure.Subscriptions[0]
	in.Policy.MaxConflicts = 0
	if a := suggestion.Suggest(suggestion.Question{Input: in, Before: before, Subscription: ask}); !a.Exhausted ||
		a.Tried == 0 || a.Tried > 20 {
		t.Errorf("%d trials of searches that are all hard, exhausted %v", a.Tried, a.Exhausted)
	}
	asked := 0
	stop := func() bool { asked++; return asked > 100 } // in the middle of a search
	if a := suggestion.Suggest(suggestion.Question{
		Input: in, Before: before, Subscription: ask,
		Stop: stop,
	}); !a.Exhausted || a.Tried != 1 || asked > 101 {
		t.Errorf("%d trials though nobody waits, exhausted %v; asked %d times", a.Tried, a.Exhausted, asked)
	}
}
