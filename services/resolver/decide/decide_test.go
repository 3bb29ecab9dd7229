package decide_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// scene builds a state: package a of catalog fleet, with versions 2.0.0 and 1.0.0.
type scene struct {
	decide.State
	rev string
	// byImage: the catalog names its bundles by image; image is what became of fetching them.
	byImage bool
	image   resolution.Fetched
}

func newScene() *scene {
	return &scene{rev: "r1", State: decide.State{
		Tenant: "default", Scope: resolution.Scope{Cluster: "harbour", Namespace: "ops"},
		Groups: []decide.Group{{Name: "og"}},
		Catalogs: []decide.Catalog{{
			Subject: "fleet", Key: resolution.CatalogKey{Name: "fleet"},
			CatalogRevision: decide.CatalogRevision{Revision: "r1"},
		}},
		Subscriptions: []decide.Subscription{{
			Name: "a", Incarnation: 1, Version: 1,
			Spec: events.SubscriptionSpec{Package: "a", Channel: "stable", Catalog: "fleet", Approval: "Automatic"},
		}},
	}}
}

func (s *scene) Catalogs() []resolution.Catalog {
	var out []resolution.Catalog
	for _, k := range s.State.Catalogs {
		out = append(out, resolution.Catalog{Key: k.Key, Ready: k.Revision != "", Revision: s.rev})
	}
	return out
}

func (s *scene) Package(_ resolution.CatalogKey, name string) *offer.Package {
	if name != "a" {
		return nil
	}
	p := catalog.Package{
		Name: "a", DefaultChannel: "stable",
		Channels: []catalog.Channel{{Name: "stable", Entries: []catalog.Entry{
			{Name: "a.v2", Replaces: "a.v1"}, {Name: "a.v1"},
		}}},
	}
	for _, v := range []string{"1", "2"} {
		b := catalog.Bundle{Name: "a.v" + v, Version: v + ".0.0", Content: digest.Digest("sha256:c" + v)}
		if s.byImage {
			b.Content, b.Image = "", "registry.test/a:v"+v
		}
		p.Bundles = append(p.Bundles, b)
	}
	return offer.Index(p, "sha256:p")
}

func (s *scene) Providers(resolution.CatalogKey, catalog.GVK) []string { return nil }
func (s *scene) Packages(resolution.CatalogKey) []string               { return []string{"a"} }

func (s *scene) Image(resolution.CatalogKey, resolution.BundleImage) resolution.Fetched {
	return s.image
}

func (s *scene) Health(k resolution.CatalogKey) resolution.Health {
	for _, c := range s.State.Catalogs {
		if c.Key == k {
			return c.Health()
		}
	}
	return resolution.HealthIgnored
}

func (s *scene) installed(name, version, phase string) *scene {
	s.Installed = append(s.Installed, decide.Installed{
		Name: name, Package: "a", Version: version, Content: "sha256:c1",
		Phase: phase,
	})
	return s
}

// plan adds the plan that the scene would get now, and what happened to it.
func (s *scene) plan(happened ...events.Payload) *scene {
	d, err := s.tryDecide()
	if err != nil || len(d.Proposals) != 1 {
		panic(fmt.Sprintf("the scene gets %d plans, %v", len(d.Proposals), err))
	}
	p := d.Proposals[0]
	state, err := installplan.Fold(append([]events.Payload{p.Event}, happened...)...)
	if err != nil {
		panic(err)
	}
	s.Generation = p.Event.Generation
	s.Plans = append([]decide.Plan{{
		ID: p.Event.Plan, Version: int64(1 + len(happened)), Effect: p.Effect,
		State: state,
	}}, s.Plans...)
	return s
}

