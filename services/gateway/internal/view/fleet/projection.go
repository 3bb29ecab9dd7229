// Package fleet is the read model of fleet subscriptions and their rollouts. Rollouts are folded as the fleet
// controller folds them (libs/fleet/rolloutstore).
package fleet

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rolloutstore"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
)

// Name is the name of the projection.
const Name = "gateway.fleet"

// Tables of the read model.
const (
	subscriptions = "fleet_subscriptions"
	rollouts      = "rollouts"
	clusters      = "rollout_clusters"
)

// Projection folds the events of fleet subscriptions and rollouts.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 3, []string{subscriptions, rollouts, clusters},
		append(readmodel.OnAll(events.KindRollout, rolloutEvent), readmodel.On(set), readmodel.On(deleted))...)
}

func set(ctx context.Context, f readmodel.Fold, p events.FleetSubscriptionSet) error {
	return f.Exec(ctx, `insert into `+f.Table(subscriptions)+
		` (tenant, name, spec, created, updated, stream, version) values ($1, $2, $3, $4, $4, $5, $6)
		on conflict (tenant, name) do update set spec = excluded.spec, updated = excluded.updated,
		stream = excluded.stream, version = excluded.version`,
		f.Tenant, p.Name, p.Spec, f.Time, f.Stream, f.Version)
}

func deleted(ctx context.Context, f readmodel.Fold, _ events.FleetSubscriptionDeleted) error {
	return f.Exec(ctx, `delete from `+f.Table(subscriptions)+` where tenant = $1 and name = $2`, f.Tenant, f.Subject)
}

// rolloutEvent also keeps who left a cluster out until it is tried again, and who had a rollout taken back, with the
// commitments to what they said.
func rolloutEvent(ctx context.Context, f readmodel.Fold) error {
	if err := rolloutstore.Fold(ctx, f.Tx, f.Tables.Schema(), f.Recorded); err != nil {
		return err
	}
	fleet, number, err := rolloutstore.Subject(f.Subject)
	if err != nil {
		return err
	}
	var cluster, words, by string
	switch e := f.Payload.(type) {
	case events.RolloutRollbackRequested:
		return f.Exec(ctx, `update `+f.Table(rollouts)+` set rollback_words = $4, rollback_by = $5
			where tenant = $1 and fleet = $2 and number = $3`, f.Tenant, fleet, number, e.Reason, f.Actor)
	case events.RolloutClusterSkipped:
		cluster, words, by = e.Cluster, e.Reason, f.Actor
	case events.RolloutClusterRetried:
		cluster = e.Cluster
	default:
		return nil
	}
	return f.Exec(ctx, `update `+f.Table(clusters)+` set words = $5, skipped_by = $6
		where tenant = $1 and fleet = $2 and number = $3 and cluster = $4`, f.Tenant, fleet, number, cluster, words, by)
}
