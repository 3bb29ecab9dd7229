package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// Bounds of the work on dirty scopes.
const (
	// claimFor is how long a claim holds without being renewed: long enough for a slow disk or a paused
	// machine of a few seconds, short enough that a killed worker's scope is taken up soon.
	claimFor = 15 * time.Second
	// claimEvery is how often an idle worker reads the table without being woken, for marks of other processes
	// and those that were to settle; claimSeldom is how often once it has found nothing claimSoon times.
	claimEvery  = 250 * time.Millisecond
	claimSeldom = time.Second
	claimSoon   = 4
	// drainFor is how long running work may continue after ctx has ended.
	drainFor = 10 * time.Second
	// retryFirst and retryMax bound the pause before a failed scope is tried again; it doubles.
	retryFirst = 500 * time.Millisecond
	retryMax   = time.Minute
	// backFirst and backMax bound the pause before giving back a claim is tried again; it doubles.
	backFirst = 20 * time.Millisecond
	backMax   = time.Second
)

// claim is a scope that this process holds. cancel ends the work on it, nil before that begins.
type claim struct{ cancel context.CancelCauseFunc }

// Lanes is the set of dirty scopes of one service. Marks happen inside the transaction that makes a
// scope dirty; workers of any number of replicas share the table. Tenants take turns, and within a
// tenant its clusters, so that a large fleet does not delay a small one (DESIGN D4).
type Lanes struct {
	pool  *pg.Pool
	table string
	owner string
	log   *slog.Logger
	wake  chan struct{}

	// Claim is how long a claim holds without renewal; claimFor where it is 0. Tests shorten it.
	Claim time.Duration
	// Settle is how long a scope in the FanOut lane waits after its first mark, so that changes that come close
	// together are answered by one work: a catalog's author publishes twice, several catalogs are read at once. Further
	// marks do not prolong it, and an interactive one ends it.
	Settle time.Duration
	// Follows is the consumer whose tables the work goes by; no work begins while that reads the log again.
	Follows string

	mu    sync.Mutex
	mine  map[Scope]*claim // by key: claimed and not yet to be given back
	rings map[Lane]*ring   // used by the one dispatcher of a Work
	// trouble is the text of the last failure to claim.
	trouble string
}

// NewLanes returns the lanes held in table, a schema-qualified name such as "resolver.dirty"; the migrations of its
// service make it, with the columns of that one. log gets failures of work; nil is slog.Default.
func NewLanes(pool *pg.Pool, table string, log *slog.Logger) *Lanes {
	if log == nil {
		log = slog.Default()
	}
	return &Lanes{
		pool: pool, table: table, owner: uuid.NewString(), log: log, wake: make(chan struct{}, 1),
		mine: map[Scope]*claim{}, rings: map[Lane]*ring{Interactive: {}, FanOut: {}},
	}
}

// Mark makes scopes dirty when tx commits. A scope that is dirty already moves to the lower of both lanes
// and gets a new generation: if it is being worked on, it will be worked on again. A failed one is
// tried at once, or when it has settled. The trace context of ctx is kept where a scope brings none.
func (l *Lanes) Mark(ctx context.Context, tx pgx.Tx, lane Lane, scopes ...Scope) error {
	if len(scopes) == 0 {
		return nil
	}
	sorted := sortScopes(scopes)
	n := len(sorted)
	tenants, clusters, namespaces := make([]string, n), make([]string, n), make([]string, n)
	causes, traces := make([]string, n), make([]string, n)
	for i, s := range sorted {
		tenants[i], clusters[i], namespaces[i] = s.Tenant, s.Cluster, s.Namespace
		causes[i], traces[i] = s.Cause, s.TraceParent
		if traces[i] == "" {
			traces[i] = telemetry.TraceParent(ctx)
		}
	}
	var settle time.Duration
	if lane == FanOut {
		settle = l.Settle
	}
	_, err := tx.Exec(ctx, `insert into `+l.table+
		` as d (tenant, cluster, namespace, lane, cause, traceparent, not_before)
		select t, c, n, $6, x, p, now() + $7::interval from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as u(t, c, n, x, p)
		on conflict (tenant, cluster, namespace) do update set
		  lane = least(d.lane, excluded.lane), generation = d.generation + 1,
		  attempts = 0, not_before = least(d.not_before, excluded.not_before),
		  cause = excluded.cause, traceparent = excluded.traceparent`,
		tenants, clusters, namespaces, causes, traces, int16(lane), settle)
	if err != nil {
		return fmt.Errorf("mark %d scopes dirty in %s: %w", n, l.table, pg.Err(err))
	}
	return nil
}

// Wake says that marks were committed; a worker reads the table at once. Without it one does so within claimSeldom.
func (l *Lanes) Wake() { signal(l.wake) }

// Work runs fn on dirty scopes, at most workers at a time, until ctx ends; then it lets what is under
// way finish, for at most drainFor, gives back what was claimed and not begun, and returns nil. fn runs
// with no transaction open. If it fails the scope is tried again later, the pause doubling; if the
// scope was marked meanwhile it is worked on again. The context that fn gets ends when the claim is
// lost. One Lanes runs one Work at a time.
func (l *Lanes) Work(ctx context.Context, workers int, fn func(ctx context.Context, s Scope) error) error {
	if workers < 1 {
		return errs.New(errs.Invalid, "lanes %s: %d workers", l.table, workers)
	}
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var renewing, busy sync.WaitGroup
	renewing.Go(func() { l.renew(work) })
	// As many scopes are claimed ahead as there are workers, so that one statement claims several.
	claimed := make(chan Scope, workers)
	for range workers {
		busy.Go(func() {
			for s := range claimed {
				if ctx.Err() != nil {
					l.release(work, s)
					continue
				}
				l.do(work, s, fn)
			}
		})
	}
	l.dispatch(ctx, claimed)
	close(claimed)
	l.drain(&busy, stop)
	stop(nil)
	renewing.Wait()
	return nil
}

