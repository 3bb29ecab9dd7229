package hub

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		f.read(headAt{p(c.head), at(c.second), at(c.second)}, p(c.folded))
		if !f.asOf.Equal(c.asOf) || !f.told.Equal(c.asOf) {
			t.Errorf("look %d: known as of %s (told %s), want %s", i, f.asOf, f.told, c.asOf)
		}
	}
	for i := range 10 * maxPendingHeads {
		f.read(headAt{p(int64(100 + i)), at(20 + i), at(20 + i)}, p(12))
	}
	if len(f.pending) > maxPendingHeads || !f.asOf.Equal(at(10)) {
		t.Errorf("%d heads are remembered, known as of %s", len(f.pending), f.asOf)
	}
}

// TestGoAheadFromMemory: DESIGN D7: the hub answers by what it knows for protocol.GoAheadMemory and no longer; a stop
// of the fleet or of one cluster is in the answer of its tenant alone, and an agent is told of its cluster alone. Of a
// tenant that there is not nothing is allowed.
func TestGoAheadFromMemory(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &switches{stopRows: stopRows{
		all: map[string]bool{"stopped": true}, some: map[string][]string{"some": {"east", "west"}},
		tenants: map[string]bool{"free": true, "stopped": true, "some": true},
		agents:  map[string]map[string]bool{"some": {"east": true, "north": true}},
	}}
	if _, err := s.goAhead("free", protocol.GoAheadAll, now, time.Hour); !errs.Is(err, errs.Unavailable) {
		t.Errorf("before the switches were read: %v", err)
	}
	s.known.asOf, s.known.told = now, now.Add(-time.Hour) // PostgreSQL's clock is another one
	const all = protocol.GoAheadAll
	for name, c := range map[string]struct {
		tenant, cluster string
		want            protocol.GoAhead
	}{
		"free":                       {"free", all, protocol.GoAhead{}},
		"stopped":                    {"stopped", all, protocol.GoAhead{All: true}},
		"some":                       {"some", all, protocol.GoAhead{Stopped: []string{"east", "west"}}},
		"agent of a stopped cluster": {"some", "east", protocol.GoAhead{Stopped: []string{"east"}, AwaySeconds: 3600}},
		"agent of another one":       {"some", "north", protocol.GoAhead{Stopped: []string{}, AwaySeconds: 3600}},
		"no agent's":                 {"some", "south", protocol.GoAhead{Stopped: []string{"south"}}},
		"removed, with its tenant":   {"free", "north", protocol.GoAhead{Stopped: []string{"north"}}},
	} {
		c.want.Tenant, c.want.AsOf = c.tenant, s.known.told
		got, err := s.goAhead(c.tenant, c.cluster, now.Add(protocol.GoAheadMemory-1), time.Hour)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	if got, err := s.goAhead("nobody", all, now, time.Hour); !errs.Is(err, errs.NotFound) {
		t.Errorf("a tenant that there is not is told %+v, %v", got, err)
	}
	late := now.Add(protocol.GoAheadMemory)
	if _, err := s.goAhead("free", all, late, time.Hour); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a minute after the switches were read: %v", err)
	}
	s.all[events.AllTenants] = true
	if got, err := s.goAhead("free", all, now, time.Hour); err != nil || !got.All {
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
		if _, err := h.switches.goAhead("another", protocol.GoAheadAll, at, time.Hour); err != nil {
			t.Errorf("another tenant is told %v", err)
		}
		_, err := h.switches.goAhead(events.DefaultTenant, protocol.GoAheadAll, at, time.Hour)
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
	exec(`insert into installer.clusters (tenant, name, cluster_id, stream, credential)
		values ('` + events.DefaultTenant + `', 'east', gen_random_uuid(), '', ''),
			('another', 'east', gen_random_uuid(), '', '')`)
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
	got, err := h.switches.goAhead(events.DefaultTenant, protocol.GoAheadAll, at, time.Hour)
	if err != nil || !got.All {
		t.Errorf("once it is folded: %+v, %v", got, err)
	}
	select {
	case <-h.stopped:
	default:
		t.Error("the namespaces of the stop are not marked at once")
	}
}
