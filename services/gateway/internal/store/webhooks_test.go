package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

func exec(t *testing.T, pool *pg.Pool, query string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

func putWebhook(t *testing.T, pool *pg.Pool, hooks store.Webhooks, name string) {
	t.Helper()
	putWebhookOf(t, pool, hooks, name, "first")
}

func putWebhookOf(t *testing.T, pool *pg.Pool, hooks store.Webhooks, name, stream string) {
	t.Helper()
	in(t, pool, tenant, func(tx pgx.Tx) error {
		return hooks.Put(t.Context(), tx, store.WebhookRow{
			Tenant: tenant, Name: name, Stream: stream, Sealed: webhook.Sealed{URL: "https://a.example.org"},
		}, "a.example.org", noon)
	})
}

// TestClaimsOfWebhooks: a turn whose lease ran out holds nothing when its own process claims the webhook again, and
// does not let the new claim go; a webhook that was changed meanwhile is let go all the same; how long nobody sent is
// known.
func TestClaimsOfWebhooks(t *testing.T) {
	t.Parallel()
	pool, hooks := gateway(t), store.Webhooks{Keys: bodiestest.Keys(t)}
	putWebhook(t, pool, hooks, "w")
	claim := func() (store.WebhookRow, store.Lease) {
		t.Helper()
		list, failed, err := hooks.Claim(t.Context(), pool, "me", time.Minute, 10)
		if err != nil || len(failed) > 0 || len(list) != 1 {
			t.Fatalf("claimed %v, %v, %v", list, failed, err)
		}
		return list[0], store.LeaseOf("me", list[0])
	}
	renew := func(l store.Lease) error {
		row, err := hooks.Get(t.Context(), pool, tenant, "w", false)
		if err != nil {
			t.Fatal(err)
		}
		return hooks.Renew(t.Context(), pool, l, time.Minute, row.At)
	}
	row, first := claim()
	if row.Unsent != 0 {
		t.Errorf("nobody has sent for a new webhook for %s", row.Unsent)
	}
	if list, _, err := hooks.Claim(t.Context(), pool, "other", time.Minute, 10); err != nil || len(list) > 0 {
		t.Errorf("claimed twice: %v, %v", list, err)
	}
	exec(t, pool, `update gateway.webhooks set lease_until = now() - interval '80 hours'`)
	row, second := claim()
	if row.Unsent < 80*time.Hour || row.Unsent > 81*time.Hour {
		t.Errorf("nobody had sent for %s", row.Unsent)
	}
	if err := renew(first); !errors.Is(err, store.ErrLease) {
		t.Errorf("a turn that is over goes on: %v", err)
	}
	if err := hooks.Release(t.Context(), pool, first); err != nil {
		t.Fatal(err)
	}
	if err := renew(second); err != nil {
		t.Errorf("a turn that is over let the next one go: %v", err)
	}
	putWebhook(t, pool, hooks, "w")
	if err := renew(second); !errors.Is(err, store.ErrLease) {
		t.Errorf("it goes on with what was changed: %v", err)
	}
	if err := hooks.Release(t.Context(), pool, second); err != nil {
		t.Fatal(err)
	}
	claim()
}

// TestClaimsOfWebhooksMadeAgain: who sends for a webhook that was deleted holds nothing of another one of its name,
// though both have the same revision, and does not let that go.
func TestClaimsOfWebhooksMadeAgain(t *testing.T) {
	t.Parallel()
	pool, hooks := gateway(t), store.Webhooks{Keys: bodiestest.Keys(t)}
	claim := func(stream string) store.Lease {
		t.Helper()
		putWebhookOf(t, pool, hooks, "w", stream)
		list, _, err := hooks.Claim(t.Context(), pool, "me", time.Minute, 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("claimed %v, %v", list, err)
		}
		return store.LeaseOf("me", list[0])
	}
	first := claim("first")
	in(t, pool, tenant, func(tx pgx.Tx) error { return hooks.Delete(t.Context(), tx, tenant, "w") })
	second := claim("second")
	if first.Revision != second.Revision {
		t.Fatalf("revisions %d and %d: the test proves nothing", first.Revision, second.Revision)
	}
	if err := hooks.Renew(t.Context(), pool, first, time.Minute, events.Position{}); !errors.Is(err, store.ErrLease) {
		t.Errorf("who sent for the former one holds the new one: %v", err)
	}
	if err := hooks.Release(t.Context(), pool, first); err != nil {
		t.Fatal(err)
	}
	if l, err := hooks.Held(t.Context(), pool, "me"); err != nil || l[[2]string{tenant, "w"}] != second {
		t.Errorf("held is %+v, %v", l, err)
	}
}

// TestTimeWithoutSenderIsKept: since when nobody has sent is not lost to claims that come to nothing, of a process that
// lacks the key or is killed before it begins; it counts once.
func TestTimeWithoutSenderIsKept(t *testing.T) {
	t.Parallel()
	pool, hooks := gateway(t), store.Webhooks{Keys: bodiestest.Keys(t)}
	putWebhook(t, pool, hooks, "w")
	exec(t, pool, `insert into gateway.webhook_deliveries (tenant, webhook, id, epoch, position, type, subject, state,
		created, since) values ($1, 'w', '1', 1, 1, 't', 's', 'Pending', $2, $2)`, tenant, noon.Add(-90*time.Hour))
	end := func(ago time.Duration) {
		exec(t, pool, `update gateway.webhooks set lease_until = clock_timestamp() - $1::interval`, ago)
	}
	end(80 * time.Hour)
	settings := bodiestest.Settings()
	for kind := range settings {
		other := "another-secret-of-tests-that-seals-" + string(kind)
		settings[kind] = &other
	}
	keys, err := settings.Keys()
	if err != nil {
		t.Fatal(err)
	}
	stranger := store.Webhooks{Keys: keys}
	if list, failed, err := stranger.Claim(t.Context(), pool, "other", time.Minute, 10); err != nil || len(list) > 0 ||
		len(failed) != 1 {
		t.Fatalf("claimed without the key: %v, %v, %v", list, failed, err)
	}
	var row store.WebhookRow
	for range 2 { // the first is killed before it begins
		end(time.Second)
		list, _, err := hooks.Claim(t.Context(), pool, "me", time.Minute, 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("claimed %v, %v", list, err)
		}
		if row = list[0]; row.Unsent < 80*time.Hour || row.Unsent > 81*time.Hour {
			t.Errorf("nobody had sent for %s", row.Unsent)
		}
	}
	lost := store.LeaseOf("me", row)
	lost.Revision--
	if err := hooks.Begin(t.Context(), pool, lost, row.Unsent, time.Minute, noon); !errors.Is(err, store.ErrLease) {
		t.Errorf("it begins by a claim that it lost: %v", err)
	}
	if err := hooks.Begin(t.Context(), pool, store.LeaseOf("me", row), row.Unsent, time.Minute, noon); err != nil {
		t.Fatal(err)
	}
	waiting, err := hooks.Waiting(t.Context(), pool, store.LeaseOf("me", row), 10)
	if err != nil || len(waiting) != 1 || !waiting[0].Since.Round(time.Minute).Equal(noon.Add(-10*time.Hour)) {
		t.Errorf("waiting %+v, %v", waiting, err)
	}
	end(time.Second)
	list, _, err := hooks.Claim(t.Context(), pool, "me", time.Minute, 10)
	if err != nil || list[0].Unsent > time.Minute {
		t.Errorf("counted again: %v, %v", list, err)
	}
}

// TestDeliveriesGrowOldWhileSomebodySends: the time in which nobody did is taken from their age, and no more than that.
func TestDeliveriesGrowOldWhileSomebodySends(t *testing.T) {
	t.Parallel()
	pool, hooks := gateway(t), store.Webhooks{Keys: bodiestest.Keys(t)}
	putWebhook(t, pool, hooks, "w")
	for i, age := range []time.Duration{90 * time.Hour, time.Hour} {
		exec(t, pool, `insert into gateway.webhook_deliveries (tenant, webhook, id, epoch, position, type, subject, state,
			created, since) values ($1, 'w', $2, 1, $3, 't', 's', 'Pending', $4, $4)`, tenant, fmt.Sprint(i), i,
			noon.Add(-age))
	}
	list, _, err := hooks.Claim(t.Context(), pool, "me", time.Minute, 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("claimed %v, %v", list, err)
	}
	l := store.LeaseOf("me", list[0])
	if err := hooks.Begin(t.Context(), pool, l, time.Minute, time.Minute, noon); err != nil {
		t.Fatal(err)
	}
	if err := hooks.Begin(t.Context(), pool, l, 80*time.Hour, time.Minute, noon); err != nil {
		t.Fatal(err)
	}
	got, err := hooks.Waiting(t.Context(), pool, l, 10)
	if err != nil || len(got) != 2 || !got[0].Since.Equal(noon.Add(-10*time.Hour)) || !got[1].Since.Equal(noon) {
		t.Errorf("waiting %+v, %v", got, err)
	}
}

// TestSweepOfDeliveries: what is old goes, and of each webhook what is beyond the newest; what waits stays; one process
// at a time does it.
func TestSweepOfDeliveries(t *testing.T) {
	t.Parallel()
	pool, hooks := gateway(t), store.Webhooks{Keys: bodiestest.Keys(t)}
	putWebhook(t, pool, hooks, "many")
	putWebhook(t, pool, hooks, "old")
	// n of them ended one a minute before noon, n waits.
	insert := func(name string, n int, before time.Duration) {
		exec(t, pool, `insert into gateway.webhook_deliveries (tenant, webhook, id, epoch, position, type, subject, state,
				created, ended)
			select $1, $2, i::text, 1, i, 't', 's', case when i = $3 then 'Pending' else 'Delivered' end, $4::timestamptz,
				case when i < $3 then $4::timestamptz - i * interval '1 minute' end
			from generate_series(0, $3::int) i`, tenant, name, n, noon.Add(-before))
	}
	insert("many", 20, 0)
	insert("old", 3, 2*time.Hour)
	sweep := func(limit int) (n int64) {
		t.Helper()
		if err := pool.Tx(t.Context(), func(tx pgx.Tx) (err error) {
			n, err = hooks.Sweep(t.Context(), tx, noon.Add(-time.Hour), 5, limit)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := pool.Tx(t.Context(), func(tx pgx.Tx) error {
		if n, err := hooks.Sweep(t.Context(), tx, noon.Add(-time.Hour), 5, 1); err != nil || n != 1 {
			t.Errorf("swept %d, %v", n, err)
		}
		if n := sweep(100); n != 0 {
			t.Errorf("a second one swept %d beside it", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n := sweep(100); n != 17 {
		t.Errorf("swept %d of 17", n)
	}
	var left string
	if err := pool.QueryRow(t.Context(), `select string_agg(webhook || id, ' ' order by webhook, position)
		from gateway.webhook_deliveries`).Scan(&left); err != nil || left != "many0 many1 many2 many3 many4 many20 old3" {
		t.Errorf("left are %s, %v", left, err)
	}
}

// TestNoRequestWaitsToNoteATokensUse: a change of tokens holds all those of administrators locked.
func TestNoRequestWaitsToNoteATokensUse(t *testing.T) {
	t.Parallel()
	pool := gateway(t)
	tokens := store.NewTokens(pool)
	const secret = "0123456789abcdef0123"
	hash := model.HashToken(secret)
	exec(t, pool, `insert into gateway.tokens (tenant, id, hash, role) values ($1, 'token-a', $2, 'admin')`, tenant,
		hash[:])
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // it would wait as long as that
	defer cancel()
	used := func() (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `select count(used) from gateway.tokens`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	in(t, pool, tenant, func(tx pgx.Tx) error {
		if n, err := tokens.LockAdmins(t.Context(), tx, tenant); err != nil || n != 1 {
			t.Errorf("locked %d, %v", n, err)
		}
		if _, _, err := tokens.Caller(ctx, secret); err != nil || ctx.Err() != nil {
			t.Errorf("a request waits for a change of tokens: %v, %v", err, ctx.Err())
		}
		return nil
	})
	if n := used(); n != 0 {
		t.Errorf("%d uses are noted", n)
	}
	if _, _, err := tokens.Caller(ctx, secret); err != nil || used() != 1 {
		t.Errorf("the next use is not noted: %v", err)
	}
}
