package projection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// prefix marks the checkpoints of projections.
const prefix = "projection/"

// Projection is a fold over the log into tables.
type Projection struct {
	Name    string // such as "gateway.subscriptions"; names the checkpoint
	Version int    // 1 or more; raised when Apply changes what it makes of the same events
	Schema  string // of the tables
	// Tables are the names of all tables that Apply writes. They must have no generated or identity
	// columns, and nothing else may write them.
	Tables []string
	Types  []events.Type // nil is all
	// Apply folds one event. It names tables by t only.
	Apply func(ctx context.Context, tx pgx.Tx, t Tables, e eventlog.Recorded) error
}

// Tables gives the tables that a fold is to write: the live ones, or those beside them.
type Tables struct {
	schema string
	known  map[string]bool
}

// Name is a table's qualified and quoted name, for use in SQL. An unknown table panics: it is a fault
// of the projection that its first event shows.
func (t Tables) Name(table string) string {
	if !t.known[table] {
		panic(fmt.Sprintf("projection names table %q, which it does not declare", table))
	}
	return pgx.Identifier{t.schema, table}.Sanitize()
}

// Live are the tables that queries read.
func (p Projection) Live() Tables { return p.tables(p.Schema) }

func (p Projection) tables(schema string) Tables {
	t := Tables{schema: schema, known: map[string]bool{}}
	for _, name := range p.Tables {
		t.known[name] = true
	}
	return t
}

func (p Projection) consumer() string { return fmt.Sprintf("%s%s/v%d", prefix, p.Name, p.Version) }

func (p Projection) check() error {
	switch {
	case p.Name == "" || p.Schema == "" || len(p.Tables) == 0 || p.Apply == nil:
		return errs.New(errs.Invalid, "projection %q needs a name, a schema, tables and Apply", p.Name)
	case strings.Contains(p.Name, "/"):
		return errs.New(errs.Invalid, "projection %q: a name must not hold /", p.Name)
	case p.Version < 1:
		return errs.New(errs.Invalid, "projection %q: version %d, want 1 or more", p.Name, p.Version)
	}
	return nil
}

// Deps are what a projection runs on. Bus may be nil: then only Postgres wakes it.
type Deps struct {
	Log    *eventlog.Log
	Pool   *pg.Pool
	Bus    *bus.Bus
	Logger *slog.Logger // slog.Default where nil
}

// Runner keeps one projection up to date.
type Runner struct {
	p        Projection
	d        Deps
	consumer *bus.Consumer

	mu sync.Mutex
	// at is the checkpoint as it was read or committed when the pool had made this many connections. It may be ahead
	// of the stored one after a crash of the server, so that it holds for that many connections alone.
	at        events.Position
	connected int64
	begun     int64         // connections when the transaction began whose commit moves the checkpoint
	changed   chan struct{} // closed and replaced when at moves
	// prepared says that the tables hold what this version makes of the log; rebuilt is how far that has come before.
	prepared bool
	rebuilt  events.Position
	// newer is since when the tables are of a newer version, which lives; zero where they are not.
	newer time.Time
	again func() // ends the consumer, so that it begins anew: the tables are of another version
}

// newerFor is for how long a replica counts as ready after a newer version has taken the read model over: it goes on
// serving what it can while the new release comes.
const newerFor = time.Minute

// frozenFor is how long a replica that is frozen within a transaction keeps the others from going on with its read
// model. A fold does nothing but statements, so that a live one is never silent for so long; one that is paused for
// longer takes its batch again.
const frozenFor = 2 * time.Second

// unknown is the number of connections of a position that does not hold.
const unknown = -1

// New checks a projection and returns its runner.
func New(p Projection, d Deps) (*Runner, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	r := &Runner{p: p, d: d, connected: unknown, changed: make(chan struct{})}
	live := p.Live()
	r.consumer = &bus.Consumer{
		Name: p.consumer(), Log: d.Log, Pool: d.Pool, Bus: d.Bus, Types: p.Types, Logger: d.Logger,
		Idle:      frozenFor,
		Begin:     r.begin,
		Committed: r.moved,
		Failed:    r.forget,
		Handle: func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
			return p.Apply(ctx, tx, live, e)
		},
	}
	return r, nil
}

