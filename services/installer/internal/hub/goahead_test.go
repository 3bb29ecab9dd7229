package hub

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestFreshness: DESIGN D7: that nobody has stopped effects is known as of when the log ended where the hub's tables
// are now: while the hub does not fold events, what it reads of the switches is not what people have said.
func TestFreshness(t *testing.T) {
	t.Parallel()
	start := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	p := func(n int64) events.Position { return events.Position{Epoch: 1, N: n} }
	var f freshness
	for i, c := range []struct {
		head, folded int64
		second       int
		asOf         time.Time
	}{
		{5, 3, 0, time.Time{}}, // not there yet
		{5, 5, 2, at(2)},
		{9, 5, 4, at(2)}, // a stop may be among the four
		{9, 8, 6, at(2)},
		{12, 9, 8, at(6)}, // what was the end at 6 is reached
		{12, 12, 10, at(10)},
	} {
		f.read(p(c.head), p(c.folded), at(c.second))
		if !f.asOf.Equal(c.asOf) {
			t.Errorf("look %d: known as of %s, want %s", i, f.asOf, c.asOf)
		}
	}
	for i := range 10 * maxPendingHeads {
		f.read(p(int64(100+i)), p(12), at(20+i))
	}
	if len(f.pending) > maxPendingHeads || !f.asOf.Equal(at(10)) {
		t.Errorf("%d heads are remembered, known as of %s", len(f.pending), f.asOf)
	}
}

// TestGoAheadFromMemory: DESIGN D7: the hub answers by what it knows for protocol.GoAheadMemory and no longer; a stop
// of the fleet or of one cluster is in the answer of its tenant alone.
func TestGoAheadFromMemory(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &switches{stopRows: stopRows{
		all: map[string]bool{"stopped": true}, some: map[string][]string{"some": {"east"}},
	}}
	if _, err := s.goAhead("free", now); !errs.Is(err, errs.Unavailable) {
		t.Errorf("before the switches were read: %v", err)
	}
	s.known.asOf = now
	for tenant, want := range map[string]protocol.GoAhead{
		"free": {}, "stopped": {All: true}, "some": {Stopped: []string{"east"}},
	} {
		got, err := s.goAhead(tenant, now.Add(protocol.GoAheadMemory-1))
		if err != nil || got.All != want.All || len(got.Stopped) != len(want.Stopped) {
			t.Errorf("%s is told %+v, %v", tenant, got, err)
		}
	}
	if _, err := s.goAhead("free", now.Add(protocol.GoAheadMemory)); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a minute after the switches were read: %v", err)
	}
	s.all[events.AllTenants] = true
	if got, err := s.goAhead("free", now); err != nil || !got.All {
		t.Errorf("while the record has lost commits: %+v, %v", got, err)
	}
}

// TestStopThatIsNotFolded: a stop that was acknowledged takes the go-ahead away, wherever it is on its way: without a
// position, in the log and not folded, or parked because the hub cannot take it. Another tenant goes on.
func TestStopThatIsNotFolded(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	gateway, own, admin := d.Pool(t, "gateway"), d.Pool(t, "installer"), d.Pool(t, "admin")
	log := eventlog.New(gateway)
	h := New(Config{Pool: own, EventLog: eventlog.New(own), Log: bustest.Log(t)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sequencing sync.WaitGroup
	defer sequencing.Wait()
	defer cancel()
	at := time.Now()
	look := func() error {
		t.Helper()
		at = at.Add(switchesEvery)
		if err := h.switches.load(ctx, own, func() time.Time { return at }); err != nil {
			t.Fatal(err)
		}
		if _, err := h.switches.goAhead("another", at); err != nil {
			t.Errorf("another tenant is told %v", err)
		}
		_, err := h.switches.goAhead(events.DefaultTenant, at)
		return err
	}
	fold := func() {
		t.Helper()
		if err := h.Consumer().CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	fold()
	if err := look(); err != nil {
		t.Fatal(err)
	}
	exec(`create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'full'; end $$;
		create trigger refuse before insert on installer.stops for each row execute function public.refuse()`)
	meta := events.Meta{Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: at}
	stream := events.StreamID{
		Kind: events.KindAccess, Key: events.Key(events.DefaultTenant, events.KindAccess, fleet), Incarnation: 1,
	}
	var stopped eventlog.Appended
	if err := gateway.Tx(ctx, func(tx pgx.Tx) (err error) {
		stopped, err = log.Append(ctx, tx, meta, stream, fleet, 0, events.EffectsStopped{Reason: "Operator"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := look(); !errs.Is(err, errs.Unavailable) {
		t.Errorf("while the stop waits for its position: %v", err)
	}
	sequencing.Go(func() { _ = eventlog.NewSequencer(log, eventlog.Options{ID: "a"}).Run(ctx) })
	if _, ok, err := log.Wait(ctx, stopped, time.Minute); err != nil || !ok {
		t.Fatal(err)
	}
	if err := look(); !errs.Is(err, errs.Unavailable) {
		t.Errorf("while the stop is in the log and not folded: %v", err)
	}
	fold()
	if err := look(); !errs.Is(err, errs.Unavailable) {
		t.Errorf("while the stop is parked: %v", err)
	}
	exec(`drop trigger refuse on installer.stops`)
	if err := bus.RetryParked(ctx, gateway, events.DefaultTenant, Consumer, ""); err != nil {
		t.Fatal(err)
	}
	fold()
	if err := look(); err != nil {
		t.Fatal(err)
	}
	if got, err := h.switches.goAhead(events.DefaultTenant, at); err != nil || !got.All {
		t.Errorf("once it is folded: %+v, %v", got, err)
	}
	select {
	case <-h.stopped:
	default:
		t.Error("the namespaces of the stop are not marked at once")
	}
}
