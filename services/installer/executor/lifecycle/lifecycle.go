// Package lifecycle moves every ClusterServiceVersion of a namespace as far as it goes now, one transition after the
// other, so that the history in its status is free of gaps and doubles (package csv has the table). It writes again
// what an operator lacks, and removes what was replaced.
package lifecycle

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/unready"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/webhooks"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Serving looks after what the API server calls.
type Serving interface {
	State(ctx context.Context, sc *scope.Scope, m *scope.Operator, deployments []appsv1.Deployment) (csv.Serving, error)
	Certify(ctx context.Context, sc *scope.Scope, t scope.RenderTarget) (renewed bool, f *failure.Failure, err error)
	TakeOver(ctx context.Context, sc *scope.Scope, m *scope.Operator) (acted bool, err error)
	Times(sc *scope.Scope, m *scope.Operator) (updated, rotateAt time.Time)
}

// Deferred carries out the steps that a plan has left.
type Deferred interface {
	Callers(ctx context.Context, sc *scope.Scope, m *scope.Operator) (acted bool, err error)
}

// Rerender renders an operator anew.
type Rerender interface {
	Operator(ctx context.Context, sc *scope.Scope, m *scope.Operator) error
}

// Remover removes what still names an operator as its owner.
type Remover interface {
	RemoveOwned(ctx context.Context, sc *scope.Scope, csv string) error
}

// Stage moves operators through their phases.
type Stage struct {
	Objects  *objects.Objects
	Facts    *facts.Cache
	Unready  *unready.Cache
	Webhooks *webhooks.Owners
	Serving  Serving
	Deferred Deferred
	Rerender Rerender
	Remover  Remover
	// Version is that of Kubernetes.
	Version string
	// Await says whether a namespace waits for an API to appear.
	Await func(namespace string, waits bool)
}

type worker struct {
	*Stage
	*scope.Scope
}

// Reconcile makes the transitions that can be made now, and what they ask for.
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) (res scope.Result, err error) {
	w := worker{s, sc}
	for range maxTransitions {
		moved, err := w.advance(ctx)
		if err != nil {
			return res, err
		}
		if moved {
			continue
		}
		acted, err := w.act(ctx)
		if err != nil {
			return res, err
		}
		if !acted {
			break
		}
		if err := w.Load(ctx); err != nil {
			return res, err
		}
	}
	return res, w.findDeleted(ctx)
}

// Restore writes back what a replacement that is gone had taken over by name from an operator, before that one's phase
// goes on: the labels say from then on whose it is. False means that it cannot be done now.
func (s *Stage) Restore(ctx context.Context, sc *scope.Scope, m *scope.Operator) (bool, error) {
	if sc.Stopped() != nil {
		return false, nil
	}
	return worker{s, sc}.repair(ctx, m)
}
