package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/app"
)

// TestInstallAndUpgradeStepByStep: intents in, plans out; a dependency comes along and gets a subscription; a
// new revision leads to one step at a time (R-GRA-5, R-GRA-6, R-RES-40).
func TestInstallAndUpgradeStepByStep(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	gauge := f.pkg("gauge", version{v: "1.0.0", provides: []string{"Gauge"}})
	buoy := f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}})
	rev := f.publish("fleet", "", buoy, gauge)
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	p := f.livePlan()
	if diff := cmp.Diff([]string{"gauge.v1.0.0 RequiredAPI", "buoy.v1.0.0 ChannelHead"}, csvs(p)); diff != "" {
		t.Fatalf("plan (-want +got):\n%s", diff)
	}
	if p.Proposed.Steps == 0 || p.Proposed.Generation != 1 || p.Proposed.Component != "buoy+gauge" ||
		p.Phase != installplan.Installing {
		t.Errorf("plan %+v", p.Proposed)
	}
	f.carryOut(p)
	f.quiet()
	if n := count(f.decided(), events.SubscriptionGenerated{}); n != 1 {
		t.Fatalf("%d subscriptions generated; decided %v", n, f.decided())
	}

	buoy = f.pkg("buoy", version{v: "1.2.0", replaces: "1.1.0", requires: []string{"Gauge"}},
		version{v: "1.1.0", replaces: "1.0.0", requires: []string{"Gauge"}},
		version{v: "1.0.0", requires: []string{"Gauge"}})
	f.publish("fleet", rev, buoy, gauge)
	f.quiet()
	for _, want := range []string{"buoy.v1.1.0 NextStep", "buoy.v1.2.0 NextStep"} {
		p := f.livePlan()
		if diff := cmp.Diff([]string{want}, csvs(p)); diff != "" {
			t.Fatalf("step (-want +got):\n%s", diff)
		}
		f.carryOut(p)
		f.quiet()
	}
	story := []string{
		"installplan.proposed.v1", "resolution.succeeded.v1", // planned
		"subscription.generated.v1", "resolution.succeeded.v1", "resolution.succeeded.v1", // both at the latest known
		"installplan.proposed.v1", "resolution.succeeded.v1", // step to 1.1.0
		"installplan.proposed.v1", "resolution.succeeded.v1", // step to 1.2.0
		"resolution.succeeded.v1", // at the latest known
	}
	if diff := cmp.Diff(story, f.decided()); diff != "" {
		t.Errorf("decided (-want +got):\n%s", diff)
	}
}

