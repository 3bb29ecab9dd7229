package app_test

import (
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const smallFleet = 40 // clusters, of fanOutPerSpoke namespaces each

// newFleetOfTwo is a small fleet that follows a package and is resolved, and another tenant with one namespace that
// does the same; people of both have namespaces.
func newFleetOfTwo(t *testing.T) (f *fleet, revision string, stop func()) {
	t.Helper()
	f = newFleet(t)
	revision = f.subscribedFleet(smallFleet, 4)
	stop = f.start()
	f.quiet()
	if n := f.scalar(resolvedAtFirst); n != smallFleet*fanOutPerSpoke {
		t.Fatalf("%d scopes are resolved", n)
	}
	return f, revision, stop
}

func (f *fleet) moveHead(before string) {
	f.t.Helper()
	f.publish("fleet", before, f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
}

// proposals are "tenant cluster/namespace" of all proposed plans in the order of the record.
func (f *fleet) proposals() (out []string) {
	f.t.Helper()
	for _, e := range f.recorded() {
		if p, ok := e.Payload.(events.InstallPlanProposed); ok {
			out = append(out, e.Tenant+" "+p.Cluster+"/"+p.Namespace)
		}
	}
	return out
}

// TestFanOutHoldsUpNobody: while one tenant's head moves in 400 namespaces, a person of the same tenant, a person of
// another, and that other tenant's own fan-out have their plans long before the last of them (DESIGN D4).
func TestFanOutHoldsUpNobody(t *testing.T) {
	t.Parallel()
	f, rev, _ := newFleetOfTwo(t)
	f.moveHead(rev)
	f.until("the fan-out to be under way", func() bool { return f.scalar(`select count(*) from resolver.plans`) > 10 })
	person := subscriptionIn(tenant, personsCluster, personsNamespace(0))
	other := subscriptionIn(otherTenant, personsCluster, personsNamespace(1))
	f.appendAll([]entry{person, other})
	// What is not of a person: the other tenant's namespace is marked as a catalog's change would.
	waiting := subscriptionIn(otherTenant, personsCluster, personsNamespace(2))
	f.appendAll([]entry{waiting})
	_, err := f.admin.Exec(f.ctx, `update resolver.dirty set lane = 1 where tenant = $1 and namespace = $2`,
		otherTenant, personsNamespace(2))
	f.must(pg.Err(err))
	f.quiet()
	got := f.proposals()
	if len(got) != smallFleet*fanOutPerSpoke+3 {
		t.Fatalf("%d plans", len(got))
	}
	for _, who := range []string{
		tenant + " " + personsCluster + "/" + personsNamespace(0),
		otherTenant + " " + personsCluster + "/" + personsNamespace(1), otherTenant + " " + personsCluster + "/" +
			personsNamespace(2),
	} {
		if at := slices.Index(got, who); at > len(got)*3/4 {
			t.Errorf("%s is planned as number %d of %d", who, at, len(got))
		}
	}
}

// TestUnusedPackageWakesNobody: a change of a package that nobody asked for is no resolution (DESIGN §7).
func TestUnusedPackageWakesNobody(t *testing.T) {
	t.Parallel()
	f, rev, stop := newFleetOfTwo(t)
	before := f.decided()
	stop()
	_, err := f.admin.Exec(f.ctx,
		`create table public.marked (n bigint); create function public.marked() returns trigger language plpgsql security definer as
		$$ begin insert into public.marked values (1); return null; end $$;
		create trigger marked after insert or update on resolver.dirty for each row execute function public.marked()`)
	f.must(pg.Err(err))
	f.start()
	buoy := f.pkg("buoy", version{v: "1.0.0"})
	rev = f.publish("fleet", rev, buoy, f.pkg("kelp", version{v: "1.0.0"}))
	rev = f.publish("fleet", rev, buoy, f.pkg("kelp", version{v: "1.1.0", provides: []string{"Kelp"}}))
	f.publish("fleet", rev, buoy)
	f.quiet()
	if n := f.scalar(`select count(*) from public.marked`); n != 0 || len(f.decided()) != len(before) {
		t.Errorf("%d marks, %d events more", n, len(f.decided())-len(before))
	}
}

// TestReplicasShareTheWork: three replicas resolve a fan-out, one of them is killed in the middle, and another comes;
// each scope has one plan, none two (DESIGN D4).
func TestReplicasShareTheWork(t *testing.T) {
	t.Parallel()
	f, rev, kill := newFleetOfTwo(t)
	f.start()
	f.start()
	f.moveHead(rev)
	f.until("the fan-out to be under way", func() bool { return f.scalar(`select count(*) from resolver.plans`) > 40 })
	// Its sessions end in the middle of what they do; what it had claimed is left to expire or given back.
	_, err := f.admin.Exec(f.ctx, `select pg_terminate_backend(pid) from pg_stat_activity
		where usename = 'chandler_resolver' and datname = current_database() and state <> 'idle'`)
	f.must(pg.Err(err))
	kill()
	f.start()
	f.quiet()
	got := f.proposals()
	slices.Sort(got)
	if n := len(slices.Compact(slices.Clone(got))); n != smallFleet*fanOutPerSpoke || n != len(got) {
		t.Errorf("%d plans in %d of %d scopes", len(got), n, smallFleet*fanOutPerSpoke)
	}
	if n := f.scalar(`select count(*) from resolver.plans where generation <> 1`); n != 0 {
		t.Errorf("%d plans are not the first of their namespace", n)
	}
}
