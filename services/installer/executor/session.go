package executor

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/groups"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/idle"
	mirrors "github.com/chandler-fleet/chandler/services/installer/executor/internal/mirror"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/provenance"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/renderlimit"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/uninstall"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/unready"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/webhooks"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

const (
	// workers is how many namespaces are worked on at a time. Work mostly waits, for the API server or for a CRD to be
	// established; writes are bounded by themselves.
	workers = 32
	// maxRenders is how many of them may have the rendered objects of operators at rest at a time: these are large, and it is the
	// processor that they wait for.
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
	base      *kube.Base
	client    *kube.Epoch
	lease     *kube.Lease
	version   string
	queue     workqueue.TypedRateLimitingInterface[string]
	end       context.CancelCauseFunc
	facts     *facts.Cache
	watcher   *watch.Watch
	trail     *watch.Trail
	signals   *watch.Signals
	edited    chan struct{} // somebody touched an admission policy of ours
	tokens    chan struct{} // something changed that the mode of cloud tokens hangs on
	turns     chan struct{} // one for each write of a step that may be under way
	judging   chan struct{} // one for each plan whose definitions may be judged at a time
	around    *clusterconfig.Cache
	renders   *renderlimit.Limiter
	idle      *idle.Timer
	operators *uninstall.Operators // what installed operators bring and need
	unready   *unready.Cache       // why Deployments are not scope.Plan
	hooks     *webhooks.Owners     // whose admission webhooks are

	mu      sync.Mutex
	seen    map[string]kube.Seen
	scopes  map[string]bool                           // every namespace that was worked on
	waiting map[string]bool                           // those that wait for an API to appear
	awaited map[string][]string                       // API groups that objects of a namespace wait for which no operator needs
	retry   map[string]retryNote                      // plans not begun that failed for now, by plan id
	errors  map[string]time.Time                      // namespaces of which the last look ended in an error, since when
	drifts  map[string]map[protocol.ObjectRef]drifted // by namespace

	certificates *certs.Store
	mirrors      *mirrors.Keeper
	olm          *mirrors.OLM
	env          *scope.Env
	parts        map[string][]protocol.ObjectRef // rendered objects of operators that are shown, by uid of the InstalledOperator
	groups       *groups.Groups
	unsafe       map[string]string      // namespaces of plans that wait for definitions to change, by plan id
	scoped       map[string]*kube.Epoch // clients that write through service accounts, by user name
	objects      *objects.Objects
	chosen       map[string]string   // what was chosen of obstacles of plans when they were tried last, by plan id
	noted        map[string][]string // plans that notes by plan id may be kept of, by namespace
	tokenAuth    string              // the mode of cloud tokens, "" until it is known
}

// retryNote is the back-off of a plan that has no step log yet.
type retryNote struct {
	attempts int
	since    time.Time
	after    time.Time
	failure  failure.Failure
}

func newSession(e *Executor, base *kube.Base, client *kube.Epoch, lease *kube.Lease, version string, seen map[string]kube.Seen) *session {
	s := &session{
		Executor: e, base: base, edited: make(chan struct{}, 1), tokens: make(chan struct{}, 1), client: client, lease: lease, version: version,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		facts: facts.New(client, e.cfg.Now), around: clusterconfig.New(client), certificates: certs.NewStore(), groups: groups.New(e.cfg.Timing.Refused),
		trail: watch.NewTrail(), signals: watch.NewSignals(), turns: make(chan struct{}, parallelWrites), judging: make(chan struct{}, 1),
		seen: seen, scopes: map[string]bool{}, waiting: map[string]bool{}, retry: map[string]retryNote{}, errors: map[string]time.Time{},
		drifts: map[string]map[protocol.ObjectRef]drifted{},
		unsafe: map[string]string{}, awaited: map[string][]string{}, scoped: map[string]*kube.Epoch{}, chosen: map[string]string{},
		noted: map[string][]string{},
	}
	s.renders, s.idle = renderlimit.New(maxRenders), idle.New(restAfter, e.contents.Forget)
	s.operators = uninstall.NewOperators()
	s.objects = objects.New(s.overlays, s.wake, e.inbox.All)
	s.env = &scope.Env{
		Client: client, Log: e.cfg.Log, Now: e.cfg.Now, Points: e.points, Pause: e.cfg.Timing.Pause, Contents: e.contents,
		Pace: pace.New(e.cfg.Timing.Backoff, e.cfg.Timing.Longest), Trail: s.trail, Specs: provenance.NewSpecs(), Rendered: scope.NewRenderedStates(),
		Found: func(o *unstructured.Unstructured, csv bundle.CSV) { s.operators.Note(o, csv) }, Stop: s.stopped,
	}
	s.unready, s.hooks = unready.New(client, e.cfg.Now, e.cfg.Timing.Grace), webhooks.New(client, e.cfg.Now)
	s.mirrors = mirrors.New(mirrors.Config{Client: client, Log: e.cfg.Log, Now: e.cfg.Now, At: s.points.At})
	s.olm, s.parts = mirrors.NewOLM(client, e.cfg.Log, e.cfg.Now), map[string][]protocol.ObjectRef{}
	return s
}

// run works until the lease is lost (nil), ctx ends (nil), or a Hook crashes.
func (s *session) run(ctx context.Context) error {
	within, end := context.WithCancelCause(ctx)
	s.end = end
	var running sync.WaitGroup
	for _, a := range s.asides() {
		running.Go(func() {
			if err := failure.Guard(within, s.cfg.Log, a.where, func() error { a.do(within); return nil }); err != nil {
				end(err)
			}
		})
	}
	s.reportCluster()
	select {
	case <-within.Done():
	case <-s.inbox.First():
		for _, ns := range s.inbox.ListenWith(s.queue.Add) {
			s.queue.Add(ns)
		}
	}
	<-within.Done()
	s.inbox.ListenWith(func(string) {})
	s.queue.ShutDown()
	running.Wait()
	return s.ended(ctx, context.Cause(within))
}

