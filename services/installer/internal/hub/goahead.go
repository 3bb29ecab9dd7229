package hub

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

// switchesEvery is how often the stop switches are read: with protocol.GoAheadEvery, and the message of each namespace
// that tells sooner, a stop is known everywhere within seven seconds.
const switchesEvery = 2 * time.Second

// switches are the stop switches as they were read last. Its methods may be called side by side.
type switches struct {
	mu    sync.Mutex
	known freshness
	stopRows
}

// stopRows are what one snapshot says of the switches.
type stopRows struct {
	all  map[string]bool     // tenants, or "*"
	some map[string][]string // ids of clusters by tenant
	// parked are tenants of which the hub could not take a stop, or the end of one: their event is parked.
	parked map[string]bool
	// waiting are tenants of which a stop has been acknowledged that has no position yet, with when that was seen last.
	// It is folded once a later end of the log is.
	waiting map[string]time.Time
}

// freshness is as of when it is known that nobody has stopped anything else. A stop is an event: what was read of the
// switches says nothing of events that the hub has not folded yet.
type freshness struct {
	asOf    time.Time // zero: never
	pending []headAt  // heads of the log that the hub has not reached, oldest first
}

// headAt is where the log ended at a time.
type headAt struct {
	head events.Position
	at   time.Time
}

// maxPendingHeads bounds the heads that are remembered: two minutes of them, which is longer than any is of use.
const maxPendingHeads = 60

// read notes that the log ended at head at a time, and that all up to folded is in what was read then.
func (f *freshness) read(head, folded events.Position, at time.Time) {
	if len(f.pending) < maxPendingHeads {
		f.pending = append(f.pending, headAt{head, at})
	}
	for len(f.pending) > 0 && !folded.Less(f.pending[0].head) {
		f.asOf = f.pending[0].at
		f.pending = f.pending[1:]
	}
}

// ServeGoAheads answers executors that ask whether effects are allowed, until ctx ends.
func ServeGoAheads(ctx context.Context, h *Hub) error {
	reading, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { readSwitches(reading, h) })
	a := rpc.Answerer{Sign: protocol.HubSigns(h.c.Key)}
	return a.Serve(ctx, h.c.Bus.Conn(), h.c.Log, protocol.RPCGoAhead, func(_ context.Context, raw json.RawMessage) (
		any, error,
	) {
		var q protocol.GoAheadQuestion
		if err := json.Unmarshal(raw, &q); err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "read the question")
		}
		return h.switches.goAhead(q.Tenant, h.c.Now())
	})
}

func readSwitches(ctx context.Context, h *Hub) {
	t := time.NewTicker(switchesEvery)
	defer t.Stop()
	failing := false
	for {
		err := h.switches.load(ctx, h.c.Pool, h.c.Now)
		if (err != nil) != failing && ctx.Err() == nil {
			if failing = err != nil; failing {
				h.c.Log.WarnContext(ctx, "the stop switches cannot be read; executors stop before their next step "+
					"if that lasts", "after", protocol.GoAheadMemory, "error", err)
			} else {
				h.c.Log.InfoContext(ctx, "the stop switches are read again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// goAhead is the answer for a tenant. Without knowledge that is fresh there is none: executors wait.
func (s *switches) goAhead(tenant string, now time.Time) (protocol.GoAhead, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stopped := s.all[tenant] || s.all[events.AllTenants]
	if stopped { // in whatever else is not known
		return protocol.GoAhead{All: true}, nil
	}
	if s.parked[tenant] {
		return protocol.GoAhead{}, errs.New(errs.Unavailable, "whether effects are stopped is not known: the installer "+
			"could not take an event that stops or resumes them (chandler log parked)")
	}
	if seen, ok := s.waiting[tenant]; ok && !s.known.asOf.After(seen) {
		return protocol.GoAhead{}, errs.New(errs.Unavailable,
			"effects are being stopped: that is in the log, and the installer has not come to it")
	}
	if s.known.asOf.IsZero() || now.Sub(s.known.asOf) >= protocol.GoAheadMemory {
		return protocol.GoAhead{}, errs.New(errs.Unavailable,
			"whether effects are stopped is not known: the last time that it was read is more than %s ago",
			protocol.GoAheadMemory)
	}
	return protocol.GoAhead{Stopped: slices.Clone(s.some[tenant])}, nil
}

// switchesTimeout bounds one look, so that a database that does not answer is noticed.
const switchesTimeout = 5 * time.Second

// load reads the switches, and where the log and the hub's tables stand, in one snapshot.
func (s *switches) load(ctx context.Context, pool *pg.Pool, now func() time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, switchesTimeout)
	defer cancel()
	at := now()
	var read stopRows
	var head, folded events.Position
	err := pool.Snapshot(ctx, func(tx pgx.Tx) (err error) {
		if err := tx.QueryRow(ctx, `select s.epoch, s.position, coalesce(c.epoch, 0), coalesce(c.position, 0)
			from (select epoch, position from eventlog.sequencer order by revision desc limit 1) s
			left join eventlog.checkpoints c on c.consumer = $1 and c.tenant = $2`, Consumer, events.AllTenants).
			Scan(&head.Epoch, &head.N, &folded.Epoch, &folded.N); err != nil {
			return err
		}
		read, err = readStops(ctx, tx, at)
		return err
	})
	if err != nil {
		return pg.Err(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.read(head, folded, at)
	for tenant, seen := range s.waiting {
		if _, still := read.waiting[tenant]; !still && !s.known.asOf.After(seen) {
			read.waiting[tenant] = seen
		}
	}
	s.stopRows = read
	return nil
}

// What a row of readStops says of a tenant.
const (
	rowParked  = "parked"
	rowWaiting = "waiting"
)

// readStops reads which stops are in force, and of which tenants some are known and not in force yet.
func readStops(ctx context.Context, tx pgx.Tx, at time.Time) (stopRows, error) {
	s := stopRows{
		all: map[string]bool{}, some: map[string][]string{}, parked: map[string]bool{}, waiting: map[string]time.Time{},
	}
	rows, err := tx.Query(ctx, `select tenant, '', 'stopped' from eventlog.stops where resumed is null
		union all select tenant, '', 'stopped' from installer.stops where subject = $1
		union all select c.tenant, c.cluster_id::text, 'stopped' from installer.stops s
		join installer.clusters c on c.tenant = s.tenant and s.subject = 'cluster/' || c.name
		union all select tenant, '', 'parked' from eventlog.parked where consumer = $2 and starts_with(stream, $3)
		union all select tenant, '', 'waiting' from eventlog.appended
		where kind = 'access' and type = $4 and id > (select settled from eventlog.sequencer order by revision desc limit 1)`,
		fleet, Consumer, string(events.KindAccess)+":", string(events.EffectsStopped{}.EventType()))
	if err != nil {
		return s, err
	}
	var tenant, cluster, what string
	_, err = pgx.ForEachRow(rows, []any{&tenant, &cluster, &what}, func() error {
		switch {
		case what == rowParked:
			s.parked[tenant] = true
		case what == rowWaiting:
			s.waiting[tenant] = at
		case cluster == "":
			s.all[tenant] = true
		default:
			s.some[tenant] = append(s.some[tenant], cluster)
		}
		return nil
	})
	return s, err
}
