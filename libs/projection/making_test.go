package projection_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/projection"
)

// consumerTables are those of a consumer as services have them: one folds, another one works.
const consumerTables = `alter table public.catalogs add column note text not null default '';
	create table public.dirty (like installer.dirty including all);
	create table public.claims (name text primary key);
	grant select, insert, update, delete on public.dirty, public.claims to public`

// counting is a consumer that counts refreshes, marks catalogs, and makes claims on them void.
func (e *env) counting() *bus.Consumer {
	lanes := bus.NewLanes(e.pool, "public.dirty", bustest.Log(e.t))
	return &bus.Consumer{
		Name: "test.counting", Log: e.log, Pool: e.pool, Logger: bustest.Log(e.t),
		Handle: func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
			for _, sql := range []string{
				`insert into public.catalogs as c values ($1, $2, 1) on conflict (tenant, name) do update
					set refreshes = c.refreshes + 1`,
				`insert into public.totals as t select $1, 1 where $2 <> '' on conflict (tenant) do update set n = t.n + 1`,
				`delete from public.claims where name = $2 and $1 <> ''`,
			} {
				if _, err := tx.Exec(ctx, sql, r.Tenant, r.Subject); err != nil {
					return err
				}
			}
			return lanes.Mark(ctx, tx, bus.Interactive, bus.Scope{Tenant: r.Tenant, Cluster: r.Subject})
		},
	}
}

func making(c *bus.Consumer) projection.Making {
	return projection.Making{
		Consumer: c, Schema: "public", Handle: c.Handle, Derived: []string{"catalogs", "totals"},
		Keep: map[string][]string{"catalogs": {"note"}}, Marks: []string{"dirty"}, Aside: []string{"claims"},
	}
}

// A rebuild of a consumer that others work beside: the live tables serve until the new ones are put in place, a rebuild
// that is killed changes nothing and begins anew on another replica, what came meanwhile is there, and what is not made
// of the log stays.
func TestRebuildOfAConsumer(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.exec(consumerTables)
	c := e.counting()
	e.run(c.Run)
	wait := func(name string, n int) {
		t.Helper()
		if err := c.Wait(t.Context(), e.refresh(name, n)); err != nil {
			t.Fatal(err)
		}
	}
	wait("one", 3)
	wait("two", 2)
	e.exec(`update public.catalogs set refreshes = 99, note = 'mine' where name = 'one'`)
	e.exec(`delete from public.catalogs where name = 'two'`)
	e.exec(`insert into public.catalogs values ('default', 'ghost', 1)`)
	e.exec(`insert into public.claims values ('one')`)
	e.exec(`truncate public.dirty`)

	// The first one stands in the middle when its session is ended.
	middle, goOn := make(chan int, 1), make(chan struct{})
	m := making(c)
	var once sync.Once
	m.Handle = func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
		if r.Subject == "two" {
			once.Do(func() {
				var pid int
				if err := tx.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
					t.Error(err)
				}
				middle <- pid
				<-goOn
			})
		}
		return c.Handle(ctx, tx, r)
	}
	rebuilder := func(m projection.Making) (stop func()) {
		return e.run((&projection.Rebuilder{Pool: e.pool, Log: bustest.Log(t), Makings: []projection.Making{m}}).Run)
	}
	stop := rebuilder(m)
	var known bool
	if err := e.pool.QueryRow(t.Context(), `select eventlog.ask_rebuild('test.counting')`).Scan(&known); err != nil || !known {
		t.Fatalf("ask for a rebuild: %t %v", known, err)
	}
	pid := <-middle
	wait("three", 1) // the live one goes on
	if got := e.contentOf("public.catalogs", "public.totals"); got != "ghost=1 one=99 three=1 total=6" {
		t.Errorf("while it is rebuilt the consumer has %q", got)
	}
	e.exec(`select pg_terminate_backend(` + strconv.Itoa(pid) + `)`)
	close(goOn)
	waitFor(t, "why it failed is noted", func() bool {
		return e.text(`select coalesce(failed, '') from eventlog.rebuilds`) != ""
	})
	stop()
	if got := e.contentOf("public.catalogs", "public.totals"); got != "ghost=1 one=99 three=1 total=6" {
		t.Errorf("after a rebuild that was killed the consumer has %q", got)
	}

	rebuilder(making(c))
	waitFor(t, "the rebuild is done", func() bool { return e.text(`select count(*)::text from eventlog.rebuilds`) == "0" })
	if got := e.contentOf("public.catalogs", "public.totals"); got != "one=3 three=1 two=2 total=6" {
		t.Errorf("after the rebuild the consumer has %q", got)
	}
	wait("three", 2)
	for sql, want := range map[string]string{
		`select string_agg(name || '=' || note, ' ' order by name) from public.catalogs where note <> ''`: "one=mine",
		`select string_agg(name, ' ') from public.claims`:                                                 "one",
		`select string_agg(cluster || lane, ' ' order by cluster) from public.dirty`:                      "one1 three0 two1",
		`select count(*)::text from pg_class where relpersistence = 't'`:                                  "0",
		`select string_agg(name || '=' || refreshes, ' ' order by name) from public.catalogs`:             "one=3 three=3 two=2",
	} {
		if got := e.text(sql); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	for _, conn := range e.pool.AcquireAllIdle(t.Context()) { // the one of the rebuild among them
		var outside, within string
		err := conn.QueryRow(t.Context(), `select current_setting('idle_session_timeout'),
			current_setting('idle_in_transaction_session_timeout')`).Scan(&outside, &within)
		if err != nil || outside != "0" || within != "1min" {
			t.Errorf("after the rebuild a session may be silent for %s, within a transaction for %s: %v", outside, within, err)
		}
		conn.Release()
	}
}

// A handler that writes what its making does not name fails the rebuild, and nothing of it stays.
func TestRebuildKnowsWhatItWrites(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.exec(consumerTables)
	c := e.counting()
	e.run(c.Run)
	if err := c.Wait(t.Context(), e.refresh("one", 1)); err != nil {
		t.Fatal(err)
	}
	e.exec(`insert into public.claims values ('one')`)
	m := making(c)
	m.Aside = nil
	e.run((&projection.Rebuilder{Pool: e.pool, Log: bustest.Log(t), Makings: []projection.Making{m}}).Run)
	e.exec(`select eventlog.ask_rebuild('test.counting')`)
	waitFor(t, "why it failed is noted", func() bool {
		return strings.Contains(e.text(`select coalesce(failed, '') from eventlog.rebuilds`), "wrote to public.claims")
	})
	if got := e.text(`select string_agg(name, ' ') from public.claims`); got != "one" {
		t.Errorf("claims are %q", got)
	}
}

func (e *env) exec(sql string) {
	e.t.Helper()
	if _, err := e.admin.Exec(e.t.Context(), sql); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
}

// text is the one value of a query; "" for null.
func (e *env) text(sql string) string {
	e.t.Helper()
	var s *string
	if err := e.admin.QueryRow(e.t.Context(), sql).Scan(&s); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		e.t.Fatalf("%s: %v", sql, err)
	}
	if s == nil {
		return ""
	}
	return *s
}
