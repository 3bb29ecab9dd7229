package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

const (
	// slots bounds the webhooks that one process sends for at a time; each has a goroutine and up to width connections.
	// Turns are short, so that those of a tenant whose receivers are slow keep nobody out.
	slots = 256
	// idle is how long a webhook with nothing to send keeps its slot where there is none for others.
	idle = time.Second
	// turn is how long a process sends for a webhook before others may.
	turn = 20 * time.Second
	// claimAtOnce is how many webhooks are taken in one look, so that replicas that start together share them.
	claimAtOnce = 16
	// look is how often a process looks for webhooks that nobody sends for, and whether those of its own were changed.
	look = 250 * time.Millisecond
	// DefaultLease is how long a webhook waits for a process that was killed. It is longer than a batch may take.
	DefaultLease = 30 * time.Second
	// releaseWithin bounds what a process that stops does for the next one.
	releaseWithin = 2 * time.Second
	// keepFor is how long what was sent is listed.
	keepFor = 30 * 24 * time.Hour
	// keepMost is how many of these a webhook has at most.
	keepMost = 10_000
	// sweepEvery is how often what is past these is deleted, sweepBatch at a time.
	sweepEvery = time.Minute
	sweepBatch = 5_000
)

// Events are those of the log, from memory where that reaches back.
type Events interface {
	// Hold has what is new be remembered, until the hold is released.
	Hold() (release func())
	// Moved is closed when there may be something new.
	Moved() <-chan struct{}
	// Behind returns events that a caller may watch, the position to go on from, and whether that is the end for now.
	Behind(ctx context.Context, who model.Caller, f model.EventFilter) (
		items []model.StreamedEvent, next events.Position, done bool, err error)
}

// Policies tells who may do what in a tenant. It reads nothing while the version stays.
type Policies interface {
	// Serves is nil once it can be told.
	Serves() error
	Policy(ctx context.Context, tenant string, version events.Position) (*access.Policy, error)
}

// Deliverer sends the events of webhooks.
type Deliverer struct {
	Service  *Service
	Events   Events
	Policies Policies
	Slog     *slog.Logger
	// Me tells this process from others.
	Me string
	// Lease is how long the webhooks of a process that was killed wait; DefaultLease where it is 0.
	Lease time.Duration
	// Random is from 0 to 1.
	Random func() float64
	// Slots is how many webhooks it sends for at a time; slots where it is 0.
	Slots int

	mu      sync.Mutex
	running map[[2]string]*sending
	all     sync.WaitGroup
}

// Run sends until ctx ends. It returns nil.
func (d *Deliverer) Run(ctx context.Context) error {
	if d.Lease == 0 {
		d.Lease = DefaultLease
	}
	if d.Slots == 0 {
		d.Slots = slots
	}
	d.running = map[[2]string]*sending{}
	defer d.all.Wait()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		err := d.endChanged(ctx)
		if err == nil {
			err = d.claim(ctx)
		}
		d.warn(ctx, "look for webhooks", err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sweep deletes deliveries that are listed no longer, until ctx ends. It returns nil.
func (d *Deliverer) Sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for n, err := int64(sweepBatch), error(nil); err == nil && n == sweepBatch; {
			err = d.Service.Units.Work.Tx(ctx, func(tx pgx.Tx) (err error) {
				n, err = d.Service.Hooks.Sweep(ctx, tx, d.Service.Units.Now().Add(-keepFor), keepMost, sweepBatch)
				return err
			})
			d.warn(ctx, "delete what webhooks have sent", err)
		}
	}
}

// warn logs what a later turn repeats.
func (d *Deliverer) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil && !errs.Is(err, errs.Unavailable) {
		d.Slog.WarnContext(ctx, "a step of sending to webhooks failed; trying again", "step", what, "error", err)
	}
}

// claim takes webhooks that nobody sends for.
func (d *Deliverer) claim(ctx context.Context) error {
	free := d.free()
	serves := d.Policies.Serves() == nil // until then nobody knows what an owner may see
	if free <= 0 || !serves {
		return nil
	}
	list, failed, err := d.Service.Hooks.Claim(ctx, d.Service.Units.Work, d.Me, d.Lease, min(free, claimAtOnce))
	for _, e := range failed {
		d.warn(ctx, "open a webhook", e)
	}
	for _, row := range list {
		d.begin(ctx, row)
	}
	return err
}

