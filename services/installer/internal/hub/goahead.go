package hub

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
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
	// agents are the clusters that agents serve, by tenant and id.
	agents map[string]map[string]bool
	// tenants are those that have or had clusters.
	tenants map[string]bool
	// parked are tenants of which the hub could not take a stop, or the end of one: their event is parked.
	parked map[string]bool
	// waiting are tenants of which a stop has been acknowledged that has no position yet, with when that was seen last.
	// It is folded once a later end of the log is.
	waiting map[string]time.Time
}

// freshness is as of when it is known that nobody has stopped anything else. A stop is an event: what was read of the
// switches says nothing of events that the hub has not folded yet.
type freshness struct {
	asOf    time.Time // by the clock of this process; zero: never
	told    time.Time // the same by PostgreSQL's, which is one for all processes of the installer
	pending []headAt  // heads of the log that the hub has not reached, oldest first
}

// headAt is where the log ended at a time, by the clock of this process and by PostgreSQL's.
type headAt struct {
	head     events.Position
	at, told time.Time
}

// maxPendingHeads bounds the heads that are remembered: two minutes of them, which is longer than any is of use.
const maxPendingHeads = 60

// read notes where the log ended at a time, and that all up to folded is in what was read then.
func (f *freshness) read(end headAt, folded events.Position) {
	if len(f.pending) < maxPendingHeads {
		f.pending = append(f.pending, end)
	}
	for len(f.pending) > 0 && !folded.Less(f.pending[0].head) {
		f.asOf, f.told = f.pending[0].at, f.pending[0].told
		f.pending = f.pending[1:]
	}
}

// goAheadLimits: a question names a tenant. An agent asks every protocol.GoAheadEvery, and each second while there is
// no answer; both its executors do while one takes over from the other.
var goAheadLimits = rpc.Limits{Bytes: 1 << 10, Every: time.Second / 2, Burst: 10}

// ServeGoAheads answers executors that ask whether effects are allowed, until ctx ends.
func ServeGoAheads(ctx context.Context, h *Hub) error {
	reading, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { readSwitches(reading, h) })
	a := rpc.Answerer{Sign: protocol.HubSigns(h.c.Key), Limits: goAheadLimits}
	all := protocol.RPCGoAheadSubject("*", "*")
	return a.ServeAll(ctx, h.c.Bus.Conn(), h.c.Log, all, func(subject string) (rpc.Handler, bool) {
		about := strings.Split(strings.TrimPrefix(subject, protocol.RPCGoAhead+"."), ".")
		return func(_ context.Context, raw json.RawMessage) (any, error) {
			var q protocol.GoAheadQuestion
			if err := json.Unmarshal(raw, &q); err != nil {
				return nil, errs.Wrap(errs.Invalid, err, "read the question")
			}
			if q.Tenant != about[0] {
				return nil, errs.New(errs.Invalid, "a question about tenant %q is asked on the subject of another", q.Tenant)
			}
			return h.switches.goAhead(q.Tenant, about[1], h.c.Now(), h.c.AgentAway)
		}, len(about) == 2
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

// goAhead is the answer for a cluster of a tenant, or for protocol.GoAheadAll. Without knowledge that is fresh there is
// none: executors wait. Of a tenant that has no cluster nothing is known either: that is errs.NotFound. An agent may go
// on for away without asking again; one whose cluster was removed, or is hosted by the hub, is stopped.
func (s *switches) goAhead(tenant, clusterID string, now time.Time, away time.Duration) (protocol.GoAhead, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stopped := s.all[tenant] || s.all[events.AllTenants]
	if stopped { // in whatever else is not known
		return protocol.GoAhead{Tenant: tenant, AsOf: s.known.told, All: true}, nil
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
	if !s.tenants[tenant] {
		return protocol.GoAhead{}, errs.New(errs.NotFound, "tenant %q has no cluster", tenant)
	}
	some := slices.Clone(s.some[tenant])
	if clusterID == protocol.GoAheadAll {
		return protocol.GoAhead{Tenant: tenant, AsOf: s.known.told, Stopped: some}, nil
	}
	if !s.agents[tenant][clusterID] {
		return protocol.GoAhead{Tenant: tenant, AsOf: s.known.told, Stopped: []string{clusterID}}, nil
	}
	some = slices.DeleteFunc(some, func(id string) bool { return id != clusterID })
	return protocol.GoAhead{
		Tenant: tenant, AsOf: s.known.told, Stopped: some, AwaySeconds: int64(away / time.Second),
	}, nil
}

// switchesTimeout bounds one look, so that a database that does not answer is noticed.
const switchesTimeout = 5 * time.Second

// load reads the switches, and where the log and the hub's tables stand, in one snapshot.
func (s *switches) load(ctx context.Context, pool *pg.Pool, now func() time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, switchesTimeout)
	defer cancel()
	end := headAt{at: now()}
	var read stopRows
	var folded events.Position
	err := pool.Snapshot(ctx, func(tx pgx.Tx) (err error) {
		if err := tx.QueryRow(ctx, `select s.epoch, s.position, coalesce(c.epoch, 0), coalesce(c.position, 0), now()
			from (select epoch, position from eventlog.sequencer order by revision desc limit 1) s
			left join eventlog.checkpoint($1) c on true`, Consumer).
			Scan(&end.head.Epoch, &end.head.N, &folded.Epoch, &folded.N, &end.told); err != nil {
			return err
		}
		read, err = readStops(ctx, tx, end.at)
		return err
	})
	if err != nil {
		return pg.Err(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.read(end, folded)
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
	rowThere   = "there"
	rowAgent   = "agent" // its cluster is served by an agent
)

// readStops reads which stops are in force, and of which tenants some are known and not in force yet.
func readStops(ctx context.Context, tx pgx.Tx, at time.Time) (stopRows, error) {
	s := stopRows{
		all: map[string]bool{}, some: map[string][]string{}, tenants: map[string]bool{}, parked: map[string]bool{},
		waiting: map[string]time.Time{}, agents: map[string]map[string]bool{},
	}
	rows, err := tx.Query(ctx, `select tenant, '', 'stopped' from eventlog.stops where resumed is null
		union all select tenant, '', 'stopped' from installer.stops where subject = $1
		union all select c.tenant, c.cluster_id::text, 'stopped' from installer.stops s
		join installer.clusters c on c.tenant = s.tenant and s.subject = 'cluster/' || c.name
		union all select distinct tenant, '', 'there' from installer.clusters
		union all select tenant, cluster_id::text, 'agent' from installer.clusters where credential = '' and not removed
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
		case what == rowThere:
			s.tenants[tenant] = true
		case what == rowAgent:
			if s.agents[tenant] == nil {
				s.agents[tenant] = map[string]bool{}
			}
			s.agents[tenant][cluster] = true
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
