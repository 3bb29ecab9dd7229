// Package objects writes the objects of operators into the cluster: those of one operator alone, and those that several
// operators bring under one name (ADR 0021). What was there before Chandler wrote it first is marked, so that it
// outlives the operator.
package objects

import (
	"hash/maphash"
	"sync"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Objects writes for all namespaces while the cluster is held.
type Objects struct {
	// Overlays are those of a namespace now.
	Overlays func(*scope.Scope) overlay.Set
	// Wake has a namespace reconciled.
	Wake func(namespace string)
	// All are the namespaces of which the hub says what it wants.
	All func() []protocol.ScopePlans

	locks      locks
	accountsMu sync.Mutex
	accounts   map[string]*kube.Epoch // clients that write through service accounts, by user name
}

// New returns what writes objects for a new session.
func New(overlays func(*scope.Scope) overlay.Set, wake func(string), all func() []protocol.ScopePlans) *Objects {
	return &Objects{
		Overlays: overlays, Wake: wake, All: all, locks: locks{seed: maphash.MakeSeed()},
		accounts: map[string]*kube.Epoch{},
	}
}

// Writer writes in one reconcile of one namespace.
type Writer struct {
	*Objects
	*scope.Scope
}

// In returns the writer of one reconcile.
func (o *Objects) In(sc *scope.Scope) Writer { return Writer{Objects: o, Scope: sc} }
