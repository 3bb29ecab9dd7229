package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/services/resolver/app"
)

// supersedeOften moves the head of package buoy n times under a plan that waits for approval, and returns the last
// revision.
func (f *fleet) supersedeOften(before string, n int) string {
	f.t.Helper()
	for i := range n {
		before = f.publish("fleet", before, f.pkg("buoy", version{v: fmt.Sprintf("1.%d.0", i)}),
			f.pkg("kelp", version{v: "1.0.0"}))
		f.quiet()
	}
	return before
}

// TestEndedPlansAreCollected: of ended plans the newest five of a namespace stay, and beside them what decisions go
// by; the record keeps all, and what was collected is told as such (R-IP-4, DESIGN D3).
func TestEndedPlansAreCollected(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.subscribe("kelp", "kelp", "stable", manual)
	f.subscribe("buoy", "buoy", "stable", manual)
	rev := f.supersedeOften("", 1)
	rejected := f.planOf("kelp")
	f.append(events.Gateway, events.KindInstallPlan, scoped(rejected.Proposed.Name), rejected.Proposed.Plan,
		events.InstallPlanRejected{Digest: rejected.Proposed.Digest})
	first := f.planOf("buoy")
	rev = f.supersedeOften(rev, 10)
	all, log := f.plans(), f.scalar(`select count(*) from eventlog.events`)

	f.must(f.app.Sweep(f.ctx, time.Now()))
	want := []int64{rejected.Proposed.Generation}
	for _, p := range all[len(all)-app.KeptPlans-1:] { // one of them lives
		want = append(want, p.Proposed.Generation)
	}
	if diff := cmp.Diff(want, f.generations()); diff != "" {
		t.Errorf("generations that are left (-want +got):\n%s", diff)
	}
	if n := f.scalar(`select count(*) from resolver.plan_documents`); n != len(all) {
		t.Errorf("%d documents are left of %d within their retention", n, len(all))
	}

	// Nothing is tried again because it was forgotten, and generations go on.
	newest := all[len(all)-1].Proposed.Generation
	f.supersedeOften(rev, 11) // heads that were there before, and then a new one
	if p := f.planOf("kelp"); p.Proposed.Plan != rejected.Proposed.Plan {
		t.Errorf("what was rejected is proposed again: %+v", p.Proposed)
	}
	if p := f.planOf("buoy"); p.Proposed.Generation <= newest || !p.Live() {
		t.Errorf("after generation %d: %d, %s", newest, p.Proposed.Generation, p.Phase)
	}
	if f.scalar(`select count(*) from eventlog.events`) < log {
		t.Error("the record lost events")
	}

	// Something late of a plan that was collected: it began while it was being superseded.
	f.append(events.Installer, events.KindInstallPlan, scoped(first.Proposed.Name), first.Proposed.Plan,
		events.InstallPlanStarted{Steps: first.Proposed.Steps})
	f.quiet()
	if n := f.scalar(`select count(*) from eventlog.parked`) +
		f.scalar(`select count(*) from resolver.plans where live and generation <> $1`,
			first.Proposed.Generation); n != 0 {
		t.Errorf("what came late: %d plans live beside it, or events are parked", n)
	}
}

