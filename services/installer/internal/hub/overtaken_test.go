package hub

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// scope is the one that a fixture's plans are of.
var scope = bus.Scope{Tenant: events.DefaultTenant, Cluster: "east", Namespace: "ns"}

// plan returns how the tables have the one plan, and sets that: for what other plans of a namespace would do.
func (d *fixture) plan() (restore func()) {
	d.t.Helper()
	var phase string
	var state []byte
	if err := d.h.c.Pool.QueryRow(d.t.Context(), `select phase, state from installer.plans`).Scan(&phase,
		&state); err != nil {
		d.t.Fatal(err)
	}
	return func() {
		d.t.Helper()
		d.exec(`update installer.plans set phase = $1, state = $2`, phase, state)
	}
}

func (d *fixture) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.h.c.Pool.Exec(d.t.Context(), sql, args...); err != nil {
		d.t.Fatal(err)
	}
}

// TestKilledBetweenPublishAndNote: a worker that is killed behind the publish leaves a row that tells of the message
// before. When that is what is wanted again, PLANS still holds the other one: it is published, and no revoked grant
// stays.
func TestKilledBetweenPublishAndNote(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	d.publishPlan(windowed("Automatic"))
	granted := d.plan()
	d.publishPlan(events.InstallPlanRejected{})
	rejected := d.plan()
	d.wantNone()
	var row []byte
	if err := d.h.c.Pool.QueryRow(t.Context(), `select to_jsonb(p) from installer.published p`).Scan(&row); err != nil {
		t.Fatal(err)
	}
	granted()
	if err := d.h.publish(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	d.wantGrant(friday.Add(GrantTTL))
	// Killed: the note is not written.
	d.exec(`delete from installer.published`)
	d.exec(`insert into installer.published select * from jsonb_populate_record(null::installer.published, $1)`, row)
	rejected()
	if err := d.h.publish(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	d.wantNone()
	granted()
	if err := d.h.publish(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	d.exec(`delete from installer.published`) // killed behind the first message of a namespace
	rejected()
	if err := d.h.publish(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	d.wantNone()
}

// TestPausedWorkerForgetsNothing: a worker that was about to forget a namespace, and is paused while another one
// publishes a plan for it, purges nothing of that when it goes on, and notes nothing over it.
func TestPausedWorkerForgetsNothing(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	ctx := t.Context()
	d.publishPlan(windowed("Automatic"))
	granted := d.plan()
	d.publishPlan(events.InstallPlanSuperseded{})
	w, _, err := d.h.read(ctx, scope)
	if err != nil || !w.message.Nothing() {
		t.Fatal(err)
	}
	was, err := d.h.lastMessage(ctx, w.message.Scope)
	if err != nil {
		t.Fatal(err)
	}
	granted()
	if err := d.h.publish(ctx, scope); err != nil {
		t.Fatal(err)
	}
	if err := d.h.forgetScope(ctx, &w, was); !errs.Is(err, errs.Conflict) {
		t.Errorf("a worker that was overtaken forgets the namespace: %v", err)
	}
	if err := d.h.savePublished(ctx, w, was, "digest", was.sequence); !errs.Is(err, errs.Conflict) {
		t.Errorf("a worker that was overtaken notes its message: %v", err)
	}
	if err := renewAt(ctx, d.h.c.Pool, w, was, friday.Add(time.Hour)); !errs.Is(err, errs.Conflict) {
		t.Errorf("a worker that was overtaken notes a time: %v", err)
	}
	d.wantGrant(friday.Add(GrantTTL))
	// The other one has sent its message, and not noted it yet.
	d.exec(`update installer.published set sequence = $1`, was.noted.sequence)
	if err := d.h.forgetScope(ctx, &w, was); err != nil {
		t.Fatal(err)
	}
	d.wantGrant(friday.Add(GrantTTL))
}

// TestStopMarksAtOnce: behind a stop its namespaces are to be published at once, also one that waits after a failure
// and one that is being worked on, and no other.
func TestStopMarksAtOnce(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	for i, namespace := range []string{"idle", "failed", "busy"} {
		d.exec(`insert into installer.published (tenant, cluster_id, namespace, cluster, digest, stopped, published)
			values ($1, $2, $3, 'east', 'sha256:x', false, now())`, events.DefaultTenant, registration, namespace)
		if i > 0 {
			d.exec(`insert into installer.dirty (tenant, cluster, namespace, lane, attempts, not_before, owner)
				values ($1, 'east', $2, 1, 3, now() + interval '1 hour', nullif($2, 'failed'))`, events.DefaultTenant, namespace)
		}
	}
	marked := func(want int) {
		t.Helper()
		var n int
		if err := d.h.c.Pool.QueryRow(t.Context(), `select count(*) from installer.dirty
			where lane = 0 and attempts = 0 and not_before <= now() and (namespace = 'idle' or generation = 2)`).
			Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Errorf("%d namespaces are marked, want %d", n, want)
		}
	}
	d.exec(`insert into installer.stops values ($1, 'cluster/west', 'Operator')`, events.DefaultTenant)
	if err := d.h.markStopSwitches(t.Context()); err != nil {
		t.Fatal(err)
	}
	marked(0)
	d.exec(`insert into installer.stops values ($1, 'cluster/east', 'Operator')`, events.DefaultTenant)
	if err := markStops(t.Context(), d.h.c.Pool); err != nil {
		t.Fatal(err)
	}
	marked(3)
}

// TestMarksLockInOrderOfBytes: where the columns sort by a language, rows are locked in the order of bytes all the
// same: that is the order of all other marks.
func TestMarksLockInOrderOfBytes(t *testing.T) {
	t.Parallel()
	d := newFixture(t, friday)
	admin := d.db.Pool(t, "admin")
	for _, sql := range []string{
		`alter table installer.published alter namespace type text collate "en-US-x-icu"`,
		`create table public.marked (n int generated always as identity, namespace text)`,
		`grant insert, select on public.marked to public`,
		`create function public.note() returns trigger language plpgsql as $$
			begin insert into public.marked (namespace) values (new.namespace); return new; end $$`,
		`create trigger note before insert on installer.dirty for each row execute function public.note()`,
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	d.exec(`insert into installer.published (tenant, cluster_id, namespace, cluster, digest, stopped, published)
		select $1, $2, n, 'east', 'sha256:x', true, now() from unnest(array['a', 'B', 'c-d', 'cc']) as n`,
		events.DefaultTenant, registration)
	if err := d.h.markStopSwitches(t.Context()); err != nil {
		t.Fatal(err)
	}
	var order string
	if err := admin.QueryRow(t.Context(), `select string_agg(namespace, ' ' order by n) from public.marked`).
		Scan(&order); err != nil {
		t.Fatal(err)
	}
	if order != "B a c-d cc" {
		t.Errorf("rows are locked in the order %q", order)
	}
}