// aside is what goes on side by side while the cluster is held; it returns when its context ends.
type aside struct {
	where string
	do    func(context.Context)
}

func (s *session) asides() []aside {
	return []aside{{"renewal of the lease", s.renew}, {"watch", s.watcher.Run}, {"answers", s.answer}, {"definitions of mirrors", s.prepareMirrors}, {"admission policies", s.restore}, {"cloud tokens", s.tellTokens}, {"events", s.mirrors.Tell}, {"work", s.work}}
}

// ended makes of the cause what Run is to know, and hands the lease over at an orderly stop.
func (s *session) ended(ctx context.Context, cause error) error {
	if c, ok := errors.AsType[failure.Crash](cause); ok {
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
		pause(ctx, s.cfg.Timing.Renew)
		attempt, cancel := context.WithTimeout(ctx, limit/2)
		err := s.lease.Renew(attempt)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			heard = s.cfg.Now()
			s.reportCluster()
			if troubled { // plans were reported as blocked: look at them again
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

// work hands out namespaces while the cluster is held. Who works on one is there for that time only, so that a cluster
// in which nothing happens keeps none of them.
func (s *session) work(ctx context.Context) {
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

// one works on a namespace and says when to look again.
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
		s.cfg.Log.InfoContext(ctx, "work on a namespace is tried again", "namespace", namespace, "error", err)
		if plans, _, known := s.inbox.Get(namespace); known && s.lasting(namespace) {
			s.reporter.Blocked(plans, s.client.Number, block(failure.OwnObject(err)))
		}
		again = min(errorPause, s.cfg.Timing.Pause)
	default:
		s.mu.Lock()
		delete(s.errors, namespace)
		s.mu.Unlock()
	}
	s.queue.AddAfter(namespace, again)
}

// fencedOut asks the fence itself whether a newer executor holds the cluster. Where it cannot be read, the lease decides.
func (s *session) fencedOut(ctx context.Context) bool {
	out, err := s.base.FencedOut(ctx, s.client.Number)
	if err != nil || !out {
		s.cfg.Log.WarnContext(ctx, "a write was refused in the name of the fence, which does not stand above us", "error", err)
	}
	return err == nil && out
}

// restore puts admission policies right that somebody touches while the cluster is held.
func (s *session) restore(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-s.edited:
		}
		if err := hold(ctx, s.base, s.client.Number); err != nil && ctx.Err() == nil {
			s.cfg.Log.WarnContext(ctx, "admission policies are not as they should be", "error", err)
			if kube.IsFenceAhead(err) {
				s.end(err)
				return
			}
			s.policyTouched()
			pause(ctx, errorPause)
		}
	}
}

func (s *session) policyTouched() {
	select {
	case s.edited <- struct{}{}:
	default: // somebody looks already
	}
}

// lasting notes an error of a look, and reports whether looks have ended in errors for long enough to be told.
func (s *session) lasting(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, ok := s.errors[namespace]
	if !ok {
		since = s.cfg.Now()
		s.errors[namespace] = since
	}
	return s.cfg.Now().Sub(since) >= s.cfg.Timing.Grace
}

// note compares the message with what was acted on, and writes its position down before anything is
// done because of it. refused reports a record that has gone back.
func (s *session) note(ctx context.Context, p protocol.ScopePlans, behind bool) (refused bool, err error) {
	ns := p.Scope.Namespace
	s.mu.Lock()
	seen := s.seen[ns]
	s.scopes[ns] = true
	s.mu.Unlock()
	if behind || p.Position.Less(seen.Position) {
		return true, nil
	}
	if p.Position == seen.Position || len(p.Plans) == 0 && len(p.Installed) == 0 && seen.IsZero() {
		return false, nil // nothing new, or nothing here that could be acted on
	}
	next := kube.Seen{Position: p.Position, Proof: p.Proof}
	if err := s.client.SetSeen(ctx, ns, next); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.seen[ns] = next
	s.mu.Unlock()
	return false, nil
}

func (s *session) seenAt(namespace string) kube.Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[namespace]
}

func (s *session) seenHighest() kube.Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	var top kube.Seen
	for p := range maps.Values(s.seen) {
		if top.Less(p.Position) {
			top = p
		}
	}
	return top
}

func (s *session) setWaiting(namespace string, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waits {
		s.waiting[namespace] = true
		return
	}
	delete(s.waiting, namespace)
}

func (s *session) waitingScopes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.waiting))
	for ns := range s.waiting {
		out = append(out, ns)
	}
	return out
}

// stopped looks at the stop switch as it is now, and whether OLM runs.
func (s *session) stopped(namespace string) *failure.Failure {
	if message := s.olmMessage(); message != "" {
		return &failure.Failure{Class: failure.Stopped, Reason: failure.ReasonOLM, Quick: true, Message: message}
	}
	p, _, _ := s.inbox.Get(namespace)
	if !p.Stopped {
		return nil
	}
	return &failure.Failure{Class: failure.Stopped, Reason: failure.ReasonStopped, Quick: true, Message: "effects are stopped"}
}

// left notes an object as Chandler has just left it.
func (s *session) left(o *unstructured.Unstructured) { s.trail.Clean(scope.RefOf(o), watch.Mark(o)) }
