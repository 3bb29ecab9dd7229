package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// dirty is the table of a service that works with lanes.
const dirty = "installer.dirty"

type lanesEnv struct {
	t    *testing.T
	pool *pg.Pool
}

func setupLanes(t *testing.T) *lanesEnv {
	t.Helper()
	return &lanesEnv{t: t, pool: pgtest.DB(t).Pool(t, "installer")}
}

func (e *lanesEnv) lanes() *bus.Lanes { return bus.NewLanes(e.pool, dirty, bustest.Log(e.t)) }

func (e *lanesEnv) mark(l *bus.Lanes, lane bus.Lane, scopes ...bus.Scope) {
	e.t.Helper()
	if err := e.pool.Tx(e.t.Context(), func(tx pgx.Tx) error {
		return l.Mark(
			e.t.Context(), tx, lane, scopes...)
	}); err != nil {
		e.t.Fatal(err)
	}
	l.Wake()
}

// work runs workers and returns a channel of the scopes as they are taken.
func (e *lanesEnv) work(l *bus.Lanes, workers int, fn func(context.Context, bus.Scope) error) (stop func()) {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.Work(ctx, workers, fn); err != nil {
			e.t.Errorf("Work = %v", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	e.t.Cleanup(stop)
	return stop
}

func (e *lanesEnv) depth() bus.Depth {
	e.t.Helper()
	d, err := e.lanes().Depth(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	return d
}

func (e *lanesEnv) empty() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for d := e.depth(); d.Interactive+d.FanOut > 0; d = e.depth() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			e.t.Fatalf("still dirty: %+v", d)
		}
	}
}

func scope(tenant, cluster, namespace string) bus.Scope {
	return bus.Scope{Tenant: tenant, Cluster: cluster, Namespace: namespace}
}

func get[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("nothing within %s", patience)
		panic("unreachable")
	}
}

func TestLanesInteractiveBeforeFanOut(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	l := e.lanes()
	for i := range 5 {
		e.mark(l, bus.FanOut, scope("t", "c", fmt.Sprintf("fan-%d", i)))
	}
	e.mark(l, bus.Interactive, scope("t", "c", "asked"), scope("t", "c", "fan-4"))
	taken := make(chan bus.Scope, 10)
	e.work(l, 1, func(_ context.Context, s bus.Scope) error { taken <- s; return nil })
	e.empty()
	first := []string{get(t, taken).Namespace, get(t, taken).Namespace}
	slices.Sort(first)
	if !slices.Equal(first, []string{"asked", "fan-4"}) {
		t.Errorf("the first two taken are %v, want those in the interactive lane", first)
	}
}

// Turns go round tenants and, within a tenant, round clusters (DESIGN D4).
func TestLanesTakeTurns(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	l := e.lanes()
	var scopes []bus.Scope
	for i := range 20 {
		scopes = append(scopes, scope("big", "huge", fmt.Sprint(i)))
	}
	scopes = append(scopes, scope("big", "small", "x"), scope("other", "only", "x"))
	e.mark(l, bus.FanOut, scopes...)
	taken := make(chan bus.Scope, len(scopes))
	e.work(l, 1, func(_ context.Context, s bus.Scope) error { taken <- s; return nil })
	e.empty()
	var order []string
	for range 4 {
		s := get(t, taken)
		order = append(order, s.Tenant+"/"+s.Cluster)
	}
	want := []string{"big/huge", "other/only", "big/small", "big/huge"}
	if !slices.Equal(order, want) {
		t.Errorf("turns are %v, want %v", order, want)
	}
}

// A tenant that comes while a large one's round goes on does not wait for its end.
func TestLanesTakeInNewcomers(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	l := e.lanes()
	const clusters = 200
	var scopes []bus.Scope
	for i := range clusters {
		scopes = append(scopes, scope("big", fmt.Sprintf("c-%03d", i), "x"))
	}
	e.mark(l, bus.FanOut, scopes...)
	taken, release := make(chan bus.Scope, 2*clusters), make(chan struct{})
	e.work(l, 1, func(_ context.Context, s bus.Scope) error { taken <- s; <-release; return nil })
	get(t, taken)
	e.mark(l, bus.FanOut, scope("late", "c", "x"), scope("late", "c", "y"))
	close(release)
	e.empty()
	waited := map[string]int{}
	for n := 1; len(taken) > 0; n++ {
		if s := <-taken; s.Tenant == "late" {
			waited[s.Namespace] = n
		}
	}
	if waited["x"] == 0 || waited["x"] > clusters/4 || waited["y"] == 0 || waited["y"] > clusters/2 {
		t.Errorf("the newcomer's scopes were taken after %v of %d scopes of the other", waited, clusters)
	}
}

