package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// shortestLook is the shortest wait between two looks at a lease that somebody else holds.
const shortestLook = 50 * time.Millisecond

// reconnectMax is the longest wait between two tries to reach a cluster.
const reconnectMax = 30 * time.Second

// Config is what an executor needs. Tenant to Log are required.
type Config struct {
	Tenant    string
	Cluster   string // name, for people
	ClusterID string // UUID, for subjects
	REST      *rest.Config
	JetStream jetstream.JetStream
	// Installation is the id of the hub's, which names its streams.
	Installation string
	GrantKey     keys.Accepted // of the hub
	// Configs opens what the hub sealed for this cluster.
	Configs configseal.Key
	// Holder names the process slot: unique among all that live at a time, and best the same after a
	// restart, since a restarted process then goes on at once instead of waiting for its own lease.
	Holder string
	Holds  Holds
	// GoAheads may be left out, and is then the executor's own: whether steps may be taken now.
	GoAheads *hubclient.GoAheads
	Now      func() time.Time
	Log      *slog.Logger
	// RememberedBundles is how many bytes of bundles, as they were published, are remembered while nothing happens.
	// What was forgotten has to come from the hub before drift is corrected. It may be 0 where the hub is not far.
	RememberedBundles int

	Timing Timing
	// Rendering are the rules by which bundles are rendered; nil is those of this release.
	Rendering *render.Versions
	// Hook is called at each point between two effects; an error ends Run there and then, as a crash
	// would. It is for tests.
	Hook func(point string) error
}

// Timing are the intervals; zero values stand for the defaults.
type Timing struct {
	Lease   time.Duration // how long a holder that is not heard of stays the holder; default 15 s
	Renew   time.Duration // how often the holder is heard of; default 3 s
	Resend  time.Duration // how often the report of the cluster is written again; default 15 s, Heartbeat of an agent
	Reread  time.Duration // how often PLANS are read again; default 30 s
	Resync  time.Duration // how often a scope is looked at although no watch tells of a change; default 5 min
	Grace   time.Duration // how long a transient failure lasts before it is reported; default 5 s
	Backoff time.Duration // first wait after a transient failure, doubled up to Longest; default 1 s
	Longest time.Duration // longest such wait; default 1 min, and 30 s between two tries to reach the cluster
	// how soon what waits, or failed, and has no back-off of its own is looked at again if no hint comes; default 5 s
	Pause time.Duration
	// how long it is relied on that an account lacks rights, of which no notification comes; default 20 s
	Refused time.Duration
	// how long the roles that users get wait at most while operators are on their way elsewhere in the cluster; default
	// 1 min: fifty operators at once take half a minute, and a person who was waiting for one rarely uses it sooner
	Roles time.Duration
}

func (t Timing) withDefaults() Timing {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&t.Lease, 15*time.Second)
	def(&t.Renew, 3*time.Second)
	def(&t.Resend, 15*time.Second)
	def(&t.Reread, 30*time.Second)
	def(&t.Resync, 5*time.Minute)
	def(&t.Grace, 5*time.Second)
	def(&t.Backoff, time.Second)
	def(&t.Longest, time.Minute)
	def(&t.Pause, 5*time.Second)
	def(&t.Refused, 20*time.Second)
	def(&t.Roles, time.Minute)
	return t
}

func (c Config) check() error {
	missing := map[string]bool{
		"Tenant": c.Tenant == "", "Cluster": c.Cluster == "", "ClusterID": c.ClusterID == "", "Holder": c.Holder == "",
		"REST": c.REST == nil, "JetStream": c.JetStream == nil, "Installation": c.Installation == "",
		"GrantKey": c.GrantKey.Empty(), "Holds": c.Holds == nil, "Now": c.Now == nil, "Log": c.Log == nil,
	}
	for _, field := range []string{
		"Tenant", "Cluster", "ClusterID", "REST", "JetStream", "Installation", "GrantKey", "Holder", "Holds",
		"Now", "Log",
	} {
		if missing[field] {
			return errs.New(errs.Invalid, "executor of cluster %q: %s is missing", c.Cluster, field)
		}
	}
	return nil
}

// Heartbeat is Timing.Resend of an agent. There may be thousands, and what changes is reported at once: the heartbeat
// is for what was lost, and says that the holder is there.
const Heartbeat = time.Minute

// Executor serves one cluster.
type Executor struct {
	cfg      Config
	hub      *hubclient.Hub
	contents *hubclient.Contents
	inbox    *hubclient.Inbox
	reporter *hubclient.Reporter
	session  *protocol.Session // signs what this executor says, from its start to its end
	standby  atomic.Bool       // somebody else held the cluster when we asked last
	points   failure.Points
	held     atomic.Int64 // our last epoch: who held the cluster speaks for it until another one does
}

