package app_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	stuckNamespaces = 40
	rounds          = 60 // of resolving all of them: 2,400 resolutions
	flaps           = 200
)

// TestNothingLoops: subscriptions that can never be resolved, one whose plan fails, and an operator that flaps, are
// resolved thousands of times, since their catalog moves, since they are marked, and since the resolver restarts.
// What is told stays what was told the first time, to the event (P6, R-IP-43, DESIGN D2).
func TestNothingLoops(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	stop := f.start()
	f.ready()
	f.addCatalog("fleet")
	revision := 0
	rev := ""
	churn := func() { // every package changes, and nothing that anybody asks for
		buoy, kelp, gauge := f.pkg("buoy", version{v: "1.0.0"}),
			f.pkg("kelp", version{v: "1.0.0", requires: []string{"Nobody"}}), f.pkg("gauge", version{v: "1.0.0"})
		for _, p := range []*catalog.Package{&buoy, &kelp, &gauge} {
			p.Bundles[0].Properties = append(p.Bundles[0].Properties, property(t, "sea.test/edition", revision))
		}
		revision++
		rev = f.publish("fleet", rev, buoy, kelp, gauge)
	}
	churn()
	f.subscribe("buoy", "buoy", "stable")
	f.subscribe("gauge", "gauge", "stable")
	f.neverResolved()
	f.quiet()
	f.carryOut(f.planOf("buoy"))
	f.failPlan(f.planOf("gauge"))
	f.quiet()
	want := f.decided()
	if n := count(want, events.ResolutionFailed{}); n != 2*stuckNamespaces {
		t.Fatalf("%d failures are told, want one for each of %d subscriptions", n, 2*stuckNamespaces)
	}
	for i := range rounds {
		switch i % 20 {
		case 5:
			churn()
		case 10:
			stop()
			stop = f.start()
		}
		f.markAllDirty()
		f.quiet()
	}
	f.flap(flaps)
	f.quiet()
	if diff := cmp.Diff(want, f.decided()); diff != "" {
		t.Errorf("after %d resolutions of each (-told at first +told):\n%s", rounds, diff)
	}
	if n := f.scalar(`select count(*) from resolver.explanations`); n > 2*stuckNamespaces {
		t.Errorf("%d explanations are kept of %d failures", n, 2*stuckNamespaces)
	}
}

// neverResolved subscribes to a channel that is not there, and to an operator whose requirement nobody meets.
func (f *fleet) neverResolved() {
	f.t.Helper()
	var entries []entry
	for i := range stuckNamespaces {
		ns := fmt.Sprintf("stuck-%02d", i)
		channel, requirement := subscriptionIn(tenant, cluster, ns), subscriptionIn(tenant, cluster, ns)
		channel.payload = specIn(channel, "buoy", func(s *events.SubscriptionSpec) { s.Channel = "never" })
		requirement.subject = cluster + "/" + ns + "/kelp"
		requirement.payload = specIn(requirement, "kelp", func(s *events.SubscriptionSpec) { s.Package = "kelp" })
		entries = append(entries, groupIn(tenant, cluster, ns), channel, requirement)
	}
	f.appendAll(entries)
}

func specIn(e entry, name string, change func(*events.SubscriptionSpec)) events.SubscriptionCreated {
	p := e.payload.(events.SubscriptionCreated)
	p.Name = name
	change(&p.Spec)
	return p
}

// failPlan plays an executor whose first step is refused for good.
func (f *fleet) failPlan(p installplan.State) {
	f.t.Helper()
	subject := p.Proposed.Cluster + "/" + p.Proposed.Namespace + "/" + p.Proposed.Name
	f.append(events.Installer, events.KindInstallPlan, subject, p.Proposed.Plan,
		events.InstallPlanStarted{Steps: p.Proposed.Steps},
		events.InstallPlanFailed{Step: 1, Reason: "Invalid", StepLog: "log"})
}

// flap has the operator of package buoy go up and down.
func (f *fleet) flap(times int) {
	f.t.Helper()
	p := f.planOf("buoy")
	for i := range times {
		f.phase(p.Proposed.Bundles[0], p.Proposed.Plan, []string{
			"Failed", "Pending", "InstallReady", "Installing",
			"Succeeded",
		}[i%5])
	}
}

// markAllDirty makes every scope dirty, whatever its read set says.
func (f *fleet) markAllDirty() {
	f.t.Helper()
	_, err := f.admin.Exec(f.ctx, `insert into resolver.dirty (tenant, cluster, namespace, lane)
		select tenant, cluster, namespace, 1 from resolver.scopes
		on conflict (tenant, cluster, namespace) do update set generation = dirty.generation + 1`)
	f.must(pg.Err(err))
	f.app.Wake()
}
