package subscriptions

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// ready is a subscription whose catalog is in service, and of which nothing else is known.
func ready() row {
	return row{
		Cluster: "harbour", Namespace: "ops", Name: "etcd", Created: noon, Updated: noon, Now: noon.Add(time.Hour),
		intent:        intent{Package: "etcd", Catalog: "fleet", SpecEvent: "spec"},
		catalogStatus: catalogStatus{CatalogState: model.CatalogReady, CatalogEvent: "published", AnyCatalog: true},
	}
}

// manual is a plan that a person has to approve.
var manual = events.InstallPlanProposed{Plan: "p1", Name: "install-a", Approval: installplan.Manual}

// planOf is a plan as its events make it, the last of which has an id.
func planOf(t *testing.T, event string, payloads ...events.Payload) plan {
	t.Helper()
	s, err := installplan.Fold(payloads...)
	if err != nil {
		t.Fatal(err)
	}
	return plan{PlanID: "p1", PlanName: "install-a", PlanPhase: shownPhase(s), PlanEvent: event, PlanState: &s}
}

// TestConditions proves R-SUB §4.5: each condition with its reason, and the event that set it (R-SUB-40).
func TestConditions(t *testing.T) {
	t.Parallel()
	past := noon.Add(time.Minute)
	future := noon.Add(24 * time.Hour)
	type want struct{ typ, status, reason, event string }
	healthy := want{conditionUnhealthy, "False", "AllCatalogSourcesHealthy", "published"}
	for _, c := range []struct {
		name   string
		change func(r *row)
		want   []want
	}{
		{"all is well", func(*row) {}, []want{healthy}},
		{
			"the catalog was never there",
			func(r *row) { r.CatalogState, r.CatalogEvent = "", "" },
			[]want{{conditionUnhealthy, "True", "UnhealthyCatalogSourceFound", "spec"}},
		},
		{
			"the namespace sees no catalog",
			func(r *row) { r.CatalogState, r.CatalogEvent, r.AnyCatalog = "", "", false },
			[]want{{conditionUnhealthy, "True", "NoCatalogSourcesFound", "spec"}},
		},
		{
			"the catalog was removed",
			func(r *row) { r.CatalogState, r.CatalogEvent = catalogGone, "removed" },
			[]want{{conditionUnhealthy, "True", "CatalogSourcesDeleted", "removed"}},
		},
		{
			"no revision yet",
			func(r *row) { r.CatalogState, r.CatalogEvent = model.CatalogLoading, "added" },
			[]want{{conditionUnhealthy, "True", "CatalogSourcesAdded", "added"}},
		},
		{
			"it does not resolve",
			func(r *row) { r.FailedReason, r.FailedEvent = "ConstraintsNotSatisfiable", "failed" },
			[]want{healthy, {conditionResolutionFailed, "True", "ConstraintsNotSatisfiable", "failed"}},
		},
		{
			"the resolver names the catalog as its reason",
			func(r *row) { r.FailedReason, r.FailedEvent = conditionUnhealthy, "failed" },
			[]want{{conditionUnhealthy, "True", "UnhealthyCatalogSourceFound", "failed"}},
		},
		{
			"a bundle is being fetched",
			func(r *row) { r.FailedReason, r.FailedEvent = conditionUnpacking, "failed" },
			[]want{healthy, {conditionUnpacking, "True", "UnpackingInProgress", "failed"}},
		},
		{
			"its plan ended before it was begun",
			func(r *row) { r.MissingEvent = "superseded" },
			[]want{healthy, {conditionPlanMissing, "True", "ReferencedInstallPlanNotFound", "superseded"}},
		},
		{
			"its plan waits for approval",
			func(r *row) {
				r.plan = planOf(t, "proposed", manual)
			},
			[]want{healthy, {conditionPlanPending, "True", "RequiresApproval", "proposed"}},
		},
		{
			"its plan was approved and not begun",
			func(r *row) {
				r.plan = planOf(t, "approved", manual, events.InstallPlanApproved{Digest: "sha256:d", Expires: future})
			},
			[]want{healthy, {conditionPlanPending, "True", "InstallPlanNotYetReconciled", "approved"}},
		},
		{
			"the approval expired before the first step",
			func(r *row) {
				r.plan = planOf(t, "approved", manual, events.InstallPlanApproved{Digest: "sha256:d", Expires: past})
			},
			[]want{healthy, {conditionPlanPending, "True", "RequiresApproval", "approved"}},
		},
		{
			"its plan has begun",
			func(r *row) {
				r.plan = planOf(t, "started", manual, events.InstallPlanStarted{})
			},
			[]want{healthy, {conditionPlanPending, "True", "Installing", "started"}},
		},
		{
			"its plan failed",
			func(r *row) {
				r.plan = planOf(t, "failed", manual, events.InstallPlanStarted{},
					events.InstallPlanFailed{Step: 1, Reason: "InstallComponentFailed"})
			},
			[]want{healthy, {conditionPlanFailed, "True", "InstallComponentFailed", "failed"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := ready()
			c.change(&r)
			got := r.answer().Status.Conditions
			if len(got) != len(c.want) {
				t.Fatalf("conditions %+v, want %+v", got, c.want)
			}
			for i, w := range c.want {
				if g := got[i]; (want{g.Type, g.Status, g.Reason, g.Event}) != w {
					t.Errorf("condition %+v, want %+v", g, w)
				}
			}
		})
	}
}

// TestAnswerShowsThePlanAsItIsNow: a plan that ended before it was begun is not shown, and one whose approval expired
// requires approval again.
func TestAnswerShowsThePlanAsItIsNow(t *testing.T) {
	t.Parallel()
	r := ready()
	r.plan = planOf(t, "superseded", manual, events.InstallPlanSuperseded{})
	if s := r.answer(); s.Status.InstallPlan != nil {
		t.Errorf("shown: %+v", s.Status.InstallPlan)
	}
	r.plan = planOf(t, "approved", manual, events.InstallPlanApproved{Digest: "sha256:d", Expires: noon})
	if s := r.answer(); s.Status.InstallPlan == nil || s.Status.InstallPlan.Phase != "RequiresApproval" {
		t.Errorf("shown: %+v, want RequiresApproval", s.Status.InstallPlan)
	}
}

// TestDeprecations proves R-SUB-41: a condition for the package, the subscribed channel and the installed bundle, each
// since the later of its deprecation and of what made it apply, and their roll-up since the first.
func TestDeprecations(t *testing.T) {
	t.Parallel()
	p := &catalog.Package{Name: "etcd", Deprecations: []catalog.Deprecation{
		{Schema: "olm.package", Message: "use vault"},
		{Schema: "olm.channel", Name: "stable", Message: "use fast"},
		{Schema: "olm.bundle", Name: "etcd.v1", Message: "use v2"},
	}}
	installed := noon.Add(3 * time.Hour)
	r := ready()
	r.Channel, r.InstalledCSV, r.InstalledEvent, r.InstalledSince = "fast", "etcd.v1", "installed", &installed
	since := map[string]moment{
		"olm.package": {"published-1", noon}, "olm.bundle/etcd.v1": {"published-2", noon.Add(time.Hour)},
	}
	got := deprecationConditions(p, r, since)
	want := []struct {
		typ, event string
		since      time.Time
	}{
		{"PackageDeprecated", "published-1", noon},
		{"BundleDeprecated", "installed", installed},
		{"Deprecated", "published-1", noon},
	}
	if len(got) != len(want) {
		t.Fatalf("conditions %+v", got)
	}
	for i, w := range want {
		if g := got[i]; g.Type != w.typ || g.Event != w.event || !g.Since.Equal(w.since) {
			t.Errorf("condition %+v, want %+v", g, w)
		}
	}
	if got := deprecationConditions(&catalog.Package{Name: "etcd"}, r, nil); got != nil {
		t.Errorf("a package without deprecations has %+v", got)
	}
}
