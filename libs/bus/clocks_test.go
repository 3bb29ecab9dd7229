package bus_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
)

// TestClockThatWasAheadFreezesNothing: a clock that was a day ahead and is set right left times that are a day away.
// They are further than any that is set now, and count as past.
func TestClockThatWasAheadFreezesNothing(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	for name, times := range map[string][2]string{
		"waits":   {"1 day", ""},
		"claimed": {"0", "1 day"},
		"pauses":  {"30 seconds", ""}, // as it should
		"worked":  {"0", "10 seconds"},
	} {
		if _, err := e.pool.Exec(t.Context(), `insert into `+dirty+` (tenant, cluster, namespace, lane, not_before, owner,
			until) values ('a', $1, 'ns', 0, now() + $2::interval, nullif($3, ''), now() + nullif($3, '')::interval)`,
			name, times[0], times[1]); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := e.lanes().Claimable(t.Context()); err != nil || n != 2 {
		t.Errorf("%d clusters may be claimed, want those whose time was set by the clock: %v", n, err)
	}
	taken := make(chan string, 4)
	e.work(e.lanes(), 1, func(_ context.Context, s bus.Scope) error {
		taken <- s.Cluster
		return nil
	})
	if a, b := <-taken, <-taken; a+b != "claimedwaits" && a+b != "waitsclaimed" {
		t.Errorf("worked on %s and %s", a, b)
	}
}

// TestParkedByAClockThatWasAhead: so do parked events; and an event whose handler meets deadlocks is not parked,
// however many these are.
func TestParkedByAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.sequence("a", nil)
	c := e.consumer("c", nil)
	var cured atomic.Bool
	var deadlocks atomic.Int32
	c.Handle = func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
		switch {
		case r.Envelope.Subject == "met" && deadlocks.Add(1) < 12:
			return &pgconn.PgError{Code: "40P01"}
		case r.Envelope.Subject == "bad" && !cured.Load():
			return errors.New("cannot be folded")
		}
		return effect(ctx, tx, "c", r)
	}
	bad, met := e.catalog("bad"), e.catalog("met")
	bad.append(1)
	bad.sequenced()
	e.run(c.Run)
	e.eventually("parked", func() bool { return len(e.parked("c")) == 1 })
	cured.Store(true)
	if _, err := e.db.Pool(t, "admin").Exec(t.Context(),
		`update eventlog.parked set next_retry = now() + interval '1 day'`); err != nil {
		t.Fatal(err)
	}
	met.append(1)
	e.eventually("both taken", func() bool { return len(e.effects("c")) == 2 })
	if n := len(e.parked("c")); n != 0 {
		t.Errorf("%d events are parked", n)
	}
}

// TestClaimsAreRenewedInOrderOfBytes: marks lock rows in the order of bytes. Where a database sorts by a language, the
// renewal of claims does so, too: it waits for the first row without holding the second.
func TestClaimsAreRenewedInOrderOfBytes(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	ctx := t.Context()
	l := e.lanes()
	e.mark(l, bus.Interactive, bus.Scope{Tenant: "x", Cluster: "a", Namespace: "ns"})
	e.mark(l, bus.Interactive, bus.Scope{Tenant: "x", Cluster: "B", Namespace: "ns"})
	tx, err := e.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	const row = `select 1 from ` + dirty + ` where cluster = $1 for update nowait`
	renewed := make(chan error, 1)
	held := make(chan struct{})
	go func() {
		renewed <- l.Renew(ctx, 2, func(scopes []bus.Scope) {
			if len(scopes) != 2 {
				t.Errorf("%d scopes were claimed", len(scopes))
			}
			if _, err := tx.Exec(ctx, row, "B"); err != nil {
				t.Error(err)
			}
			close(held)
		})
	}()
	<-held
	waits := func() (n int) {
		if err := e.pool.QueryRow(ctx, `select count(*) from pg_stat_activity where datname = current_database()
			and wait_event_type = 'Lock'`).Scan(&n); err != nil {
			t.Error(err)
			return 1
		}
		return n
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for waits() == 0 {
		<-tick.C
	}
	if _, err := tx.Exec(ctx, row, "a"); err != nil {
		t.Errorf("the renewal waits for B and holds a: %v", err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; err != nil {
		t.Fatal(err)
	}
}
