package store_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
)

// crowded is how many subscriptions that cannot be resolved the namespace of these tests has.
const crowded = 500

// crowd fills a namespace with subscriptions that failed, each for a reason of its own.
func (b *bench) crowd(t *testing.T, namespace string) {
	t.Helper()
	admin := b.db.Pool(t, pgtest.Admin)
	for _, sql := range []string{
		`insert into resolver.explanations (tenant, digest, document)
			select $1, $3 || '-' || i, '{}' from generate_series(1, $4::int) i where $2 <> ''`,
		`insert into resolver.subscriptions (tenant, cluster, namespace, generated, name, incarnation, version, spec,
			created, correlation, installed_csv, outcome, rollback_from, rollback_to)
			select $1, $2, $3, false, 's' || i, 1, 2, '{"package":"buoy"}', i, '', '',
			jsonb_build_object('kind', 'Failed', 'explanation', $3 || '-' || i), '', ''
			from generate_series(1, $4::int) i`,
	} {
		if _, err := admin.Exec(t.Context(), sql, tenant, scope(namespace).Cluster, namespace, crowded); err != nil {
			t.Fatal(pg.Err(err))
		}
	}
}

// rowsRead is how many rows of a table the statements of a function read, in one transaction.
func (b *bench) rowsRead(t *testing.T, table string, do func(pgx.Tx) error) (n int) {
	t.Helper()
	err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
			from pg_stat_xact_user_tables where schemaname = 'resolver' and relname = $1`, table).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestASubscriptionBesideManyReadsNoneOfThem: a subscription is added to a namespace that has hundreds, and none of
// them is read for that where no finished plan lacks a subscription: thousands that arrive would read each other, with
// the namespace's mark held.
func TestASubscriptionBesideManyReadsNoneOfThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.crowd(t, "coast")
	subject, p := "harbour/coast/late", events.SubscriptionCreated{
		Cluster: "harbour", Namespace: "coast", Name: "late", Spec: events.SubscriptionSpec{Package: "buoy"},
	}
	read := b.rowsRead(t, "subscriptions", func(tx pgx.Tx) error {
		return b.store.Projection.Apply(t.Context(), tx, eventlog.Recorded{
			Envelope: events.Envelope{
				ID: uuid.NewString(), Tenant: tenant, Type: p.EventType(), Subject: subject, Version: 1,
			},
			StreamID: events.StreamID{
				Kind: events.KindSubscription, Incarnation: 1,
				Key: events.Key(tenant, events.KindSubscription, subject),
			},
			Position: events.Position{Epoch: 1, N: crowded + 1}, Payload: p,
		})
	})
	if read > 1 {
		t.Errorf("beside %d others a subscription that is added reads %d of them", crowded, read)
	}
}

// TestExplanationsAreReadOnceEach: subscriptions come with why they failed; each explanation is found by its key. A
// comparison of all with all would be minutes for thousands.
func TestExplanationsAreReadOnceEach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.crowd(t, "coast")
	explained := 0
	read := b.rowsRead(t, "explanations", func(tx pgx.Tx) (err error) {
		explained, err = store.LoadSubscriptions(t.Context(), tx, tenant, scope("coast"))
		return err
	})
	if explained != crowded || read > 2*crowded {
		t.Errorf("%d of %d subscriptions are explained, for which %d rows were read", explained, crowded, read)
	}
}
