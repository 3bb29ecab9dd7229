package resolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// TestPartitionsDoNotTouch: what happens elsewhere in the namespace does not change a byte of a component (DESIGN D5).
func TestPartitionsDoNotTouch(t *testing.T) {
	t.Parallel()
	view := newView().Add("fleet", 0, one("a", "api:B"), one("b", "gives:B"), one("c"), one("d", "api:Nobody"))
	in := input(view, []resolution.Subscription{sub("s", "a", "stable")})
	want := bytesOfComponent(t, resolve.Resolve(in).Components[0])
	in.Subscriptions = append(in.Subscriptions, sub("t", "c", "stable"), sub("u", "d", "stable"),
		sub("v", "nowhere", "stable"))
	in.Installed = append(in.Installed, installed("e", "1.0.0", "", "gives:E"))
	in.Policy.Bounds = []resolution.Bound{{Policy: "other", Packages: []string{"c"}, Ceiling: "1.0.0"}}
	if diff := cmp.Diff(want, bytesOfComponent(t, resolve.Resolve(in).Components[0])); diff != "" {
		t.Errorf("(-alone +beside others):\n%s", diff)
	}
}

// TestComponentsKeepEveryPromiseAlone: each plan can be carried out without the others (R-RES-1, R-RES-2).
func TestComponentsKeepEveryPromiseAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		r := resolve.Resolve(c.Input)
		before := c.after(resolution.Result{})
		for _, comp := range r.Components {
			after := c.after(resolution.Result{Components: []resolution.Component{comp}})
			for csv, props := range after {
				for _, p := range props {
					if _, was := before[csv]; meets(after, p) || was && !meets(before, p) {
						continue
					}
					t.Fatalf("%s lacks %s %s after %s alone of %v", csv, p.Type, p.Value, comp.Name, lines(r))
				}
			}
			was, is := bearers(before), bearers(after)
			for what, n := range is {
				if n > 1 && n > was[what] {
					t.Fatalf("%d bearers of %s after %s alone of %v", n, what, comp.Name, lines(r))
				}
			}
		}
	})
}

// TestEveryComponentResolvesAgain: the record of each component gives that component again, with nothing but the
// documents that it names (DESIGN D5).
func TestEveryComponentResolvesAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		for i := range c.View.Listed {
			c.View.Listed[i].Revision = ""
		}
		documents := map[digest.Digest]*offer.Package{}
		for _, packages := range c.View.Documents {
			for _, p := range packages {
				documents[p.Digest] = p
			}
		}
		for _, comp := range resolve.Resolve(c.Input).Components {
			again := resolve.Resolve(comp.Input.Input(replay{comp.Input, documents}))
			if !slices.ContainsFunc(again.Components, func(o resolution.Component) bool { return cmp.Equal(comp, o) }) {
				t.Fatalf("%s is not among %v", comp.Name, lines(again))
			}
		}
	})
}

// TestSharedFailsTogether: with joint plans one failure is everybody's, as with OLM (R-RES-42, R-RES-63).
func TestSharedFailsTogether(t *testing.T) {
	t.Parallel()
	view := newView().Add("fleet", 0, one("a"), one("b", "api:Nobody"))
	in := input(view, []resolution.Subscription{sub("s", "a", "stable"), sub("t", "b", "stable")})
	in.OperatorGroups[0].Shared = true
	r := resolve.Resolve(in)
	if diff := cmp.Diff([]string{"a+b: failed unsatisfiable"}, lines(r)); diff != "" {
		t.Fatal(diff)
	}
	if got := r.Components[0].Failure.Subscriptions; !slices.Equal(got, []string{"t"}) {
		t.Errorf("blamed %v", got)
	}
}

// TestFaultsFailOnlyWhoReachesThem: the others of a partition go on.
func TestFaultsFailOnlyWhoReachesThem(t *testing.T) {
	t.Parallel()
	view := newView().Add("fleet", 0, one("a", "api:B", `constraint:{"some":1}`), one("b", "gives:B"),
		one("c", "api:B"))
	r := resolve.Resolve(input(view, []resolution.Subscription{
		sub("s", "a", "stable"), sub("t", "c", "stable"),
		sub("u", "b", "stable"),
	}))
	want := []string{"a: failed invalid-constraint", "b+c: b.v1.0.0 stable ChannelHead, c.v1.0.0 stable ChannelHead"}
	if diff := cmp.Diff(want, lines(r)); diff != "" {
		t.Error(diff)
	}
}

