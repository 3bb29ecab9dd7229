package projection_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
)

// Two versions fold beside each other, each into its own tables; the new one serves when it has caught up, the old one
// goes on until it ends. After a way back the old one catches up from where it was, without making its tables again.
func TestVersionsSideBySide(t *testing.T) {
	t.Parallel()
	e := setup(t)
	old := e.runner(catalogs(1, 1))
	stopOld := e.run(e.keeps(old), old.Run)
	if err := old.Wait(t.Context(), e.refresh("one", 4), patience); err != nil {
		t.Fatal(err)
	}
	next := e.runner(catalogs(2, 10))
	if err := next.Serves(); !errs.Is(err, errs.Unavailable) {
		t.Errorf("before its tables are there, the new version says %v", err)
	}
	stopNext := e.run(e.keeps(next), next.Run)
	<-next.Opened()
	if got := e.content(2); got != "one=40 total=40" {
		t.Errorf("when it opens, the new version has %q", got)
	}
	both := func(n int) {
		t.Helper()
		pos := e.refresh("one", 1)
		for _, r := range []*projection.Runner{old, next} {
			if err := r.Wait(t.Context(), pos, patience); err != nil {
				t.Fatal(err)
			}
			if err := r.Check(t.Context()); err != nil {
				t.Errorf("%s is not ready: %v", r.Keeps(), err)
			}
		}
		for version, step := range map[int]int{1: 1, 2: 10} {
			if got, want := e.content(version), fmt.Sprintf("one=%[1]d total=%[1]d", n*step); got != want {
				t.Errorf("version %d has %q, want %q", version, got, want)
			}
		}
	}
	both(5)
	restarted := e.runner(catalogs(1, 1)) // a pod of the release before, in the middle of the upgrade
	e.run(restarted.Run)()
	both(6)

	stopOld()
	if err := next.Wait(t.Context(), e.refresh("one", 1), patience); err != nil {
		t.Fatal(err)
	}
	if got := e.content(1) + ", " + e.content(2); got != "one=6 total=6, one=70 total=70" {
		t.Errorf("when the old version has ended, there are %q", got)
	}
	stopNext()
	made := e.text(`select made::text from eventlog.models where consumer = 'projection/gateway.tests/1'`)
	e.refresh("one", 1)
	back := e.runner(catalogs(1, 1))
	e.run(e.keeps(back), back.Run)
	<-back.Opened()
	if got := e.content(1); got != "one=8 total=8" {
		t.Errorf("when the old version opens again, it has %q", got)
	}
	again := e.text(`select made::text from eventlog.models where consumer = 'projection/gateway.tests/1'`)
	if again != made {
		t.Errorf("the tables of the old version were made %s, and again %s", made, again)
	}
}

// legacy is the fold of a release that keeps one version at a time, in the tables of the service's schema.
func (e *env) legacy(version, step int) *bus.Consumer {
	return &bus.Consumer{
		Name: fmt.Sprintf("projection/gateway.tests/v%d", version), Log: e.log, Pool: e.pool, Logger: bustest.Log(e.t),
		Handle: func(ctx context.Context, tx pgx.Tx, r eventlog.Recorded) error {
			if r.Subject == "bad" {
				return errors.New("cannot be folded")
			}
			_, err := tx.Exec(ctx, `insert into gateway.counts as c values ($1, $2, $3)
				on conflict (tenant, name) do update set refreshes = c.refreshes + $3`, r.Tenant, r.Subject, step)
			if err == nil {
				_, err = tx.Exec(ctx, `insert into gateway.totals as c values ($1, $2)
					on conflict (tenant) do update set n = c.n + $2`, r.Tenant, step)
			}
			return err
		},
	}
}

