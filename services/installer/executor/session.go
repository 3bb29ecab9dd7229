package executor

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/group"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/idle"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/platform"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/renderlimit"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/mirror"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

const (
	// workers is how many namespaces are worked on at a time. Work mostly waits, for the API server or for a CRD to be
	// established; writes are bounded by themselves.
	workers = 32
	// maxRenders is how many of them may have the rendered objects of operators at rest at a time: these are large, and
	// it is the processor that they wait for.
	maxRenders = 8
	// restAfter is how long nothing is worked on before bundles that may be asked for again are forgotten.
	restAfter = time.Minute
	// releaseTimeout bounds the hand-over of the lease at an orderly stop.
	releaseTimeout = 5 * time.Second
	// errorPause is the wait after work on a scope ended in an error that has no place in a step log.
	errorPause = 2 * time.Second
)

// session is one time of holding the cluster: from the lease to its loss.
type session struct {
	*Executor
	caches
	stages

	base      *kube.Base
	client    *kube.Epoch
	lease     *kube.Lease
	version   string
	queue     workqueue.TypedRateLimitingInterface[string]
	end       context.CancelCauseFunc
	watcher   *watch.Watch
	edited    chan struct{} // somebody touched an admission policy or a definition of ours
	tokens    chan struct{} // something changed that the mode of cloud tokens hangs on
	renders   *renderlimit.Limiter
	idle      *idle.Timer
	positions *positions
	waiting   *waiting

	mu        sync.Mutex
	failing   map[string]time.Time // namespaces of which the last reconcile ended in an error, since when
	tokenAuth string               // the mode of cloud tokens, "" until it is known
	platform  *platform.Found      // what the cluster is made of, nil until it is known
}

// caches remember what was read of the cluster. A watch says when they are to forget.
type caches struct {
	facts        *facts.Cache
	configCache  *clusterconfig.Cache
	certificates *certs.Store
	groups       *group.Groups
	mirrors      *mirror.Keeper
	olm          *mirror.OLM
	trail        *watch.Trail
	signals      *watch.Signals
}

func newSession(e *Executor, base *kube.Base, client *kube.Epoch, lease *kube.Lease, version string,
	seen map[string]kube.Seen,
) *session {
	s := &session{
		Executor: e, base: base, client: client, lease: lease, version: version,
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		edited: make(chan struct{}, 1), tokens: make(chan struct{}, 1),
		renders: renderlimit.New(maxRenders), idle: idle.New(restAfter, e.contents.Forget),
		positions: &positions{stored: seen, client: kube.Positions{Epoch: client}}, waiting: newWaiting(),
		failing: map[string]time.Time{},
	}
	s.caches = caches{
		facts: facts.New(client, e.cfg.Now), configCache: clusterconfig.New(client), certificates: certs.NewStore(),
		groups: group.New(e.cfg.Timing.Refused), mirrors: mirror.New(
			mirror.Config{Client: client, Log: e.cfg.Log, Now: e.cfg.Now, At: s.points.At}),
		olm:   mirror.NewOLM(client, e.cfg.Log, e.cfg.Now),
		trail: watch.NewTrail(), signals: watch.NewSignals(),
	}
	s.stages = s.newStages()
	return s
}

// run works until the lease is lost (nil), ctx ends (nil), or a Hook crashes.
func (s *session) run(ctx context.Context) error {
	inner, end := context.WithCancelCause(ctx)
	s.end = end
	var running sync.WaitGroup
	for _, a := range s.tasks() {
		running.Go(func() {
			if err := failure.Guard(inner, s.cfg.Log, a.where, func() error { a.do(inner); return nil }); err != nil {
				end(err)
			}
		})
	}
	s.reportCluster()
	select {
	case <-inner.Done():
	case <-s.inbox.First():
		s.awaitGoAhead(inner)
		for _, ns := range s.inbox.ListenWith(s.queue.Add) {
			s.queue.Add(ns)
		}
	}
	<-inner.Done()
	s.inbox.ListenWith(func(string) {})
	s.queue.ShutDown()
	running.Wait()
	return s.ended(ctx, context.Cause(inner))
}

// awaitGoAhead waits until the hub was asked once whether effects are allowed: else plans would be reported as blocked
// at every start.
func (s *session) awaitGoAhead(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.cfg.GoAheads.First(s.cfg.Tenant):
	}
}

// task is what goes on side by side while the cluster is held; it returns when its context ends.
type task struct {
	where string
	do    func(context.Context)
}

