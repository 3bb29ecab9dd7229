package why_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
	"github.com/chandler-fleet/chandler/services/resolver/why"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) // a Monday

// scene is a namespace of a cluster.
type scene struct {
	decide.State

	t      *testing.T
	view   *catalogs
	bounds []resolution.Bound
}

func newScene(t *testing.T, view *catalogs) *scene {
	t.Helper()
	s := &scene{t: t, view: view, State: decide.State{
		Tenant: "default", Scope: resolution.Scope{Cluster: "harbour", Namespace: "ops"},
		Groups: []decide.Group{{Name: "og"}},
	}}
	for _, c := range view.Listed {
		s.Catalogs = append(s.Catalogs, decide.Catalog{
			Subject: c.Key.Name, Key: c.Key,
			CatalogRevision: decide.CatalogRevision{Revision: c.Revision},
		})
	}
	return s
}

func (s *scene) subscribe(name, pkg, channel string) *scene {
	s.Subscriptions = append(s.Subscriptions, decide.Subscription{
		Name: name, Incarnation: 1, Version: 1, Spec: events.SubscriptionSpec{
			Package: pkg, Channel: channel, Catalog: "fleet", Approval: "Automatic",
		},
	})
	return s
}

func (s *scene) install(pkg, version, phase string, words ...string) *scene {
	s.Installed = append(s.Installed, decide.Installed{
		Name: pkg + ".v" + version, Package: pkg, Version: version,
		Phase: phase, Properties: properties(pkg, version, words...),
	})
	return s
}

func (s *scene) bound(b resolution.Bound) *scene {
	s.bounds = append(s.bounds, b)
	return s
}

// facts are those of the moment.
func (s *scene) facts() why.Facts {
	s.t.Helper()
	in := s.Input(s.view)
	in.Policy.Bounds = s.bounds
	r := resolve.Resolve(in)
	v, err := decide.Assess(s.State, r)
	if err != nil {
		s.t.Fatal(err)
	}
	return why.Facts{State: s.State, Input: in, Result: r, Verdicts: v, Now: noon}
}

