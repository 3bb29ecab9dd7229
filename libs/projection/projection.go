package projection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
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
	Name    string // service and read model, such as "gateway.subscriptions"
	Version int    // 1 or more; raised when Apply changes what it makes of the same events, or the tables their shape
	Schema  string // of the service: its tables give the shape of those of each version
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

// Schema is the schema of the tables, not quoted.
func (t Tables) Schema() string { return t.schema }

// Live are the tables that queries of this version read.
func (p Projection) Live() Tables { return p.tables(p.Place()) }

// Place is the schema of this version's tables, as eventlog.make_model names it.
func (p Projection) Place() string {
	_, model, _ := strings.Cut(p.Name, ".")
	return fmt.Sprintf("%s_%s_v%d", p.Schema, model, p.Version)
}

func (p Projection) tables(schema string) Tables {
	t := Tables{schema: schema, known: map[string]bool{}}
	for _, name := range p.Tables {
		t.known[name] = true
	}
	return t
}

// Consumer names the checkpoint, by which parked streams are known.
func (p Projection) Consumer() string { return p.consumer() }

// consumer names the checkpoint. Releases that kept one version at a time have a v before its number.
func (p Projection) consumer() string { return fmt.Sprintf("%s%s/%d", prefix, p.Name, p.Version) }

// names is what the database takes a name for (eventlog.model_of).
var names = regexp.MustCompile(`^[a-z-]+\.[a-z]{1,32}$`)

func (p Projection) check() error {
	switch {
	case p.Name == "" || p.Schema == "" || len(p.Tables) == 0 || p.Apply == nil:
		return errs.New(errs.Invalid, "projection %q needs a name, a schema, tables and Apply", p.Name)
	case !names.MatchString(p.Name):
		return errs.New(errs.Invalid, "projection %q: want service.model, a model of 1 to 32 small letters", p.Name)
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
	looked    time.Time     // when the consumer was last asked to look
	changed   chan struct{} // closed and replaced when at moves
	// serves says that the tables are there and have come to where the log ended when this process began; opened is
	// closed then. rebuilt is how far the making of them has come before.
	serves  bool
	opened  chan struct{}
	rebuilt events.Position
	again   func() // ends the consumer, so that it begins anew: the tables are gone
}

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
	r := &Runner{p: p, d: d, connected: unknown, changed: make(chan struct{}), opened: make(chan struct{})}
	live := p.Live()
	r.consumer = &bus.Consumer{
		Name: p.consumer(), Log: d.Log, Pool: d.Pool, Bus: d.Bus, Types: p.Types, Logger: d.Logger,
		Idle:      frozenFor,
		Begin:     r.begin,
		Committed: r.moved,
		Passing:   r.passing,
		Failed:    r.forget,
		Handle: func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
			err := p.Apply(ctx, tx, live, e)
			if pg.Undefined(err) { // dropped while no process was seen that keeps them: this one makes them anew
				return errs.Wrap(errs.Unavailable, err, "the tables of %s", p.consumer())
			}
			return err
		},
	}
	return r, nil
}

// Name is the projection's name.
func (r *Runner) Name() string { return r.p.Name }

// Status says how far the projection is.
func (r *Runner) Status() bus.Status { return r.consumer.Status() }

// Check is nil once queries can be answered, and while the projection makes progress; for readiness.
func (r *Runner) Check(ctx context.Context) error {
	if err := r.Serves(); err != nil {
		return err
	}
	return r.consumer.Check(ctx)
}

// Serves is nil once the tables of this version have come to where the log ended when this process began. Until then an
// answer would be older than one that another process has given.
func (r *Runner) Serves() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.serves {
		return nil
	}
	return errs.New(errs.Unavailable, "read model %s is being made for version %d, at position %s", r.p.Name, r.p.Version,
		r.rebuilt)
}

// Opened is closed when the runner serves.
func (r *Runner) Opened() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened
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
// version makes its tables; other versions go on with theirs.
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

// runOnce folds until ctx ends, or the tables are gone.
func (r *Runner) runOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	r.again = cancel
	r.mu.Unlock()
	var opening sync.WaitGroup
	defer opening.Wait()
	opening.Go(func() { r.open(ctx) })
	return r.consumer.Run(ctx)
}

// openEvery is how often a runner that has not caught up yet looks whether it cannot.
const openEvery = time.Second