// TestWhatDecisionsRestedOnIsCollected: once nothing needs them for their retention, documents, inputs and references
// go, and with the references the content; what is planned or subscribed keeps its own (DESIGN D3).
func TestWhatDecisionsRestedOnIsCollected(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.subscribe("buoy", "buoy", "stable", manual)
	f.subscribe("stuck", "nowhere", "stable")
	f.supersedeOften("", app.KeptPlans+5)
	all := f.plans()
	before := f.references()
	// As if written before references had holders: they are found in the inputs themselves.
	_, err := f.admin.Exec(f.ctx, `update resolver.inputs set referred = false`)
	f.must(pg.Err(err))
	_, err = f.admin.Exec(f.ctx, `delete from resolver.content_references where kind = 'package' and holder <> ''`)
	f.must(pg.Err(err))

	f.must(f.app.Sweep(f.ctx, time.Now()))
	if diff := cmp.Diff(before, f.references()); diff != "" {
		t.Errorf("references within the retention (-want +got):\n%s", diff)
	}
	// By default what events refer to is kept as long as they are, and so it is under a legal hold: the record of a
	// decision can be replayed at any later time.
	later := time.Now().Add(50 * 365 * 24 * time.Hour)
	for _, r := range []service.Retention{{}, {Keep: app.Retention, LegalHold: true}} {
		f.must(f.app.SweepBy(f.ctx, r, later))
		if diff := cmp.Diff(before, f.references()); diff != "" {
			t.Errorf("references after 50 years by %+v (-want +got):\n%s", r, diff)
		}
		for _, p := range all {
			f.must(f.gateway.Call(f.ctx, app.ExplainSubject,
				app.ExplainQuestion{Tenant: tenant, Plan: p.Proposed.Plan}, &app.ExplainAnswer{}))
		}
	}
	f.sweepInterrupted(time.Now().Add(app.Retention + time.Hour))
	f.must(f.app.Sweep(f.ctx, time.Now().Add(app.Retention+time.Hour)))

	kept := app.KeptPlans + 1
	if n := f.scalar(`select count(*) from resolver.plan_documents`); n != kept {
		t.Errorf("%d documents are left, want those of %d plans", n, kept)
	}
	var want []string
	for _, p := range all[len(all)-kept:] {
		want = append(want, "content "+p.Proposed.Bundles[0].Content)
	}
	slices.Sort(want)
	if got := slices.DeleteFunc(f.references(), func(line string) bool {
		return strings.HasPrefix(
			line, "package ")
	}); !slices.Equal(got, want) {
		t.Errorf("contents that are referred to (-want +got):\n%s", cmp.Diff(want, got))
	}
	// Everything that lives is explained still; what was collected says so, and how long it was kept.
	for _, sub := range []string{"buoy", "stuck"} {
		f.must(f.gateway.Call(f.ctx, app.ExplainSubject,
			app.ExplainQuestion{Tenant: tenant, Cluster: cluster, Namespace: namespace, Subscription: sub},
			&app.ExplainAnswer{}))
	}
	f.must(f.gateway.Call(f.ctx, app.ExplainSubject, app.ExplainQuestion{
		Tenant: tenant, Plan: all[len(all)-1].Proposed.Plan,
	}, &app.ExplainAnswer{}))
	err = f.gateway.Call(f.ctx, app.ExplainSubject, app.ExplainQuestion{Tenant: tenant, Plan: all[0].Proposed.Plan},
		&app.ExplainAnswer{})
	if err == nil || !strings.Contains(err.Error(), "is not kept any more") ||
		!strings.Contains(err.Error(), "setting retention") {
		t.Errorf("the first plan is explained with %v", err)
	}
}

// sweepInterrupted ends a sweep where references are removed: what holds them is there as before.
func (f *fleet) sweepInterrupted(now time.Time) {
	f.t.Helper()
	_, err := f.admin.Exec(f.ctx,
		`create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
		create trigger refuse before delete on resolver.content_references for each row execute function public.refuse()`)
	f.must(pg.Err(err))
	const documents = `select count(*) from resolver.plan_documents`
	before := f.scalar(documents)
	if err := f.app.Sweep(f.ctx, now); err == nil || f.scalar(documents) != before {
		f.t.Errorf("an interrupted sweep: %v, %d documents of %d are left", err, f.scalar(documents), before)
	}
	_, err = f.admin.Exec(f.ctx, `drop trigger refuse on resolver.content_references`)
	f.must(pg.Err(err))
}