// TestPolicyBounds: versions that a policy forbids are not chosen, what is installed stays, and the policy is named.
func TestPolicyBounds(t *testing.T) {
	t.Parallel()
	view := func() *catalogs {
		return newView().Add("fleet", 0, chain("a", "3.0.0", "2.0.0", "1.0.0").Bundle("3.0.0").Bundle("2.0.0").Bundle(
			"1.0.0").P, one("needy", "pkg:a >=2.0.0"))
	}
	start := sub("s", "a", "stable")
	start.StartingCSV = "a.v3.0.0"
	cases := map[string]struct {
		bound resolution.Bound
		sub   resolution.Subscription
		have  []resolution.Installed
		want  string
	}{
		"none": {
			resolution.Bound{Packages: []string{"b"}, Pin: "9.0.0"},
			sub("s", "a", "stable"),
			nil, "a: a.v3.0.0 stable ChannelHead",
		},
		"a pinned version": {
			resolution.Bound{Pin: "1.0.0"},
			sub("s", "a", "stable"), nil,
			"a: a.v1.0.0 stable Subscribed",
		},
		"a pinned CSV": {
			resolution.Bound{Packages: []string{"a"}, Pin: "a.v2.0.0"},
			sub("s", "a", "stable"), nil, "a: a.v2.0.0 stable Subscribed",
		},
		"a range": {
			resolution.Bound{Packages: []string{"x", "a*"}, Range: "<2.0.0"},
			sub("s", "a", "stable"), nil, "a: a.v1.0.0 stable Subscribed",
		},
		"a ceiling": {
			resolution.Bound{Catalogs: []string{"fleet"}, Ceiling: "2.0.0"},
			sub("s", "a", "stable"), nil, "a: a.v2.0.0 stable Subscribed",
		},
		"of another catalog": {
			resolution.Bound{Catalogs: []string{"other"}, Ceiling: "2.0.0"},
			sub("s", "a", "stable"), nil, "a: a.v3.0.0 stable ChannelHead",
		},
		"what is installed stays": {
			resolution.Bound{Ceiling: "1.0.0"},
			sub("s", "a", "stable"),
			[]resolution.Installed{installed("a", "2.0.0", "s")},
			"a: nothing",
		},
		"not as starting CSV": {resolution.Bound{Ceiling: "1.0.0"}, start, nil, "a: failed unsatisfiable"},
		"not as dependency": {
			resolution.Bound{Packages: []string{"a"}, Ceiling: "1.0.0"},
			sub("s", "needy", "stable"), nil, "needy: failed unsatisfiable",
		},
		"what cannot be read allows": {
			resolution.Bound{Range: "later"},
			sub("s", "a", "stable"), nil,
			"a: failed unsatisfiable",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(view(), []resolution.Subscription{c.sub}, c.have...)
			c.bound.Policy = "spring"
			in.Policy.Bounds = []resolution.Bound{c.bound}
			r := resolve.Resolve(in)
			if diff := cmp.Diff([]string{c.want}, lines(r)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, texts(r))
			}
			f := r.Components[0].Failure
			if f != nil && !slices.ContainsFunc(f.Statements,
				func(s resolution.Statement) bool {
					return s.Kind == resolution.PolicyForbids &&
						s.Policy == "spring"
				}) {
				t.Errorf("it does not name the policy:\n%s", texts(r))
			}
		})
	}
}

// TestTooManyCandidates: a catalog in which everything requires everything meets a fixed bound and a named error, and
// fails only who asks for it (DESIGN D10).
func TestTooManyCandidates(t *testing.T) {
	t.Parallel()
	const n = 1001
	var versions []string
	for i := range n {
		versions = append(versions, fmt.Sprintf("1.0.%d", n-i))
	}
	asks, serves := chain("a", versions...), chain("b", versions...)
	for i, v := range versions {
		asks.Bundle(v, fmt.Sprintf("pkg:b >0.0.%d", i))
		serves.Bundle(v)
	}
	r := resolve.Resolve(input(newView().Add("fleet", 0, asks.P, serves.P, one("c")),
		[]resolution.Subscription{sub("s", "a", "stable"), sub("t", "c", "stable")}))
	if diff := cmp.Diff([]string{"a: failed too-hard", "c: c.v1.0.0 stable ChannelHead"}, lines(r)); diff != "" {
		t.Fatal(diff)
	}
	if got := texts(r); !strings.Contains(got, "more than 20000000 comparisons") {
		t.Error(got)
	}
}
