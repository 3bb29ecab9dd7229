package fleetstore

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/fleet"
)

// release lets a cluster go: its subscription stays as it is, or ends, and what it brought is uninstalled.
func (w writer) release(ctx context.Context, r fleet.Release) error {
	subject := r.Cluster + "/" + r.Namespace + "/" + w.s.Name
	head, err := w.log.Latest(ctx, w.tx, w.s.Tenant, events.KindSubscription, subject)
	if err != nil || !head.Exists() {
		return err
	}
	last, err := w.log.ReadStream(ctx, w.tx, w.s.Tenant, head.ID, 0)
	if err != nil || !owned(last) { // let go already: the log brings it
		return err
	}
	var p events.Payload = events.SubscriptionReleased{Kept: r.Kept}
	if r.End {
		p = events.SubscriptionRemoved{}
	}
	done, err := w.log.Append(ctx, w.tx, w.meta("", ""), head.ID, subject, head.Version, p)
	if err != nil {
		return err
	}
	for _, csv := range r.Remove {
		if err := w.remove(ctx, r, csv, done.Events[0]); err != nil {
			return err
		}
	}
	return count(ctx, w.tx, done.Events[0], events.BudgetLeaving, r.Cluster)
}

// remove has an operator uninstalled, unless that was asked for already, or it is gone.
func (w writer) remove(ctx context.Context, r fleet.Release, csv string, cause events.Envelope) error {
	subject := r.Cluster + "/" + r.Namespace + "/" + csv
	head, err := w.log.Latest(ctx, w.tx, w.s.Tenant, events.KindCSV, subject)
	if err != nil || !head.Exists() {
		return err
	}
	life, err := w.log.ReadStream(ctx, w.tx, w.s.Tenant, head.ID, 0)
	if err != nil || !removable(life) {
		return err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return errs.Wrap(errs.Internal, err, "draw the id of a removal")
	}
	_, err = w.log.Append(ctx, w.tx, w.meta(cause.Correlation, cause.ID), head.ID, subject, head.Version,
		events.CSVRemovalDirected{Removal: id.String(), CRDs: r.CRDs, FleetSubscription: w.s.Name})
	return err
}

// removable says whether an operator is there, and nobody has asked for its removal.
func removable(life []eventlog.Recorded) bool {
	for _, e := range slices.Backward(life) {
		switch e.Payload.(type) {
		case events.CSVRemovalRequested, events.CSVRemovalDirected, events.CSVRemoved:
			return false
		case events.CSVRemovalRefused:
			return true
		}
	}
	return true
}

// owned says whether a fleet subscription still holds a subscription.
func owned(life []eventlog.Recorded) bool {
	_, placed := lastWord(life).(events.SubscriptionPlaced)
	return placed
}

// lastWord is the newest event that says whose a subscription is; nil where a person made it, and no more was said.
func lastWord(life []eventlog.Recorded) events.Payload {
	for _, e := range slices.Backward(life) {
		switch e.Payload.(type) {
		case events.SubscriptionReleased, events.SubscriptionChanged, events.SubscriptionPlaced:
			return e.Payload
		}
	}
	return nil
}
