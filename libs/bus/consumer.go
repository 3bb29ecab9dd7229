package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// defaultBatch is how many events one transaction takes: enough that the commit's price is shared,
	// few enough that a failing event costs little to find.
	defaultBatch = 256
	// pollEvery is how often a consumer reads the log without any hint, so that losing every hint costs a second.
	pollEvery = time.Second
	// restLeast and restMost bound the pause after a batch that was not full, and after a look that a hint caused: what
	// comes meanwhile is taken in one transaction with what comes then. A consumer rests restShare times as long as it
	// worked, so that under load batches grow instead of their number; one that was idle takes the first event at once.
	// Nobody who waits for a position waits for that (Look).
	restLeast = 20 * time.Millisecond
	restMost  = 250 * time.Millisecond
	restShare = 3
	// errorFirst and errorMax bound the pause after a transient failure; it doubles.
	errorFirst = 100 * time.Millisecond
	errorMax   = 5 * time.Second
	// conflictTries is how often an event whose handler decided on a state that had moved on, or whose statement was
	// cancelled (by its timeout, or by a person), is tried before it counts as one that cannot be taken.
	conflictTries = 5
	// unavailableFor is how long the same event may find something unavailable while this database answers, before its
	// stream is parked and the others go on: longer than a restart or a fail-over of whatever is away.
	unavailableFor = 10 * time.Minute
	// unreadyAfter is how long a consumer may fail before readiness says so: what passes by itself within a poll or
	// two need not alarm anybody.
	unreadyAfter = time.Minute
)

// Consumer folds the log into effects: each batch of events and the checkpoint behind it commit in one
// transaction. Of several replicas one works at a time (the checkpoint's row is locked meanwhile). The
// zero value is not ready: Name, Log, Pool and Handle are needed.
type Consumer struct {
	// Name is the key of the checkpoint, such as "resolver.scopes". Another name starts from the beginning.
	Name string
	Log  *eventlog.Log
	Pool *pg.Pool
	// Bus wakes the consumer by hints; nil is allowed.
	Bus *Bus
	// Types are the event types that Handle gets; nil is all. A type unknown to this binary stops the
	// consumer if its kind of stream also has one of Types: it may be a newer version.
	Types []events.Type
	// Batch bounds the events of one transaction; 0 is defaultBatch.
	Batch int
	// Handle makes the effects of one event inside tx, and nothing outside it: it may run more than once
	// for the same event, its earlier effects rolled back. An error of kind errs.Unavailable is tried
	// again for Patience, one of kind errs.Conflict and a cancelled statement conflictTries times; any other, and an
	// event whose bytes cannot be read, parks the event's stream.
	Handle func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error
	// Patience is how long one event may find something unavailable before its stream is parked; 0 is unavailableFor.
	Patience time.Duration
	// Idle, where set, is for how long a transaction may lie without a statement before the database ends it, and with
	// it the lock on the checkpoint: how long a process that is frozen keeps the others from working. It is for
	// handlers that do nothing but statements; the default is that of the role, a minute.
	Idle time.Duration
	// Begin, where set, is called first in each transaction, behind the lock on the checkpoint; its error
	// ends the transaction and is tried again.
	Begin func(ctx context.Context, tx pgx.Tx) error
	// Committed, where set, is called after each transaction that moved the checkpoint.
	Committed func(at events.Position)
	// Passing, where set, has events that the consumer does not take cost a look instead of a transaction: the stored
	// checkpoint follows within saveEvery. It is called before a look, and what it returns where there was nothing to
	// take up to a position. It is for those who ask Committed how far the consumer is, and not the stored checkpoint.
	Passing func() (passed func(at events.Position))
	// Failed, where set, is called after each poll that failed.
	Failed func()
	// Logger receives changes of state; slog.Default where nil.
	Logger *slog.Logger

	mu     sync.Mutex
	status Status
	passed passed
	looks  chan struct{} // see Look
	pace   pace
	tries  map[events.Position]tried
}

// Status is the state of a consumer, for readiness and people.
type Status struct {
	Position events.Position
	// Lag is how many positions the log's head is ahead, as of the last poll.
	Lag int64
	// Stopped is the text of what the consumer cannot pass: an event type unknown to this binary.
	Stopped string
	// Failing is the text of the last transient failure, until the next success.
	Failing string
	// FailingSince is when it began to fail; zero while it does not.
	FailingSince time.Time
	// Parked counts streams that wait because of an event that could not be taken.
	Parked int
}