// TestDependenciesAreSettledOnce: whether a finished plan's dependencies get subscriptions is decided by what was
// subscribed at its end. One that somebody deleted since is not generated again, neither when the plan was collected
// and something comes late, nor when the tables are made anew from the log (R-RES-40).
func TestDependenciesAreSettledOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	stop := f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}}),
		f.pkg("gauge", version{v: "1.0.0", provides: []string{"Gauge"}}),
		f.pkg("kelp", version{v: "1.0.0", requires: []string{"Sand"}}),
		f.pkg("sand", version{v: "1.0.0", provides: []string{"Sand"}}))
	f.subscribe("buoy", "buoy", "stable") // gets a subscription for gauge
	f.quiet()
	first := f.livePlan()
	f.carryOut(first)
	f.quiet()
	f.append(events.Gateway, events.KindSubscription, scoped("gauge-stable-fleet"), scoped("gauge-stable-fleet"),
		events.SubscriptionDeleted{})
	f.subscribe("kelp", "kelp", "stable") // has one for sand when its plan ends
	f.quiet()
	second := f.livePlan()
	f.subscribe("mine", "sand", "stable", manual)
	f.quiet()
	f.carryOut(second)
	f.quiet()
	f.append(events.Gateway, events.KindSubscription, scoped("mine"), scoped("mine"), events.SubscriptionDeleted{})
	f.quiet()
	want := f.decided()

	_, err := f.admin.Exec(f.ctx, `delete from resolver.plans`) // as if collected
	f.must(pg.Err(err))
	for _, p := range []installplan.State{first, second} {
		f.append(events.Installer, events.KindInstallPlan, scoped(p.Proposed.Name), p.Proposed.Plan,
			events.InstallPlanBlocked{Class: "transient", Reason: "ClusterUnreachable"})
	}
	f.quiet()
	f.markAllDirty()
	f.quiet()
	if diff := cmp.Diff(want, f.decided()); diff != "" {
		t.Errorf("after something late of plans that were collected (-want +got):\n%s", diff)
	}
	stop()
	f.forget()
	f.start()
	f.quiet()
	if diff := cmp.Diff(want, f.decided()); diff != "" {
		t.Errorf("made anew from the log (-want +got):\n%s", diff)
	}
}

// TestNightlySampleFindsWhatNothingMadeDirty: a scope whose read set is wrong is found, told of, and resolved; a
// sound fleet has nothing new (DESIGN D4).
func TestNightlySampleFindsWhatNothingMadeDirty(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	rev := f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable", manual)
	f.quiet()
	night := time.Date(2031, 3, 1, 4, 0, 0, 0, time.UTC)
	const looked = `select count(*) from resolver.samples where night = $1::date and looked is not null
		and (found = '{}') = $2`
	f.must(f.app.Sample(f.ctx, night))
	if n := f.scalar(looked, night, true); n != 1 {
		t.Fatalf("%d scopes were looked at and came to nothing new, want 1", n)
	}
	sound := f.decided()

	_, err := f.admin.Exec(f.ctx, `delete from resolver.reads where kind = 'package'`)
	f.must(pg.Err(err))
	f.publish("fleet", rev, f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	f.quiet()
	if diff := cmp.Diff(sound, f.decided()); diff != "" {
		t.Fatalf("the read set is not what decides:\n%s", diff)
	}
	f.must(f.app.Sample(f.ctx, night)) // the night's sample was looked at
	f.quiet()
	if diff := cmp.Diff(sound, f.decided()); diff != "" {
		t.Fatalf("a scope was looked at twice in a night:\n%s", diff)
	}
	night = night.AddDate(0, 0, 1)
	f.must(f.app.Sample(f.ctx, night))
	f.quiet()
	if n := f.scalar(looked, night, false); n != 1 || f.scalar(`select count(*) from resolver.samples
		where 'installplan.proposed.v1' = any (found)`) != 1 {
		t.Errorf("%d scopes with findings, want 1", n)
	}
	if got := csvs(f.livePlan()); !slices.Equal(got, []string{"buoy.v1.1.0 ChannelHead"}) {
		t.Errorf("plan %v", got)
	}
	f.must(f.app.Sample(f.ctx, night.AddDate(0, 0, 1)))
	if n := f.scalar(looked, night.AddDate(0, 0, 1), true); n != 1 {
		t.Errorf("in the night after, %d scopes came to nothing new, want 1", n)
	}
}

// generations are those of the plans in the working tables.
func (f *fleet) generations() (out []int64) {
	f.t.Helper()
	rows, err := f.admin.Query(f.ctx, `select generation from resolver.plans order by generation`)
	f.must(err)
	defer rows.Close()
	for rows.Next() {
		var g int64
		f.must(rows.Scan(&g))
		out = append(out, g)
	}
	f.must(rows.Err())
	return out
}

// planOf is the newest plan of a component.
func (f *fleet) planOf(component string) installplan.State {
	f.t.Helper()
	for _, p := range slices.Backward(f.plans()) {
		if p.Proposed.Component == component {
			return p
		}
	}
	f.t.Fatalf("no plan of %s; decided: %v", component, f.decided())
	return installplan.State{}
}
