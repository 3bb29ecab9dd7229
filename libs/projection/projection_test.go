package projection_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/projection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 60 * time.Second

// tables are those of a consumer in schema public, and those whose shape a read model has.
const tables = `create table public.catalogs (tenant text, name text, refreshes int not null, primary key (tenant, name));
	create table public.totals (tenant text primary key, n int not null);
	grant select, insert, update, delete on public.catalogs, public.totals to public;
	set role chandler_owner;
	create table gateway.counts (tenant text, name text, refreshes int not null, primary key (tenant, name));
	create table gateway.totals (tenant text primary key, n int not null);
	reset role`

type env struct {
	t    testing.TB
	pool *pg.Pool
	// admin may change what nobody may.
	admin *pg.Pool
	log   *eventlog.Log
	db    *pgtest.Database
}

func setup(t testing.TB) *env {
	t.Helper()
	d := pgtest.DB(t)
	admin := d.Pool(t, "admin")
	if _, err := admin.Exec(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	e := &env{t: t, pool: d.Pool(t, "gateway"), admin: admin, db: d}
	e.log = eventlog.New(e.pool)
	s := eventlog.NewSequencer(e.log, eventlog.Options{ID: "a", Log: bustest.Log(t)})
	e.run(s.Run, e.log.Listen)
	return e
}

func (e *env) run(parts ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(e.t.Context())
	var wg sync.WaitGroup
	for _, p := range parts {
		wg.Go(func() {
			if err := p(ctx); err != nil {
				e.t.Errorf("a part ended: %v", err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	e.t.Cleanup(stop)
	return stop
}

// refresh adds a catalog with n-1 refreshes to the log.
func (e *env) refresh(name string, n int) events.Position {
	e.t.Helper()
	id := events.StreamID{
		Kind: events.KindCatalog, Key: events.Key(events.DefaultTenant, events.KindCatalog, name),
		Incarnation: 1,
	}
	var last eventlog.Appended
	for range n {
		head, err := e.log.Latest(e.t.Context(), e.pool, events.DefaultTenant, events.KindCatalog, name)
		if err != nil {
			e.t.Fatal(err)
		}
		var p events.Payload = events.CatalogRefreshRequested{}
		if head.Version == 0 {
			p = events.CatalogAdded{Name: name}
		}
		m := events.Meta{Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now()}
		err = e.pool.Tx(e.t.Context(), func(tx pgx.Tx) (err error) {
			last, err = e.log.Append(e.t.Context(), tx, m, id, name, head.Version, p)
			return err
		})
		if err != nil {
			e.t.Fatal(err)
		}
	}
	pos, ok, err := e.log.Wait(e.t.Context(), last, patience)
	if err != nil || !ok {
		e.t.Fatalf("no position: %v", err)
	}
	return pos
}

// catalogs counts refreshes by catalog and in all; step is what each counts.
func catalogs(version, step int) projection.Projection {
	return projection.Projection{
		Name: "gateway.tests", Version: version, Schema: "gateway", Tables: []string{"counts", "totals"},
		Apply: func(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
			if e.Envelope.Subject == "bad" {
				return errors.New("cannot be folded")
			}
			_, err := tx.Exec(ctx, `insert into `+t.Name("counts")+` as c values ($1, $2, $3)
				on conflict (tenant, name) do update set refreshes = c.refreshes + $3`, e.Tenant, e.Envelope.Subject, step)
			if err == nil {
				_, err = tx.Exec(ctx, `insert into `+t.Name("totals")+` as c values ($1, $2)
					on conflict (tenant) do update set n = c.n + $2`, e.Tenant, step)
			}
			return err
		},
	}
}

func (e *env) runner(p projection.Projection) *projection.Runner {
	e.t.Helper()
	r, err := projection.New(p, projection.Deps{Log: e.log, Pool: e.pool, Logger: bustest.Log(e.t)})
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

// content is both tables of a version as text, read in one snapshot.
func (e *env) content(version int) string {
	e.t.Helper()
	place := fmt.Sprintf("gateway_tests_v%d", version)
	return e.contentOf(place+".counts", place+".totals")
}

func (e *env) contentOf(counts, totals string) string {
	e.t.Helper()
	var s string
	err := e.pool.QueryRow(e.t.Context(), `select coalesce((select string_agg(name || '=' || refreshes, ' '
		order by name) from `+counts+`), '')
		|| ' total=' || coalesce((select sum(n) from `+totals+`), 0)`).Scan(&s)
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

func TestProjectionFollowsTheLog(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := e.runner(catalogs(1, 1))
	e.run(r.Run)
	e.refresh("one", 3)
	pos := e.refresh("two", 2)
	if err := r.Wait(t.Context(), pos, patience); err != nil {
		t.Fatal(err)
	}
	if got := e.content(1); got != "one=3 two=2 total=5" {
		t.Errorf("read model is %q", got)
	}
	waitFor(t, "the status says where it stands", func() bool {
		s := r.Status()
		return s.Lag == 0 &&
			s.Position == pos
	})
}

// Another replica moves the checkpoint; a reader here still gets its minimum position.
func TestWaitSeesAnotherReplica(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.run(e.runner(catalogs(1, 1)).Run)
	reader := e.runner(catalogs(1, 1))
	if err := reader.Wait(t.Context(), e.refresh("one", 2), patience); err != nil {
		t.Error(err)
	}
}

// fastest is the least time of several, so that a busy machine fails no test.
func fastest(rounds int, once func() time.Duration) time.Duration {
	least := once()
	for range rounds - 1 {
		least = min(least, once())
	}
	return least
}

// soon is less than the second after which an idle consumer looks by itself.
const soon = 500 * time.Millisecond

// The position in memory does not hold for a connection that was made since. Where the stored checkpoint is behind it,
// since events were passed that the read model does not fold, who waits does not wait for the next look of an idle
// consumer.
func TestWaitBehindPassedEventsOnANewConnection(t *testing.T) {
	t.Parallel()
	e := setup(t)
	p := catalogs(1, 1)
	p.Types = []events.Type{events.CatalogAdded{}.EventType()}
	r := e.runner(p)
	e.run(r.Run)
	if err := r.Wait(t.Context(), e.refresh("one", 1), patience); err != nil {
		t.Fatal(err)
	}
	took := fastest(3, func() time.Duration {
		at := e.refresh("one", 1)
		if err := r.Wait(t.Context(), at, patience); err != nil {
			t.Fatal(err)
		}
		e.pool.Reset() // connections are made anew
		if err := e.pool.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := r.Wait(t.Context(), at, patience); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	})
	if took > soon {
		t.Errorf("who waits for what was passed waited %s after a connection was made", took)
	}
}

// freezing is a projection whose process is frozen within the first fold, until thaw is closed.
func freezing() (p projection.Projection, frozen <-chan struct{}, thaw chan<- struct{}) {
	began, goOn := make(chan struct{}), make(chan struct{})
	p = catalogs(1, 1)
	fold := p.Apply
	var first sync.Once
	p.Apply = func(ctx context.Context, tx pgx.Tx, to projection.Tables, r eventlog.Recorded) error {
		first.Do(func() { close(began); <-goOn })
		return fold(ctx, tx, to, r)
	}
	return p, began, goOn
}

// A replica that is frozen within a transaction holds the read model for two seconds, not for as long as it is frozen:
// another one goes on, readers get their minimum position, and the frozen one goes on behind it.
func TestFrozenReplicaLetsGo(t *testing.T) {
	t.Parallel()
	e := setup(t)
	p, frozen, thaw := freezing()
	stuck, other := e.runner(p), e.runner(catalogs(1, 1))
	e.run(stuck.Run)
	<-stuck.Opened() // what is in the log before is folded while the tables are made
	pos := e.refresh("one", 2)
	<-frozen
	e.run(other.Run)
	// Less than the 30 s after which a replica that makes the tables is let go of.
	if err := other.Wait(t.Context(), pos, patience/3); err != nil {
		t.Error(err)
	}
	close(thaw)
	if err := stuck.Wait(t.Context(), e.refresh("one", 1), patience); err != nil {
		t.Error(err)
	}
	if got := e.content(1); got != "one=3 total=3" {
		t.Errorf("read model is %q", got)
	}
}

// A replica that is frozen while it makes the tables holds them for 30 seconds: then another one makes them.
func TestFrozenMakerLetsGo(t *testing.T) {
	t.Parallel()
	e := setup(t)
	p, frozen, thaw := freezing()
	stuck, other := e.runner(p), e.runner(catalogs(1, 1))
	pos := e.refresh("one", 2)
	e.run(stuck.Run)
	<-frozen
	e.run(other.Run)
	// Less than the minute that the role's sessions may lie without a statement.
	if err := other.Wait(t.Context(), pos, patience*5/6); err != nil {
		t.Error(err)
	}
	close(thaw)
	if err := stuck.Wait(t.Context(), e.refresh("one", 1), patience); err != nil {
		t.Error(err)
	}
	if got := e.content(1); got != "one=3 total=3" {
		t.Errorf("read model is %q", got)
	}
}

func TestWaitEndsWithItsTimeout(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := e.runner(catalogs(1, 1))
	pos := e.refresh("one", 1)
	err := r.Wait(t.Context(), pos, 50*time.Millisecond)
	if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), pos.String()) {
		t.Errorf("Wait = %v", err)
	}
}

// A rebuilt read model equals the live one, while the live one goes on, and no reader sees half (D9).
func TestRebuildEqualsLive(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := e.runner(catalogs(1, 1))
	e.run(r.Run)
	if err := r.Wait(t.Context(), e.refresh("one", 30), patience); err != nil {
		t.Fatal(err)
	}
	live := e.content(1)
	if err := r.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := e.content(1); got != live {
		t.Errorf("rebuilt %q, live %q", got, live)
	}

	ended := make(chan struct{})
	e.run(func(ctx context.Context) error {
		// no reader may see a total that is not the sum of its parts, or less than before
		least := 30
		for {
			var sum, total int
			err := e.pool.QueryRow(ctx, `select (select coalesce(sum(refreshes), 0)
				from gateway_tests_v1.counts), (select coalesce(sum(n), 0) from gateway_tests_v1.totals)`).Scan(&sum, &total)
			if err == nil && (sum != total || total < least) {
				t.Errorf("a reader saw %d in parts and %d in all, after %d", sum, total, least)
			}
			least = max(least, total)
			select {
			case <-ended:
				return nil
			case <-ctx.Done():
				return nil
			default:
			}
		}
	})
	for i := range 5 {
		e.refresh(fmt.Sprint("more", i), 5)
		if err := r.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Wait(t.Context(), e.refresh("last", 1), patience); err != nil {
		t.Fatal(err)
	}
	close(ended)
	if got := e.content(1); got != "last=1 more0=5 more1=5 more2=5 more3=5 more4=5 one=30 total=56" {
		t.Errorf("read model is %q", got)
	}
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// A rebuild parks what its fold cannot take, as the live read model does: otherwise one event would keep a new release
// from ever serving (DESIGN D4: an event that a handler cannot take parks its stream visibly).
func TestRebuildParks(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.refresh("bad", 3)
	e.refresh("one", 2)
	old := e.runner(catalogs(1, 1))
	if err := old.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := e.runner(catalogs(2, 10))
	if err := next.Check(t.Context()); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "being made") {
		t.Errorf("before its tables are there, readiness says %v", err)
	}
	if err := next.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := e.content(2); got != "one=20 total=20" {
		t.Errorf("read model is %q", got)
	}
	if err := next.Check(t.Context()); err != nil {
		t.Errorf("after its rebuild, readiness says %v", err)
	}
	if note := next.Note(t.Context()); !strings.Contains(note, "1 parked streams") {
		t.Errorf("readiness notes %q", note)
	}
	list, err := bus.ListParked(t.Context(), e.pool, events.DefaultTenant, "projection/gateway.tests/2")
	if err != nil || len(list) != 3 || list[0].Attempts != 1 || !strings.Contains(list[0].Reason, "cannot be folded") ||
		list[2].Attempts != 0 {
		t.Fatalf("parked: %+v %v", list, err)
	}
	// What a person has skipped stays skipped in the next rebuild, and the rest of the stream is tried then.
	for v := int64(1); v <= 3; v++ {
		err := bus.SkipParked(t.Context(), e.pool, events.DefaultTenant, list[0].Consumer, list[0].Stream, v,
			"person-1", "the catalog is gone")
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := next.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if note := next.Note(t.Context()); note != "" || e.content(2) != "one=20 total=20" {
		t.Errorf("after a rebuild without what is skipped: %q, %q", note, e.content(2))
	}
}

// A rebuild that meets an event type of a later release leaves the live tables as they are, and says what it needs.
func TestFailedRebuildChangesNothing(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := e.runner(catalogs(1, 1))
	e.run(r.Run)
	if err := r.Wait(t.Context(), e.refresh("one", 2), patience); err != nil {
		t.Fatal(err)
	}
	if _, err := e.admin.Exec(t.Context(), `update eventlog.events set type = 'catalog.renamed.v9' where version = 2`); err != nil {
		t.Fatal(err)
	}
	if err := r.Rebuild(t.Context()); err == nil || !strings.Contains(err.Error(), "catalog.renamed.v9") {
		t.Errorf("Rebuild = %v", err)
	}
	if got := e.content(1); got != "one=2 total=2" {
		t.Errorf("read model is %q", got)
	}
}

func TestProjectionIsChecked(t *testing.T) {
	t.Parallel()
	for _, p := range []projection.Projection{{}, {
		Name: "a/b", Version: 1, Schema: "s", Tables: []string{"t"},
		Apply: catalogs(1, 1).Apply,
	}, {
		Name: "gateway.two_words", Version: 1, Schema: "s", Tables: []string{"t"},
		Apply: catalogs(1, 1).Apply,
	}, catalogs(0, 1)} {
		if _, err := projection.New(p, projection.Deps{}); !errs.Is(err, errs.Invalid) {
			t.Errorf("New(%+v) = %v", p.Name, err)
		}
	}
}