func (s *session) tasks() []task {
	return []task{
		{"renewal of the lease", s.renew},
		{"watch", s.watcher.Run},
		{"answers", s.answer},
		{"go-ahead", s.followGoAhead},
		{"definitions of mirrors", s.prepareMirrors},
		{"policies and definitions", s.restore},
		{"cloud tokens", s.watchTokens},
		{"facts", s.followPlatform},
		{"events", s.mirrors.SendEvents},
		{"reconcile", s.reconcileAll},
	}
}

// ended makes of the cause what Run is to know, and hands the lease over at an orderly stop.
func (s *session) ended(ctx context.Context, cause error) error {
	if c, ok := errors.AsType[failure.CrashError](cause); ok {
		return c
	}
	if ctx.Err() == nil {
		s.cfg.Log.WarnContext(ctx, "executor no longer holds the cluster", "epoch", s.client.Number, "cause", cause)
		if errs.Is(cause, errs.Conflict) {
			s.reporter.Silence()
			return nil
		}
		return cause
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := s.lease.Release(stop); err != nil {
		s.cfg.Log.WarnContext(stop, "lease was not released; another executor waits until it runs out", "error", err)
	}
	return nil
}

// renew keeps the lease. Without contact for two thirds of its time the session ends: before anybody
// else may take it.
func (s *session) renew(ctx context.Context) {
	heard, troubled := s.cfg.Now(), false
	limit := s.lease.Duration * 2 / 3
	for ctx.Err() == nil {
		pace.Sleep(ctx, s.cfg.Timing.Renew)
		attempt, cancel := context.WithTimeout(ctx, limit/2)
		err := s.lease.Renew(attempt)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			heard = s.cfg.Now()
			s.reportCluster()
			if troubled { // plans were reported as blocked: they are to be reported anew
				troubled = false
				for _, p := range s.inbox.All() {
					s.queue.Add(p.Scope.Namespace)
				}
			}
		case errs.Is(err, errs.Conflict):
			s.end(err)
		case s.cfg.Now().Sub(heard) >= limit:
			s.end(err)
		default:
			troubled = true
			s.reportTrouble(err)
		}
	}
}

// reconcileAll hands out namespaces while the cluster is held. Who works on one is there for that time only, so that a
// cluster in which nothing happens keeps none of them.
func (s *session) reconcileAll(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	defer s.idle.Stop()
	places := make(chan struct{}, workers)
	for {
		places <- struct{}{}
		ns, shutdown := s.queue.Get()
		if shutdown {
			return
		}
		working.Go(func() {
			defer func() { <-places }()
			defer s.queue.Done(ns)
			if ctx.Err() != nil {
				return
			}
			s.idle.Touch()
			if err := failure.Guard(ctx, s.cfg.Log, "worker", func() error { s.one(ctx, ns); return nil }); err != nil {
				s.end(err)
			}
		})
	}
}

// one reconciles a namespace and says when it is to be reconciled again.
func (s *session) one(ctx context.Context, namespace string) {
	s.watcher.Demand() // something is wanted of the cluster
	var again time.Duration
	err := failure.Guard(ctx, s.cfg.Log, "namespace "+namespace, func() (err error) {
		again, err = s.reconcile(ctx, namespace)
		return err
	})
	switch {
	case failure.IsCrash(err):
		s.end(err)
		return
	case ctx.Err() != nil:
		return
	case kube.IsFenced(err) && s.fencedOut(ctx):
		s.end(errs.Wrap(errs.Conflict, err, "a write was refused"))
		return
	case err != nil:
		s.cfg.Log.InfoContext(ctx, "work on a namespace is tried again", "namespace", namespace, "stage", stageOf(err),
			"error", err)
		if plans, _, known := s.inbox.Get(namespace); known && s.lasting(namespace) {
			s.reporter.Blocked(plans, s.client.Number, block(failure.OwnObject(err)))
		}
		again = min(errorPause, s.cfg.Timing.Pause)
	default:
		s.mu.Lock()
		delete(s.failing, namespace)
		s.mu.Unlock()
	}
	s.queue.AddAfter(namespace, again)
}

// fencedOut asks the fence itself whether a newer executor holds the cluster. Where it cannot be read, the lease
// decides.
func (s *session) fencedOut(ctx context.Context) bool {
	out, err := s.base.FencedOut(ctx, s.client.Number)
	if err != nil || !out {
		s.cfg.Log.WarnContext(ctx, "a write was refused in the name of the fence, which does not stand above us",
			"error", err)
	}
	return err == nil && out
}

// lasting notes an error of a reconcile, and reports whether reconciles have ended in errors for long enough to be
// reported.
func (s *session) lasting(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, ok := s.failing[namespace]
	if !ok {
		since = s.cfg.Now()
		s.failing[namespace] = since
	}
	return s.cfg.Now().Sub(since) >= s.cfg.Timing.Grace
}