// dispatch claims scopes as workers become free.
func (l *Lanes) dispatch(ctx context.Context, claimed chan Scope) {
	for soon := claimSoon; ctx.Err() == nil; { // looks that follow soon on one that found something, or was asked for
		room := cap(claimed) - len(claimed)
		if room == 0 {
			l.idle(ctx, claimEvery)
			continue
		}
		scopes, err := l.claim(ctx, room)
		l.report(ctx, err)
		l.taken(scopes)
		for _, s := range scopes {
			claimed <- s
		}
		pause := claimEvery
		switch {
		case len(scopes) > 0:
			soon = claimSoon
			continue
		case soon > 0:
			soon--
		default:
			pause = claimSeldom
		}
		if l.idle(ctx, pause) {
			soon = claimSoon
		}
	}
}

// idle waits until there may be something to do, and says whether it was woken.
func (l *Lanes) idle(ctx context.Context, pause time.Duration) (woken bool) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-l.wake:
		return true
	}
	return false
}

// report logs that claiming fails when it begins, changes or ends.
func (l *Lanes) report(ctx context.Context, err error) {
	text := fmtErr(err)
	l.mu.Lock()
	was := l.trouble
	l.trouble = text
	l.mu.Unlock()
	switch {
	case text == was || ctx.Err() != nil:
	case text == "":
		l.log.InfoContext(ctx, "claiming dirty scopes again", "table", l.table)
	default:
		l.log.WarnContext(ctx, "cannot claim dirty scopes; trying again", "table", l.table, "error", err)
	}
}

func (l *Lanes) drain(busy *sync.WaitGroup, stop context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() { busy.Wait(); close(done) }()
	t := time.NewTimer(drainFor)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		stop(errors.New("the service is stopping"))
		<-done
	}
}

// do works on one claimed scope and gives it back.
func (l *Lanes) do(ctx context.Context, s Scope, fn func(context.Context, Scope) error) {
	signal(l.wake) // a worker is free for another claim
	ctx, cancel := context.WithCancelCause(telemetry.WithTraceParent(ctx, s.TraceParent))
	defer cancel(nil)
	held := l.hold(s, cancel)
	failure := l.traced(ctx, s, fn)
	l.letGo(s, held)
	if failure != nil {
		l.logFailed(ctx, s, failure)
	}
	l.giveBack(ctx, s, func(ctx context.Context) error {
		if failure == nil {
			return l.finish(ctx, s)
		}
		return l.fail(ctx, s, failure)
	})
}

// giveBack tries to give back a claim that is renewed no more, for as long as nobody else can have it: also
// while stopping, so that another replica need not wait for it to expire.
func (l *Lanes) giveBack(ctx context.Context, s Scope, back func(context.Context) error) {
	// The last renewal was at most a third of the claim ago.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), l.claimTime()/2)
	defer stop()
	for failures := 0; ; failures++ {
		err := back(ctx)
		if err == nil {
			return
		}
		t := time.NewTimer(backoff(failures, backFirst, backMax))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			l.log.WarnContext(ctx, "could not give a scope back; its claim will expire", "table", l.table,
				"cluster", s.Cluster, "namespace", s.Namespace, "error", err)
			return
		}
	}
}

// logFailed logs the first failure of a scope. Further ones are in the table (reason, attempts): a part
// that is away for an hour would otherwise fill the log with every scope that waits for it.
func (l *Lanes) logFailed(ctx context.Context, s Scope, err error) {
	level := slog.LevelWarn
	if s.Attempts > 0 || errors.Is(err, context.Canceled) {
		level = slog.LevelDebug
	}
	l.log.Log(ctx, level, "work on a scope failed; trying again", "table", l.table, "tenant", s.Tenant,
		"cluster", s.Cluster, "namespace", s.Namespace, "attempt", s.Attempts+1, "error", err)
}

// traced shows the work as a span of the trace that made the scope dirty.
func (l *Lanes) traced(ctx context.Context, s Scope, fn func(context.Context, Scope) error) error {
	ctx, end := telemetry.Span(ctx, "work "+l.table,
		attribute.String("cluster", s.Cluster), attribute.String("namespace", s.Namespace))
	err := protect(ctx, s, fn)
	end(err)
	return err
}

// protect turns a panic in fn into an error: one scope must not stop the work on all others.
func protect(ctx context.Context, s Scope, fn func(context.Context, Scope) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errs.New(errs.Internal, "panic: %v", r)
		}
	}()
	return fn(ctx, s)
}

// taken notes claimed scopes, which are renewed from now on. Work that still goes on under an older claim on
// one of them has lost it.
func (l *Lanes) taken(scopes []Scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range scopes {
		if old := l.mine[s.Key()]; old != nil && old.cancel != nil {
			old.cancel(errLostClaim)
		}
		l.mine[s.Key()] = &claim{}
	}
}

// hold notes that the work on a claimed scope begins.
func (l *Lanes) hold(s Scope, cancel context.CancelCauseFunc) *claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := &claim{cancel: cancel}
	l.mine[s.Key()] = held
	return held
}

// letGo ends the renewal of a claim, before it is given back: one that cannot be given back must expire.
func (l *Lanes) letGo(s Scope, held *claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held == nil || l.mine[s.Key()] == held {
		delete(l.mine, s.Key())
	}
}