// plan gives the scene the plan that it would get, changed, and what happened to it.
func (s *scene) plan(change func(*events.InstallPlanProposed), happened ...events.Payload) *scene {
	s.t.Helper()
	f := s.facts()
	rendered := map[string]decide.Rendered{}
	for _, v := range f.Verdicts {
		rendered[v.Component.Name] = decide.Rendered{
			Rendering: render.Semantics,
			Steps:     []installplan.Step{{Resolving: "a", Kind: "Deployment", Name: "d"}},
			Identity:  decide.Identity{Plan: "p1", Name: "install-aaaaa"},
		}
	}
	d, err := decide.Decide(s.State, f.Verdicts, rendered)
	if err != nil || len(d.Proposals) != 1 {
		s.t.Fatalf("%d plans, %v", len(d.Proposals), err)
	}
	p := d.Proposals[0]
	if change != nil {
		change(&p.Event)
	}
	state, err := installplan.Fold(append([]events.Payload{p.Event}, happened...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Generation = 1
	s.Plans = []decide.Plan{{ID: "p1", Version: 1, Effect: p.Effect, State: state}}
	return s
}

// told is an answer as "version catalog channels: code text", one line for each reason.
func told(l why.Answer) []string {
	out := []string{}
	for _, n := range l.NotTaken {
		for _, r := range n.Reasons {
			out = append(out, fmt.Sprintf("%s %s %s: %s %s", n.Version, n.Catalog, strings.Join(n.Channels, ","),
				r.Code, r.Text))
		}
	}
	return out
}

func versions(name string, list ...string) *builder {
	b := chain(name, list...)
	for _, v := range list {
		b.Bundle(v)
	}
	return b
}

// TestNotTaken: for every newer version the reason that keeps it away (capabilities 1 and 10 of PEERS §3).
func TestNotTaken(t *testing.T) {
	t.Parallel()
	manual := func(p *events.InstallPlanProposed) { p.Approval = installplan.Manual }
	gauge := versions("gauge", "1.2.0", "1.1.0", "1.0.0")
	simple := func(t *testing.T) *scene {
		t.Helper()
		return newScene(t, newView().Add("fleet", 0, gauge.P)).subscribe("g", "gauge", "stable").install(
			"gauge", "1.0.0", "Succeeded")
	}
	for _, c := range []struct {
		name  string
		scene func(t *testing.T) *scene
		want  []string
	}{
		{"at the head", func(t *testing.T) *scene {
			t.Helper()
			return newScene(t, newView().Add("fleet", 0, gauge.P)).subscribe("g", "gauge", "stable").install(
				"gauge", "1.2.0", "Succeeded")
		}, []string{}},
		{"one step at a time", simple, []string{
			"1.2.0 fleet stable: one-step one step at a time: gauge.v1.1.0 comes first",
			"1.1.0 fleet stable: planned an install plan for it is being made",
		}},
		{"the operator is not well", func(t *testing.T) *scene {
			t.Helper()
			s := simple(t)
			s.Installed[0].Phase = "Failed"
			return s
		}, []string{
			"1.2.0 fleet stable: operator-not-succeeded operator gauge.v1.0.0 is Failed; the next step comes when it " +
				"is Succeeded",
			"1.1.0 fleet stable: operator-not-succeeded operator gauge.v1.0.0 is Failed; the next step comes when it " +
				"is Succeeded",
		}},
		{"a person has to approve", func(t *testing.T) *scene { t.Helper(); return simple(t).plan(manual) }, []string{
			"1.2.0 fleet stable: one-step one step at a time: gauge.v1.1.0 comes first",
			"1.1.0 fleet stable: approval install plan install-aaaaa waits until a person approved it",
		}},
		{"two people have to approve", func(t *testing.T) *scene {
			t.Helper()
			return simple(t).plan(func(p *events.InstallPlanProposed) {
				p.Approval, p.Approvers, p.Policies, p.ManualReasons = installplan.Manual, 2, []string{"careful"},
					[]string{"PermissionGrowth"}
			})
		}, []string{
			"1.2.0 fleet stable: one-step one step at a time: gauge.v1.1.0 comes first",
			"1.1.0 fleet stable: approval install plan install-aaaaa waits until 2 more of 2 people approved it, as " +
				"approval policy careful wants for PermissionGrowth",
		}},
		{"a window is not open", func(t *testing.T) *scene {
			t.Helper()
			return simple(t).plan(func(p *events.InstallPlanProposed) {
				p.Windows = []events.WindowGroup{
					{Policy: "nights", Windows: []events.Window{{Start: "22:00", Minutes: 60, TimeZone: "UTC"}}},
				}
			})
		}, []string{
			"1.2.0 fleet stable: one-step one step at a time: gauge.v1.1.0 comes first",
			"1.1.0 fleet stable: window install plan install-aaaaa waits for the maintenance window of approval " +
				"policy nights, which opens at 2026-03-02T22:00:00Z",
		}},
		{"the stop switch", func(t *testing.T) *scene {
			t.Helper()
			return simple(t).plan(nil, events.InstallPlanBlocked{Class: "stopped", Reason: "EffectsStopped"})
		}, []string{
			"1.2.0 fleet stable: one-step one step at a time: gauge.v1.1.0 comes first",
			"1.1.0 fleet stable: stopped the stop switch holds install plan install-aaaaa up",
		}},
		{"the plan is begun", func(t *testing.T) *scene {
			t.Helper()
			return simple(t).plan(
				nil, events.InstallPlanStarted{})
		}, []string{
			"1.2.0 fleet stable: plan-under-way install plan install-aaaaa is being carried out",
			"1.1.0 fleet stable: plan-under-way install plan install-aaaaa is being carried out",
		}},
		{"the plan was rejected", func(t *testing.T) *scene {
			t.Helper()
			return simple(t).plan(manual, events.InstallPlanRejected{})
		}, []string{
			"1.2.0 fleet stable: one-step one step at a time: gauge.v1.1.0 comes first",
			"1.1.0 fleet stable: plan-rejected install plan install-aaaaa, which would have brought it, was rejected",
		}},
		{"the plan failed", func(t *testing.T) *scene {
			t.Helper()
			return simple(t).plan(nil, events.InstallPlanStarted{},
				events.InstallPlanFailed{Step: 1, Reason: "Invalid"})
		}, []string{
			"1.2.0 fleet stable: one-step one step at a time: gauge.v1.1.0 comes first",
			"1.1.0 fleet stable: plan-failed install plan install-aaaaa, which would have brought it, failed " +
				"(Invalid); it is tried again when something changes",
		}},
		{"other channels and catalogs", func(t *testing.T) *scene {
			t.Helper()
			p := versions("gauge", "1.0.0").Bundle("1.5.0").Channel("fast", "1.5.0").P
			return newScene(t, newView().Add("fleet", 0, p).Add("other", 0, versions("gauge", "3.0.0").P)).
				subscribe("g", "gauge", "stable").install("gauge", "1.0.0", "Succeeded")
		}, []string{
			"3.0.0 other stable: other-catalog it is in catalog other, and subscription g follows catalog fleet",
			"1.5.0 fleet fast: other-channel it is in channel fast, and subscription g follows channel stable",
		}},
		{"skipped and passed over", func(t *testing.T) *scene {
			t.Helper()
			p := pkg("gauge", "stable").Channel("stable", "2.0.0<1.5.0 skips=1.9.0,1.0.0", "1.9.0", "1.5.0<1.0.0",
				"1.0.0").
				Bundle("2.0.0").Bundle("1.9.0").Bundle("1.5.0").Bundle("1.0.0")
			return newScene(t, newView().Add("fleet", 0, p.P)).subscribe("g", "gauge", "stable").install(
				"gauge", "1.0.0", "Succeeded")
		}, []string{
			"2.0.0 fleet stable: planned an install plan for it is being made",
			"1.9.0 fleet stable: skipped gauge.v2.0.0 skips it",
			"1.5.0 fleet stable: passed-over the plan moves to gauge.v2.0.0 at once",
		}},
		{"a channel that makes no sense", func(t *testing.T) *scene {
			t.Helper()
			p := pkg("gauge", "stable").Channel("stable", "2.0.0<1.0.0", "1.5.0<1.0.0", "1.0.0").Bundle("2.0.0").Bundle(
				"1.5.0").Bundle("1.0.0")
			return newScene(t, newView().Add("fleet", 0, p.P)).subscribe("g", "gauge", "stable").install(
				"gauge", "1.0.0", "Succeeded")
		}, []string{
			"2.0.0 fleet stable: invalid-content catalog fleet: ",
			"1.5.0 fleet stable: invalid-content catalog fleet: ",
		}},
		{"no way", func(t *testing.T) *scene {
			t.Helper()
			return newScene(t, newView().Add("fleet", 0, versions("gauge", "2.0.0", "1.0.0").P)).subscribe(
				"g", "gauge", "stable").install("gauge", "1.1.0", "Succeeded")
		}, []string{"2.0.0 fleet stable: no-path no upgrade path of the channel leads there from gauge.v1.1.0"}},
		{"held by a dependency of another one", func(t *testing.T) *scene {
			t.Helper()
			return newScene(t, newView().Add("fleet", 0, versions("gauge", "2.0.0", "1.0.0").P,
				chain("buoy", "1.0.0").Bundle("1.0.0", "pkg:gauge <2.0.0").P)).
				subscribe("b", "buoy", "stable").subscribe("g", "gauge", "stable").
				install("gauge", "1.0.0", "Succeeded").install("buoy", "1.0.0", "Succeeded", "pkg:gauge <2.0.0")
		}, []string{"2.0.0 fleet stable: dependency installed buoy.v1.0.0 requires an operator"}},
		{"an API that another one has", func(t *testing.T) *scene {
			t.Helper()
			return newScene(t, newView().Add("fleet", 0, chain("gauge", "2.0.0", "1.0.0").Bundle(
				"2.0.0", "gives:Tide").Bundle("1.0.0").P)).
				subscribe("g", "gauge", "stable").install("gauge", "1.0.0", "Succeeded").install(
				"tides", "1.0.0", "Succeeded", "gives:Tide")
		}, []string{"2.0.0 fleet stable: conflict there can be only one provider of Tide (sea.test/v1)"}},
		{"deprecated", func(t *testing.T) *scene {
			t.Helper()
			return newScene(t, newView().Add("fleet", 0, chain("gauge", "2.0.0", "1.0.0").Bundle(
				"2.0.0", "deprecated").Bundle("1.0.0").P)).
				subscribe("g", "gauge", "stable").install("gauge", "1.0.0", "Succeeded")
		}, []string{
			"2.0.0 fleet stable: deprecated catalog fleet says that gauge.v2.0.0 is deprecated and may not be chosen " +
				"any more",
		}},
		{"its image is being fetched", func(t *testing.T) *scene {
			t.Helper()
			p := versions("gauge", "2.0.0", "1.0.0").P
			p.Bundles[0].Image = "registry.test/gauge:2"
			return newScene(t, newView().Add("fleet", 0, p)).subscribe("g", "gauge", "stable").install(
				"gauge", "1.0.0", "Succeeded")
		}, []string{
			"2.0.0 fleet stable: bundle-image-pending bundle image registry.test/gauge:2 of gauge.v2.0.0 is being " +
				"fetched",
		}},
		{"its image cannot be had", func(t *testing.T) *scene {
			t.Helper()
			p := versions("gauge", "2.0.0", "1.0.0").P
			p.Bundles[0].Image = "registry.test/gauge:2"
			s := newView().Add("fleet", 0, p)
			s.Images = map[string]resolution.Fetched{"registry.test/gauge:2": {Reason: "NotFound"}}
			return newScene(t, s).subscribe("g", "gauge", "stable").install("gauge", "1.0.0", "Succeeded")
		}, []string{
			"2.0.0 fleet stable: bundle-image-failed bundle image registry.test/gauge:2 of gauge.v2.0.0 in catalog " +
				"fleet cannot be had (NotFound)",
		}},
		{"a strict catalog is sick", func(t *testing.T) *scene {
			t.Helper()
			s := newView().Add("fleet", 0, versions("gauge", "2.0.0", "1.0.0").P).Add(
				"sick", 0, versions("kelp", "1.0.0").P)
			s.Healths = map[resolution.CatalogKey]resolution.Health{
				{Name: "sick"}: resolution.Unhealthy("InvalidCatalog"), {Name: "fleet"}: resolution.Healthy,
			}
			return newScene(t, s).subscribe("g", "gauge", "stable").install("gauge", "1.0.0", "Succeeded")
		}, []string{"2.0.0 fleet stable: catalog-unhealthy catalog sick is unhealthy (InvalidCatalog)"}},
		{"the cluster is cordoned", func(t *testing.T) *scene {
			t.Helper()
			s := newScene(t, newView().Add("fleet", 0, versions("gauge", "2.0.0", "1.0.0").P)).subscribe(
				"g", "gauge", "stable").install("gauge", "1.0.0", "Succeeded")
			s.Cluster.Cordoned = true
			return s
		}, []string{"2.0.0 fleet stable: cluster-cordoned cluster"}},
		{"a catalog is loaded for the first time", func(t *testing.T) *scene {
			t.Helper()
			s := newView().Add("fleet", 0, versions("gauge", "2.0.0", "1.0.0").P).Add("late", 0)
			s.Healths = map[resolution.CatalogKey]resolution.Health{
				{Name: "late"}:  resolution.Loading,
				{Name: "fleet"}: resolution.Healthy,
			}
			return newScene(t, s).subscribe("g", "gauge", "stable").install("gauge", "1.0.0", "Succeeded")
		}, []string{
			"2.0.0 fleet stable: catalog-loading a catalog that the namespace sees is being loaded for the first time",
		}},
		{"nobody follows it", func(t *testing.T) *scene {
			t.Helper()
			return newScene(t, newView().Add("fleet", 0, versions("gauge", "2.0.0", "1.0.0").P)).install(
				"gauge", "1.0.0", "Succeeded")
		}, []string{"2.0.0 fleet stable: not-subscribed no subscription follows gauge.v1.0.0, so nothing upgrades it"}},
		{"the hub's catalogs are hidden", func(t *testing.T) *scene {
			t.Helper()
			s := simple(t)
			s.Groups[0].Spec.ExcludeGlobalCatalogs = true
			return s
		}, []string{
			"1.2.0 fleet stable: hidden-catalog operator group og excludes catalogs of the hub, such as fleet",
			"1.1.0 fleet stable: hidden-catalog operator group og excludes catalogs of the hub, such as fleet",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, ok := why.Operator(c.scene(t).facts(), "gauge")
			if !ok {
				t.Fatal("no such operator")
			}
			got := told(l)
			if len(got) != len(c.want) {
				t.Fatalf("(-want +got):\n%s", cmp.Diff(c.want, got))
			}
			for i := range got { // statements of the engine are its own words: their beginning is compared
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], c.want[i])
				}
			}
		})
	}
}