// free is for how many webhooks more this process can send.
func (d *Deliverer) free() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Slots - len(d.running)
}

func (d *Deliverer) begin(outer context.Context, row store.WebhookRow) {
	key := [2]string{row.Tenant, row.Name}
	ctx, cancel := context.WithCancel(outer)
	s := &sending{
		d: d, row: row, at: row.At, until: time.Now().Add(d.Lease), bodies: map[string][]byte{}, cancel: cancel,
		lease: store.LeaseOf(d.Me, row),
	}
	d.mu.Lock()
	before, there := d.running[key]
	if !there {
		d.running[key] = s
	}
	d.mu.Unlock()
	if there {
		// A turn whose lease ran out while it was busy: with this claim it has none any more, and this one is for
		// whoever looks when it has ended.
		defer cancel()
		before.cancel()
		s.release(ctx)
		return
	}
	d.all.Go(func() {
		defer cancel()
		err := s.run(ctx)
		// First it is gone here: who claims it from now on begins.
		d.mu.Lock()
		delete(d.running, key)
		d.mu.Unlock()
		if err == nil || errors.Is(err, store.ErrLease) || ctx.Err() != nil {
			s.release(ctx)
		} else {
			// The lease ends by itself, which is the pause before another attempt.
			d.warn(ctx, "send for webhook "+row.Name, err)
		}
	})
}

// endChanged ends the turns of webhooks that were changed: the next turn begins with what is there now.
func (d *Deliverer) endChanged(ctx context.Context) error {
	d.mu.Lock()
	n := len(d.running)
	d.mu.Unlock()
	if n == 0 {
		return nil
	}
	now, err := d.Service.Hooks.Held(ctx, d.Service.Units.Work, d.Me)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, s := range d.running {
		if now[key] != s.lease {
			s.cancel()
		}
	}
	return nil
}

// caller is the owner of a webhook with what they may see of its scope now; nowhere says that they may see no event at
// all.
func (d *Deliverer) caller(ctx context.Context, row store.WebhookRow) (who model.Caller, nowhere bool, err error) {
	o := row.Owner
	role, version, known, err := d.Service.Hooks.OwnerOf(ctx, d.Service.Units.Work, row.Tenant, o.Actor)
	if err != nil || !known {
		return who, !known, err
	}
	policy, err := d.Policies.Policy(ctx, row.Tenant, version)
	if err != nil {
		return who, false, err
	}
	who = model.Caller{
		Tenant: row.Tenant, Actor: o.Actor, Kind: o.Kind, Groups: o.Groups, Role: role,
	}
	who.Rights = policy.Within(who.Identity(), access.Watch, access.Events, row.Spec.Scope)
	return who, who.Rights.Nowhere(access.Watch, access.Events), nil
}

// sending is one turn of a webhook in this process.
type sending struct {
	d      *Deliverer
	row    store.WebhookRow
	lease  store.Lease
	until  time.Time // the lease holds at least until then
	cancel context.CancelFunc

	who     model.Caller // the owner, as of the last look
	at      events.Position
	waiting []store.Delivery  // in the order of the log
	bodies  map[string][]byte // events of those that came in this turn
}

// run takes a turn.
func (s *sending) run(ctx context.Context) (err error) {
	release := s.d.Events.Hold()
	defer release()
	if err := s.readRights(ctx); err != nil {
		return err
	}
	// While nobody sent no message grew old. From here on somebody does.
	if err := s.d.Service.Hooks.Begin(ctx, s.d.Service.Units.Work, s.lease, s.row.Unsent, s.d.Lease,
		s.d.Service.Units.Now()); err != nil {
		return err
	}
	if s.waiting, err = s.d.Service.Hooks.Waiting(ctx, s.d.Service.Units.Work, s.lease, maxWaiting); err != nil {
		return err
	}
	busy := time.Now()
	for ends := busy.Add(turn); time.Now().Before(ends) && ctx.Err() == nil; {
		moved := s.d.Events.Moved()
		if err := s.renew(ctx); err != nil {
			return err
		}
		if err := s.makeRoom(ctx); err != nil {
			return err
		}
		took, err := s.take(ctx)
		if err != nil {
			return err
		}
		if err := s.renew(ctx); err != nil { // reading may have taken as long as a lease lasts
			return err
		}
		sent, err := s.send(ctx)
		if err != nil {
			return err
		}
		switch {
		case took || sent:
			busy = time.Now()
		case time.Since(busy) > idle && s.d.free() == 0:
			return s.keepPlace(ctx) // others may have something to send
		default:
			s.forget() // of subjects that wait
			s.pause(ctx, moved)
		}
	}
	return s.keepPlace(ctx)
}