// New returns an executor that does nothing yet.
func New(cfg Config) (*Executor, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Timing = cfg.Timing.withDefaults()
	cfg.Rendering = cmp.Or(cfg.Rendering, render.Known)
	cfg.Log = cfg.Log.With("cluster", cfg.Cluster)
	if cfg.GoAheads == nil {
		cfg.GoAheads = hubclient.NewGoAheads(cfg.JetStream.Conn(), cfg.ClusterID, cfg.GrantKey, cfg.Log,
			time.Now)
	}
	own, err := NewSession()
	if err != nil {
		return nil, err
	}
	h := hubclient.New(cfg.JetStream, cfg.Installation, cfg.Tenant, cfg.ClusterID, cfg.GrantKey, own)
	return &Executor{
		cfg: cfg, points: cfg.Hook, hub: h, session: own, contents: hubclient.NewContents(h, cfg.RememberedBundles),
		inbox:    hubclient.NewInbox(),
		reporter: hubclient.NewReporter(h, cfg.Log, cfg.Timing.Resend, cfg.Now),
	}, nil
}

// Run works until ctx ends and returns nil then. It waits for a cluster or a hub that is away, and
// for another holder, as long as it takes.
func (e *Executor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	e.cfg.GoAheads.Follow(ctx, e.cfg.Tenant)
	running.Go(func() { e.keep(ctx, "listener", e.listen) })
	running.Go(func() { e.keep(ctx, "reporter", e.writeReports) })
	running.Go(func() { e.keep(ctx, "registration", e.keepRegistered) })

	base, err := kube.NewBase(e.cfg.REST)
	if err != nil {
		return err
	}
	lease := kube.NewLease(base, e.registration(), e.cfg.Holder, e.cfg.Timing.Lease, e.cfg.Now)
	wait := e.cfg.Timing.Backoff
	for ctx.Err() == nil {
		var held bool
		err := failure.Guard(ctx, e.cfg.Log, "session", func() (err error) {
			held, err = e.serve(ctx, base, lease)
			return err
		})
		if c, ok := errors.AsType[failure.CrashError](err); ok {
			return c.Err
		}
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.WarnContext(ctx, "executor waits", "error", err, "wait", wait)
			e.reportTrouble(err)
		}
		switch {
		case held:
			wait = e.cfg.Timing.Backoff
		case err == nil:
			// somebody else holds it, and is heard of as often
			wait = min(e.cfg.Timing.Renew, max(lease.Left(), shortestLook))
		}
		pace.Sleep(ctx, wait)
		if err != nil {
			wait = min(2*wait, reconnectMax, e.cfg.Timing.Longest)
		}
	}
	return nil
}

// Back says that the hub is reached again: it hears at once that the holder is there.
func (e *Executor) Back() { e.reporter.Beat() }

// serve makes one round: connect, try for the lease, work while it is held. held reports whether it was.
func (e *Executor) serve(ctx context.Context, base *kube.Base, lease *kube.Lease) (held bool, err error) {
	version, err := base.Version(ctx)
	if err != nil {
		return false, err
	}
	if !e.standby.Load() { // one that waits does not ask and make again and again what the holder asked and made
		for _, step := range []func() error{
			func() error { return base.CheckSupported(version) },
			func() error { return base.CheckOwner(ctx, e.registration()) },
			func() error { return base.Bootstrap(ctx) },
		} {
			if err := step(); err != nil {
				return false, err
			}
		}
	}
	epoch, err := lease.Acquire(ctx)
	e.standby.Store(err == nil && epoch == 0)
	if err != nil || epoch == 0 {
		return false, err
	}
	if epoch, err = e.registerHold(ctx, lease, epoch); err != nil || epoch == 0 {
		return false, err
	}
	e.held.Store(epoch)
	if err := hold(ctx, base, epoch); err != nil {
		return false, err
	}
	client, err := base.InEpoch(epoch)
	if err != nil {
		return false, err
	}
	seen, err := base.Seen(ctx)
	if err != nil {
		return false, err
	}
	e.cfg.Log.InfoContext(ctx, "executor holds the cluster", "epoch", epoch, "kubernetes", version)
	s := newSession(e, base, client, lease, version, seen)
	s.watcher = watch.New(client.Metadata, watchedKinds(), s.changed)
	s.watcher.Listed = s.mirrorsListed
	s.env.Watcher = s.watcher
	return true, s.run(ctx)
}