// TestManualPlanWaitsAndIsVoidedByNews: nothing moves without approval; a new head takes the plan's place,
// approved or not, as long as it was not begun (R-IP-10, R-IP-11, DESIGN D6).
func TestManualPlanWaitsAndIsVoidedByNews(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	rev := f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable", manual)
	f.quiet()
	first := f.livePlan()
	if first.Phase != installplan.RequiresApproval {
		t.Fatalf("phase is %s", first.Phase)
	}
	f.append(events.Gateway, events.KindInstallPlan, scoped(first.Proposed.Name), first.Proposed.Plan,
		events.InstallPlanApproved{
			Digest: first.Proposed.Digest, Base: first.Proposed.Base,
			Expires: time.Now().Add(time.Hour),
		})
	f.publish("fleet", rev, f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	f.quiet()
	plans := f.plans()
	second := f.livePlan()
	if len(plans) != 2 || plans[0].Phase != installplan.Superseded || plans[0].SupersededBy != second.Proposed.Plan {
		t.Fatalf("plans %+v", plans)
	}
	if second.Phase != installplan.RequiresApproval || csvs(second)[0] != "buoy.v1.1.0 ChannelHead" {
		t.Errorf("second plan %s %v", second.Phase, csvs(second))
	}
}

// TestNothingIsPlannedOnTopOfWhatIsUnderWay: one step at a time (R-GRA-6), whatever the catalog does meanwhile.
func TestNothingIsPlannedOnTopOfWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	rev := f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	p := f.livePlan()
	id, subject := p.Proposed.Plan, scoped(p.Proposed.Name)
	f.append(events.Installer, events.KindInstallPlan, subject, id, events.InstallPlanStarted{Steps: p.Proposed.Steps})
	f.publish("fleet", rev, f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	steps := []func(){
		func() {},
		func() {
			f.append(events.Installer, events.KindInstallPlan, subject, id,
				events.InstallPlanFinished{Steps: p.Proposed.Steps})
		},
		func() { f.phase(p.Proposed.Bundles[0], id, "Installing") },
	}
	for i, step := range steps {
		step()
		f.quiet()
		if n := len(f.plans()); n != 1 {
			t.Fatalf("after step %d there are %d plans", i, n)
		}
	}
	f.phase(p.Proposed.Bundles[0], id, "Succeeded")
	f.quiet()
	if got := csvs(f.livePlan()); got[0] != "buoy.v1.1.0 NextStep" {
		t.Errorf("next plan %v", got)
	}
}

// TestFailureIsToldOnce: a subscription that fails for ever adds one event, whatever else happens; when the
// API that it misses appears, it resolves (R-RES-41).
func TestFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	buoy := f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}})
	rev := f.publish("fleet", "", buoy)
	f.subscribe("buoy", "buoy", "stable")
	f.subscribe("typo", "buoi", "stable")
	f.quiet()
	for i := range 10 {
		rev = f.publish("fleet", rev, buoy, f.pkg("drift", version{v: fmt.Sprintf("1.0.%d", i)}))
		f.append(events.Gateway, events.KindOperatorGroup, scoped("og"), scoped("og"),
			events.OperatorGroupChanged{Spec: events.OperatorGroupSpec{ServiceAccountName: fmt.Sprint(i)}})
	}
	f.quiet()
	if diff := cmp.Diff([]string{"resolution.failed.v1", "resolution.failed.v1"}, f.decided()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	f.publish("fleet", rev, buoy, f.pkg("gauge", version{v: "1.0.0", provides: []string{"Gauge"}}))
	f.quiet()
	if got := csvs(f.livePlan()); len(got) != 2 {
		t.Errorf("plan %v", got)
	}
}

// TestCatalogAndSubscriptionTogether: a catalog that is still being loaded is waited for; one whose load
// failed is told of.
func TestCatalogAndSubscriptionTogether(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.subscribe("buoy", "buoy", "stable", func(s *events.SubscriptionSpec) { s.Catalog = "late" })
	f.addCatalog("late")
	f.addCatalog("fleet")
	f.subscribe("gauge", "gauge", "stable")
	f.quiet()
	before := count(f.decided(), events.ResolutionFailed{}) // of a moment in which the catalogs were not known
	f.append(events.Indexer, events.KindCatalog, "late", "late", events.CatalogLoadFailed{Reason: "InvalidCatalog"})
	f.quiet()
	if n := count(f.decided(), events.ResolutionFailed{}); n != before+1 {
		t.Errorf("%d failures told, want %d", n, before+1)
	}
	f.publish("fleet", "", f.pkg("gauge", version{v: "1.0.0"}))
	f.quiet()
	if got := csvs(f.livePlan()); got[0] != "gauge.v1.0.0 ChannelHead" {
		t.Errorf("plan %v", got)
	}
}

// TestRejectedPlanIsNotProposedAgain until something changes.
func TestRejectedPlanIsNotProposedAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	rev := f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable", manual)
	f.quiet()
	p := f.livePlan()
	f.append(events.Gateway, events.KindInstallPlan, scoped(p.Proposed.Name), p.Proposed.Plan,
		events.InstallPlanRejected{Digest: p.Proposed.Digest})
	f.quiet()
	if n := len(f.plans()); n != 1 {
		t.Fatalf("%d plans after the rejection", n)
	}
	f.publish("fleet", rev, f.pkg("buoy", version{v: "1.0.1", replaces: "1.0.0"}, version{v: "1.0.0"}))
	f.quiet()
	if got := csvs(f.livePlan()); got[0] != "buoy.v1.0.1 ChannelHead" {
		t.Errorf("plan %v", got)
	}
}