// TestPinned: a catalog moves 50 times; who is pinned gets no plan and 50 entries that name the policy (P18). A range
// and a ceiling say so in their words.
func TestPinned(t *testing.T) {
	t.Parallel()
	list := []string{"1.0.0"}
	for i := range 50 {
		list = append([]string{fmt.Sprintf("1.%d.0", i+1)}, list...)
	}
	for text, b := range map[string]resolution.Bound{
		"approval policy freeze pins 1.0.0":                   {Pin: "1.0.0"},
		"approval policy freeze pins gauge.v1.0.0":            {Pin: "gauge.v1.0.0"},
		"approval policy freeze allows versions in <1.1.0":    {Range: "<1.1.0"},
		"approval policy freeze allows nothing beyond 1.0.99": {Ceiling: "1.0.99", Packages: []string{"ga*"}},
	} {
		b.Policy = "freeze"
		s := newScene(t, newView().Add("fleet", 0, versions("gauge", list...).P)).subscribe(
			"g", "gauge", "stable").install("gauge", "1.0.0", "Succeeded").bound(b)
		f := s.facts()
		for _, c := range f.Result.Components {
			if len(c.Bundles) != 0 {
				t.Errorf("%s: planned %v", text, c.Bundles)
			}
		}
		l, _ := why.Operator(f, "gauge")
		if len(l.NotTaken) != 50 || l.More != 0 {
			t.Fatalf("%s: %d entries and %d more", text, len(l.NotTaken), l.More)
		}
		for _, n := range l.NotTaken {
			if r := n.Reasons[0]; r.Code != why.Policy || r.Policy != "freeze" || r.Text != text {
				t.Errorf("%s: %+v", n.Version, r)
			}
		}
	}
}

