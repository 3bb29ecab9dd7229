package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

func TestReadAfterFilters(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.mustAppend(t, "east", 0, registered("east"), replaced(1)) // 1, 2
	b.mustAppend(t, "west", 0, registered("west"))              // 3
	m := meta()
	m.Tenant = "green"
	stops := events.StreamID{
		Kind: events.KindAccess, Key: events.Key("green", events.KindAccess, "fleet"),
		Incarnation: 1,
	}
	if err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := b.log.Append(t.Context(), tx, m, stops, "fleet", 0, events.EffectsStopped{Reason: "Operator"}) // 4
		return err
	}); err != nil {
		t.Fatal(err)
	}
	b.sequenceAll(t, b.lead(t))
	east := clusterStream("east")
	for name, c := range map[string]struct {
		after   int64
		filter  eventlog.Filter
		limit   int
		want    []int64
		scanned int64
	}{
		"all":        {0, eventlog.Filter{}, 10, []int64{1, 2, 3, 4}, 4},
		"a batch":    {1, eventlog.Filter{}, 2, []int64{2, 3}, 3},
		"at the end": {4, eventlog.Filter{}, 10, nil, 4},
		"tenant":     {0, eventlog.Filter{Tenant: "green"}, 10, []int64{4}, 4},
		"kind":       {0, eventlog.Filter{Kinds: []events.Kind{events.KindCluster}}, 10, []int64{1, 2, 3}, 4},
		"type": {
			0,
			eventlog.Filter{Types: []events.Type{registered("").EventType()}},
			10,
			[]int64{1, 3},
			4,
		},
		"type, full batch":  {0, eventlog.Filter{Types: []events.Type{registered("").EventType()}}, 1, []int64{1}, 1},
		"stream":            {1, eventlog.Filter{Stream: &east}, 10, []int64{2}, 4},
		"subject":           {0, eventlog.Filter{Subject: "west"}, 10, []int64{3}, 4},
		"nothing like that": {0, eventlog.Filter{Subject: "north"}, 10, nil, 4},
	} {
		list, scanned, err := b.log.ReadAfter(t.Context(), b.pool, events.Position{Epoch: 1, N: c.after}, c.filter,
			c.limit)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []int64
		for _, e := range list {
			got = append(got, e.Position.N)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || scanned != (events.Position{Epoch: 1, N: c.scanned}) {
			t.Errorf("%s: scanned up to %s, want %d; positions (-want +got):\n%s", name, scanned, c.scanned, diff)
		}
	}
	if _, _, err := b.log.ReadAfter(t.Context(), b.pool, events.Position{}, eventlog.Filter{}, 0); !errs.Is(
		err, errs.Invalid) {
		t.Errorf("limit 0: %v", err)
	}
}

// TestSince: the place of a time is before what was recorded then, however much was recorded at one time.
func TestSince(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	at, err := b.log.Since(t.Context(), b.pool, time.Now())
	if want := (events.Position{Epoch: 1}); err != nil || at != want {
		t.Fatalf("of an empty log: %s, %v", at, err)
	}
	s := b.lead(t)
	for i := range 7 {
		b.mustAppend(t, fmt.Sprintf("east-%d", i), 0, registered("east"), replaced(1))
		b.sequenceAll(t, s)
	}
	list, _, err := b.log.ReadAfter(t.Context(), b.pool, events.Position{}, eventlog.Filter{Raw: true}, 100)
	if err != nil || len(list) != 14 {
		t.Fatalf("%d events, %v", len(list), err)
	}
	for _, e := range list {
		for _, moved := range []time.Duration{-time.Microsecond, 0, time.Microsecond} {
			when, want := e.Recorded.Add(moved), events.Position{Epoch: 1}
			for _, before := range list {
				if before.Recorded.Before(when) {
					want = before.Position
				}
			}
			if got, err := b.log.Since(t.Context(), b.pool, when); err != nil || got != want {
				t.Errorf("since %s: %s, want %s, %v", when, got, want, err)
			}
		}
	}
}

