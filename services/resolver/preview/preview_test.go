package preview_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/preview"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

func supposed(t *testing.T, subject string, p events.Payload) previewapi.Hypothesis {
	t.Helper()
	h, err := previewapi.NewHypothesis(subject, 1, p)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func state() decide.State {
	return decide.State{
		Scope: resolution.Scope{Cluster: "c", Namespace: "n"},
		Subscriptions: []decide.Subscription{
			{Name: "buoy", Spec: events.SubscriptionSpec{Package: "buoy"}},
			{Name: "tide", Spec: events.SubscriptionSpec{Package: "tide"}},
		},
		Groups:    []decide.Group{{Name: "og"}},
		Installed: []decide.Installed{{Name: "buoy.v1", Package: "buoy"}},
		Catalogs: []decide.Catalog{{
			Subject:         "fleet",
			CatalogRevision: decide.CatalogRevision{Revision: "r1", Failed: true, Reason: "x"},
		}, {Subject: "other"}},
		DisabledCatalogs: []decide.Catalog{{
			Subject:         "hidden",
			CatalogRevision: decide.CatalogRevision{Revision: "r7"},
		}},
		Private:  []string{"c/m/own"},
		Policies: []decide.Policy{{Name: "p"}},
	}
}

// names are what a state is made of.
func names(s decide.State) []string {
	var out []string
	for _, x := range s.Subscriptions {
		out = append(out, "sub "+x.Name+" "+x.Spec.Channel)
	}
	for _, x := range s.Groups {
		out = append(out, "group "+x.Name+" "+x.Spec.Colocation)
	}
	for _, x := range s.Installed {
		out = append(out, "csv "+x.Name)
	}
	for _, x := range s.Catalogs {
		out = append(out, "catalog "+x.Subject+" "+x.Revision)
	}
	for _, x := range s.Private {
		out = append(out, "private "+x)
	}
	for _, x := range s.Policies {
		out = append(out, "policy "+x.Name)
	}
	return out
}

// TestSupposeDrawsEventsIntoTheState: as the folds of the tables would, and without touching the state that is given.
func TestSupposeDrawsEventsIntoTheState(t *testing.T) {
	t.Parallel()
	private := events.CatalogVisibility{Cluster: "c", Namespace: "m"}
	for _, c := range []struct {
		name       string
		h          previewapi.Hypothesis
		gone, came []string
	}{
		{
			"a subscription is created in its place", supposed(
				t, "c/n/gauge", events.SubscriptionCreated{Spec: events.SubscriptionSpec{Channel: "x"}}), nil,
			[]string{"sub gauge x"},
		},
		{
			"a subscription changes", supposed(t, "c/n/buoy",
				events.SubscriptionChanged{Spec: events.SubscriptionSpec{Channel: "y"}}),
			[]string{"sub buoy "},
			[]string{"sub buoy y"},
		},
		{"a subscription ends", supposed(t, "c/n/tide", events.SubscriptionDeleted{}), []string{"sub tide "}, nil},
		{
			"what is of another namespace changes nothing", supposed(t, "c/m/tide", events.SubscriptionDeleted{}), nil,
			nil,
		},
		{"a group is added", supposed(t, "c/n/a", events.OperatorGroupCreated{}), nil, []string{"group a "}},
		{"a group changes", supposed(t, "c/n/og", events.OperatorGroupChanged{
			Spec: events.OperatorGroupSpec{Colocation: "shared"},
		}), []string{"group og "}, []string{"group og shared"}},
		{"a group ends", supposed(t, "c/n/og", events.OperatorGroupDeleted{}), []string{"group og "}, nil},
		{"an operator goes", supposed(t, "c/n/buoy.v1", events.CSVRemoved{}), []string{"csv buoy.v1"}, nil},
		{
			"a revision comes into service", supposed(t, "fleet", events.CatalogRevisionPublished{Revision: "r2"}),
			[]string{"catalog fleet r1"},
			[]string{"catalog fleet r2"},
		},
		{"a catalog goes", supposed(t, "other", events.CatalogRemoved{}), []string{"catalog other "}, nil},
		{
			"a catalog is disabled", supposed(t, "fleet", events.CatalogChanged{Disabled: true}),
			[]string{"catalog fleet r1"},
			nil,
		},
		{
			"a catalog is enabled in its place", supposed(t, "hidden", events.CatalogChanged{}), nil,
			[]string{"catalog hidden r7"},
		},
		{
			"another namespace's catalog goes", supposed(t, "c/m/own", events.CatalogRemoved{}),
			[]string{"private c/m/own"},
			nil,
		},
		{
			"another namespace's catalog is disabled", supposed(
				t, "c/m/own", events.CatalogChanged{Visibility: private, Disabled: true}),
			[]string{"private c/m/own"},
			nil,
		},
		{
			"another namespace's catalog is enabled", supposed(
				t, "c/m/late", events.CatalogChanged{Visibility: private}),
			nil,
			[]string{"private c/m/late"},
		},
		{"a policy is set", supposed(t, "approval/q", events.ApprovalPolicySet{Name: "q"}), nil, []string{"policy q"}},
		{"a policy ends", supposed(t, "approval/p", events.ApprovalPolicyDeleted{}), []string{"policy p"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			given := state()
			got, err := preview.Apply(given, []previewapi.Hypothesis{c.h})
			if err != nil {
				t.Fatal(err)
			}
			before, after := names(state()), names(got)
			var gone, came []string
			for _, n := range before {
				if !slices.Contains(after, n) {
					gone = append(gone, n)
				}
			}
			for _, n := range after {
				if !slices.Contains(before, n) {
					came = append(came, n)
				}
			}
			if diff := cmp.Diff([][]string{c.gone, c.came}, [][]string{gone, came}); diff != "" {
				t.Errorf("gone and come (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(state(), given); diff != "" {
				t.Errorf("the given state changed:\n%s", diff)
			}
			byName := func(a, b decide.Subscription) int { return cmpText(a.Name, b.Name) }
			bySubject := func(a, b decide.Catalog) int { return cmpText(a.Subject, b.Subject) }
			if !slices.IsSortedFunc(got.Subscriptions, byName) || !slices.IsSortedFunc(got.Catalogs, bySubject) {
				t.Errorf("not in the order of the tables: %v", names(got))
			}
		})
	}
}

func cmpText(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// TestSupposedSubscriptionsAreYoungerInTheirOrder: as positions of the log make them, and older than those that come of
// dependencies afterwards; who is older can take up an operator (P19).
func TestSupposedSubscriptionsAreYoungerInTheirOrder(t *testing.T) {
	t.Parallel()
	given := state()
	given.Subscriptions[0].Created, given.Subscriptions[1].Created = 7, 5
	given.Plans = []decide.Plan{{ID: "1", State: installplan.State{
		Phase: installplan.Complete, Proposed: events.InstallPlanProposed{
			Bundles: []events.PlannedBundle{{CSV: "gauge.v1", Package: "gauge", Channel: "stable", Catalog: "fleet"}},
		},
	}}}
	same, err := preview.Apply(given, []previewapi.Hypothesis{
		supposed(t, "c/n/zulu", events.SubscriptionMetadataChanged{}),
		supposed(t, "c/n/g", events.OperatorGroupMetadataChanged{}),
		supposed(t, "fleet", events.CatalogMetadataChanged{}),
		supposed(t, "approval/p", events.ApprovalPolicyMetadataChanged{}),
	})
	if diff := cmp.Diff(given, same); err != nil || diff != "" {
		t.Errorf("labels decide something, %v:\n%s", err, diff)
	}
	got, err := preview.Apply(given, []previewapi.Hypothesis{
		supposed(t, "c/n/zulu", events.SubscriptionCreated{}),
		supposed(t, "c/n/alfa", events.SubscriptionCreated{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	got, _ = preview.ApplyGenerated(got)
	slices.SortStableFunc(got.Subscriptions, func(a, b decide.Subscription) int { return int(a.Created - b.Created) })
	var order []string
	for _, s := range got.Subscriptions {
		order = append(order, s.Name)
	}
	if diff := cmp.Diff([]string{"tide", "buoy", "zulu", "alfa", "gauge-stable-fleet"}, order); diff != "" {
		t.Errorf("oldest first (-want +got):\n%s", diff)
	}
}

// TestSupposeRefusesWhatItCannotSay: an event that is no person's and no catalog's is refused by name.
func TestSupposeRefusesWhatItCannotSay(t *testing.T) {
	t.Parallel()
	for _, h := range []previewapi.Hypothesis{
		supposed(t, "c/n/x", events.InstallPlanSuperseded{}), supposed(t, "c", events.ClusterRemoved{}),
		supposed(t, "approval/p", events.SubscriptionDeleted{}),
	} {
		if _, err := preview.Apply(state(), []previewapi.Hypothesis{h}); !errs.Is(err, errs.Unprocessable) {
			t.Errorf("%s of %s: %v", h.Type, h.Subject, err)
		}
	}
	if _, err := preview.Apply(state(), []previewapi.Hypothesis{{Type: "nobody.knows.v1"}}); !errs.Is(
		err, errs.Invalid) {
		t.Errorf("an unknown type: %v", err)
	}
}

// TestSettleMakesSubscriptionsForDependencies: as is done before every decision (R-RES-40); a taken name stays.
func TestSettleMakesSubscriptionsForDependencies(t *testing.T) {
	t.Parallel()
	s := state()
	proposed := events.InstallPlanProposed{Bundles: []events.PlannedBundle{
		{CSV: "gauge.v1", Package: "gauge", Channel: "stable", Catalog: "fleet"},
		{CSV: "buoy.v1", Package: "buoy", Subscriptions: []string{"buoy"}},
	}}
	s.Plans = []decide.Plan{{ID: "1", State: installplan.State{Proposed: proposed, Phase: installplan.Complete}}}
	got, generated := preview.ApplyGenerated(s)
	if diff := cmp.Diff([]string{"gauge-stable-fleet"}, generated); diff != "" || !got.Plans[0].Settled ||
		s.Plans[0].Settled {
		t.Errorf("generated (-want +got):\n%s; settled %v, given %v", diff, got.Plans[0].Settled, s.Plans[0].Settled)
	}
	i := slices.IndexFunc(got.Subscriptions, func(x decide.Subscription) bool { return x.Name == "gauge-stable-fleet" })
	if i < 0 || got.Subscriptions[i].InstalledCSV != "gauge.v1" ||
		got.Subscriptions[i].Spec.Approval != installplan.Automatic {
		t.Errorf("subscriptions %+v", got.Subscriptions)
	}
	if _, again := preview.ApplyGenerated(got); again != nil {
		t.Errorf("generated twice: %v", again)
	}
}

// TestDifferencesNameFacts: what a preview rests on is told by name, and nothing else makes it void.
func TestDifferencesNameFacts(t *testing.T) {
	t.Parallel()
	facts := func(s decide.State) map[string]string {
		f, err := preview.Facts(s)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	before, s := facts(state()), state()
	s.Subscriptions[0].Outcome, s.Subscriptions[0].Version, s.Decisions = decide.Outcome{Kind: decide.OutcomeFailed}, 9,
		4
	if d := preview.Differences(before, facts(s)); d != nil {
		t.Errorf("what is told of a subscription is nothing that a decision rests on: %v", d)
	}
	s.Subscriptions[0].Spec.Channel, s.Catalogs[0].Revision, s.Installed = "x", "r2", nil
	s.Policies = append(s.Policies, decide.Policy{Name: "q"},
		decide.Policy{Name: "elsewhere", Spec: events.ApprovalPolicySpec{
			Selector: events.PolicySelector{Clusters: []string{"d"}},
		}})
	want := []string{"approval policy q", "catalog fleet", "operator buoy.v1", "subscription buoy"}
	if diff := cmp.Diff(want, preview.Differences(before, facts(s))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	one, err := preview.Fingerprint(before, 1)
	two, err2 := preview.Fingerprint(before, 2)
	if err != nil || err2 != nil || one == two {
		t.Errorf("the clock of catalogs is not in the fingerprint: %v %v", err, err2)
	}
}

// TestPlansThatEndedAreFacts: whether the same plan may be proposed again rests on the last one that was not
// superseded, so that another one makes another fingerprint; those before it, and superseded ones, do not count
// (P19).
func TestPlansThatEndedAreFacts(t *testing.T) {
	t.Parallel()
	plan := func(id string, phase installplan.Phase, packages ...string) decide.Plan {
		p := decide.Plan{
			ID: id, Effect: "effect of " + id, Settled: true,
			State: installplan.State{Phase: phase, Proposed: events.InstallPlanProposed{Name: id}},
		}
		for _, name := range packages {
			p.State.Proposed.Bundles = append(p.State.Proposed.Bundles, events.PlannedBundle{Package: name})
		}
		return p
	}
	differences := func(before, after []decide.Plan) []string {
		var facts [2]map[string]string
		for i, plans := range [][]decide.Plan{before, after} {
			s := state()
			s.Plans = plans
			var err error
			if facts[i], err = preview.Facts(s); err != nil {
				t.Fatal(err)
			}
		}
		return preview.Differences(facts[0], facts[1])
	}
	failed := plan("first", installplan.Failed, "buoy")
	for _, c := range []struct {
		name          string
		before, after []decide.Plan
		want          []string
	}{
		{"one failed", nil, []decide.Plan{failed}, []string{"install plan first"}},
		{
			"another was rejected since",
			[]decide.Plan{failed},
			[]decide.Plan{plan("second", installplan.Rejected, "buoy"), failed},
			[]string{"install plan first", "install plan second"},
		},
		{
			"one of both packages failed since",
			[]decide.Plan{failed},
			[]decide.Plan{plan("both", installplan.Failed, "buoy", "tide"), failed},
			[]string{"install plan both", "install plan first"},
		},
		{
			"one of another package failed since",
			[]decide.Plan{failed},
			[]decide.Plan{plan("other", installplan.Failed, "tide"), failed},
			[]string{"install plan other"},
		},
		{
			"one was superseded since",
			[]decide.Plan{failed},
			[]decide.Plan{plan("gone", installplan.Superseded, "buoy"), failed},
			nil,
		},
		{
			"an older one is not kept any more",
			[]decide.Plan{plan("second", installplan.Rejected, "buoy"), failed},
			[]decide.Plan{plan("second", installplan.Rejected, "buoy")},
			nil,
		},
	} {
		if diff := cmp.Diff(c.want, differences(c.before, c.after)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestAnnouncedIsWhatIsPromised: the digest changes with plans, ends and failures, and not with what is news.
func TestAnnouncedIsWhatIsPromised(t *testing.T) {
	t.Parallel()
	digestOf := func(o previewapi.ScopePreview) string {
		d, err := preview.Announced(o)
		if err != nil {
			t.Fatal(err)
		}
		return string(d)
	}
	base := func() previewapi.ScopePreview {
		return previewapi.ScopePreview{
			Plans:    []previewapi.PreviewPlan{{Digest: "d"}},
			Failures: []previewapi.PreviewFailure{{Component: "x", Explanation: []byte(`{}`)}},
			Waiting:  []previewapi.PreviewWaiting{{Component: "y", For: previewapi.WaitUnderWay}},
		}
	}
	first := digestOf(base())
	same := base()
	same.Failures[0].News, same.Waiting[0].News, same.Unchanged = true, true, 7
	if digestOf(same) != first {
		t.Error("news makes a difference")
	}
	for i, change := range []func(o *previewapi.ScopePreview){
		func(o *previewapi.ScopePreview) { o.Plans[0].Digest = "e" },
		func(o *previewapi.ScopePreview) { o.Superseded = []previewapi.PreviewSuperseded{{Plan: "p"}} },
		func(o *previewapi.ScopePreview) { o.Failures[0].Explanation = []byte(`{"a":1}`) },
		func(o *previewapi.ScopePreview) { o.Waiting[0].For = previewapi.WaitImage },
		func(o *previewapi.ScopePreview) { o.Generated = []string{"g"} },
	} {
		o := base()
		change(&o)
		if digestOf(o) == first {
			t.Errorf("change %d makes no difference", i)
		}
	}
}