// pause waits for something to do.
func (s *sending) pause(ctx context.Context, moved <-chan struct{}) {
	again := time.NewTimer(look) // a delivery may be due
	defer again.Stop()
	select {
	case <-moved:
	case <-again.C:
	case <-ctx.Done():
	}
}

// renew keeps the lease before it is so short that a batch could outlive it.
func (s *sending) renew(ctx context.Context) error {
	if time.Until(s.until) > s.d.Lease*2/3 {
		return nil
	}
	return s.keepPlace(ctx)
}

func (s *sending) keepPlace(ctx context.Context) error {
	began := time.Now()
	err := s.d.Service.Hooks.Renew(ctx, s.d.Service.Units.Work, s.lease, s.d.Lease, s.at)
	if err == nil {
		s.until = began.Add(s.d.Lease)
	}
	return err
}

func (s *sending) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	s.d.warn(ctx, "let a webhook go", s.d.Service.Hooks.Release(ctx, s.d.Service.Units.Work, s.lease))
}

// readRights finds out what the owner may see now, and gives the webhook up where that is nothing.
func (s *sending) readRights(ctx context.Context) error {
	who, nowhere, err := s.d.caller(ctx, s.row)
	if err != nil {
		return err
	}
	if nowhere {
		return s.disable(ctx, webhook.ReasonNoRights)
	}
	s.who = who
	return nil
}

func (s *sending) disable(ctx context.Context, reason string) error {
	if err := s.d.Service.Disable(ctx, s.lease, reason); err != nil {
		return err
	}
	s.d.Slog.WarnContext(ctx, "a webhook was given up", "tenant", s.row.Tenant, "webhook", s.row.Name, "reason", reason)
	return store.ErrLease // it is nobody's now
}

// take makes deliveries of what is new.
func (s *sending) take(ctx context.Context) (took bool, err error) {
	if s.full() || len(s.bodies) >= maxTaken {
		return false, nil
	}
	items, next, done, err := s.behind(ctx)
	if err == nil && s.at.Less(next) {
		// The log has moved: what is sent, and what is passed over, is by what the owner may see now.
		if err = s.readRights(ctx); err == nil {
			items, next, done, err = s.behind(ctx)
		}
	}
	if err != nil {
		return false, err
	}
	s.at = later(s.at, next)
	if len(items) == 0 {
		return !done, nil
	}
	now := s.d.Service.Units.Now()
	list := make([]store.Delivery, 0, len(items))
	for _, e := range items {
		id := messageID(s.row, e.ID)
		list = append(list, store.Delivery{
			ID: id, Position: e.Position, Type: string(e.Type), Subject: e.Subject, State: store.DeliveryPending,
			Since: now,
		})
		s.bodies[id] = e.JSON
	}
	err = s.d.Service.Units.Work.Tx(ctx, func(tx pgx.Tx) error {
		return s.d.Service.Hooks.Enqueue(ctx, tx, s.lease, list, s.at, now)
	})
	s.waiting = append(s.waiting, list...)
	return true, err
}

func later(a, b events.Position) events.Position {
	if a.Less(b) {
		return b
	}
	return a
}

func (s *sending) behind(ctx context.Context) ([]model.StreamedEvent, events.Position, bool, error) {
	return s.d.Events.Behind(ctx, s.who, model.EventFilter{
		Types: s.row.Spec.Types, After: s.at.String(), Limit: maxTaken,
	})
}
