package store_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
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
	if done := b.collect(t, now.Add(retention-time.Hour)); done.Any() {
		t.Errorf("a sweep within another retention removed %+v", done)
	}
	b.exec(t, `update resolver.subscriptions set outcome = '{}' where namespace = 'n1'`)
	if done := b.collect(t, now.Add(retention+time.Hour)); done != (store.Swept{Inputs: 1, Explanations: 1}) {
		t.Errorf("a sweep after another retention removed %+v", done)
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
