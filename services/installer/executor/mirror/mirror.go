// Package mirror keeps the objects of OLM's kinds that show people and tools what is installed: it gathers what they show, and
// package internal/mirror writes them.
package mirror

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/protocol"
	mirrors "github.com/chandler-fleet/chandler/services/installer/executor/internal/mirror"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Stage keeps mirrors.
type Stage struct {
	Keeper *mirrors.Keeper
	// GroupReport is what the hub is notified of the operator group.
	GroupReport func(*scope.Scope) *protocol.GroupReport
}

type worker struct {
	*Stage
	*scope.Scope
}

// Reconcile keeps the mirrors of a namespace. It holds up nothing else: what cannot be written is reported and tried again.
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) error {
	return worker{s, sc}.reconcile(ctx)
}