// What a release before has, of the version that is wanted, is copied with its checkpoint, and with what is parked and
// skipped; that release goes on with its own. Tables of another version are of no use.
func TestTablesOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	e := setup(t)
	before := e.legacy(1, 1)
	stop := e.run(before.Run)
	e.refresh("bad", 2)
	if err := before.Wait(t.Context(), e.refresh("one", 3)); err != nil {
		t.Fatal(err)
	}
	// As no fold of the log has it: what is made of it was copied.
	e.exec(`update gateway.counts set refreshes = 30`)
	err := bus.SkipParked(t.Context(), e.pool, events.DefaultTenant, before.Name,
		e.text(`select min(stream) from eventlog.parked`), 1, "person-1", "gone")
	if err != nil {
		t.Fatal(err)
	}
	same, next := e.runner(catalogs(1, 1)), e.runner(catalogs(2, 10))
	e.run(same.Run, next.Run)
	<-same.Opened()
	<-next.Opened()
	if got := e.content(1) + ", " + e.content(2); got != "one=30 total=3, one=30 total=30" {
		t.Errorf("there are %q", got)
	}
	for _, sql := range []string{
		`select string_agg(version::text, ' ') from eventlog.parked where consumer = $1`,
		`select string_agg(version::text, ' ') from eventlog.skipped where consumer = $1`,
	} {
		var was, is string
		for name, to := range map[string]*string{before.Name: &was, same.Keeps(): &is} {
			if err := e.admin.QueryRow(t.Context(), sql, name).Scan(to); err != nil {
				t.Fatal(err)
			}
		}
		if is != was || is == "" {
			t.Errorf("%s: %q, of the release before %q", sql, is, was)
		}
	}
	pos := e.refresh("one", 1)
	for _, r := range []*projection.Runner{same, next} {
		if err := r.Wait(t.Context(), pos, patience); err != nil {
			t.Fatal(err)
		}
	}
	if err := before.Wait(t.Context(), pos); err != nil {
		t.Fatal(err)
	}
	got, theirs := e.content(1), e.contentOf("gateway.counts", "gateway.totals")
	if got != "one=31 total=4" || theirs != got {
		t.Errorf("after another event there are %q, of the release before %q", got, theirs)
	}

	// Nobody uses them for long: they are emptied, and the release before is told to make them anew.
	sweeper := e.sweeper()
	drop := func(want string) {
		t.Helper()
		dropped, err := sweeper.Sweep(t.Context())
		if err != nil || strings.Join(dropped, " ") != want {
			t.Errorf("dropped %q, want %q: %v", dropped, want, err)
		}
	}
	stop()
	drop("")
	e.exec(`update eventlog.checkpoints set updated = updated - interval '2 hours'`)
	drop("") // ours is not there for long enough
	e.exec(`update eventlog.models set made = made - interval '2 hours'`)
	drop(before.Name)
	drop("")
	if got := e.contentOf("gateway.counts", "gateway.totals"); got != " total=0" {
		t.Errorf("the release before has %q", got)
	}
	// This is what it asks: whether the tables are of another version than its own.
	if got := e.text(`select string_agg(consumer, ' ') from eventlog.checkpoints
		where starts_with(consumer, 'projection/gateway.tests/v')`); got != "projection/gateway.tests/v999999" {
		t.Errorf("the release before finds %q", got)
	}
	if got := e.content(1); got != "one=31 total=4" {
		t.Errorf("this release has %q", got)
	}
}

