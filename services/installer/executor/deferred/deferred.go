// Package deferred carries out steps that a plan has left: objects whose kind the cluster does not serve yet and no
// operator needs, and what has the API server call an operator whose Deployments did not answer in time.
package deferred

import (
	"context"

	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Stage writes late what plans left.
type Stage struct {
	Objects *objects.Objects
	// Await says for which API groups the objects of a namespace wait.
	Await func(namespace string, groups []string)
}

type worker struct {
	*Stage
	*scope.Scope
}

// Reconcile writes objects whose kind is served by now.
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	return scope.Result{}, worker{s, sc}.late(ctx)
}

// Callers has the API server call an operator whose Deployments answer, by the steps that its plan left.
func (s *Stage) Callers(ctx context.Context, sc *scope.Scope, m *scope.Operator) (acted bool, err error) {
	if !sc.Found.Group.One || scope.Halted(m) {
		return false, nil
	}
	return worker{s, sc}.callers(ctx, m)
}