// open waits until the tables have come to where the log ends now. Where an event cannot be passed they will not: then
// what is there is served, and readiness tells it.
func (r *Runner) open(ctx context.Context) {
	var head events.Position
	for {
		var err error
		if head, err = r.d.Log.Head(ctx, r.d.Pool); err == nil {
			break
		}
		pause(ctx, openEvery)
		if ctx.Err() != nil {
			return
		}
	}
	for r.Wait(ctx, head, openEvery) != nil && r.Status().Stopped == "" {
		if ctx.Err() != nil {
			return
		}
	}
	r.ready()
}

// CatchUp folds everything up to the head of the log as it is now, or returns the first error.
func (r *Runner) CatchUp(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if err := r.consumer.CatchUp(ctx); err != nil {
		return err
	}
	r.ready()
	return nil
}

const (
	// preparePause is the wait before a failed start of a version is tried again.
	preparePause = 2 * time.Second
	// elsewherePause is the wait while another replica makes the tables.
	elsewherePause = 200 * time.Millisecond
)

// prepare makes the tables of this version where they are not there.
func (r *Runner) prepare(ctx context.Context) error {
	for {
		err := r.own(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return nil //nolint:nilerr // an ordered stop is no failure
		case errors.Is(err, errElsewhere):
			pause(ctx, elsewherePause)
			continue
		}
		r.d.Logger.ErrorContext(ctx, "cannot start read model; trying again", "projection", r.p.Name, "version",
			r.p.Version, "error", err)
		pause(ctx, preparePause)
	}
}

// Keeps is the name of this version among those that a live reader keeps (eventlog.Reader): its tables stay.
func (r *Runner) Keeps() string { return r.p.consumer() }

// ready notes that queries can be answered.
func (r *Runner) ready() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.serves {
		r.serves = true
		close(r.opened)
	}
}

// gone notes that the tables are not there: nothing is served until they are made, and have caught up.
func (r *Runner) gone() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connected = unknown
	if r.serves {
		r.serves, r.opened = false, make(chan struct{})
	}
}

// begin stops a replica when the tables are gone: a process that was frozen for long does not find them again. The
// commit does not wait for the disk: after a crash tables and checkpoint are where they were together, and go on from
// there.
func (r *Runner) begin(ctx context.Context, tx pgx.Tx) error {
	r.mu.Lock()
	r.begun = r.d.Pool.Connected()
	again := r.again
	r.mu.Unlock()
	var there bool
	var off string
	err := tx.QueryRow(ctx, `select exists (select from eventlog.models where consumer = $1),
		  set_config('synchronous_commit', 'off', true)`, r.p.consumer()).Scan(&there, &off)
	if err != nil {
		return pg.Err(err)
	}
	if !there {
		r.gone()
		if again != nil {
			again()
		}
		return errs.New(errs.Unavailable, "the tables of read model %s are gone, of version %d: nobody has used them for long",
			r.p.Name, r.p.Version)
	}
	return nil
}

func (r *Runner) moved(at events.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.come(at, r.begun)
}

// passing has what the read model does not fold move its position without a transaction. What is looked at is read on
// connections that were there before or are counted.
func (r *Runner) passing() func(events.Position) {
	connected := r.d.Pool.Connected()
	return func(at events.Position) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.come(at, connected)
	}
}

// come notes a position, which holds for so many connections.
func (r *Runner) come(at events.Position, connected int64) {
	r.at, r.connected = at, connected
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
		r.look(atLeast)
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
		from eventlog.checkpoint($1)`, r.p.consumer()).Scan(&at.Epoch, &at.N)
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

// lookEvery is how often those who wait together have the consumer look: it rests otherwise, and what they wait for
// mostly has a position already.
const lookEvery = 5 * time.Millisecond

// look has the consumer look where the read model is not far enough: it may rest, and the stored checkpoint stays
// behind while the consumer, here or in another replica, passes events that it does not fold.
func (r *Runner) look(atLeast events.Position) {
	r.mu.Lock()
	due := r.at.Less(atLeast) && time.Since(r.looked) >= lookEvery
	if due {
		r.looked = time.Now()
	}
	r.mu.Unlock()
	if s := r.consumer.Status(); due && s.Parked == 0 && s.Stopped == "" {
		r.consumer.Look()
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
