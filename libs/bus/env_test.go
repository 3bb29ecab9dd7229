package bus_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The embedded server ends these some time after its Shutdown has returned.
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushLoop"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*ipQueue[...]).push"),
		// nats.go leaves it waiting where a publisher is cleaned up just after its first message.
		goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"),
	)
}

// patience bounds every wait of these tests; a slow machine shared with others needs it.
const patience = 60 * time.Second

// env is a log on a database of its own and a NATS server of its own.
type env struct {
	t    *testing.T
	db   *pgtest.Database
	pool *pg.Pool // role gateway
	log  *eventlog.Log
	nats *bustest.Env
}

func setup(t *testing.T) *env {
	t.Helper()
	d := pgtest.DB(t)
	e := &env{t: t, db: d, pool: d.Pool(t, "gateway"), nats: bustest.Start(t)}
	e.log = eventlog.New(e.pool)
	admin := d.Pool(t, "admin")
	if _, err := admin.Exec(t.Context(),
		`create table public.effects (id bigint generated always as identity, consumer text, event text, stream text, version bigint);
		grant select, insert, delete on public.effects to public`); err != nil {
		t.Fatal(err)
	}
	return e
}

// run runs parts until the test ends, or stop is called, and waits for them.
func (e *env) run(parts ...func(context.Context) error) (stop func()) {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.t.Context())
	var wg sync.WaitGroup
	for _, p := range parts {
		wg.Go(func() {
			if err := p(ctx); err != nil && ctx.Err() == nil {
				e.t.Errorf("a part ended: %v", err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	e.t.Cleanup(stop)
	return stop
}

// sequence runs a sequencer and the listener; lead may be nil.
func (e *env) sequence(id string, lead func(context.Context) error) (stop func()) {
	s := eventlog.NewSequencer(e.log, eventlog.Options{ID: id, Lead: lead, Log: bustest.Log(e.t)})
	return e.run(s.Run, e.log.Listen)
}

// catalog is a stream that any number of events fit into.
type catalog struct {
	e       *env
	id      events.StreamID
	name    string
	version int64
}

func (e *env) catalog(name string) *catalog {
	return &catalog{e: e, name: name, id: events.StreamID{
		Kind: events.KindCatalog, Key: events.Key(events.DefaultTenant, events.KindCatalog, name), Incarnation: 1,
	}}
}

// append adds n events: the catalog, then refreshes.
func (c *catalog) append(n int) {
	c.e.t.Helper()
	for range n {
		var p events.Payload = events.CatalogRefreshRequested{}
		if c.version == 0 {
			p = events.CatalogAdded{Name: c.name}
		}
		c.appendPayload(p)
	}
}

// sequenced waits until everything appended has a position.
func (c *catalog) sequenced() {
	c.e.t.Helper()
	c.e.eventually("sequenced", func() bool {
		_, ok, err := c.e.log.PositionOf(c.e.t.Context(), c.e.pool, events.DefaultTenant, c.id, c.version)
		return ok && err == nil
	})
}

func (c *catalog) appendPayload(p events.Payload) {
	c.e.t.Helper()
	if err := c.try(p); err != nil {
		c.e.t.Fatal(err)
	}
}

// tryAppend appends one refresh, which may fail.
func (e *env) tryAppend(c *catalog) error { return c.try(events.CatalogRefreshRequested{}) }

func (c *catalog) try(p events.Payload) error {
	m := events.Meta{Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now()}
	var a eventlog.Appended
	err := c.e.pool.Tx(c.e.t.Context(), func(tx pgx.Tx) (err error) {
		a, err = c.e.log.Append(c.e.t.Context(), tx, m, c.id, c.name, c.version, p)
		return err
	})
	if err == nil {
		c.version = a.Version
	}
	return err
}

// consumer writes one row for each event.
func (e *env) consumer(name string, b *bus.Bus) *bus.Consumer {
	return &bus.Consumer{
		Name: name, Log: e.log, Pool: e.pool, Bus: b, Logger: bustest.Log(e.t),
		Handle: func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error { return effect(ctx, tx, name, r) },
	}
}

func effect(ctx context.Context, tx pgx.Tx, name string, r eventlog.Recorded) error {
	_, err := tx.Exec(ctx, `insert into public.effects (consumer, event, stream, version) values ($1, $2, $3, $4)`,
		name, r.ID, r.StreamID.String(), r.Version)
	return err
}

// effects returns "stream@version" of every effect of a consumer in the order in which they were made.
func (e *env) effects(consumer string) []string {
	e.t.Helper()
	rows, err := e.pool.Query(e.t.Context(), `select stream || '@' || version from public.effects where consumer = $1
		order by id`, consumer)
	if err != nil {
		e.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		e.t.Fatal(err)
	}
	return list
}

// eventually waits until ok reports true.
func (e *env) eventually(what string, ok func() bool) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			e.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// throughout looks for a while whether ok reports true each time.
func (e *env) throughout(d time.Duration, what string, ok func() bool) {
	e.t.Helper()
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-end.C:
			over = true
		case <-e.t.Context().Done():
			e.t.Fatal(e.t.Context().Err())
		}
		if !ok() {
			e.t.Fatalf("not for all of %s: %s", d, what)
		}
	}
}

// once checks that a consumer has made exactly one effect of each event of the log, in the log's order
// within each stream.
func (e *env) once(consumer string) {
	e.t.Helper()
	got := e.effects(consumer)
	var total int
	if err := e.pool.QueryRow(e.t.Context(), `select position from eventlog.sequencer`).Scan(&total); err != nil {
		e.t.Fatal(err)
	}
	if len(got) != total {
		e.t.Errorf("%s made %d effects of %d events", consumer, len(got), total)
	}
	last := map[string]int64{}
	for _, g := range got {
		var version int64
		at := len(g) - 1
		for g[at] != '@' {
			at--
		}
		if _, err := fmt.Sscan(g[at+1:], &version); err != nil {
			e.t.Fatal(err)
		}
		if version != last[g[:at]]+1 {
			e.t.Errorf("%s took %s behind version %d", consumer, g, last[g[:at]])
		}
		last[g[:at]] = version
	}
}
