package store_test

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
)

// retention is how long tests keep what nothing needs.
const retention = 400 * 24 * time.Hour

// exec changes tables behind the store's back.
func (b *bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return pg.Err(err)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) collect(t *testing.T, now time.Time) store.Swept {
	t.Helper()
	done, err := b.store.Collector.Sweep(t.Context(), now, retention)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestSweepGoesOnBehindWhatIsNeeded: however many old inputs, explanations and namespaces come first of which nothing
// is to be removed, one sweep finds what is behind them (R-IP-4).
func TestSweepGoesOnBehindWhatIsNeeded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const needed = 2*store.SweepRows + 1
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	old := now.Add(-2 * retention)
	b.exec(t, `insert into resolver.subscriptions (tenant, cluster, namespace, name, incarnation, version, spec,
		created, outcome)
		select $1, 'harbour', 'n' || i, 'x', 1, 1, '{}', 1, jsonb_build_object('input', 'i' || i, 'explanation',
		'e' || i) from generate_series(1, $2::int) i`, tenant, needed)
	b.exec(t, `insert into resolver.inputs (tenant, digest, document, created, referred)
		select $1, 'i' || i, '', $3::timestamptz + make_interval(secs => i), true from generate_series(1, $2::int) i`, tenant, needed+1, old)
	b.exec(t, `insert into resolver.explanations (tenant, digest, document, created)
		select $1, 'e' || i, '{}', $3::timestamptz + make_interval(secs => i) from generate_series(1, $2::int) i`, tenant, needed+1, old)
	// The last namespace has one ended plan too many, those before it none.
	b.exec(t, `insert into resolver.plans (tenant, plan, key, cluster, namespace, generation, version, live, phase,
		state)
		select $1, 'p' || i || '/' || g, gen_random_uuid(), 'harbour', 'n' || lpad(i::text, 6, '0'), g, 1, false,
		'Superseded', jsonb_build_object('Proposed', jsonb_build_object('input', 'none'))
		from generate_series(1, $2::int) i, generate_series(1, case when i = $2 then $3::int + 1 else 1 end) g`, tenant, needed, store.KeptPlans)

	if done := b.collect(t, now); done != (store.Swept{Plans: 1, Inputs: 1, Explanations: 1}) {
		t.Errorf("one sweep removed %+v", done)
	}
	if got, want := b.removals(t), []string{"inputs", "explanations"}; !slices.Equal(got, want) {
		t.Errorf("events tell of %q, want %q: nothing of working tables and of what is kept", got, want)
	}
	if done := b.collect(t, now.Add(retention-time.Hour)); done.Any() {
		t.Errorf("a sweep within another retention removed %+v", done)
	}
	b.exec(t, `update resolver.subscriptions set outcome = '{}' where namespace = 'n1'`)
	if done := b.collect(t, now.Add(retention+time.Hour)); done != (store.Swept{Inputs: 1, Explanations: 1}) {
		t.Errorf("a sweep after another retention removed %+v", done)
	}
}

// removals are what the events about a sweep tell of, in their order.
func (b *bench) removals(t *testing.T) (what []string) {
	t.Helper()
	for _, r := range b.removed(t) {
		what = append(what, r.What)
	}
	return what
}

func (b *bench) removed(t *testing.T) (list []events.Removed) {
	t.Helper()
	head, err := b.log.Latest(t.Context(), b.pool, tenant, events.KindRetention, "resolver")
	if err != nil {
		t.Fatal(err)
	}
	recs, err := b.log.ReadStream(t.Context(), b.pool, tenant, head.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		list = append(list, r.Payload.(events.DecisionsCollected).Removed)
	}
	return list
}