// LetGo gives a cluster back that is Chandler's no more: nobody is kept from writing there any longer. Everything that
// is installed stays and runs. It is asked of a cluster that no executor holds any more; one that comes back makes its
// policies anew.
func LetGo(ctx context.Context, config *rest.Config, tenant, clusterID string) error {
	base, err := kube.NewBase(config)
	if err != nil {
		return err
	}
	return base.LetGo(ctx, kube.Registration{Tenant: tenant, ID: clusterID}, mirror.PolicyNames()...)
}

// registration is what the executor holds its cluster for.
func (e *Executor) registration() kube.Registration {
	return kube.Registration{Tenant: e.cfg.Tenant, ID: e.cfg.ClusterID, Name: e.cfg.Cluster}
}

// hold has the API server keep everybody else out of what the executor writes, and returns when it does: those of lower
// epochs altogether, others from what it remembers.
func hold(ctx context.Context, base *kube.Base, epoch int64) error {
	if err := base.Fence(ctx, epoch); err != nil {
		return fmt.Errorf("epoch %d: %w", epoch, err)
	}
	if err := base.KeepAccounts(ctx); err != nil {
		return err
	}
	return base.KeepMemory(ctx, epoch)
}

// writeReports writes reports, and all of them again when the hub asks for them.
func (e *Executor) writeReports(ctx context.Context) {
	stop, err := e.hub.Repeats(e.reporter.Repeat)
	if err != nil {
		e.cfg.Log.WarnContext(ctx, "what the hub lacks is not written again before it changes", "error", err)
	} else {
		defer func() {
			if err := stop(); err != nil && ctx.Err() == nil {
				e.cfg.Log.DebugContext(ctx, "stop to listen for requests to repeat reports", "error", err)
			}
		}()
	}
	e.reporter.Run(ctx)
}

// listen keeps the inbox true: news as they come, and the last values at the start and again and again.
func (e *Executor) listen(ctx context.Context) {
	refused := func(err error) { e.cfg.Log.WarnContext(ctx, "plans refused", "error", err) }
	stop, err := e.hub.Follow(func(p protocol.ScopePlans) {
		if err := failure.Guard(ctx, e.cfg.Log, "news", func() error { e.inbox.Offer(p); return nil }); err != nil {
			refused(err)
		}
	}, refused)
	if err != nil {
		refused(err)
	} else {
		defer func() {
			if err := stop(); err != nil && ctx.Err() == nil {
				refused(err)
			}
		}()
	}
	for ctx.Err() == nil {
		missed := 0
		plans, err := e.hub.Plans(ctx, func(err error) { missed++; refused(err) })
		wait := e.cfg.Timing.Reread
		switch {
		case err != nil:
			wait = min(wait, 2*time.Second) // the stream is to come back any moment
			e.cfg.Log.DebugContext(ctx, "plans cannot be read", "error", err)
		default:
			for _, p := range plans {
				e.inbox.Settle(p)
			}
			if missed == 0 {
				for _, ns := range e.inbox.Keep(plans) {
					e.reporter.Forget(ns)
				}
			}
			e.inbox.Ready(missed)
		}
		pace.Sleep(ctx, wait)
	}
}

// reportTrouble tells the hub why the cluster is not being served.
func (e *Executor) reportTrouble(err error) {
	state, reason := failure.OfCluster(err)
	if kube.IsElsewhere(err) && e.held.Load() > 0 {
		state = events.ObservedHeldElsewhere // it was ours
	}
	if state == "" {
		return
	}
	seen, proof := e.inbox.Highest()
	e.reporter.Cluster(protocol.ClusterReport{
		Tenant: e.cfg.Tenant, Cluster: e.cfg.Cluster, ClusterID: e.cfg.ClusterID,
		State: state, Reason: reason, Message: err.Error(), HolderEpoch: e.held.Load(), Seen: seen, Proof: proof,
	})
	if e.standby.Load() {
		return // the holder speaks for the scopes
	}
	for _, p := range e.inbox.All() {
		e.reporter.Blocked(p, e.held.Load(), hubclient.Block{
			Class: failure.Transient, Reason: "Cluster" + state,
			Message: err.Error(),
		})
	}
}

// keep runs what is to run until ctx ends, again after a panic.
func (e *Executor) keep(ctx context.Context, where string, run func(context.Context)) {
	wait := e.cfg.Timing.Backoff
	for ctx.Err() == nil {
		if failure.Guard(ctx, e.cfg.Log, where, func() error { run(ctx); return nil }) == nil {
			return
		}
		pace.Sleep(ctx, wait)
		wait = min(2*wait, reconnectMax, e.cfg.Timing.Longest)
	}
}

func block(f failure.Failure) hubclient.Block {
	return hubclient.Block{Class: f.Class, Reason: f.Reason, Message: f.Message}
}
