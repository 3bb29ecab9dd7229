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
	all   map[string]bool     // tenants, or "*"
	some  map[string][]string // ids of clusters by tenant
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
	if s.known.asOf.IsZero() || now.Sub(s.known.asOf) >= protocol.GoAheadMemory {
		return protocol.GoAhead{}, errs.New(errs.Unavailable,
			"whether effects are stopped is not known: the last time that it was read is more than %s ago",
			protocol.GoAheadMemory)
	}
	return protocol.GoAhead{
		All: s.all[tenant] || s.all[events.AllTenants], Stopped: slices.Clone(s.some[tenant]),
	}, nil
}

// switchesTimeout bounds one look, so that a database that does not answer is noticed.
const switchesTimeout = 5 * time.Second

// load reads the switches, and where the log and the hub's tables stand, in one snapshot.
func (s *switches) load(ctx context.Context, pool *pg.Pool, now func() time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, switchesTimeout)
	defer cancel()
	at := now()
	var head, folded events.Position
	all, some := map[string]bool{}, map[string][]string{}
	err := pool.Snapshot(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select s.epoch, s.position, coalesce(c.epoch, 0), coalesce(c.position, 0)
			from (select epoch, position from eventlog.sequencer order by revision desc limit 1) s
			left join eventlog.checkpoints c on c.consumer = $1 and c.tenant = $2`, Consumer, events.AllTenants).
			Scan(&head.Epoch, &head.N, &folded.Epoch, &folded.N); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `select tenant, '' from eventlog.stops where resumed is null
			union all select tenant, '' from installer.stops where subject = $1
			union all select c.tenant, c.cluster_id::text from installer.stops s
			join installer.clusters c on c.tenant = s.tenant and s.subject = 'cluster/' || c.name`, fleet)
		if err != nil {
			return err
		}
		var tenant, cluster string
		_, err = pgx.ForEachRow(rows, []any{&tenant, &cluster}, func() error {
			if cluster == "" {
				all[tenant] = true
				return nil
			}
			some[tenant] = append(some[tenant], cluster)
			return nil
		})
		return err
	})
	if err != nil {
		return pg.Err(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.read(head, folded, at)
	s.all, s.some = all, some
	return nil
}