// Name is the projection's name.
func (r *Runner) Name() string { return r.p.Name }

// Status says how far the projection is.
func (r *Runner) Status() bus.Status { return r.consumer.Status() }

// Check is nil once the tables hold what this version makes of the log, and while it makes progress; for readiness.
func (r *Runner) Check(ctx context.Context) error {
	r.mu.Lock()
	prepared, at, newer := r.prepared, r.rebuilt, r.newer
	r.mu.Unlock()
	if !newer.IsZero() {
		if time.Since(newer) < newerFor {
			return nil
		}
		return errs.New(errs.Unavailable, "read model %s is kept by a newer version, which lives; this binary has version %d",
			r.p.Name, r.p.Version)
	}
	if !prepared {
		return errs.New(errs.Unavailable, "read model %s is being rebuilt for version %d, at position %s", r.p.Name,
			r.p.Version, at)
	}
	return r.consumer.Check(ctx)
}

// reached notes how far a rebuild has come.
func (r *Runner) reached(at events.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rebuilt = at
}

// Note is one sentence about parked streams; for readiness.
func (r *Runner) Note(ctx context.Context) string { return r.consumer.Note(ctx) }

// Run keeps the projection up to date until ctx ends, and returns nil then. The first start of a new
// version rebuilds.
func (r *Runner) Run(ctx context.Context) error {
	for {
		if err := r.prepare(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		if err := r.runOnce(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// runOnce folds until ctx ends, or the tables are of another version.
func (r *Runner) runOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	r.again = cancel
	r.mu.Unlock()
	return r.consumer.Run(ctx)
}

// CatchUp folds everything up to the head of the log as it is now, or returns the first error.
func (r *Runner) CatchUp(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return r.consumer.CatchUp(ctx)
}

// preparePause is the wait before a failed start of a new version is tried again.
const preparePause = 2 * time.Second

// errNewer says that a newer version of the read model lives.
var errNewer = errors.New("a newer version of the read model lives")

// prepare rebuilds where the tables hold what another version made of the log. It waits for as long as a newer one
// lives.
func (r *Runner) prepare(ctx context.Context) error {
	for {
		err := r.own(ctx)
		if err == nil {
			r.ready()
			return nil
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an ordered stop is no failure
		}
		if r.waits(errors.Is(err, errNewer)) {
			r.d.Logger.ErrorContext(ctx, "cannot start read model; trying again", "projection", r.p.Name, "version",
				r.p.Version, "error", err)
		}
		pause(ctx, preparePause)
	}
}

// own makes the tables those of this version.
func (r *Runner) own(ctx context.Context) error {
	var mine bool
	var others, kept int
	err := r.d.Pool.QueryRow(ctx, `select coalesce(bool_or(consumer = $1), false),
		  coalesce(max(substring(consumer from '/v([0-9]+)$')::int) filter (where consumer <> $1), 0), eventlog.kept($2)
		from eventlog.checkpoints where consumer = $1 or starts_with(consumer, $2)`, r.p.consumer(), r.versions()).
		Scan(&mine, &others, &kept)
	switch {
	case err != nil:
		return pg.Err(err)
	case others > r.p.Version && kept > r.p.Version:
		return errNewer
	case others > r.p.Version, others > 0 && !mine:
		r.d.Logger.InfoContext(ctx, "read model has another version; rebuilding it", "projection", r.p.Name,
			"version", r.p.Version, "other", others)
		return r.Rebuild(ctx)
	case others > 0: // of a release that left the checkpoints of older versions
		_, err := r.d.Pool.Exec(ctx, `select eventlog.drop_checkpoints($1, $2)`, r.p.consumer(), r.versions())
		return pg.Err(err)
	default:
		return nil
	}
}

// takeOver makes the tables, which are put in place by tx, those of this version alone, unless a newer one lives.
func (r *Runner) takeOver(ctx context.Context, tx pgx.Tx) error {
	var kept int
	if err := tx.QueryRow(ctx, `select eventlog.kept($1)`, r.versions()).Scan(&kept); err != nil {
		return err
	}
	if kept > r.p.Version {
		return errNewer
	}
	_, err := tx.Exec(ctx, `select eventlog.drop_checkpoints($1, $2)`, r.p.consumer(), r.versions())
	return err
}

// versions is what the checkpoints of all versions begin with.
func (r *Runner) versions() string { return prefix + r.p.Name + "/v" }

// Keeps is the name of this version among those that a live reader keeps (eventlog.Reader).
func (r *Runner) Keeps() string { return r.p.consumer() }

// ready notes that the tables are of this version.
func (r *Runner) ready() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prepared, r.newer = true, time.Time{}
}

// replaced notes that the tables are of another version: this one is not ready until it has made them its own.
func (r *Runner) replaced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prepared = false
}

// waits notes whether a newer version lives, and reports whether that, or another failure, is worth a line.
func (r *Runner) waits(newer bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !newer {
		r.newer = time.Time{}
		return true
	}
	if !r.newer.IsZero() {
		return false
	}
	r.newer = time.Now()
	return true
}

// begin stops a replica when the tables are of another version: both would write them. The commit does not wait for the
// disk: after a crash tables and checkpoint are where they were together, and go on from there.
func (r *Runner) begin(ctx context.Context, tx pgx.Tx) error {
	r.mu.Lock()
	r.begun = r.d.Pool.Connected()
	again := r.again
	r.mu.Unlock()
	var others int
	var off string
	err := tx.QueryRow(ctx, `select coalesce(max(substring(consumer from '/v([0-9]+)$')::int), 0),
		  set_config('synchronous_commit', 'off', true)
		from eventlog.checkpoints where starts_with(consumer, $1) and consumer <> $2`, r.versions(), r.p.consumer()).
		Scan(&others, &off)
	if err != nil {
		return pg.Err(err)
	}
	if others > 0 {
		r.replaced()
		if again != nil {
			again()
		}
		return errs.New(errs.Unavailable, "read model %s is of version %d now; this binary has version %d", r.p.Name,
			others, r.p.Version)
	}
	return nil
}

func (r *Runner) moved(at events.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.connected = at, r.begun
	close(r.changed)
	r.changed = make(chan struct{})
}

// forget takes back the position in memory: what made a poll fail may have been the end of the server.
func (r *Runner) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connected = unknown
}

