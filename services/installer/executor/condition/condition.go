// Package condition keeps the OperatorConditions of a namespace: through them operators say whether they let themselves
// be upgraded. Decide has the table (R-COND §8).
package condition

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Mirrors makes the objects through which operators say it.
type Mirrors interface {
	Ensure(ctx context.Context, setting string) error
	KeepCondition(ctx context.Context, sc *scope.Scope, m *scope.Operator) error
}

// Facts remembers what was read of the cluster.
type Facts interface {
	Conditions(ctx context.Context, namespace string) (map[string]*unstructured.Unstructured, error)
	ForgetNamespace(namespace string)
}

// Stage keeps OperatorConditions.
type Stage struct {
	Mirrors Mirrors
	Facts   Facts
}

type worker struct {
	*Stage
	*scope.Scope
}

// Reconcile makes the OperatorConditions that are missing, and reads what the operators say.
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) (res scope.Result, err error) {
	w := worker{s, sc}
	if err := w.keep(ctx); err != nil {
		return res, err
	}
	return res, w.read(ctx)
}

// CheckUpgradeable refuses to begin a plan that replaces an operator which does not let itself be upgraded, as it says
// at this moment (R-COND-3). Once begun, the new one waits in Pending instead.
func (s *Stage) CheckUpgradeable(ctx context.Context, sc *scope.Scope, p scope.Plan) (*failure.Failure, error) {
	return worker{s, sc}.checkUpgradeable(ctx, p)
}
