package fleets

import (
	"context"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/fleetsubscription"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/audit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// Preview says what a fleet subscription leads to on the clusters behind after, or would lead to: in is what it would
// be, after all checks of the write, which is taken back; nil is what it is.
func (s *Service) Preview(
	ctx context.Context, who model.Caller, name string, in *fleetmodel.SetFleetSubscription, after string, limit int,
) (previewapi.FleetPage, error) {
	var spec *events.FleetSubscriptionSpec
	err := s.Units.Run(ctx, who, "preview fleet", func(ctx context.Context, u *unit.Work) (err error) {
		if in == nil {
			_, found, err := unit.Load(ctx, u, aggregate, name, fleetsubscription.State{Name: name})
			if err == nil && !found {
				err = fleetsubscription.NotFound(name)
			}
			if err != nil {
				return err
			}
		} else if spec, err = try(ctx, u, name, *in); err != nil {
			return err
		}
		return audit.Record(ctx, u, preview.ActionPreview, "fleetsubscription/"+name, uuid.Nil)
	})
	if err != nil {
		return previewapi.FleetPage{}, err
	}
	return s.Resolver.FleetPreview(ctx, previewapi.FleetQuestion{
		Tenant: who.Tenant, Name: name, Spec: spec, After: after, Limit: limit,
	})
}

// try sets the fleet subscription and takes it back, with the configuration that it commits to.
func try(ctx context.Context, u *unit.Work, name string, in fleetmodel.SetFleetSubscription) (
	*events.FleetSubscriptionSpec, error,
) {
	savepoint, err := u.Tx.Begin(ctx)
	if err != nil {
		return nil, pg.Err(err)
	}
	var r unit.Recorder
	out, err := decideSet(ctx, u.Recorded(savepoint, &r), name, in)
	if back := savepoint.Rollback(ctx); err == nil {
		err = pg.Err(back)
	}
	return &out.State.Spec, err
}
