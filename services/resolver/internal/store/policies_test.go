package store_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// policed is a fleet of two clusters with a subscription in each of some namespaces.
func policed(t *testing.T) *bench {
	t.Helper()
	b := setup(t)
	b.apply(t, "harbour", 1, events.ClusterRegistered{
		Name:   "harbour",
		Labels: map[string]string{"stage": "production", "zone": "north"},
	})
	b.apply(t, "quay", 1, events.ClusterRegistered{Name: "quay", Labels: map[string]string{"stage": "test"}})
	for i, s := range []struct{ cluster, namespace, pkg, catalog, catalogNamespace string }{
		{"harbour", "tides", "gauge", "fleet", ""},
		{"harbour", "tides_2", "gauge", "fleet", ""},
		{"harbour", "own", "gauge", "fleet", "own"},
		{"harbour", "store", "brine", "fleet", ""},
		{"quay", "trial", "gauge", "fleet", ""},
	} {
		b.apply(t, s.cluster+"/"+s.namespace+"/sub", int64(i+1),
			events.SubscriptionCreated{
				Cluster: s.cluster, Namespace: s.namespace, Name: "sub",
				Spec: events.SubscriptionSpec{
					Package: s.pkg, Catalog: s.catalog, CatalogNamespace: s.catalogNamespace,
				},
			})
	}
	b.reads(t, "store", resolution.Read{
		Kind:    resolution.ReadPackage,
		Catalog: resolution.CatalogKey{Name: "salt", Namespace: "store"}, Name: "pumps",
	})
	return b
}

// TestPolicyMarksWhatItChooses: a policy makes dirty exactly the scopes that its selector chooses, before or after
// (DESIGN D4: the cost of a change grows with what it touches).
func TestPolicyMarksWhatItChooses(t *testing.T) {
	t.Parallel()
	b := policed(t)
	all := []string{"own", "store", "tides", "tides_2", "trial"}
	for name, c := range map[string]struct {
		selector events.PolicySelector
		want     []string
	}{
		"everything": {events.PolicySelector{}, all},
		"a cluster":  {events.PolicySelector{Clusters: []string{"quay"}}, []string{"trial"}},
		"clusters by prefix": {
			events.PolicySelector{Clusters: []string{"har*", "no*"}},
			[]string{"own", "store", "tides", "tides_2"},
		},
		"labels": {
			events.PolicySelector{ClusterLabels: map[string]string{"stage": "test"}},
			[]string{"trial"},
		},
		"labels, of which one differs": {events.PolicySelector{
			ClusterLabels: map[string]string{"stage": "test", "zone": "north"},
		}, nil},
		"a namespace":                    {events.PolicySelector{Namespaces: []string{"tides"}}, []string{"tides"}},
		"a namespace with a wild letter": {events.PolicySelector{Namespaces: []string{"tide__2"}}, nil},
		"namespaces by prefix":           {events.PolicySelector{Namespaces: []string{"tides_*"}}, []string{"tides_2"}},
		"a package":                      {events.PolicySelector{Packages: []string{"brine"}}, []string{"store"}},
		"a package asked for meanwhile":  {events.PolicySelector{Packages: []string{"pump*"}}, []string{"store"}},
		"a package nobody asked for":     {events.PolicySelector{Packages: []string{"anchor"}}, nil},
		"a catalog": {
			events.PolicySelector{Catalogs: []string{"fleet"}},
			[]string{"store", "tides", "tides_2", "trial"},
		},
		"a namespace's own catalog": {events.PolicySelector{Catalogs: []string{"own/*"}}, []string{"own"}},
		"an own catalog asked for":  {events.PolicySelector{Catalogs: []string{"store/salt"}}, []string{"store"}},
		"package and catalog are one": {events.PolicySelector{
			Packages: []string{"brine"}, Catalogs: []string{"store/salt"},
		}, nil},
		"all that is given": {
			events.PolicySelector{
				Clusters:      []string{"harbour"},
				ClusterLabels: map[string]string{"zone": "north"}, Namespaces: []string{"*"},
				Packages: []string{"gauge"},
			},
			[]string{"own", "tides", "tides_2"},
		},
	} {
		set := events.ApprovalPolicySet{Name: "p", Spec: events.ApprovalPolicySpec{Selector: c.selector}}
		if diff := cmp.Diff(c.want, b.apply(t, "approval/p", 1, set)); diff != "" {
			t.Errorf("%s, set (-want +got):\n%s", name, diff)
		}
		other := events.ApprovalPolicySet{Name: "p", Spec: events.ApprovalPolicySpec{
			Selector: events.PolicySelector{Namespaces: []string{"trial"}},
		}}
		both := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(c.want), "trial"))))
		if diff := cmp.Diff(both, b.apply(t, "approval/p", 2, other)); diff != "" {
			t.Errorf("%s, changed (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{"trial"}, b.apply(t, "approval/p", 3,
			events.ApprovalPolicyDeleted{})); diff != "" {
			t.Errorf("%s, deleted (-want +got):\n%s", name, diff)
		}
		if got := b.apply(t, "approval/p", 4, events.ApprovalPolicyDeleted{}); len(got) > 0 {
			t.Errorf("%s, deleted again: %v", name, got)
		}
	}
}