// A reader of rare events gets its turn back after a bounded part of the log.
func TestReadAfterIsBounded(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.fill(t, eventlog.ScanWindow+10)
	var at events.Position
	for want := range []int64{eventlog.ScanWindow, eventlog.ScanWindow + 10} {
		list, next, err := b.log.ReadAfter(t.Context(), b.pool, at, eventlog.Filter{Subject: "north"}, 5)
		if err != nil || len(list) != 0 {
			t.Fatalf("%d events, %v", len(list), err)
		}
		if ends := []int64{eventlog.ScanWindow, eventlog.ScanWindow + 10}; next.N != ends[want] {
			t.Errorf("scanned up to %s, want %d", next, ends[want])
		}
		at = next
	}
}

// fill gives a log n events by hand.
func (b bundle) fill(tb testing.TB, n int) {
	tb.Helper()
	b.fillInbox(tb, "c", n)
	b.sequenceAll(tb, b.lead(tb))
}

// fillInbox commits n events without a position, each of a stream of its own.
func (b bundle) fillInbox(tb testing.TB, prefix string, n int) {
	tb.Helper()
	_, err := b.admin.Exec(tb.Context(), `insert into eventlog.appended (tenant, kind, stream_key, incarnation, version,
		type, subject, event_id, body, hash)
		select 'default', 'cluster', gen_random_uuid(), 1, 1, 'cluster.registered.v1', $2::text || i, gen_random_uuid(),
		d.body, sha256(d.body)
		from generate_series(1, $1) as i,
		lateral (select convert_to('{"specversion":"1.0","type":"cluster.registered.v1","subject":"' || $2::text || i ||
		'","data":{"name":"c"}}', 'UTF8') as body) d`, n, prefix)
	if err != nil {
		tb.Fatal(err)
	}
}

// DESIGN §3: a type that a reader does not know stops it there, visibly; what came before is handed out.
func TestUnknownTypeStopsTheReader(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	if _, err := b.admin.Exec(t.Context(), `insert into eventlog.event_types
		values ('cluster.painted.v1', 'cluster', 'gateway', false)`); err != nil {
		t.Fatal(err)
	}
	b.mustAppend(t, "east", 0, registered("east"), painted{"red"}, replaced(1))
	b.sequenceAll(t, b.lead(t))
	read := func(after int64, f eventlog.Filter) ([]eventlog.Recorded, events.Position, error) {
		return b.log.ReadAfter(t.Context(), b.pool, events.Position{Epoch: 1, N: after}, f, 10)
	}
	var unknown *events.UnknownTypeError
	wanted := eventlog.Filter{Types: []events.Type{replaced(0).EventType()}}
	for name, f := range map[string]eventlog.Filter{"all types": {}, "some types": wanted} {
		list, at, err := read(1, f)
		if !errors.As(err, &unknown) || unknown.Type != "cluster.painted.v1" || len(list) != 0 || at.N != 1 {
			t.Errorf("%s, at the unknown type: %d events, %s, %v", name, len(list), at, err)
		}
	}
	if list, at, err := read(0, eventlog.Filter{}); err != nil || len(list) != 1 || at.N != 1 {
		t.Errorf("before the unknown type: %d events, %s, %v", len(list), at, err)
	}
	if _, err := b.log.ReadStream(t.Context(), b.pool, events.DefaultTenant, clusterStream("east"), 0); !errors.As(
		err, &unknown) {
		t.Errorf("stream: %v", err)
	}
	if list, at, err := read(0, eventlog.Filter{Raw: true}); err != nil || len(list) != 3 || at.N != 3 ||
		list[1].Payload != nil || list[1].Type != "cluster.painted.v1" {
		t.Errorf("raw: %d events, %s, %v", len(list), at, err)
	}
}