// Status returns the present state.
func (c *Consumer) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// Check is nil while the consumer makes progress; otherwise the error says what it cannot pass, or what it has been
// waiting for. Parked streams do not make a service unready: everything else continues. Note tells them.
func (c *Consumer) Check(ctx context.Context) error {
	s := c.Status()
	switch {
	case s.Stopped != "":
		return errs.New(errs.Unavailable, "consumer %s stopped at %s: %s", c.Name, s.Position, s.Stopped)
	case s.Failing != "" && time.Since(s.FailingSince) > unreadyAfter:
		return errs.New(errs.Unavailable, "consumer %s has been failing since %s: %s", c.Name,
			s.FailingSince.UTC().Format(time.RFC3339), s.Failing)
	}
	// Where the table cannot be read, the check of Postgres says so.
	if m, err := c.Measure(ctx); err == nil && m.ReplayTo > 0 {
		return errs.New(errs.Unavailable, "consumer %s reads the log again: it is at %d of %d", c.Name, m.Position,
			m.ReplayTo)
	}
	return nil
}

// Note is one sentence about parked streams, for those who look at readiness; "" where there are none.
func (c *Consumer) Note(ctx context.Context) string {
	m, err := c.Measure(ctx)
	if err != nil || m.Parked == 0 {
		return ""
	}
	return fmt.Sprintf("%d parked streams of consumer %s: chandler log parked lists them", m.Parked, c.Name)
}

// Run consumes until ctx ends, and returns nil then. What is in its transaction is finished first.
func (c *Consumer) Run(ctx context.Context) error {
	hints, stop := c.hints()
	defer stop()
	unwatch := c.observe()
	defer unwatch()
	failures := 0
	for ctx.Err() == nil {
		// Taken before the read, so that news in between is not missed.
		changed := c.Log.Changed()
		began := time.Now()
		more, err := c.poll(ctx)
		c.report(ctx, err)
		c.pace.rested = time.Now().Add(restAfter(time.Since(began)))
		if err == nil && more {
			failures = 0
			if !c.pace.full {
				c.rest(ctx)
			}
			continue
		}
		wait := pollEvery
		if err != nil {
			wait = backoff(failures, errorFirst, errorMax)
			failures++
			changed, hints = nil, nil // more news does not help what failed
		} else {
			failures = 0
		}
		c.wait(ctx, wait, changed, hints, err == nil)
		hints, stop = c.rehint(hints, stop)
	}
	return nil
}

// poll handles a batch if there is news; an idle consumer costs one small read.
func (c *Consumer) poll(ctx context.Context) (more bool, err error) {
	if s := c.Status(); s.Parked == 0 && s.Stopped == "" && s.Position.N > 0 {
		passed := func(events.Position) {}
		if c.Passing != nil {
			passed = c.Passing()
		}
		head, stored, err := c.ends(ctx)
		if err != nil || head == s.Position && stored == s.Position {
			return false, err // report leaves out the error of a context that has ended
		}
		if c.Passing != nil && stored.N > 0 {
			if done, more, err := c.pass(ctx, head, stored, passed); err != nil || done {
				return more, err
			}
		}
	}
	return c.step(ctx)
}

// saveEvery is how long the stored checkpoint may stay behind while a consumer passes events that it does not take: who
// begins anew looks at those of so long again.
const saveEvery = time.Second

// passed is how far a consumer has come in memory behind a stored checkpoint.
type passed struct {
	stored, at events.Position
	since      time.Time
}

// pass goes on to the next event that the consumer takes, without a transaction. done is false where there is such a
// one, and where the checkpoint is to be moved.
func (c *Consumer) pass(
	ctx context.Context, head, stored events.Position, passedTo func(events.Position),
) (done, more bool, err error) {
	p := c.passed
	if p.stored != stored {
		p = passed{stored: stored, at: stored, since: time.Now()}
	}
	if time.Since(p.since) >= saveEvery || head.Less(p.at) {
		return false, false, nil
	}
	if p.at.Less(head) {
		f := c.Filter()
		f.Raw = true
		recs, upTo, err := c.Log.ReadAfter(ctx, c.Pool, p.at, f, 1)
		if err != nil || len(recs) > 0 || !p.at.Less(upTo) {
			return false, false, err
		}
		p.at = upTo
	}
	c.passed = p
	c.mu.Lock()
	c.status.Position, c.status.Lag = p.at, max(0, head.N-p.at.N)
	c.mu.Unlock()
	passedTo(p.at)
	return true, p.at.Less(head), nil
}

