// Package plan carries out install plans: it admits them, checks what stands in their way before the first step, and
// takes the steps one batch after the other. Steps that depend on the phase of an operator wait until its phases were
// reconciled.
//
// It has two stages: Deployments goes first, since a phase depends on whether what a plan is about to write runs; Steps
// carries the plans out.
package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/webhooks"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/steplog"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

// Facts remembers what was read of the cluster.
type Facts interface {
	NoteCRD(o *unstructured.Unstructured)
}

// Group looks after the operator group.
type Group interface {
	Claim(sc *scope.Scope, p scope.Plan)
	Busy(sc *scope.Scope)
}

// Serving makes the certificates that objects of a plan need.
type Serving interface {
	Certify(ctx context.Context, sc *scope.Scope, t scope.RenderTarget) (renewed bool, f *failure.Failure, err error)
	CertifyConversion(ctx context.Context, sc *scope.Scope, t scope.RenderTarget) (*failure.Failure, error)
}

// Conditions knows what operators say of their upgrades.
type Conditions interface {
	CheckUpgradeable(ctx context.Context, sc *scope.Scope, p scope.Plan) (*failure.Failure, error)
}

// Deps are what plans are carried out with.
type Deps struct {
	Objects    *objects.Objects
	Logs       *steplog.Store
	Webhooks   *webhooks.Owners
	Signals    *watch.Signals
	Facts      Facts
	Group      Group
	Serving    Serving
	Conditions Conditions
	// Version is that of Kubernetes.
	Version string
	// Await says whether a namespace waits for an API to appear.
	Await func(namespace string, waits bool)
}

// Stage carries out plans.
type Stage struct {
	Deps

	turns   chan struct{} // one for each write of a step that may be under way
	judging chan struct{} // one for each plan whose definitions may be judged at a time
}

// New returns the stage of a new session.
func New(d Deps) *Stage {
	return &Stage{Deps: d, turns: make(chan struct{}, parallelWrites), judging: make(chan struct{}, 1)}
}

type worker struct {
	*Stage
	*scope.Scope
}

// Deployments is the stage that notes the Deployments of plans that are begun and not ended, so that a
// ClusterServiceVersion that runs with other ones is seen to need an install.
type Deployments struct{ *Stage }

// Reconcile notes them. A plan that cannot be opened now says so when its turn comes.
func (d Deployments) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	for _, p := range sc.Snapshot.Wanted.Plans {
		x := sc.Snapshot.Executions.Of(p.ID)
		if x == nil || !x.Status.Begun || scope.Ended(x) {
			continue
		}
		if r, f := sc.Open(ctx, p, x); f == nil {
			overlay.Expect(sc, d.Objects.Overlays(sc), r)
		}
	}
	return scope.Result{}, nil
}

// Steps is the stage that carries out the plans of one namespace in one reconcile.
type Steps struct {
	stage   *Stage
	next    int   // the plan whose turn it is
	waiting *run  // it, once it has waited
	failed  error // why the phases that it waited for could not be reconciled
}

// Steps returns the stage of one reconcile.
func (s *Stage) Steps() *Steps { return &Steps{stage: s} }

// Reconcile carries the plans as far as they go now, one after the other. Where a step depends on the phase of an
// operator the result says so: the phases are to be reconciled, and then the plans once more.
func (s *Steps) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	w := worker{s.stage, sc}
	if s.waiting == nil {
		w.Logs.In(sc).Forget()
	}
	for ; s.next < len(sc.Snapshot.Wanted.Plans); s.next++ {
		var err error
		if s.waiting, err = w.plan(ctx, sc.Snapshot.Wanted.Plans[s.next], s.waiting, s.failed); err != nil {
			return scope.Result{}, err
		}
		if s.failed = nil; s.waiting != nil {
			return scope.Result{Again: true, Why: s.waiting.waits}, nil
		}
	}
	return scope.Result{}, nil
}

// PhasesFailed says why the phases that a plan waits for could not be reconciled; nil where they were. The plan is
// blocked for that.
func (s *Steps) PhasesFailed(err error) { s.failed = err }

// run is a plan that is being carried out.
type run struct {
	scope.Plan

	log     *kube.Execution
	batch   []int           // the steps whose turn it is
	resumed bool            // they may have been done before a crash
	passed  map[string]bool // gates, by ClusterServiceVersion
	// reconciled is set once the phases of operators were reconciled for the gate before the batch; waits says what
	// for.
	reconciled bool
	waits      string
}