// Changes that come close together are answered by one work, and nobody who asks waits for that.
func TestLanesLetFanOutSettle(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	l := e.lanes()
	l.Settle = time.Hour
	taken := make(chan bus.Scope, 10)
	e.work(l, 1, func(_ context.Context, s bus.Scope) error { taken <- s; return nil })
	for range 5 {
		e.mark(l, bus.FanOut, scope("t", "c", "asked-later"), scope("t", "c", "settles"))
	}
	e.mark(l, bus.Interactive, scope("t", "c", "asked"))
	if s := get(t, taken); s.Namespace != "asked" {
		t.Errorf("%s was taken while it settles", s.Namespace)
	}
	e.mark(l, bus.Interactive, scope("t", "c", "asked-later"))
	if s := get(t, taken); s.Namespace != "asked-later" {
		t.Errorf("%s was taken while it settles", s.Namespace)
	}
	e.mark(l, bus.FanOut, scope("t", "c", "settles")) // does not prolong it
	if _, err := e.pool.Exec(t.Context(),
		`update installer.dirty set not_before = not_before - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	l.Wake()
	e.empty()
	if s := get(t, taken); s.Namespace != "settles" || len(taken) > 0 {
		t.Errorf("%s was taken, and %d more", s.Namespace, len(taken))
	}
}

// A mark during the work means that the work is done again.
func TestLanesWorkAgainWhenMarkedMeanwhile(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	l := e.lanes()
	begun, release := make(chan bus.Scope, 4), make(chan struct{}, 4)
	e.work(l, 2, func(_ context.Context, s bus.Scope) error { begun <- s; <-release; return nil })
	e.mark(l, bus.FanOut, scope("t", "c", "n"))
	first := get(t, begun)
	e.mark(l, bus.FanOut, scope("t", "c", "n"))
	if d := e.depth(); d.FanOut != 1 {
		t.Errorf("depth is %+v while one scope is worked on", d)
	}
	release <- struct{}{}
	second := get(t, begun)
	if second.Generation <= first.Generation {
		t.Errorf("generation %d after %d", second.Generation, first.Generation)
	}
	release <- struct{}{}
	e.empty()
	if len(begun) > 0 {
		t.Error("worked once too often")
	}
}

func TestLanesTryFailedScopesAgainLater(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	l := e.lanes()
	attempts := make(chan int, 10)
	e.work(l, 1, func(_ context.Context, s bus.Scope) error {
		attempts <- s.Attempts
		if s.Attempts == 0 {
			return errors.New("broken")
		}
		if s.Attempts == 1 {
			panic("broken worse")
		}
		return nil
	})
	e.mark(l, bus.Interactive, scope("t", "c", "n"))
	for want := range 3 {
		if got := get(t, attempts); got != want {
			t.Errorf("attempt %d, want %d", got, want)
		}
	}
	e.empty()
}

// The claim of a worker that died expires, and another process takes the scope.
func TestLanesClaimOfADeadWorkerExpires(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	dead := e.lanes()
	e.mark(dead, bus.Interactive, scope("t", "c", "n"))
	var until time.Time // by the database's clock, by which claims are judged
	if err := e.pool.QueryRow(t.Context(), `update installer.dirty set owner = 'dead',
		until = now() + interval '700 milliseconds' returning until`).Scan(&until); err != nil {
		t.Fatal(err)
	}
	taken := make(chan time.Time, 1)
	e.work(e.lanes(), 1, func(ctx context.Context, _ bus.Scope) error {
		var now time.Time
		err := e.pool.QueryRow(ctx, `select now()`).Scan(&now)
		taken <- now
		return err
	})
	if at := get(t, taken); at.Before(until) {
		t.Errorf("taken at %s while the claim held until %s", at, until)
	}
	e.empty()
}

// A living worker keeps its claim however long it works; one whose claim was taken over is told.
func TestLanesClaimIsRenewedAndItsLossIsTold(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	l := e.lanes()
	// a machine that stands still for longer than a renewal may be late loses its claim rightly
	l.Claim = 3 * time.Second
	begun, told := make(chan struct{}), make(chan error, 1)
	e.work(l, 1, func(ctx context.Context, _ bus.Scope) error {
		close(begun)
		<-ctx.Done()
		told <- context.Cause(ctx)
		return nil
	})
	e.mark(l, bus.Interactive, scope("t", "c", "n"))
	get(t, begun)
	other := make(chan struct{}, 1)
	stop := e.work(e.lanes(), 1, func(context.Context, bus.Scope) error { other <- struct{}{}; return nil })
	var first time.Time
	if err := e.pool.QueryRow(t.Context(), `select until from installer.dirty`).Scan(&first); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for past := false; !past; { // until the claim as it was first seen would be over
		select {
		case <-other:
			t.Fatal("a scope was taken from a worker that lives")
		case err := <-told:
			t.Fatalf("the work was ended: %v", err)
		case <-tick.C:
		}
		if err := e.pool.QueryRow(t.Context(), `select now() > $1`, first).Scan(&past); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if _, err := e.pool.Exec(t.Context(), `update installer.dirty set owner = 'somebody else',
		until = now() + interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	if err := get(t, told); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("told %v", err)
	}
}