// ends reads where the log and the stored checkpoint end. Memory alone does not show that: a
// log that lost commits takes the checkpoint back, and may have come to the same head again since.
func (c *Consumer) ends(ctx context.Context) (head, stored events.Position, err error) {
	err = c.Pool.QueryRow(ctx, `select s.epoch, s.position, coalesce(c.epoch, 0), coalesce(c.position, 0)
		from (select epoch, position from eventlog.sequencer order by revision desc limit 1) s
		left join eventlog.checkpoint($1) c on true`, c.Name).Scan(&head.Epoch, &head.N, &stored.Epoch, &stored.N)
	if err != nil {
		return head, stored, fmt.Errorf("compare the checkpoint of %s with the log: %w", c.Name, pg.Err(err))
	}
	return head, stored, nil
}

// waitPoll is how often Wait reads the checkpoint, which any replica may move.
const waitPoll = 20 * time.Millisecond

// Wait returns when the consumer, in this replica or another one, has taken everything up to atLeast, and
// errs.Unavailable when ctx ends before.
func (c *Consumer) Wait(ctx context.Context, atLeast events.Position) error {
	ctx = pg.Confine(ctx, events.AllTenants) // how far the log was read belongs to no tenant
	t := time.NewTicker(waitPoll)
	defer t.Stop()
	for {
		var at events.Position
		err := c.Pool.QueryRow(ctx, `select coalesce(max(epoch), 0), coalesce(max(position), 0)
			from eventlog.checkpoint($1)`, c.Name).Scan(&at.Epoch, &at.N)
		if err == nil && !at.Less(atLeast) {
			return nil
		}
		c.Look()
		select {
		case <-t.C:
		case <-ctx.Done():
			return errs.New(errs.Unavailable, "consumer %s is at position %s, not yet at %s", c.Name, at, atLeast)
		}
	}
}

// CatchUp processes everything up to the head of the log as it is now, or returns the first error.
func (c *Consumer) CatchUp(ctx context.Context) error {
	head, err := c.Log.Head(ctx, c.Pool)
	if err != nil {
		return err
	}
	for {
		more, err := c.step(ctx)
		c.report(ctx, err)
		if err != nil {
			return err
		}
		if !more && !c.Status().Position.Less(head) {
			return nil
		}
		if !more { // another replica holds the checkpoint
			c.wait(ctx, errorFirst, c.Log.Changed(), nil, false)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Look has a consumer that is idle or rests look at the log and its stored checkpoint now: somebody waits for it.
func (c *Consumer) Look() {
	select {
	case c.looking() <- struct{}{}:
	default: // it is going to look
	}
}

func (c *Consumer) looking() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looks == nil {
		c.looks = make(chan struct{}, 1)
	}
	return c.looks
}

func (c *Consumer) wait(ctx context.Context, d time.Duration, changed, hints <-chan struct{}, looks bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	var looking <-chan struct{}
	if looks {
		looking = c.looking()
	}
	select {
	case <-looking:
		return
	case <-ctx.Done():
		return
	case <-t.C:
		return
	case <-changed:
	case <-hints:
	}
	c.rest(ctx)
}

// pace is how soon a consumer looks again.
type pace struct {
	rested time.Time // until when it rests
	full   bool      // the last batch was: there may be much behind it
}

// restAfter is how long a consumer rests after so much work.
func restAfter(worked time.Duration) time.Duration {
	return min(max(restShare*worked, restLeast), restMost)
}

// rest waits until the consumer has rested since its last look, or somebody waits for it.
func (c *Consumer) rest(ctx context.Context) {
	left := time.Until(c.pace.rested)
	if left <= 0 {
		return
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-c.looking():
	case <-ctx.Done():
	case <-t.C:
	}
}

// outcome is what one transaction came to.
type outcome struct {
	at      events.Position // the checkpoint after it
	moved   bool
	more    bool // there may be more behind it
	full    bool // so many positions were passed that there is probably much behind them
	parked  int
	stopped error // what could not be passed
	failed  error // the transient failure that ended the batch early
	held    bool  // another replica holds the checkpoint
}

// step takes one batch. First without savepoints, which is fast; where a handler fails, all is rolled
// back and the batch is taken again event by event.
func (c *Consumer) step(ctx context.Context) (more bool, err error) {
	// A batch that has begun is finished though ctx ends: that is the graceful drain.
	work := context.WithoutCancel(ctx)
	o, err := c.transaction(work, false)
	if errors.Is(err, errCareful) {
		o, err = c.transaction(work, true)
	}
	if err != nil {
		return false, err
	}
	c.note(work, o)
	c.pace.full = o.full
	if o.moved && c.Committed != nil {
		c.Committed(o.at)
	}
	return o.more, errors.Join(o.stopped, o.failed)
}

// errCareful ends a fast transaction in which a handler failed.
var errCareful = errors.New("take the batch event by event")

func (c *Consumer) transaction(ctx context.Context, careful bool) (o outcome, err error) {
	err = c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		o = outcome{}
		l, err := c.lock(ctx, tx)
		if err != nil || l.held {
			o.held = l.held
			return err
		}
		o.at = l.at
		if c.Begin != nil {
			if err := c.Begin(ctx, tx); err != nil {
				return err
			}
		}
		parked, err := c.retryDue(ctx, tx)
		if err != nil {
			return err
		}
		if l.skips {
			if parked.skipped, err = c.skipped(ctx, tx, l.at); err != nil {
				return err
			}
		}
		if err := c.batch(ctx, tx, &o, parked, careful); err != nil {
			return err
		}
		o.parked = len(parked.streams)
		if !o.moved {
			return nil
		}
		return c.save(ctx, tx, o.at)
	})
	return o, err
}

