package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// handler folds the events of one type.
type handler func(s *Store, ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error

// typed folds the events of one payload's type.
type typed[P events.Payload] func(s *Store, ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p P) error

// on registers what folds the events of a payload's type.
func on[P events.Payload](table map[events.Type]handler, fold typed[P]) {
	var zero P
	table[zero.EventType()] = func(s *Store, ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
		return fold(s, ctx, tx, e,
			e.Payload.(P)) //nolint:forcetypeassert // the table is looked up by the payload's type
	}
}

// each registers what folds the events of several types alike.
func each(table map[events.Type]handler, fold handler, payloads ...events.Payload) {
	for _, p := range payloads {
		table[p.EventType()] = fold
	}
}

// handlers are the events that the resolver takes, each with what folds it. This is the one list of them.
func handlers() map[events.Type]handler {
	t := map[events.Type]handler{}
	on(t, (*Store).clusterRegistered)
	on(t, (*Store).clusterLabelled)
	on(t, (*Store).clusterRemoved)
	on(t, (*Store).clusterObserved)
	each(t, (*Store).foldCatalogIntent, events.CatalogAdded{}, events.CatalogChanged{}, events.CatalogRemoved{})
	on(t, (*Store).published)
	on(t, (*Store).loadFailed)
	on(t, (*Store).bundlesFetched)
	on(t, (*Store).healthSet)
	each(t, (*Store).foldPolicy, events.ApprovalPolicySet{}, events.ApprovalPolicyDeleted{})
	each(t, (*Store).foldGroup, events.OperatorGroupCreated{}, events.OperatorGroupChanged{},
		events.OperatorGroupDeleted{})
	on(t, (*Store).groupObserved)
	each(t, (*Store).foldSubscription, events.SubscriptionCreated{}, events.SubscriptionGenerated{},
		events.SubscriptionChanged{},
		events.SubscriptionRollbackRequested{}, events.SubscriptionMetadataChanged{}, events.SubscriptionDeleted{},
		events.ResolutionFailed{}, events.ResolutionSucceeded{})
	each(t, (*Store).foldPlan, events.InstallPlanProposed{}, events.InstallPlanSuperseded{},
		events.InstallPlanApproved{},
		events.InstallPlanApprovalGiven{}, events.InstallPlanObstaclesSettled{}, events.InstallPlanRejected{},
		events.InstallPlanMetadataChanged{}, events.InstallPlanStarted{}, events.InstallPlanBlocked{},
		events.InstallPlanFinished{}, events.InstallPlanFailed{})
	on(t, (*Store).csvChanged)
	on(t, (*Store).csvRemoved)
	return t
}

// Types are the events that Apply takes.
func (s *Store) Types() []events.Type {
	out := make([]events.Type, 0, len(s.handlers))
	for t := range s.handlers {
		out = append(out, t)
	}
	return out
}

// Apply folds one event into the tables and makes dirty what it touches. An event of the resolver's own
// that its decision has folded already changes nothing.
func (s *Store) Apply(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if s.own.knows(e.ID) {
		return nil
	}
	fold, known := s.handlers[e.Type]
	if !known {
		return errs.New(errs.Internal, "the resolver does not know what to do with %s", e.Type)
	}
	return fold(s, ctx, tx, e)
}
