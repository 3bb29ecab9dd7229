package app_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
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
	_, err = f.pools[events.Resolver].Exec(f.ctx,
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