// TestLabelsMoveWhatPoliciesChoose: with other labels of a cluster, exactly the scopes are dirty that a policy chose
// there by labels and no longer does, or does now.
func TestLabelsMoveWhatPoliciesChoose(t *testing.T) {
	t.Parallel()
	b := policed(t)
	for name, sel := range map[string]events.PolicySelector{
		"everywhere":   {},
		"tested":       {ClusterLabels: map[string]string{"stage": "test"}, Namespaces: []string{"tides*"}},
		"in the north": {ClusterLabels: map[string]string{"zone": "north"}, Packages: []string{"brine"}},
		"elsewhere":    {ClusterLabels: map[string]string{"stage": "test"}, Clusters: []string{"quay"}},
	} {
		b.apply(t, "approval/"+name, 1, events.ApprovalPolicySet{
			Name: name, Spec: events.ApprovalPolicySpec{Selector: sel},
		})
	}
	for i, c := range []struct {
		what   string
		labels map[string]string
		want   []string
	}{
		{"another label", map[string]string{"stage": "production", "zone": "north", "deck": "3"}, nil},
		{"one policy chooses now", map[string]string{"stage": "test", "zone": "north"}, []string{"tides", "tides_2"}},
		{"one still does, one no longer", map[string]string{"stage": "test"}, []string{"store"}},
		{"none does", nil, []string{"tides", "tides_2"}},
	} {
		if diff := cmp.Diff(c.want, b.apply(t, "harbour", int64(i+2),
			events.ClusterLabelsChanged{Labels: c.labels})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
		if got := b.load(t, "tides").Labels; !maps.Equal(got, c.labels) {
			t.Errorf("%s: the scope knows %v", c.what, got)
		}
	}
	if got := b.apply(t, "harbour", 5, events.ClusterLabelsChanged{}); len(got) > 0 {
		t.Errorf("told twice: %v", got)
	}
	if got := b.apply(t, "nowhere", 1, events.ClusterLabelsChanged{Labels: map[string]string{"stage": "test"}}); len(
		got) > 0 {
		t.Errorf("of a cluster that is not there: %v", got)
	}
}

// TestPoliciesAreLoaded: a scope knows the policies of its tenant and the labels of its cluster; a decision made upon
// the policies before is made again.
func TestPoliciesAreLoaded(t *testing.T) {
	t.Parallel()
	b := policed(t)
	spec := events.ApprovalPolicySpec{
		Rules: []events.ApprovalRule{{Change: "Any", Mode: "Manual"}}, Approvers: 2, PermissionGrowth: "Manual",
		Windows: []events.Window{{Days: []string{"Sun"}, Start: "02:00", Minutes: 60, TimeZone: "UTC"}},
	}
	b.apply(t, "approval/p", 1, events.ApprovalPolicySet{Name: "p", Spec: spec})
	l := b.load(t, "tides")
	if diff := cmp.Diff([]decide.Policy{{Name: "p", Spec: spec}}, l.Policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"stage": "production", "zone": "north"}, l.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	b.apply(t, "approval/p", 2, events.ApprovalPolicyDeleted{})
	told := decide.Decisions{SubscriptionEvents: []decide.SubscriptionEvent{
		{Subscription: l.Subscriptions[0], Event: events.ResolutionSucceeded{Outcome: decide.OutcomeAtLatestKnown}},
	}}
	if err := b.store.Decisions.Write(t.Context(), l, told, nil, store.Cause{}); err == nil {
		t.Error("a decision upon a policy that was deleted meanwhile was written")
	}
}

// TestGains: what the indexer knows of upgrades, and nothing where it could not compare, or did by other rules.
func TestGains(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	indexer := db.Pool(t, "admin")
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []struct {
		to, semantics string
		gained        int
		difference    string
	}{
		{"more", compare.Semantics, 3, `{}`},
		{"same", compare.Semantics, 0, `{}`},
		{"odd", compare.Semantics, 0, `{"problem": "it is no YAML"}`},
		{"old", "chandler.compare.v1", 0, `{}`},
	} {
		if _, err := indexer.Exec(t.Context(), `insert into catalog.upgrades (tenant, from_content, to_content,
			semantics, breaking, gained, difference)
			values ($1, 'from', $2, $3, false, $4, $5)`, tenant, u.to, u.semantics, u.gained, enc.EncodeAll([]byte(u.difference), nil)); err != nil {
			t.Fatal(err)
		}
	}
	s := store.New(db.Pool(t, "resolver"), nil, &marks{}, apis{}, nil, bodies.Keys{})
	var asked []decide.Upgrade
	for _, to := range []string{"more", "same", "odd", "old", "never"} {
		asked = append(asked, decide.Upgrade{From: "from", To: to})
	}
	got, err := s.Scopes.Gains(t.Context(), tenant, asked)
	if err != nil {
		t.Fatal(err)
	}
	want := decide.PermissionGrowth{{From: "from", To: "more"}: 3, {From: "from", To: "same"}: 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gains (-want +got):\n%s", diff)
	}
}

// TestPlansThatWaitAreLookedAtFirst: a policy puts scopes with a plan that has not begun before all fan-outs, so that
// none begins under the policy before; all others that it chooses wait their turn, so that nobody waits for
// them (D6, DESIGN D4).
func TestPlansThatWaitAreLookedAtFirst(t *testing.T) {
	t.Parallel()
	b := policed(t)
	for namespace, happened := range map[string][]events.Payload{
		"tides":   {},
		"tides_2": {events.InstallPlanStarted{}},
		"own":     {events.InstallPlanSuperseded{}},
		"store":   {events.InstallPlanBlocked{Class: "transient", Reason: "ClusterUnreachable"}},
	} {
		s, err := installplan.Fold(append(list{proposedIn(namespace)}, happened...)...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.pool.Exec(t.Context(), `insert into resolver.plans (tenant, plan, key, cluster, namespace,
			generation, version, live, phase, state)
			values ($1, $2, gen_random_uuid(), 'harbour', $2, 1, 1, $3, $4, $5)`, tenant, namespace, s.Live(), string(s.Phase), s); err != nil {
			t.Fatal(err)
		}
	}
	set := events.ApprovalPolicySet{Name: "p", Spec: events.ApprovalPolicySpec{Approvers: 2}}
	if diff := cmp.Diff([]string{"own", "store", "tides", "tides_2", "trial"},
		b.apply(t, "approval/p", 1, set)); diff != "" {
		t.Errorf("marked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"store", "tides"}, b.marks.interactive); diff != "" {
		t.Errorf("marked as what people wait for (-want +got):\n%s", diff)
	}
}

type list = []events.Payload

func proposedIn(namespace string) events.InstallPlanProposed {
	return events.InstallPlanProposed{
		Plan: namespace, Name: "install-aaaaa", Cluster: "harbour", Namespace: namespace,
		Approval: installplan.Automatic,
	}
}
