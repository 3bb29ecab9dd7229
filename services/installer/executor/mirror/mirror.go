// Package mirror keeps the objects of OLM's kinds that show people and tools what is installed. The stage gathers what
// they show, package services/installer/mirror says what they are, and the Keeper writes them.
//
// What was written is remembered with the resource version that it got, and a watch of metadata reports when somebody
// else wrote or deleted: a reconcile of a namespace in which nothing changed makes no request. What is remembered can
// be lost.
package mirror

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Stage keeps mirrors.
type Stage struct {
	Keeper *Keeper
	// GroupReport is what the hub is notified of the operator group.
	GroupReport func(*scope.Scope) *protocol.GroupReport
}

type worker struct {
	*Stage
	*scope.Scope
}

// Reconcile keeps the mirrors of a namespace. It holds up nothing else: what cannot be written is reported and tried
// again.
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	return scope.Result{}, worker{s, sc}.reconcile(ctx)
}

// Ensure makes the definitions of the mirrors.
func (s *Stage) Ensure(ctx context.Context, setting string) error {
	return s.Keeper.Ensure(ctx, setting)
}

// KeepCondition makes the OperatorCondition of an operator.
func (s *Stage) KeepCondition(ctx context.Context, sc *scope.Scope, m *scope.Operator) error {
	return s.Keeper.KeepCondition(ctx, InstalledOf(sc, m), sc.Left)
}