func (s *scene) assess(t *testing.T) []decide.Verdict {
	t.Helper()
	v, err := decide.Assess(s.State, resolve.Resolve(s.Input(s)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (s *scene) decide(t *testing.T) decide.Decisions {
	t.Helper()
	d, err := s.tryDecide()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *scene) tryDecide() (decide.Decisions, error) {
	verdicts, err := decide.Assess(s.State, resolve.Resolve(s.Input(s)))
	if err != nil {
		return decide.Decisions{}, err
	}
	rendered := map[string]decide.Rendered{}
	for _, v := range verdicts {
		rendered[v.Component.Name] = decide.Rendered{
			Rendering: render.Semantics,
			Steps:     []installplan.Step{{Resolving: "a", Kind: "Deployment", Name: "d"}},
			Identity:  decide.Identity{Plan: fmt.Sprintf("plan-%d", s.Generation+1), Name: "install-aaaaa"},
		}
	}
	return decide.Decide(s.State, verdicts, rendered)
}

var (
	started  = events.InstallPlanStarted{Steps: 1}
	finished = events.InstallPlanFinished{Steps: 1}
	failed   = events.InstallPlanFailed{Step: 1, Reason: "Invalid"}
	rejected = events.InstallPlanRejected{}
	approved = events.InstallPlanApproved{Expires: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
)

func mustEvolve(s installplan.State, happened ...events.Payload) installplan.State {
	for _, e := range happened {
		next, err := installplan.Evolve(s, e)
		if err != nil {
			panic(err)
		}
		s = next
	}
	return s
}

// replacing is a.v0, which a.v1 takes the place of, by the operator group's upgrade strategy.
func replacing(phase, strategy string) *scene {
	s := newScene().installed("a.v0", "0.9.0", "Replacing").installed("a.v1", "1.0.0", phase)
	s.Installed[1].Replaces = "a.v0"
	s.Groups[0].Spec.UpgradeStrategy = strategy
	return s
}

// TestVerdicts walks the rules of the package comment (R-GRA-6, R-RES-5, R-RES-44, R-RES-45, R-IP-12, R-IP-43).
func TestVerdicts(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		s    func() *scene
		want decide.Kind
		// superseded is how many plans the decision ends.
		superseded int
	}{
		{"nothing there", newScene, decide.Proposed, 0},
		{"a plan waits", func() *scene { return newScene().plan() }, decide.Kept, 0},
		{
			"a plan waits, the catalog moved elsewhere",
			func() *scene { s := newScene().plan(); s.rev = "r2"; return s }, decide.Kept, 0,
		},
		{"a plan waits, its subscription is now Manual", func() *scene {
			s := newScene().plan()
			s.Subscriptions[0].Spec.Approval = "Manual"
			return s
		}, decide.Proposed, 1},
		{"a plan waits, the group changed", func() *scene {
			s := newScene().plan(approved)
			s.Groups[0].Spec.TargetNamespaces = []string{"x"}
			return s
		}, decide.Proposed, 1},
		{"a plan is begun", func() *scene {
			s := newScene().plan(started)
			s.Groups[0].Spec.TargetNamespaces = []string{"x"}
			return s
		}, decide.Held, 0},
		{"a plan is finished, nothing heard yet", func() *scene {
			return newScene().plan(started, finished).installed("a.v2", "2.0.0", "")
		}, decide.Held, 0},
		{"installing", func() *scene { return newScene().installed("a.v1", "1.0.0", "Installing") }, decide.Held, 0},
		{
			"succeeded, a step ahead", func() *scene { return newScene().installed("a.v1", "1.0.0", "Succeeded") },
			decide.Proposed, 0,
		},
		{
			"succeeded, at the head", func() *scene { return newScene().installed("a.v2", "2.0.0", "Succeeded") },
			decide.Settled, 0,
		},
		{"failed", func() *scene { return newScene().installed("a.v1", "1.0.0", "Failed") }, decide.Held, 0},
		{"failed, fail forward", func() *scene {
			s := newScene().installed("a.v1", "1.0.0", "Failed")
			s.Groups[0].Spec.UpgradeStrategy = "TechPreviewUnsafeFailForward"
			return s
		}, decide.Proposed, 0},
		{"failed while it replaces another", func() *scene { return replacing("Failed", "") }, decide.Held, 0},
		{
			"failed while it replaces another, fail forward",
			func() *scene { return replacing("Failed", "TechPreviewUnsafeFailForward") }, decide.Proposed, 0,
		},
		{
			"replacing, fail forward", func() *scene { return replacing("Installing", "TechPreviewUnsafeFailForward") },
			decide.Held, 0,
		},
		{"two that replace each other, fail forward", func() *scene {
			s := replacing("Replacing", "TechPreviewUnsafeFailForward")
			s.Installed[0].Replaces = "a.v1"
			return s
		}, decide.Held, 0},
		{"the only catalog is global and excluded", func() *scene {
			s := newScene()
			s.Groups[0].Spec.ExcludeGlobalCatalogs = true
			return s
		}, decide.Failed, 0},
		{"the catalog is the namespace's own, global ones are excluded", func() *scene {
			s := newScene()
			s.Groups[0].Spec.ExcludeGlobalCatalogs = true
			s.State.Catalogs[0].Key.Namespace, s.Subscriptions[0].Spec.CatalogNamespace = "ops", "ops"
			return s
		}, decide.Proposed, 0},
		{"old and new side by side", func() *scene {
			s := newScene().installed("a.v1", "1.0.0", "Replacing").installed("a.v2", "2.0.0", "Succeeded")
			return s
		}, decide.Held, 0},
		{"the last plan failed", func() *scene { return newScene().plan(started, failed) }, decide.Ended, 0},
		{"the last plan was rejected", func() *scene { return newScene().plan(rejected) }, decide.Ended, 0},
		{
			"the operator was deleted by hand", func() *scene { return newScene().plan(started, finished) },
			decide.Proposed, 0,
		},
		{"rejected, and the subscription was created again", func() *scene {
			s := newScene().plan(rejected)
			s.Subscriptions[0].Incarnation = 2
			return s
		}, decide.Proposed, 0},
		{"a plan began while it was being superseded", func() *scene {
			s := newScene().plan()
			first := s.Plans[0]
			s.Groups[0].Spec.TargetNamespaces = []string{"x"}
			s.plan()
			first.State = mustEvolve(first.State, events.InstallPlanSuperseded{By: s.Plans[0].ID}, started)
			s.Plans[1] = first
			return s
		}, decide.Held, 1},
		{"no operator group", func() *scene { s := newScene().plan(); s.Groups = nil; return s }, decide.Failed, 1},
		{
			"the catalog is loading", func() *scene { s := newScene(); s.State.Catalogs[0].Revision = ""; return s },
			decide.Waiting, 0,
		},
		{"the catalog cannot be loaded", func() *scene {
			s := newScene()
			s.State.Catalogs[0].Revision, s.State.Catalogs[0].Failed = "", true
			return s
		}, decide.Failed, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.s()
			verdicts := s.assess(t)
			if len(verdicts) != 1 || verdicts[0].Kind != c.want {
				t.Fatalf("verdicts %+v, want %s", verdicts, c.want)
			}
			if n := len(s.decide(t).Superseded); n != c.superseded {
				t.Errorf("%d plans superseded, want %d", n, c.superseded)
			}
		})
	}
}

// TestDecidingAgainIsNoNews: what was told is not told again.
func TestDecidingAgainIsNoNews(t *testing.T) {
	t.Parallel()
	s := newScene()
	first := s.decide(t)
	if len(first.SubscriptionEvents) != 1 || first.SubscriptionEvents[0].Outcome.Kind != decide.OutcomePlanned {
		t.Fatalf("told %+v", first.SubscriptionEvents)
	}
	s.plan()
	s.Subscriptions[0].Outcome = first.SubscriptionEvents[0].Outcome
	if d := s.decide(t); !d.Empty() {
		t.Errorf("the second decision is %+v", d)
	}
}

// TestAFailureOfAnotherRevisionIsNoNews: the same trouble is told once, whatever else moves in the catalog.
func TestAFailureOfAnotherRevisionIsNoNews(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.Subscriptions[0].Spec.Channel = "gone"
	d := s.decide(t)
	if len(d.SubscriptionEvents) != 1 || d.SubscriptionEvents[0].Explanation == nil {
		t.Fatalf("told %+v", d.SubscriptionEvents)
	}
	before := *d.SubscriptionEvents[0].Explanation
	before.Statements = slices.Clone(before.Statements)
	for i := range before.Statements {
		before.Statements[i].Revision = "sha256:of-last-week"
	}
	digest, err := before.Digest()
	if err != nil {
		t.Fatal(err)
	}
	sub := &s.Subscriptions[0]
	sub.Outcome, sub.Explained = d.SubscriptionEvents[0].Outcome, &before
	sub.Outcome.Explanation = string(digest)
	if d := s.decide(t); !d.Empty() {
		t.Errorf("the same failure is told again: %+v", d.SubscriptionEvents)
	}
	before.Statements[0].Text = "something else"
	if d := s.decide(t); len(d.SubscriptionEvents) != 1 {
		t.Errorf("another failure is not told: %+v", d.SubscriptionEvents)
	}
}

// TestPlanDigestHoldsNoIdentity: two proposals of the same content differ in id and name, not in digest.
func TestPlanDigestHoldsNoIdentity(t *testing.T) {
	t.Parallel()
	a, b := newScene(), newScene()
	b.Generation = 7
	first, second := a.decide(t).Proposals[0].Event, b.decide(t).Proposals[0].Event
	if first.Plan == second.Plan || first.Digest != second.Digest || first.Base != second.Base {
		t.Errorf("first %+v\nsecond %+v", first, second)
	}
}

// TestFollowers: an operator belongs to the subscription that is recorded, else to the oldest of its package
// (a subscription that was deleted and created again takes its operator up).
func TestFollowers(t *testing.T) {
	t.Parallel()
	sub := func(name string, created int64, installed string) decide.Subscription {
		return decide.Subscription{
			Name: name, Created: created, InstalledCSV: installed,
			Spec: events.SubscriptionSpec{Package: "a"},
		}
	}
	cases := map[string]struct {
		subs []decide.Subscription
		want string
	}{
		"recorded":         {[]decide.Subscription{sub("x", 1, ""), sub("y", 2, "a.v1")}, "y"},
		"oldest":           {[]decide.Subscription{sub("x", 5, ""), sub("y", 2, "")}, "y"},
		"recorded is gone": {[]decide.Subscription{sub("x", 5, "a.v0")}, "x"},
		"none":             {nil, ""},
	}
	for name, c := range cases {
		s := decide.State{Subscriptions: c.subs, Installed: []decide.Installed{
			{Name: "a.v1", Package: "a", Phase: "Succeeded"},
		}}
		if diff := cmp.Diff(c.want, s.Input(nil).Installed[0].Subscription); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTwoSubscriptionsOfOneOperator: both recorded it, since one plan served both, and both are told that they have it.
func TestTwoSubscriptionsOfOneOperator(t *testing.T) {
	t.Parallel()
	s := newScene().installed("a.v2", "2.0.0", "Succeeded")
	second := s.Subscriptions[0]
	second.Name, second.Created = "second", 5
	s.Subscriptions = append(s.Subscriptions, second)
	for i := range s.Subscriptions {
		s.Subscriptions[i].InstalledCSV = "a.v2"
	}
	told := map[string]string{}
	for _, x := range s.decide(t).SubscriptionEvents {
		told[x.Subscription.Name] = x.Outcome.Kind + " " + x.Outcome.CSV
	}
	want := map[string]string{"a": "AtLatestKnown a.v2", "second": "AtLatestKnown a.v2"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestGenerated: dependencies get subscriptions, once, unless their package has one (R-RES-40).
func TestGenerated(t *testing.T) {
	t.Parallel()
	state, err := installplan.Fold(events.InstallPlanProposed{
		Plan: "p", Approval: "Automatic", Bundles: []events.PlannedBundle{
			{CSV: "a.v1", Package: "a", Channel: "stable", Catalog: "fleet", Subscriptions: []string{"a"}},
			{CSV: "b.v1", Package: "b", Channel: "fast", Catalog: "fleet"},
			{CSV: "c.v1", Package: "c", Channel: "fast", Catalog: "olm/local"},
			{CSV: "d.v1", Package: "d", Channel: "fast", Catalog: "fleet"},
		},
	}, started, finished)
	if err != nil {
		t.Fatal(err)
	}
	s := decide.State{
		Subscriptions: []decide.Subscription{{Name: "d", Spec: events.SubscriptionSpec{Package: "d"}}},
		Plans:         []decide.Plan{{ID: "p", State: state}},
	}
	subs, settled := decide.Generated(s)
	var got []string
	for _, g := range subs {
		got = append(got, fmt.Sprintf("%s %s/%s %s %s", g.Name, g.Spec.CatalogNamespace, g.Spec.Catalog,
			g.Spec.StartingCSV, g.Spec.Approval))
	}
	want := []string{"b-fast-fleet /fleet b.v1 Automatic", "c-fast-local-olm olm/local c.v1 Automatic"}
	if diff := cmp.Diff(want, got); diff != "" || len(settled) != 1 {
		t.Errorf("settled %d, generated (-want +got):\n%s", len(settled), diff)
	}
	s.Plans[0].Settled = true
	if subs, settled := decide.Generated(s); len(subs)+len(settled) > 0 {
		t.Errorf("a settled plan generates %v", subs)
	}
}