// TestBecause: a dependency is told with the chain of requirements from a subscription, planned or installed.
func TestBecause(t *testing.T) {
	t.Parallel()
	view := newView().Add("fleet", 0, versions("kelp", "1.0.0").P,
		chain("gauge", "1.0.0").Bundle("1.0.0", "gives:Gauge", "pkg:kelp >=1.0.0").P,
		chain("buoy", "1.0.0").Bundle("1.0.0", "api:Gauge").P)
	want := []string{
		"subscription b asks for buoy.v1.0.0",
		"buoy.v1.0.0 requires an operator providing Gauge (sea.test/v1), which gauge.v1.0.0 is",
		"gauge.v1.0.0 requires an operator of package kelp in range >=1.0.0, which kelp.v1.0.0 is",
	}
	planned := newScene(t, view).subscribe("b", "buoy", "stable").facts()
	installed := newScene(t, view).subscribe("b", "buoy", "stable").install("kelp", "1.0.0", "Succeeded").
		install("gauge", "1.0.0", "Succeeded", "gives:Gauge", "pkg:kelp >=1.0.0").install(
		"buoy", "1.0.0", "Succeeded", "api:Gauge").facts()
	for name, f := range map[string]why.Facts{"planned": planned, "installed": installed} {
		l, ok := why.Operator(f, "kelp.v1.0.0")
		var got []string
		for _, b := range l.Because {
			got = append(got, b.Text)
		}
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, ok := why.Operator(planned, "nothing"); ok {
		t.Error("there is an answer of what is not there")
	}
}

// TestPlan: every bundle of a plan is told why it is this one: what is asked for, and what was brought along.
func TestPlan(t *testing.T) {
	t.Parallel()
	view := newView().Add("fleet", 0, versions("gauge", "2.0.0", "1.5.0", "1.0.0").P,
		chain("buoy", "1.1.0", "1.0.0").Bundle("1.1.0", "api:Nothing").Bundle("1.0.0", "pkg:gauge <2.0.0").P)
	f := newScene(t, view).subscribe("b", "buoy", "stable").facts()
	var got []string
	for _, l := range why.Plan(f, f.Result.Components[0]) {
		got = append(got, l.CSV)
		for _, n := range l.NotTaken {
			got = append(got, fmt.Sprintf("  %s %s %s", n.CSV, n.Reasons[0].Code, n.Reasons[0].Requirement))
		}
	}
	want := []string{
		"gauge.v1.5.0", "  gauge.v2.0.0 dependency of package gauge in range <2.0.0", "buoy.v1.0.0",
		"  buoy.v1.1.0 dependency providing Nothing (sea.test/v1)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestByAnyName: CSV, subscription and package mean the same operator.
func TestByAnyName(t *testing.T) {
	t.Parallel()
	f := newScene(t, newView().Add("fleet", 0, versions("gauge", "2.0.0", "1.0.0").P)).subscribe(
		"g", "gauge", "stable").install("gauge", "1.0.0", "Succeeded").facts()
	var all []why.Answer
	for _, name := range []string{"g", "gauge", "gauge.v1.0.0"} {
		l, ok := why.Operator(f, name)
		if !ok || l.CSV != "gauge.v1.0.0" || l.Subscription != "g" || l.Catalog != "fleet" || l.Phase != "Succeeded" {
			t.Errorf("%s: %+v", name, l)
		}
		all = append(all, l)
	}
	if !slices.EqualFunc(all[1:], all[:2], func(a, b why.Answer) bool { return cmp.Equal(a, b) }) {
		t.Errorf("answers %+v", all)
	}
}

// TestWhyIsBoundedWhereTheNamespaceIsHard: the searches of one question share one budget, what they leave is told as
// such, and they end where nobody waits.
func TestWhyIsBoundedWhereTheNamespaceIsHard(t *testing.T) {
	t.Parallel()
	const variables, clauses = 150, 640
	draw := rand.New(rand.NewPCG(3, 4))
	var packages []catalog.Package
	for v := range variables {
		packages = append(packages, chain(fmt.Sprintf("var%03d", v), "2.0.0", "1.0.0").Bundle("2.0.0").Bundle(
			"1.0.0").P)
	}
	in := resolution.Input{
		Scope:          resolution.Scope{Cluster: "harbour", Namespace: "ops"},
		OperatorGroups: []resolution.OperatorGroup{{Name: "og"}},
	}
	for c := range clauses {
		var parts []string
		for range 3 {
			parts = append(parts, fmt.Sprintf(`{"package":{"packageName":"var%03d","versionRange":"%d.0.0"}}`,
				draw.IntN(variables), 1+draw.IntN(2)))
		}
		name := fmt.Sprintf("clause%04d", c)
		packages = append(packages, chain(name, "1.0.0").Bundle(
			"1.0.0", `constraint:{"any":{"constraints":[`+strings.Join(parts, ",")+`]}}`).P)
		in.Subscriptions = append(in.Subscriptions, resolution.Subscription{
			Name: name, Package: name, Channel: "stable", Catalog: "fleet", Approval: resolution.Automatic,
		})
	}
	versions := []string{"1.0.0"}
	asked := pkg("asked", "stable").Bundle("1.0.0")
	for v := 2; v <= why.MaxProbes; v++ {
		versions = append([]string{fmt.Sprintf("%d.0.0", v)}, versions...)
		asked.Bundle(versions[0])
	}
	in.View = newView().Add("fleet", 0, append(packages, asked.Channel("stable", versions...).P)...)
	in.Installed = []resolution.Installed{{
		CSV: "asked.v1.0.0", Package: "asked", Version: "1.0.0", Phase: "Succeeded",
		Properties: properties("asked", "1.0.0"),
	}}
	notLookedInto := func(f why.Facts) (n int) {
		l, ok := why.Operator(f, "asked.v1.0.0")
		if !ok || len(l.NotTaken) != len(versions)-1 {
			t.Fatalf("of %d newer versions %d are told of", len(versions)-1, len(l.NotTaken))
		}
		for _, v := range l.NotTaken {
			if v.Reasons[0].Code == why.NotLookedInto {
				n++
			}
		}
		return n
	}
	if n := notLookedInto(why.Facts{Input: in, Now: noon}); n == 0 {
		t.Error("all versions are looked into, however hard that is")
	}
	stops := 0
	stop := func() bool { stops++; return stops > 100 } // in the middle of a search
	if n := notLookedInto(why.Facts{Input: in, Now: noon, Stop: stop}); n != len(versions)-1 || stops != 101 {
		t.Errorf("%d of %d versions are not looked into though nobody waits; asked %d times", n, len(versions)-1, stops)
	}
}