func TestLanesSharedByProcessesWorkEachScopeOnce(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	var scopes []bus.Scope
	for i := range 200 {
		scopes = append(scopes, scope("t", fmt.Sprint(i%7), fmt.Sprint(i)))
	}
	e.mark(e.lanes(), bus.FanOut, scopes...)
	taken := make(chan bus.Scope, 400)
	for range 3 {
		e.work(e.lanes(), 3, func(_ context.Context, s bus.Scope) error { taken <- s.Key(); return nil })
	}
	e.empty()
	seen := map[bus.Scope]int{}
	for len(taken) > 0 {
		seen[<-taken]++
	}
	if len(seen) != len(scopes) {
		t.Errorf("%d scopes worked on, want %d", len(seen), len(scopes))
	}
	for s, n := range seen {
		if n != 1 {
			t.Errorf("%v worked on %d times", s, n)
		}
	}
}

// Stopping lets what is under way finish and takes nothing new.
func TestLanesDrain(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	l := e.lanes()
	begun, release := make(chan struct{}, 2), make(chan struct{})
	stop := e.work(l, 1, func(ctx context.Context, _ bus.Scope) error {
		begun <- struct{}{}
		<-release
		return ctx.Err()
	})
	e.mark(l, bus.Interactive, scope("t", "c", "a"), scope("t", "c", "b"))
	get(t, begun)
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	release <- struct{}{}
	get(t, stopped)
	if d := e.depth(); d.Interactive != 1 || d.Failing != 0 {
		t.Errorf("depth after the drain is %+v, want the one scope that was not begun", d)
	}
}

// The trace of the cause reaches the work.
func TestLanesCarryTheTrace(t *testing.T) {
	t.Parallel()
	e := setupLanes(t)
	l := e.lanes()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got := make(chan string, 1)
	e.work(l, 1, func(ctx context.Context, s bus.Scope) error {
		got <- telemetry.TraceParent(ctx) + " " + s.Cause
		return nil
	})
	s := scope("t", "c", "n")
	s.TraceParent, s.Cause = parent, "event-1"
	e.mark(l, bus.Interactive, s)
	if g := get(t, got); g != parent+" event-1" {
		t.Errorf("the work has the trace %q", g)
	}
}

// refuseDeletes has the scopes of a namespace not given back until allow is called.
func refuseDeletes(t *testing.T, d *pgtest.Database, namespace string) (allow func()) {
	t.Helper()
	admin := d.Pool(t, "admin")
	exec := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(
		`create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`)
	exec(`create trigger refuse before delete on ` + dirty + ` for each row when (old.namespace = '` + namespace +
		`') execute function public.refuse()`)
	return func() { t.Helper(); exec(`drop trigger refuse on ` + dirty) }
}

// A claim that could not be given back expires although its owner lives and works on.
func TestLanesClaimThatCannotBeGivenBackExpires(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	e := &lanesEnv{t: t, pool: d.Pool(t, "installer")}
	allow := refuseDeletes(t, d, "n")
	l := e.lanes()
	l.Claim = 300 * time.Millisecond
	long, release, taken := make(chan struct{}), make(chan struct{}), make(chan struct{}, 100)
	// a machine that stands still for longer than the claim begins it again
	begun := sync.OnceFunc(func() { close(long) })
	e.work(l, 2, func(ctx context.Context, s bus.Scope) error {
		if s.Namespace == "long" {
			begun()
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil
		}
		taken <- struct{}{}
		return nil
	})
	e.mark(l, bus.Interactive, scope("t", "c", "long"))
	get(t, long) // so that there is something to renew
	e.mark(l, bus.Interactive, scope("t", "c", "n"))
	get(t, taken)
	get(t, taken) // taken up again
	allow()
	close(release)
	e.empty()
}

// Giving back is tried again, so that the work need not be done again.
func TestLanesGiveBackIsTriedAgain(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	e := &lanesEnv{t: t, pool: d.Pool(t, "installer")}
	allow := refuseDeletes(t, d, "n")
	l := e.lanes()
	taken := make(chan struct{}, 100)
	e.work(l, 1, func(context.Context, bus.Scope) error { taken <- struct{}{}; return nil })
	e.mark(l, bus.Interactive, scope("t", "c", "n"))
	get(t, taken)
	allow()
	e.empty()
	if len(taken) > 0 {
		t.Error("worked on again")
	}
}

// Text that a text column takes, whatever was given.
func TestStorable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "short": "short", "abcdefgh": "abcdef", "abcdeé": "abcde", "a\x00b\x00": "ab", "a\xffb": "ab",
		"\x00\x00abcdef": "abcdef",
	} {
		if got := bus.Storable(in, 6); got != want {
			t.Errorf("Storable(%q) = %q, want %q", in, got, want)
		}
	}
}
