package summary

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// maxRows bounds the operators and subscriptions of all copies of a process: about 100 bytes each, names included.
	maxRows = 400_000
	// keepFor is how long a copy is kept that nobody asks for.
	keepFor = 10 * time.Minute
	// oldest is how long a copy follows before it is made anew, so that a fault of this or of a fold is not for ever.
	oldest = 10 * time.Minute
	// holdWithin is how long a question waits until the read models are where the log is. Where they lag, PostgreSQL
	// counts what they have.
	holdWithin = 250 * time.Millisecond
	// maxEvents bounds the events by which a copy is brought up to date; behind more it is made anew.
	maxEvents = 2000
	// maxParts bounds the namespaces that are read again one by one: beyond, all rows cost less.
	maxParts = 200
)

// Copies are what is counted, in memory, for each tenant that somebody asks about. A copy shows everything up to where
// the log ended when the question came: the events behind its own position say which namespaces to read again, from the
// read models, in a transaction of the tenant, under row-level security. So it needs no rule of its own about what an
// event changes in a row, and what it says is what the read models say.
//
// It is in nobody's way: where the read models lag, where a stream of theirs is parked, or where a fleet is too large,
// it is not used.
type Copies struct {
	Pool *pg.Pool // sees one tenant at a time
	Work *pg.Pool // for all tenants
	Log  *eventlog.Log
	// Hold returns when the read models hold a position, and an error where that takes longer.
	Hold func(ctx context.Context, at events.Position, within time.Duration) error
	// Consumers are the names of their checkpoints.
	Consumers []string
	Slog      *slog.Logger

	mu   sync.Mutex
	all  map[string]*follower // by tenant
	rows int                  // of all of them
}

// follower keeps the copy of one tenant.
type follower struct {
	tenant string
	unused *time.Timer

	mu    sync.Mutex // one request at a time brings the copy up to date; the others wait for it
	fleet *fleet     // nil: there is none
	at    events.Position
	made  time.Time
	asOf  time.Time // by the clock of this process: what had happened before is in it
	now   time.Time // by the clock of the database, at asOf
	rows  int
	// refused is until when there is no room for the tenant.
	refused time.Time
}

// of is the copy of a tenant as of now, and the time of the database; nil where PostgreSQL is to count.
func (c *Copies) of(ctx context.Context, tenant string) (*fleet, time.Time) {
	if c == nil {
		return nil, time.Time{}
	}
	f := c.follower(tenant)
	asked := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fleet != nil && f.asOf.After(asked) { // brought up to date while this request waited
		return f.fleet, f.now
	}
	if time.Now().Before(f.refused) {
		return nil, time.Time{}
	}
	err := c.follow(ctx, f)
	switch {
	case err == nil:
		return f.fleet, f.now
	case errors.Is(err, errTooMany):
		c.drop(f)
		f.refused = time.Now().Add(oldest)
	case errors.Is(err, errParked):
		c.drop(f)
	case ctx.Err() == nil && !errs.Is(err, errs.Unavailable):
		c.Slog.WarnContext(ctx, "the fleet is counted by PostgreSQL", "tenant", tenant, "error", err)
	}
	return nil, time.Time{} // a copy that could not be brought up to date goes on from where it is
}

// follower is the one of a tenant, which goes when nobody has asked for long.
func (c *Copies) follower(tenant string) *follower {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, there := c.all[tenant]
	if !there {
		if c.all == nil {
			c.all = map[string]*follower{}
		}
		f = &follower{tenant: tenant}
		f.unused = time.AfterFunc(keepFor, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			c.drop(f)
		})
		c.all[tenant] = f
	}
	f.unused.Reset(keepFor)
	return f
}

// drop forgets a copy; f.mu is held.
func (c *Copies) drop(f *follower) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows -= f.rows
	f.fleet, f.rows = nil, 0
}

// room takes the room of a copy that has so many rows now; f.mu is held.
func (c *Copies) room(f *follower, rows int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows-f.rows+rows > maxRows {
		return errTooMany
	}
	c.rows += rows - f.rows
	f.rows = rows
	return nil
}

// errTooMany says that the fleet is larger than what is left of maxRows. It is not tried again for as long as a copy
// follows.
var errTooMany = errs.New(errs.Unavailable, "the operators and subscriptions are too many for a copy")

// errParked says that the read models lack an event, and may get it without another one that tells.
var errParked = errs.New(errs.Unavailable, "an event of the read models is parked")

// follow brings a copy to where the log ends now; f.mu is held.
func (c *Copies) follow(ctx context.Context, f *follower) error {
	asked := time.Now()
	var head events.Position
	var now time.Time
	err := c.Work.QueryRow(ctx, `select epoch, position, clock_timestamp()
		from eventlog.sequencer order by revision desc limit 1`).Scan(&head.Epoch, &head.N, &now)
	if err != nil {
		return pg.Err(err)
	}
	if f.fleet == nil || head != f.at || time.Since(f.made) > oldest {
		changed, err := c.changed(ctx, f, head)
		if err != nil {
			return err
		}
		if err := c.Hold(ctx, head, holdWithin); err != nil {
			return err
		}
		if err := c.read(ctx, f, changed); err != nil {
			return err
		}
	}
	f.at, f.asOf, f.now = head, asked, now
	return nil
}

// changed are the parts of the fleet that events up to head may have changed; the whole where it is not known better.
func (c *Copies) changed(ctx context.Context, f *follower, head events.Position) (*parts, error) {
	if f.fleet == nil || head.Epoch != f.at.Epoch || head.Less(f.at) || time.Since(f.made) > oldest {
		return &parts{whole: true}, nil
	}
	list, upTo, err := c.Log.ReadAfter(ctx, c.Work, f.at, eventlog.Filter{Tenant: f.tenant, Raw: true}, maxEvents)
	if err != nil {
		return nil, err
	}
	if upTo.Less(head) {
		return &parts{whole: true}, nil
	}
	p := &parts{namespaces: map[[2]string]bool{}, clusters: map[string]bool{}}
	for _, e := range list {
		p.touch(e)
	}
	if len(p.namespaces) > maxParts {
		p.whole = true
	}
	return p, nil
}

// read reads what has changed, where the read models hold all of it; f.mu is held.
func (c *Copies) read(ctx context.Context, f *follower, changed *parts) error {
	if changed.none() {
		return nil
	}
	began := time.Now()
	var rows []*namespace
	err := c.Pool.TenantTx(ctx, f.tenant, func(tx pgx.Tx) (err error) {
		var parked bool
		// What is asked of few rows makes the statements look dear; to compile them takes longer than to run them.
		err = tx.QueryRow(ctx, `select exists (select from eventlog.parked where tenant = $1 and consumer = any ($2)),
			set_config('jit', 'off', true)`, f.tenant, c.Consumers).Scan(&parked, new(string))
		switch {
		case err != nil:
			return err
		case parked:
			return errParked
		}
		rows, err = readNamespaces(ctx, tx, f.tenant, changed)
		return err
	})
	if err != nil {
		return err
	}
	if changed.whole {
		f.fleet, f.made = &fleet{}, began
	}
	f.replace(changed, rows)
	n := 0
	for _, x := range f.fleet.namespaces {
		n += len(x.operators) + len(x.subscriptions)
	}
	return c.room(f, n)
}