func (e *env) sweeper() *projection.Sweeper {
	e.t.Helper()
	s, err := projection.NewSweeper(projection.Sweeper{
		Pool: e.pool, Log: bustest.Log(e.t), Service: "gateway", After: projection.LeastKeepUnused,
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

// Tables that nobody has used for long are dropped, and never those that somebody uses. A process that comes back
// after that makes them anew and serves nothing meanwhile.
func TestUnusedVersionsAreDropped(t *testing.T) {
	t.Parallel()
	e := setup(t)
	if _, err := projection.NewSweeper(projection.Sweeper{After: time.Minute}); !errs.Is(err, errs.Invalid) {
		t.Errorf("a minute: %v", err)
	}
	e.refresh("one", 2)
	frozen, live := e.runner(catalogs(1, 1)), e.runner(catalogs(2, 10))
	e.run(frozen.Run, live.Run, e.keeps(live))
	<-frozen.Opened()
	<-live.Opened()
	sweep := func(want string) {
		t.Helper()
		dropped, err := e.sweeper().Sweep(t.Context())
		if err != nil || strings.Join(dropped, " ") != want {
			t.Errorf("dropped %q, want %q: %v", dropped, want, err)
		}
	}
	sweep("")
	first := frozen.Opened()
	e.exec(`update eventlog.models set used = used - interval '2 hours'`)
	sweep("projection/gateway.tests/1")
	if got := e.text(`select count(*)::text from pg_namespace where nspname = 'gateway_tests_v1'`); got != "0" {
		t.Errorf("its schema is there")
	}
	// It notices, and makes its tables again.
	pos := e.refresh("one", 1)
	waitFor(t, "the process that comes back has noticed", func() bool { return frozen.Opened() != first })
	<-frozen.Opened()
	if err := errors.Join(frozen.Wait(t.Context(), pos, patience), live.Wait(t.Context(), pos, patience)); err != nil {
		t.Fatal(err)
	}
	if got := e.content(1) + ", " + e.content(2); got != "one=3 total=3, one=30 total=30" {
		t.Errorf("there are %q", got)
	}
	if got := e.text(`select count(*)::text from eventlog.parked`); got != "0" {
		t.Errorf("%s events are parked", got)
	}
}

// here keeps to the locks of the test's own database.
const here = `database = (select oid from pg_database where datname = current_database())`

// Who drops tables gives way to a reader, and when it is killed everything is as it was: the version goes on where it
// is wanted again.
func TestDroppingIsKilled(t *testing.T) {
	t.Parallel()
	e := setup(t)
	r := e.runner(catalogs(1, 1))
	stop := e.run(r.Run)
	if err := r.Wait(t.Context(), e.refresh("one", 3), patience); err != nil {
		t.Fatal(err)
	}
	stop()
	e.exec(`update eventlog.models set used = used - interval '2 hours'`)
	reader, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `select from gateway_tests_v1.counts`); err != nil {
		t.Fatal(err)
	}
	swept := make(chan error, 1)
	sweep := func() {
		_, err := e.sweeper().Sweep(t.Context())
		swept <- err
	}
	go sweep()
	waitFor(t, "dropping waits for the reader, and is killed", func() bool {
		return e.text(`select pg_terminate_backend(pid)::text from pg_locks where mode = 'AccessExclusiveLock'
			and not granted and `+here+` limit 1`) == "true"
	})
	if err := <-swept; !errs.Is(err, errs.Unavailable) {
		t.Errorf("who is killed while it drops: %v", err)
	}
	go sweep()
	if err := <-swept; !errs.Is(err, errs.Unavailable) { // after three seconds
		t.Errorf("who drops beside a reader: %v", err)
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := e.runner(catalogs(1, 1))
	e.run(again.Run)
	if err := again.Wait(t.Context(), e.refresh("one", 1), patience); err != nil {
		t.Fatal(err)
	}
	if got := e.content(1); got != "one=4 total=4" {
		t.Errorf("afterwards there is %q", got)
	}
}

// Migrations change the shape of tables while a version that has the one before goes on.
func TestVersionsHaveTheirShape(t *testing.T) {
	t.Parallel()
	e := setup(t)
	old := e.runner(catalogs(1, 1))
	e.run(old.Run)
	if err := old.Wait(t.Context(), e.refresh("one", 2), patience); err != nil {
		t.Fatal(err)
	}
	e.exec(`alter table gateway.counts rename column refreshes to amount`)
	e.exec(`alter table gateway.counts add column since timestamptz not null`)
	p := catalogs(2, 1)
	p.Apply = func(ctx context.Context, tx pgx.Tx, to projection.Tables, r eventlog.Recorded) error {
		_, err := tx.Exec(ctx, `insert into `+to.Name("counts")+` as c values ($1, $2, 1, $3)
			on conflict (tenant, name) do update set amount = c.amount + 1`, r.Tenant, r.Subject, r.Time)
		return err
	}
	next := e.runner(p)
	e.run(next.Run)
	pos := e.refresh("one", 1)
	for _, r := range []*projection.Runner{old, next} {
		if err := r.Wait(t.Context(), pos, patience); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Rebuild(t.Context()); err != nil {
		t.Errorf("the old version cannot be made anew: %v", err)
	}
	amount := e.text(`select amount::text from gateway_tests_v2.counts`)
	if got := e.content(1); got != "one=3 total=3" || amount != "3" {
		t.Errorf("there are %q, and %s in the new shape", got, amount)
	}
}

// A model has three versions at most: the fourth takes the place of the one that was unused for longest, and none where
// all are in use.
func TestVersionsAreBounded(t *testing.T) {
	t.Parallel()
	e := setup(t)
	var live []*projection.Runner
	for v := 1; v <= 3; v++ {
		r := e.runner(catalogs(v, v))
		if err := r.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		live = append(live, r)
	}
	var stop func()
	for _, r := range live {
		s := e.run(e.keeps(r))
		if r == live[1] {
			stop = s
		}
	}
	err := e.runner(catalogs(4, 4)).Rebuild(t.Context())
	if !errs.Is(err, errs.Conflict) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a fourth version beside three in use: %v", err)
	}
	stop()
	if err := e.runner(catalogs(4, 4)).Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := e.text(`select string_agg(place, ' ' order by place) from eventlog.models`)
	schemas := e.text(`select string_agg(nspname, ' ' order by nspname) from pg_namespace
		where nspname ~ '^gateway_tests_v'`)
	if want := "gateway_tests_v1 gateway_tests_v3 gateway_tests_v4"; got != want || schemas != want {
		t.Errorf("there are %q, in schemas %q, want %q", got, schemas, want)
	}
}

// A process that is killed while it makes tables leaves nothing of them, wherever it is; another one makes them. The
// version before is not held up.
func TestMakingIsKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"while it reads the log", "when the tables are made", "when the rows are there"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			old := e.runner(catalogs(1, 1))
			e.run(old.Run)
			if err := old.Wait(t.Context(), e.refresh("one", 3), patience); err != nil {
				t.Fatal(err)
			}
			// The tables are there for the transaction alone: a trigger stops it where it is wanted.
			e.exec(`create table public.standing (pid int);
				grant insert, select on public.standing to public`)
			kill := func(pid int) { e.exec(`select pg_terminate_backend(` + strconv.Itoa(pid) + `)`) }
			p := catalogs(2, 10)
			standing, goOn := make(chan int, 1), make(chan struct{})
			switch at {
			case "while it reads the log":
				fold := p.Apply
				var once sync.Once
				p.Apply = func(ctx context.Context, tx pgx.Tx, to projection.Tables, r eventlog.Recorded) error {
					once.Do(func() {
						var pid int
						if err := tx.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
							t.Error(err)
						}
						standing <- pid
						<-goOn
					})
					return fold(ctx, tx, to, r)
				}
			default:
				// The version is noted when its tables are made; what was parked goes last, with the checkpoint.
				event, on := "insert", "eventlog.models"
				if at == "when the rows are there" {
					event, on = "delete", "eventlog.parked"
				}
				e.exec(`create function public.stand() returns trigger language plpgsql security definer as $$ begin
					if not exists (select from public.standing) then perform pg_advisory_lock(4711); end if; return null; end $$;
					create trigger stand after ` + event + ` on ` + on + ` for each statement execute function public.stand()`)
				hold, err := e.admin.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer hold.Release()
				if _, err := hold.Exec(t.Context(), `select pg_advisory_lock(4711)`); err != nil {
					t.Fatal(err)
				}
				go func() {
					<-goOn
					_, _ = hold.Exec(context.WithoutCancel(t.Context()), `select pg_advisory_unlock(4711)`)
				}()
			}
			next := e.runner(p)
			e.run(next.Run)
			var pid int
			waitFor(t, "it stands "+at, func() bool {
				select {
				case pid = <-standing:
				default:
					_ = e.admin.QueryRow(t.Context(), `select pid from pg_locks where locktype = 'advisory' and objid = 4711
						and not granted and `+here).Scan(&pid)
				}
				return pid != 0
			})
			if err := old.Wait(t.Context(), e.refresh("one", 1), patience); err != nil {
				t.Errorf("the version before waits: %v", err)
			}
			if got := e.text(`select count(*)::text from pg_namespace where nspname = 'gateway_tests_v2'`); got != "0" {
				t.Error("tables can be seen that are not finished")
			}
			e.exec(`insert into public.standing values (1)`)
			kill(pid)
			close(goOn)
			<-next.Opened()
			last := e.refresh("one", 1)
			for _, r := range []*projection.Runner{old, next} {
				if err := r.Wait(t.Context(), last, patience); err != nil {
					t.Fatal(err)
				}
			}
			if got := e.content(1) + ", " + e.content(2); got != "one=5 total=5, one=50 total=50" {
				t.Errorf("there are %q", got)
			}
		})
	}
}