// pollEvery is how often Wait reads the checkpoint in case another replica moves it.
const pollEvery = 5 * time.Millisecond

// Wait returns when the read model holds everything up to atLeast, or errs.Unavailable after the timeout.
//
// It answers from memory for as long as the pool makes no connection and no poll fails, and else from the stored
// checkpoint: after a crash the tables may be behind what was committed before, until they are folded again. Who reads
// them next reads on the same pool, on a connection that was there before or was counted.
func (r *Runner) Wait(ctx context.Context, atLeast events.Position, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for failed := false; ; {
		at, holds, changed := r.known()
		if holds && !at.Less(atLeast) {
			return nil
		}
		if holds || failed {
			select {
			case <-changed:
				continue
			case <-t.C:
			case <-ctx.Done():
				return errs.New(errs.Unavailable, "read model %s is at position %s, not yet at %s", r.p.Name, at,
					atLeast)
			}
		}
		failed = r.read(ctx) != nil // the wait is bounded; whoever reads next reports that the database is away
	}
}

// known is the position in memory, whether it holds, and what is closed when it moves.
func (r *Runner) known() (at events.Position, holds bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at, r.connected == r.d.Pool.Connected(), r.changed
}

// read reads the stored checkpoint, which another replica may have moved.
func (r *Runner) read(ctx context.Context) error {
	connected := r.d.Pool.Connected() // before: the query may make a connection
	var at events.Position
	err := r.d.Pool.QueryRow(ctx, `select coalesce(max(epoch), 0), coalesce(max(position), 0)
		from eventlog.checkpoints where consumer = $1 and tenant = $2`,
		r.p.consumer(), events.AllTenants).Scan(&at.Epoch, &at.N)
	if err != nil {
		return pg.Err(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connected < connected || r.connected == connected && r.at.Less(at) {
		r.at, r.connected = at, connected
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
