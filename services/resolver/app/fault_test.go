package app_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/services/resolver/app"
)

// populate asks for several operators at once, one of which cannot be had.
func (f *fleet) populate() {
	f.t.Helper()
	f.ready()
	f.addCatalog("fleet")
	packages := []string{"a", "b", "c", "d"}
	f.publish("fleet", "", f.pkg("a", version{v: "1.0.0", requires: []string{"K"}}),
		f.pkg("k", version{v: "1.0.0", provides: []string{"K"}}),
		f.pkg("b", version{v: "1.0.0"}), f.pkg("c", version{v: "1.0.0"}),
		f.pkg("d", version{v: "1.0.0", requires: []string{"Nobody"}}))
	for _, p := range packages {
		f.subscribe(p, p, "stable")
	}
}

// carryOutAll plays the executor until no plan lives.
func (f *fleet) carryOutAll() {
	f.t.Helper()
	for {
		f.quiet()
		n := 0
		for _, p := range f.plans() {
			if p.Live() {
				f.carryOut(p)
				n++
			}
		}
		if n == 0 {
			return
		}
	}
}

// outcome is what the resolver decided, without order, ids and what was overtaken on the way.
func (f *fleet) outcome() []string {
	f.t.Helper()
	var out []string
	for _, p := range f.plans() {
		out = append(out, fmt.Sprint(p.Phase, csvs(p)))
	}
	last := map[string]string{}
	for _, e := range f.recorded() {
		switch p := e.Payload.(type) {
		case events.ResolutionFailed:
			last[e.Subject] = "failed " + p.Reason
		case events.ResolutionSucceeded:
			last[e.Subject] = p.Outcome + " " + p.CSV
		case events.SubscriptionGenerated:
			out = append(out, "generated "+p.Name)
		}
	}
	for subject, what := range last {
		out = append(out, subject+" "+what)
	}
	slices.Sort(out)
	return out
}

// TestRunningAgainAddsNothing: a restart, and a restart that has forgotten everything that it knew from the
// log, decide nothing new.
func TestRunningAgainAddsNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	stop := f.start()
	f.populate()
	f.carryOutAll()
	want := f.decided()
	stop()
	stop = f.start()
	f.quiet()
	stop()
	f.forget()
	f.start()
	f.quiet()
	if diff := cmp.Diff(want, f.decided()); diff != "" {
		t.Errorf("running again decided (-want +got):\n%s", diff)
	}
}

// forget takes everything from a resolver that does not run that it knows from the log.
func (f *fleet) forget() {
	f.t.Helper()
	_, err := f.db.Pool(f.t, "admin").Exec(f.ctx,
		`truncate resolver.clusters, resolver.scopes, resolver.catalog_clock, resolver.catalogs, resolver.catalog_revisions,
		resolver.bundle_images, resolver.wanted_images, resolver.catalog_health,
		resolver.subscriptions, resolver.operator_groups, resolver.installed, resolver.plans, resolver.dirty, resolver.reads`)
	f.must(err)
	_, err = f.admin.Exec(f.ctx,
		`update eventlog.checkpoints set position = 0 where consumer = 'resolver.scopes'`)
	f.must(err)
}

// TestKilledConnectionsChangeNothing: Postgres ends the resolver's sessions at many points, and two replicas
// work at once; the outcome is that of an undisturbed run.
func TestKilledConnectionsChangeNothing(t *testing.T) {
	t.Parallel()
	calm := newFleet(t)
	calm.start()
	calm.populate()
	calm.carryOutAll()

	f := newFleet(t)
	f.start()
	f.start()
	admin := f.db.Pool(t, "admin")
	kill := func() {
		_, err := admin.Exec(f.ctx, `select pg_terminate_backend(pid) from pg_stat_activity
			where usename = 'chandler_resolver' and datname = current_database() and (state <> 'idle' or random() < 0.3)`)
		f.must(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.populate()
	}()
	for range 40 {
		kill()
	}
	<-done
	for range 40 {
		kill()
	}
	f.carryOutAll()
	if diff := cmp.Diff(calm.outcome(), f.outcome()); diff != "" {
		t.Errorf("disturbed (-calm +disturbed):\n%s", diff)
	}
}

// TestRebuildKeepsEvidence: a rebuild beside a running collector loses nothing. Inputs of decisions that are older than
// their retention, and that half-built tables do not refer to, stay; nothing is decided by such tables either, and the
// record explains its decisions afterwards as before (DESIGN D5, D9).
func TestRebuildKeepsEvidence(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	stop := f.start()
	f.populate()
	f.carryOutAll()
	stop()
	const documents = `select (select count(*) from resolver.inputs) + (select count(*) from resolver.plan_documents)
		+ (select count(*) from resolver.content_references)`
	_, err := f.admin.Exec(f.ctx, `update resolver.inputs set created = '2000-01-01'`)
	f.must(err)
	_, err = f.admin.Exec(f.ctx, `update resolver.plan_documents set created = '2000-01-01'`)
	f.must(err)
	before, decided := f.scalar(documents), f.decided()
	f.forget()
	beside, err := app.New(f.ctx, app.Config{Config: service.Config{
		DatabaseURL: f.db.URL("resolver"), NATS: f.nats.Access("resolver"), OpsListen: "127.0.0.1:0", Drain: patience,
	}, Bodies: bodiestest.Secrets()}, f.tel)
	f.must(err)
	defer beside.Close()
	f.must(beside.Sweep(f.ctx, time.Now()))
	if after := f.scalar(documents); after != before || before == 0 {
		t.Errorf("a collector beside the rebuild left %d documents and references of %d", after, before)
	}
	if err := beside.Sample(f.ctx, time.Now()); err != nil || f.scalar(`select count(*) from resolver.samples`) != 0 {
		t.Errorf("a sample was taken of tables behind the log: %v", err)
	}
	f.start()
	f.quiet()
	if diff := cmp.Diff(decided, f.decided()); diff != "" {
		t.Errorf("the rebuild decided (-want +got):\n%s", diff)
	}
	f.must(f.app.Sweep(f.ctx, time.Now()))
	for _, p := range f.plans() {
		if !p.Live() && p.Phase != "Complete" {
			continue
		}
		f.explain(app.ExplainQuestion{Tenant: tenant, Plan: p.Proposed.Plan})
	}
}
