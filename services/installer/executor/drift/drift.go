// Package drift compares what others wrote into the objects of operators with what Chandler would write, by a trial of
// the API server where plain comparison does not settle it, then puts it right or only reports it, as the cluster's
// settings say (R-CSV-24).
package drift

import (
	"context"

	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Conversions knows who converts CustomResourceDefinitions.
type Conversions interface {
	Hold(ctx context.Context, sc *scope.Scope, t scope.RenderTarget) error
}

// Facts remembers what was read of the cluster.
type Facts interface {
	ForgetNamespace(namespace string)
	ForgetCRD(name string) []string
}

// Stage finds drift.
type Stage struct {
	Objects     *objects.Objects
	Store       *Store
	Facts       Facts
	Conversions Conversions
}

type worker struct {
	*Stage
	*scope.Scope
}

// Reconcile compares what moved since the last reconcile.
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	return scope.Result{}, worker{s, sc}.reconcile(ctx)
}