// TestDeletedSubscriptionTakesItsPlanAlong: a plan that nobody asks for any more ends; a new life of the same
// name gets its own.
func TestDeletedSubscriptionTakesItsPlanAlong(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable", manual)
	f.quiet()
	f.append(events.Gateway, events.KindSubscription, scoped("buoy"), scoped("buoy"), events.SubscriptionDeleted{})
	f.quiet()
	if p := f.plans()[0]; p.Phase != installplan.Superseded || p.SupersededBy != "" {
		t.Errorf("plan is %s by %q", p.Phase, p.SupersededBy)
	}
	f.subscribe("buoy", "buoy", "stable", manual) // a new life of the same name
	f.quiet()
	if got := csvs(f.livePlan()); got[0] != "buoy.v1.0.0 ChannelHead" {
		t.Errorf("plan %v", got)
	}
}

// TestWhatCannotBeInstalledIsExplained: manifests that are not at hand, and install modes that do not fit the
// operator group (R-CSV-31), fail the subscription, not the service.
func TestWhatCannotBeInstalledIsExplained(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("bare", version{v: "1.0.0", bare: true}),
		f.pkg("own", version{v: "1.0.0", modes: []string{"OwnNamespace"}}), f.pkg("fine", version{v: "1.0.0"}))
	for _, name := range []string{"bare", "own", "fine"} {
		f.subscribe(name, name, "stable")
	}
	f.quiet()
	if n := count(f.decided(), events.ResolutionFailed{}); n != 2 {
		t.Errorf("%d failures told: %v", n, f.decided())
	}
	if got := csvs(f.livePlan()); len(f.plans()) != 1 || got[0] != "fine.v1.0.0 ChannelHead" {
		t.Errorf("plan %v", got)
	}
	var says []string
	for _, e := range f.recorded() {
		if p, ok := e.Payload.(events.ResolutionFailed); ok {
			says = append(says, f.explanation(p.Explanation))
		}
	}
	if all := strings.Join(says, "\n"); !strings.Contains(all, "manifests are not in the catalog") ||
		!strings.Contains(all, "own.v1.0.0") {
		t.Errorf("explanations:\n%s", all)
	}
}

// TestExplain: the recorded decision is made again from its recorded input (DESIGN D5).
func TestExplain(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	rev := f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	f.publish("fleet", rev, f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}}),
		f.pkg("later", version{v: "1.0.0"}))
	f.quiet()
	var answer app.ExplainAnswer
	f.must(f.gateway.Call(f.ctx, app.ExplainSubject, app.ExplainQuestion{
		Tenant: tenant, Cluster: cluster,
		Namespace: namespace, Subscription: "buoy",
	}, &answer))
	if answer.Component.Failure == nil {
		t.Fatalf("answer %+v", answer)
	}
	d, err := answer.Component.Failure.Digest()
	f.must(err)
	for _, e := range f.recorded() {
		if p, ok := e.Payload.(events.ResolutionFailed); ok && (p.Explanation != string(d) || p.Input != answer.Input) {
			t.Errorf("recorded %+v, explained %s of %s", p, d, answer.Input)
		}
	}
	err = f.gateway.Call(f.ctx, app.ExplainSubject, app.ExplainQuestion{
		Tenant: tenant, Cluster: cluster, Namespace: namespace, Subscription: "none",
	}, &answer)
	if !errs.Is(err, errs.NotFound) {
		t.Errorf("an unknown subscription gives %v", err)
	}
}
