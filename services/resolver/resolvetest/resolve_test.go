package resolvetest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// told is what a resolution comes to: a line for each bundle that is planned, and for each subscription.
func told(r resolution.Result) []string {
	var out []string
	for _, c := range r.Components {
		for _, b := range c.Bundles {
			out = append(out, fmt.Sprintf("plan %s/%s/%s", b.Catalog, b.Channel, b.CSV))
		}
		for _, o := range c.Outcomes {
			out = append(out, fmt.Sprintf("%s has %s", o.Subscription, o.CSV))
		}
	}
	slices.Sort(out)
	return out
}

// told is the same of a solution by trying.
func (b *brute) told(taken []*operator) []string {
	var out []string
	for _, o := range taken {
		there := slices.ContainsFunc(b.installed, func(i *operator) bool { return i.name == o.name })
		if !there {
			out = append(out, fmt.Sprintf("plan %s/%s/%s", o.catalog, o.channel, o.name))
		}
	}
	for _, c := range b.roots {
		i := slices.IndexFunc(c.options, func(o *operator) bool { return slices.Contains(taken, o) })
		out = append(out, fmt.Sprintf("%s has %s", c.subscription, c.options[i].name))
	}
	slices.Sort(out)
	return out
}

// failures are the explanations of a result, the subscriptions that got nothing, and the CSVs that are there although
// they may not, whatever the subscriptions ask for.
func failures(r resolution.Result) (list []*resolution.Explanation, subs, csvs map[string]bool) {
	subs, csvs = map[string]bool{}, map[string]bool{}
	for _, c := range r.Components {
		if c.Failure != nil {
			list = append(list, c.Failure)
			for _, csv := range c.Failure.CSVs {
				csvs[csv] = csvs[csv] || len(c.Failure.Subscriptions) == 0
			}
			for _, s := range c.Subscriptions {
				subs[s] = true
			}
		}
	}
	return list, subs, csvs
}

func every(string) bool { return true }

func none(string) bool { return false }

// TestEqualsTrying: where everything can be had, it is what trying everything in the order of preference finds first
// (RESOLVER-NOTES §4). Where not, something is explained, and the others have what they would have without the
// subscriptions that failed (DESIGN D5); or nothing, where plans are joint (R-RES-63).
func TestEqualsTrying(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared %t", shared), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { checkEqual(t, drawScenario(t, taste{shared: shared})) })
		})
	}
}

func checkEqual(t *rapid.T, w *scenario) {
	result := resolve.Resolve(w.in)
	explained, failed, held := failures(result)
	all := newBrute(w, every, none)
	taken, ok := all.solve()
	if ok != (len(explained) == 0) {
		t.Fatalf("trying everything: possible %t; resolve explains %s\n%s", ok, texts(explained), w)
	}
	if ok {
		compare(t, w, result, all, taken)
		return
	}
	if w.in.OperatorGroups[0].Shared {
		if got := told(result); len(result.Components) != 1 || len(got) > 0 {
			t.Fatalf("joint plans, and a failure lets others go on: %v\n%s", got, w)
		}
		return
	}
	for _, h := range []func(string) bool{none, func(csv string) bool { return held[csv] }} {
		rest := newBrute(w, func(sub string) bool { return !failed[sub] }, h)
		if taken, ok = rest.solve(); ok {
			compare(t, w, result, rest, taken)
			return
		}
	}
}

func compare(t *rapid.T, w *scenario, result resolution.Result, b *brute, taken []*operator) {
	if got, want := told(result), b.told(taken); !slices.Equal(got, want) {
		explained, _, _ := failures(result)
		t.Fatalf("resolve:\n%v\n%s\ntrying everything:\n%v\n%s", got, texts(explained), want, w)
	}
}

func texts(list []*resolution.Explanation) string {
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprintf("%v %v:", e.Subscriptions, e.CSVs))
		for _, s := range e.Statements {
			out = append(out, "  "+s.Text)
		}
	}
	return fmt.Sprintf("%q", out)
}

// String shows a scenario, so that a counterexample can be read.
func (w *scenario) String() string {
	type shown struct {
		Catalogs  []resolution.Catalog
		Packages  map[string]any
		Group     []resolution.OperatorGroup
		Policy    resolution.Policy
		Subs      []resolution.Subscription
		Installed []resolution.Installed
	}
	packages := map[string]any{}
	for key, list := range w.packages {
		packages[key.String()] = list
	}
	raw, err := json.MarshalIndent(shown{
		w.catalogs, packages, w.in.OperatorGroups, w.in.Policy, w.in.Subscriptions,
		w.in.Installed,
	}, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
