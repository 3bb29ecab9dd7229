package hubclient

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

// Allowed says whether a step may be taken.
type Allowed int

// No step is taken unless the hub allows it now.
const (
	Unknown Allowed = iota // the hub has not said so within protocol.GoAheadValid
	Stopped
	Going
)

const (
	// goAheadTimeout bounds one question.
	goAheadTimeout = 3 * time.Second
	// goAheadRetry is the wait after a question without an answer.
	goAheadRetry = time.Second
)

// GoAheads asks the hub again and again whether effects are allowed (DESIGN D7), once for all clusters of a tenant. Its
// methods may be called side by side.
type GoAheads struct {
	conn    *nats.Conn
	cluster string // or protocol.GoAheadAll
	ask     rpc.Asker
	log     *slog.Logger
	now     func() time.Time

	mu      sync.Mutex
	tenants map[string]*goAhead
}

// goAhead is what the hub said last about a tenant.
type goAhead struct {
	users   int
	stop    context.CancelFunc
	first   chan struct{} // closed when it was asked once, whether there was an answer or not
	asked   time.Time     // when the question of the last answer was asked; zero before the first
	valid   time.Duration // for how long after asked that answer holds
	asOf    time.Time     // of the last answer, by PostgreSQL's clock
	all     bool
	stopped map[string]bool
}

// NewGoAheads returns one that asks for the tenants that are followed: about one cluster, or about
// protocol.GoAheadAll, which only the installer may.
func NewGoAheads(conn *nats.Conn, cluster string, hub keys.Accepted, log *slog.Logger, now func() time.Time) *GoAheads {
	return &GoAheads{
		conn: conn, cluster: cluster, ask: rpc.Asker{Verify: protocol.HubSigned(hub)}, log: log, now: now,
		tenants: map[string]*goAhead{},
	}
}

// Follow asks for a tenant until ctx ends.
func (g *GoAheads) Follow(ctx context.Context, tenant string) {
	g.mu.Lock()
	t := g.tenants[tenant]
	if t == nil {
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		t = &goAhead{stop: stop, first: make(chan struct{})}
		g.tenants[tenant] = t
		go g.run(own, tenant, t)
	}
	t.users++
	g.mu.Unlock()
	context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		t.users--
		if t.users == 0 {
			t.stop()
			delete(g.tenants, tenant)
		}
	})
}

// First is closed when the hub was asked once about a tenant that is followed.
func (g *GoAheads) First(tenant string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.tenants[tenant]; t != nil {
		return t.first
	}
	done := make(chan struct{})
	close(done)
	return done
}

// Check reports whether a step may be taken in a cluster now.
func (g *GoAheads) Check(tenant, clusterID string) Allowed {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.tenants[tenant]
	switch {
	case t == nil || !fresh(t.asked, g.now(), t.valid):
		return Unknown
	case t.all || t.stopped[clusterID]:
		return Stopped
	}
	return Going
}

// fresh reports whether an answer to a question that was asked then still holds. Both readings of the clock count: the
// one that runs evenly stands still while a machine sleeps, and the other may be set back; more time has passed than
// either says.
func fresh(asked, now time.Time, valid time.Duration) bool {
	return !asked.IsZero() && now.Sub(asked) < valid && now.Round(0).Sub(asked.Round(0)) < valid
}

// validFor is for how long an answer holds. Only that about one cluster may hold for longer: it is an agent's.
func validFor(cluster string, answer protocol.GoAhead) time.Duration {
	if cluster == protocol.GoAheadAll || answer.AwaySeconds <= 0 ||
		answer.AwaySeconds > int64(protocol.GoAheadMaxAway/time.Second) {
		return protocol.GoAheadValid
	}
	return max(protocol.GoAheadValid, time.Duration(answer.AwaySeconds)*time.Second)
}

func (g *GoAheads) run(ctx context.Context, tenant string, t *goAhead) {
	said := sync.OnceFunc(func() { close(t.first) })
	defer said()
	for ctx.Err() == nil {
		wait := protocol.GoAheadEvery
		if err := g.once(ctx, tenant, t); err != nil {
			wait = goAheadRetry
			g.log.DebugContext(ctx, "the hub does not say whether effects are allowed", "tenant", tenant, "error", err)
		}
		said()
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (g *GoAheads) once(ctx context.Context, tenant string, t *goAhead) error {
	ctx, cancel := context.WithTimeout(ctx, goAheadTimeout)
	defer cancel()
	asked := g.now()
	var answer protocol.GoAhead
	subject := protocol.RPCGoAheadSubject(tenant, g.cluster)
	if err := g.ask.Ask(ctx, g.conn, subject, protocol.GoAheadQuestion{Tenant: tenant}, &answer); err != nil {
		return err
	}
	if answer.Tenant != tenant {
		return errs.New(errs.Invalid, "the hub answers about tenant %q", answer.Tenant)
	}
	stopped := make(map[string]bool, len(answer.Stopped))
	for _, id := range answer.Stopped {
		stopped[id] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if answer.All && answer.AsOf.IsZero() { // a hub that knows of a stop, and not yet of everything else
		answer.AsOf = t.asOf
	} else if !newer(answer.AsOf, t.asOf) {
		return errs.New(errs.Unavailable, "what the hub says is as of %s, and it knew more as of %s", answer.AsOf, t.asOf)
	}
	t.asked, t.asOf, t.all, t.stopped = asked, answer.AsOf, answer.All, stopped
	t.valid = validFor(g.cluster, answer)
	return nil
}

// newer reports whether an answer may take the place of the last one: a process of the installer that does not reach
// PostgreSQL must not allow again what another one has stopped. None answers by what is older than
// protocol.GoAheadMemory: an answer that is older still than the last one comes from a clock that was set back.
func newer(asOf, last time.Time) bool {
	return !asOf.IsZero() && (!asOf.Before(last) || last.Sub(asOf) > protocol.GoAheadMemory)
}
