package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/hub"
)

// reconnectMax is the longest wait between two tries to reach a cluster.
const reconnectMax = 30 * time.Second

// Executor serves one cluster.
type Executor struct {
	cfg      Config
	hub      *hub.Hub
	contents *hub.Contents
	inbox    *inbox
	reporter *reporter
	standby  atomic.Bool  // somebody else held the cluster when we looked last
	held     atomic.Int64 // our last epoch: who held the cluster speaks for it until another one does
}

// New returns an executor that does nothing yet.
func New(cfg Config) (*Executor, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Timing = cfg.Timing.withDefaults()
	cfg.Log = cfg.Log.With("cluster", cfg.Cluster)
	h := hub.New(cfg.JetStream, cfg.Tenant, cfg.ClusterID)
	return &Executor{
		cfg: cfg, hub: h, contents: hub.NewContents(h), inbox: newInbox(),
		reporter: newReporter(h, cfg.Log, cfg.Timing.Resend, cfg.Now),
	}, nil
}

// crash is what a Hook's error becomes: it ends Run as kill -9 would, without an orderly end.
type crash struct{ error }

func (c crash) Unwrap() error { return c.error }

// Run works until ctx ends and returns nil then. It waits for a cluster or a hub that is away, and
// for another holder, as long as it takes.
func (e *Executor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { e.keep(ctx, "listener", e.listen) })
	running.Go(func() { e.keep(ctx, "reporter", e.reporter.run) })

	base, err := cluster.NewBase(e.cfg.REST)
	if err != nil {
		return err
	}
	lease := cluster.NewLease(base, e.cfg.Holder, e.cfg.Timing.Lease, e.cfg.Now)
	wait := e.cfg.Timing.Backoff
	for ctx.Err() == nil {
		var held bool
		err := guard(ctx, e.cfg.Log, "session", func() (err error) {
			held, err = e.serve(ctx, base, lease)
			return err
		})
		if c, ok := errors.AsType[crash](err); ok {
			return c.error
		}
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.WarnContext(ctx, "executor waits", "error", err, "wait", wait)
			e.reportTrouble(err)
		}
		switch {
		case held:
			wait = e.cfg.Timing.Backoff
		case err == nil:
			wait = e.cfg.Timing.Renew // somebody else holds it, and is heard of as often
		}
		pause(ctx, wait)
		if err != nil {
			wait = min(2*wait, reconnectMax)
		}
	}
	return nil
}

// serve makes one round: connect, try for the lease, work while it is held. held reports whether it was.
func (e *Executor) serve(ctx context.Context, base *cluster.Base, lease *cluster.Lease) (held bool, err error) {
	version, err := base.Version(ctx)
	if err != nil {
		return false, err
	}
	if !e.standby.Load() { // one that waits does not make again and again what the holder made
		if err := base.Bootstrap(ctx); err != nil {
			return false, err
		}
	}
	epoch, err := lease.Acquire(ctx)
	e.standby.Store(err == nil && epoch == 0)
	if err != nil || epoch == 0 {
		return false, err
	}
	e.held.Store(epoch)
	if err := base.Fence(ctx, epoch); err != nil {
		return false, fmt.Errorf("epoch %d: %w", epoch, err)
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
	s := newSession(e, client, lease, version, seen)
	return true, s.run(ctx)
}

// listen keeps the inbox true: news as they come, and the last values at the start and again and again.
func (e *Executor) listen(ctx context.Context) {
	refused := func(err error) { e.cfg.Log.WarnContext(ctx, "plans refused", "error", err) }
	stop, err := e.hub.Follow(func(p protocol.ScopePlans) {
		if err := guard(ctx, e.cfg.Log, "news", func() error { e.inbox.offer(p); return nil }); err != nil {
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
		plans, err := e.hub.Plans(ctx, refused)
		wait := e.cfg.Timing.Reread
		switch {
		case err != nil:
			wait = min(wait, 2*time.Second) // the stream is to come back any moment
			e.cfg.Log.DebugContext(ctx, "plans cannot be read", "error", err)
		default:
			for _, p := range plans {
				e.inbox.settle(p)
			}
			e.inbox.ready()
		}
		pause(ctx, wait)
	}
}

// reportTrouble tells the hub why the cluster is not being served.
func (e *Executor) reportTrouble(err error) {
	state, reason := trouble(err)
	if state == "" {
		return
	}
	e.reporter.cluster(protocol.ClusterReport{
		Tenant: e.cfg.Tenant, Cluster: e.cfg.Cluster, ClusterID: e.cfg.ClusterID,
		State: state, Reason: reason, Message: err.Error(), HolderEpoch: e.held.Load(), Seen: e.inbox.highest(),
	})
	if e.standby.Load() {
		return // the holder speaks for the scopes
	}
	for _, p := range e.inbox.all() {
		e.reporter.blocked(p, e.held.Load(), failure{class: classTransient, reason: "Cluster" + state, message: err.Error()})
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
