// Package uninstall removes operators: those that somebody asked to be uninstalled, and what still belongs to one that
// was replaced or deleted. It finds what uninstalling comes to, and does what removal.Decide decided. Custom resources
// are deleted while their operator runs, since it ends their finalizers; nothing here ever ends a finalizer for
// anybody.
package uninstall

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/steplog"
)

// Conversions knows who converts CustomResourceDefinitions.
type Conversions interface {
	ResetConversion(ctx context.Context, sc *scope.Scope, csv string) error
}

// Lifecycle knows the operators that stay.
type Lifecycle interface {
	// Restore writes the objects of an operator again; false means that it cannot be done now.
	Restore(ctx context.Context, sc *scope.Scope, m *scope.Operator) (bool, error)
}

// Stage uninstalls operators.
type Stage struct {
	Client      *kube.Epoch
	Cluster     string // name, for people
	Objects     *objects.Objects
	Logs        *steplog.Store
	Known       *Operators
	Conversions Conversions
	Lifecycle   Lifecycle
	// Describe is what the hub is notified of an operator.
	Describe func(sc *scope.Scope, m *scope.Operator) protocol.CSVReport
}

type worker struct {
	*Stage
	*scope.Scope
}

// Reconcile carries every removal as far as it goes now.
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	return scope.Result{}, worker{s, sc}.all(ctx)
}

// RemoveOwned removes what still names an operator as its owner: what a successor has, too, names that one by now. It
// looks in all namespaces, since roles are copied to the targets (R-OG-45).
func (s *Stage) RemoveOwned(ctx context.Context, sc *scope.Scope, csv string) error {
	return worker{s, sc}.removeOwned(ctx, csv, OwnedKinds())
}

// Halt removes the Deployments of an operator whose APIs are another group's (R-OG §7.7), and before them what calls
// it.
func (s *Stage) Halt(ctx context.Context, sc *scope.Scope, m *scope.Operator) error {
	if !scope.Halted(m) {
		return nil
	}
	return worker{s, sc}.removeOwned(ctx, m.Name(), haltedKinds())
}

// Reports are those of the removals that the hub names.
func (s *Stage) Reports(sc *scope.Scope) []protocol.RemovalReport {
	var out []protocol.RemovalReport
	for _, asked := range sc.Snapshot.Wanted.Removals {
		o, ok := sc.Found.Outcomes[asked.ID]
		if !ok {
			continue
		}
		t := protocol.RemovalReport{
			ID: asked.ID, CSV: asked.CSV, Phase: o.Phase, Class: o.Class, Reason: o.Reason,
			Message: o.Message,
		}
		if x := sc.Snapshot.Executions.Of(asked.ID); x != nil && o.Phase == protocol.PlanFinished {
			t.Left = x.Status.Left
		}
		out = append(out, t)
	}
	return out
}

func (w worker) remover() Remover { return Remover{Client: w.Stage.Client, At: w.Env.Points.At} }

func (w worker) removeOwned(ctx context.Context, csv string, kinds []schema.GroupVersionKind) error {
	if err := w.Conversions.ResetConversion(ctx, w.Scope, csv); err != nil {
		return err
	}
	_, err := w.remover().Sweep(ctx, Question{Kinds: kinds, Namespace: w.Namespace, CSV: csv})
	return err
}