// Audits: altered bytes and altered columns are found.
func TestVerifyFindsAlterations(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.mustAppend(t, "east", 0, registered("east"), replaced(1), replaced(2))
	b.sequenceAll(t, b.lead(t))
	for _, sql := range []string{
		`update eventlog.events set body = convert_to(replace(convert_from(body, 'UTF8'), 'c1:00', 'c1:ff'), 'UTF8')
			where position = 1`,
		`update eventlog.events set type = 'cluster.registered.v1' where position = 2`,
	} {
		if _, err := b.admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	list, _, err := b.log.ReadAfter(t.Context(), b.pool, events.Position{}, eventlog.Filter{Raw: true}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i, altered := range []bool{true, true, false} {
		if err := eventlog.Verify(list[i]); (err != nil) != altered {
			t.Errorf("event %d: %v", i+1, err)
		}
	}
}

// Wait returns as soon as there is a position, and when its bound has passed without one.
func TestWait(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	a := b.mustAppend(t, "east", 0, registered("east"), replaced(1))
	if p, ok, err := b.log.Wait(t.Context(), a, 20*time.Millisecond); err != nil || ok || !p.IsZero() {
		t.Errorf("without a sequencer: %s %v %v", p, ok, err)
	}
	b.sequencer(t, "a")
	if p, ok, err := b.log.Wait(t.Context(), a, patience); err != nil || !ok || p != (events.Position{Epoch: 1, N: 2}) {
		t.Errorf("with a sequencer: %s %v %v", p, ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.log.Wait(ctx, eventlog.Appended{Tenant: "default", Stream: clusterStream("west"), Version: 1},
		patience); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// Listen wakes those who wait, and goes on after its connection was lost.
func TestListen(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.log.Listen(ctx) }()
	term := b.lead(t)
	listeners := `from pg_stat_activity where datname = current_database() and query like 'listen eventlog_sequenced%'`
	listening := func() (n int) {
		if err := b.admin.QueryRow(t.Context(), "select count(*) "+listeners).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	for i := range 2 {
		eventually(t, "a session listens", func() bool { return listening() == 1 })
		eventually(t, "a notice arrives", func() bool {
			changed := b.log.Changed()
			b.mustAppend(t, fmt.Sprintf("c%d-%d", i, time.Now().UnixNano()), 0, registered("x"))
			b.sequenceAll(t, term)
			select {
			case <-changed:
				return true
			case <-time.After(time.Second):
				return false
			}
		})
		if _, err := b.admin.Exec(t.Context(), "select pg_terminate_backend(pid) "+listeners); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the session is gone", func() bool { return listening() == 0 || i == 0 })
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Partitions are made ahead, and an open reader keeps neither them nor the sequencer waiting.
func TestPartitions(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	const rows = 100
	if _, err := b.admin.Exec(t.Context(), `update eventlog.sequencer set partition_rows = $1`, rows); err != nil {
		t.Fatal(err)
	}
	// The first partition has room for a million: go on near its end.
	if _, err := b.admin.Exec(t.Context(), `update eventlog.sequencer set position = partitioned - 150`); err != nil {
		t.Fatal(err)
	}
	reader, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(context.WithoutCancel(t.Context())) }() // a reader has nothing to lose
	if _, err := reader.Exec(t.Context(), "select count(*) from eventlog.events"); err != nil {
		t.Fatal(err)
	}
	partitions := func() (n int) {
		if err := b.admin.QueryRow(t.Context(), `select count(*) from pg_inherits
			where inhparent = 'eventlog.events'::regclass`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := partitions()
	b.fill(t, 10*rows)
	if after := partitions(); after < before+8 {
		t.Errorf("%d partitions, before %d", after, before)
	}
	var ahead int64
	if err := b.admin.QueryRow(t.Context(), `select partitioned - position from eventlog.sequencer`).Scan(
		&ahead); err != nil || ahead < rows {
		t.Errorf("%d positions ahead, want a whole partition (%v)", ahead, err)
	}
	var n, distance int64
	if err := b.admin.QueryRow(t.Context(),
		`select count(*), max(position) - min(position) + 1 from eventlog.events`).Scan(&n, &distance); err != nil ||
		n != 10*rows || n != distance {
		t.Errorf("%d events over %d positions (%v)", n, distance, err)
	}
}