// TestWhatGoesLeavesAnEvent: what events refer to does not go without an event that says how much, by which retention,
// and which, in the same transaction: one for many. Until all readers know that event, nothing goes, and the rest of
// the sweep is done.
func TestWhatGoesLeavesAnEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const some = events.MaxRemovedIDs + 20
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	old := now.Add(-2 * retention)
	b.exec(t, `insert into resolver.inputs (tenant, digest, document, created, referred)
		select $1, 'i' || lpad(i::text, 6, '0'), '', $3::timestamptz + make_interval(secs => i), true
		from generate_series(1, $2::int) i`, tenant, some, old)
	b.exec(t, `insert into resolver.inputs (tenant, digest, document, created, referred)
		values ('other', 'x', '', $1, true)`, old)
	b.exec(t, `insert into resolver.plans (tenant, plan, key, cluster, namespace, generation, version, live, phase, state)
		select $1, 'p' || g, gen_random_uuid(), 'harbour', 'n', g, 1, false, 'Superseded', '{}'
		from generate_series(1, $2::int) g`, tenant, store.KeptPlans+1)
	admin := b.db.Pool(t, pgtest.Admin)
	tell := events.DecisionsCollected{}.EventType()
	move := func(from, to string) {
		if _, err := admin.Exec(t.Context(), `with x as (delete from eventlog.`+from+` where type = $1 returning *)
			insert into eventlog.`+to+` (type, kind, writer, closes) select type, kind, writer, closes from x`,
			tell); err != nil {
			t.Fatal(err)
		}
	}
	move("event_types", "coming_types")

	done := b.collect(t, now)
	if !errs.Is(done.Postponed, errs.Unavailable) || done.Inputs != 0 || done.Plans != 1 {
		t.Errorf("before all readers know the event: %+v", done)
	}
	move("coming_types", "event_types")
	if done := b.collect(t, now); done != (store.Swept{Inputs: some + 1}) {
		t.Errorf("when they know it: %+v", done)
	}
	list := b.removed(t)
	if len(list) != 1 {
		t.Fatalf("%d events tell of one page", len(list))
	}
	got := list[0]
	sum := sha256.New()
	for i := range some {
		fmt.Fprintf(sum, "i%06d\n", i+1)
	}
	if got.What != "inputs" || got.Count != some || got.RetentionDays != 400 || len(got.IDs) != events.MaxRemovedIDs ||
		got.IDs[0] != "i000001" || got.Digest != fmt.Sprintf("sha256:%x", sum.Sum(nil)) ||
		!got.Oldest.Equal(old.Add(time.Second)) || !got.Newest.Equal(old.Add(some*time.Second)) {
		t.Errorf("the event says %+v", got)
	}
	if done := b.collect(t, now); done.Any() || len(b.removed(t)) != 1 {
		t.Errorf("a second sweep: %+v, %d events", done, len(b.removed(t)))
	}
}

// TestOneReplicaSweepsAtATime: where another one does, nothing is looked at.
func TestOneReplicaSweepsAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b.exec(t, `insert into resolver.explanations (tenant, digest, document, created) values ($1, 'e', '{}', $2)`,
		tenant, now.Add(-2*retention))
	err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select pg_advisory_xact_lock(hashtext('resolver.collect'))`); err != nil {
			return err
		}
		if done := b.collect(t, now); done.Any() {
			t.Errorf("beside another sweep it removed %+v", done)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if done := b.collect(t, now); done.Explanations != 1 {
		t.Errorf("after the other sweep it removed %+v", done)
	}
}

// TestSweepLooksUpByKey: who needs what a decision rests on is found by indexes, so that a sweep's cost is that of
// what is old, not of how many namespaces there are.
func TestSweepLooksUpByKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	whole := regexp.MustCompile(`Seq Scan on (subscriptions|plans)\b`)
	for _, sql := range store.OldStatements() {
		err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
			// Without rows the planner would read tables from end to end. So it does that only where it cannot help it.
			if _, err := tx.Exec(t.Context(), `set local enable_seqscan = off`); err != nil {
				return err
			}
			rows, err := tx.Query(t.Context(), "explain "+sql,
				pgx.NamedArgs{"rows": 1, "now": time.Now(), "before": time.Now()})
			if err != nil {
				return err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if plan := strings.Join(lines, "\n"); whole.MatchString(plan) {
				t.Errorf("%s\n\nis carried out as\n%s", sql, plan)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