// batch reads and handles the events behind o.at, and moves it.
func (c *Consumer) batch(ctx context.Context, tx pgx.Tx, o *outcome, parked *parkedStreams, careful bool) error {
	limit := c.Batch
	if limit <= 0 {
		limit = defaultBatch
	}
	f := c.Filter()
	f.Raw = true // an event that cannot be decoded is one event's fault, not the read's
	recs, upTo, err := c.Log.ReadAfter(ctx, tx, o.at, f, limit)
	if err != nil {
		return err
	}
	before := o.at
	for i := range recs {
		err := c.take(ctx, tx, &recs[i], parked, careful)
		if _, unknown := errors.AsType[*events.UnknownTypeError](err); unknown {
			o.stopped, o.moved = err, before.Less(o.at)
			return nil
		}
		if err != nil && !careful {
			return errCareful
		}
		if err != nil {
			o.failed, o.moved = err, before.Less(o.at)
			return nil //nolint:nilerr // the outcome carries it; what was taken before it is committed
		}
		o.at = recs[i].Position
	}
	if o.at.Less(upTo) {
		o.at = upTo
	}
	o.moved = before.Less(o.at)
	o.more = o.moved
	o.full = o.at.N-before.N >= int64(limit)
	return nil
}

// Filter is what the consumer reads of the log.
func (c *Consumer) Filter() eventlog.Filter { return eventlog.Filter{Types: c.Types, Kinds: c.kinds()} }

// kinds are the kinds of stream of Types; nil for all.
func (c *Consumer) kinds() []events.Kind {
	var kinds []events.Kind
	for _, t := range c.Types {
		if d, ok := events.Lookup(t); ok && !slices.Contains(kinds, d.Kind) {
			kinds = append(kinds, d.Kind)
		}
	}
	return kinds
}

// locked is a checkpoint under its lock.
type locked struct {
	at    events.Position
	held  bool // another replica has it
	skips bool // a person has had the consumer go on without events that are ahead
}

// lock makes the checkpoint where it is missing and locks it.
func (c *Consumer) lock(ctx context.Context, tx pgx.Tx) (l locked, err error) {
	var epoch, position *int64
	var idle string // set by the statement that takes the lock: there is no moment between the two
	err = tx.QueryRow(ctx, `select epoch, position, held, coalesce(skips, false), case when $2::bigint > 0
		  then set_config('idle_in_transaction_session_timeout', $2::text, true) else '' end
		from eventlog.take_checkpoint($1)`, c.Name, c.Idle.Milliseconds()).
		Scan(&epoch, &position, &l.held, &l.skips, &idle)
	if err != nil {
		return l, fmt.Errorf("take the checkpoint of %s: %w", c.Name, pg.Err(err))
	}
	if l.held || epoch == nil || position == nil {
		l.held = true
		return l, nil
	}
	l.at = events.Position{Epoch: *epoch, N: *position}
	return l, nil
}

func (c *Consumer) save(ctx context.Context, tx pgx.Tx, at events.Position) error {
	if _, err := tx.Exec(ctx, `select eventlog.move_checkpoint($1, $2, $3)`, c.Name, at.Epoch, at.N); err != nil {
		return fmt.Errorf("move checkpoint of %s: %w", c.Name, pg.Err(err))
	}
	return nil
}

func (c *Consumer) hints() (<-chan struct{}, func()) {
	if c.Bus == nil {
		return nil, func() {}
	}
	return c.Bus.Hints()
}

// rehint follows hints again that a failure switched off.
func (c *Consumer) rehint(hints <-chan struct{}, stop func()) (<-chan struct{}, func()) {
	if hints != nil || c.Bus == nil {
		return hints, stop
	}
	stop()
	return c.hints()
}

func (c *Consumer) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.Default()
	}
	return c.Logger
}