// A service makes and drops its own read models, by their names, and nothing else.
func TestModelsOfOthers(t *testing.T) {
	t.Parallel()
	e := setup(t)
	if err := e.runner(catalogs(1, 1)).CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.exec(`update eventlog.models set used = used - interval '2 days'`)
	resolver := e.db.Pool(t, "resolver")
	for _, c := range []struct {
		pool *pg.Pool
		sql  string
	}{
		{resolver, `select eventlog.make_model('projection/gateway.tests/2', '{counts}')`},
		{resolver, `select eventlog.drop_models('projection/gateway.', '1 hour')`},
		{resolver, `select eventlog.adopt_model('projection/gateway.tests/1')`},
		{resolver, `select * from gateway_tests_v1.counts`},
		{resolver, `drop schema gateway_tests_v1 cascade`},
		{e.pool, `drop schema gateway_tests_v1 cascade`},
		{e.pool, `drop table gateway_tests_v1.counts`},
		{e.pool, `create table gateway_tests_v1.mine (n int)`},
		{e.pool, `create schema gateway_mine_v1`},
		{e.pool, `insert into eventlog.models values ('projection/gateway.x/1', 'projection/gateway.x/', 'gateway')`},
		{e.pool, `update eventlog.models set place = 'gateway'`},
		{e.pool, `select eventlog.remove_model('projection/gateway.tests/1', 'gateway')`},
		{e.pool, `select eventlog.drop_models('projection/', '1 hour')`},
		{e.pool, `select eventlog.drop_models('', '1 hour')`},
		{e.pool, `select eventlog.drop_models('projection/gateway.', '1 minute')`},
		{e.pool, `select eventlog.drop_models('projection/gateway.', null)`},
		{e.pool, `select eventlog.make_model('projection/gateway.tests/v2', '{counts}')`},
		{e.pool, `select eventlog.make_model('projection/gateway.a"b/2', '{counts}')`},
		{e.pool, `select eventlog.make_model('projection/gateway.tests/1000000', '{counts}')`},
		{e.pool, `select eventlog.make_model('projection/gateway.tests/2', '{pg_class}')`},
		{e.pool, `select eventlog.make_model('projection/gateway.tests/2', '{}')`},
		{e.pool, `select eventlog.make_model('projection/gateway.tests/2', array_fill('counts'::text, array[9]))`},
		{e.pool, `select eventlog.make_model('gateway', '{counts}')`},
	} {
		if _, err := c.pool.Exec(t.Context(), c.sql); !errs.Is(pg.Err(err), errs.Forbidden) {
			t.Errorf("%s: %v", c.sql, err)
		}
	}
	// Tenants are kept apart in what it makes, as in the shape.
	e.exec(`insert into gateway_tests_v1.counts values ('default', 'one', 1)`)
	var n int
	err := e.pool.TenantTx(t.Context(), "other", func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from gateway_tests_v1.counts`).Scan(&n)
	})
	if err != nil || n != 0 {
		t.Errorf("another tenant sees %d rows: %v", n, err)
	}
}

// What a service says of the read models of another one changes nothing: not which are dropped, nor which are made.
// A stolen credential could otherwise have a fleet's tables pile up, or keep a release from starting.
func TestModelsAreKeptByTheirService(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for v := 1; v <= 3; v++ {
		if err := e.runner(catalogs(v, v)).CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"projection/gateway.tests/1", "projection/gateway.tests/2", "projection/gateway.tests/3"}
	e.exec(`update eventlog.models set used = used - interval '2 hours'`)
	stranger := &eventlog.Reader{
		Pool: e.db.Pool(t, "resolver"), Service: "gateway", Version: "2", Log: bustest.Log(t),
		Keeps: append(names, "projection/gateway.tests/v7"),
	}
	if err := stranger.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := e.text(`select count(*)::text from eventlog.models where used > now() - interval '1 hour'`); got != "0" {
		t.Errorf("%s versions are in use because another service says so", got)
	}
	if got := e.text(`select eventlog.kept('projection/gateway.tests/v')::text`); got != "0" {
		t.Errorf("version %s is kept because another service says so", got)
	}
	if err := e.runner(catalogs(4, 4)).Rebuild(t.Context()); err != nil {
		t.Errorf("the fourth version, beside three that another service says it keeps: %v", err)
	}
	dropped, err := e.sweeper().Sweep(t.Context())
	if err != nil || len(dropped) != 2 {
		t.Errorf("dropped %q, want the two that nobody keeps: %v", dropped, err)
	}
}

// All versions of a service's read models together are bounded, too.
func TestModelsOfAServiceAreBounded(t *testing.T) {
	t.Parallel()
	e := setup(t)
	var err error
	made := 0
	for name := 'a'; name <= 'z' && err == nil; name++ {
		for v := 1; v <= 2 && err == nil; v++ {
			_, err = e.pool.Exec(t.Context(), `select eventlog.make_model($1, '{counts}')`,
				fmt.Sprintf("projection/gateway.%c/%d", name, v))
			made++
		}
	}
	if made != 33 || !errs.Is(pg.Err(err), errs.Conflict) || !strings.Contains(err.Error(), "32 versions") {
		t.Errorf("version %d: %v", made, err)
	}
	// One may be made once one was dropped.
	if err := e.runner(catalogs(1, 1)).Rebuild(t.Context()); !errs.Is(err, errs.Conflict) {
		t.Errorf("a read model more: %v", err)
	}
	for _, sql := range []string{
		`select eventlog.drop_models('projection/gateway.', '1 hour')`,
		`select eventlog.make_model('projection/gateway.tests/1', '{counts}')`,
	} {
		e.exec(`update eventlog.models set used = used - interval '2 hours' where consumer = 'projection/gateway.a/1'`)
		if _, err := e.pool.Exec(t.Context(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// Versions are dropped one after the other: the locks of one are let go of before the next, and one that somebody reads
// in does not keep the others.
func TestVersionsAreDroppedOneByOne(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for v := 1; v <= 3; v++ {
		if err := e.runner(catalogs(v, v)).CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.exec(`update eventlog.models set used = used - interval '2 hours'`)
	reader, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `select from gateway_tests_v1.counts`); err != nil {
		t.Fatal(err)
	}
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var dropped []string
	err = tx.QueryRow(t.Context(), `select array_agg(m) from eventlog.drop_models('projection/gateway.', '1 hour') m`).
		Scan(&dropped)
	if err != nil || strings.Join(dropped, " ") != "projection/gateway.tests/2" {
		t.Errorf("one transaction has dropped %q: %v", dropped, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	dropped, err = e.sweeper().Sweep(t.Context())
	if strings.Join(dropped, " ") != "projection/gateway.tests/2 projection/gateway.tests/3" ||
		!errs.Is(err, errs.Unavailable) {
		t.Errorf("beside a reader of the first, dropped %q: %v", dropped, err)
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if dropped, err = e.sweeper().Sweep(t.Context()); err != nil || len(dropped) != 1 {
		t.Errorf("after the reader, dropped %q: %v", dropped, err)
	}
}

// What is emptied in the service's schema are tables that the service may empty itself, and none that it may only add
// to, whatever tables it says that a read model has the shape of.
func TestEmptyingErasesNothingElse(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.exec(`select gateway.keep_access_log(30);
		insert into gateway.access_log
			values ('default', now(), gen_random_uuid(), 'a', '', '', '', 'GET', '/', '/', 200, 1, '', 1);
		insert into gateway.erased_bodies values ('default', 'c', 'reason', now(), 'a')`)
	today := e.text(`select tableoid::regclass::text from gateway.access_log`)
	_, err := e.pool.Exec(t.Context(), `select eventlog.make_model('projection/gateway.thief/1', $1)`,
		[]string{strings.TrimPrefix(today, "gateway."), "erased_bodies", "counts"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.pool.Exec(t.Context(), `select eventlog.take_checkpoint('projection/gateway.thief/v1')`)
	if err != nil {
		t.Fatal(err)
	}
	e.exec(`insert into gateway.counts values ('default', 'one', 1);
		update eventlog.models set made = made - interval '2 hours';
		update eventlog.checkpoints set updated = updated - interval '2 hours'`)
	if _, err := e.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := e.text(`select concat_ws(' ', (select count(*) from gateway.access_log),
		(select count(*) from gateway.erased_bodies), (select count(*) from gateway.counts))`)
	if got != "1 1 0" {
		t.Errorf("of the access log, of erasures and of a read model there are %s, want 1 1 0", got)
	}
}

// keeps says to the others that a version lives, until the test or the process of it ends.
func (e *env) keeps(r *projection.Runner) func(context.Context) error {
	e.t.Helper()
	reader := &eventlog.Reader{
		Pool: e.pool, Service: "gateway", Version: "2", Keeps: []string{r.Keeps()}, Log: bustest.Log(e.t),
	}
	if err := reader.Begin(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	return reader.Run
}
