package fleets

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/fleet/rolloutstore"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/fleetsubscription"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// Rollouts reads what a rollback goes by, as the read model has it.
type Rollouts interface {
	// Newest is the number of the newest rollout; 0 where there is none.
	Newest(ctx context.Context, q pg.Querier, tenant, fleet string) (int, error)
	// Before are the rollouts before one, newest first.
	Before(ctx context.Context, tx pgx.Tx, tenant, fleet string, number int) ([]rollout.State, error)
}

// Rollback has the newest rollout of a fleet subscription taken back, whether it goes on or has ended.
func (s *Service) Rollback(
	ctx context.Context, who model.Caller, name string, in fleetmodel.RollBackRollout,
) (fleetmodel.Rollout, error) {
	said, err := words(in.Reason)
	if err != nil {
		return fleetmodel.Rollout{}, err
	}
	return s.write(ctx, who, func(ctx context.Context, u *unit.Work) (unit.Decision[fleetmodel.RolloutState], error) {
		var none unit.Decision[fleetmodel.RolloutState]
		// Until the end nobody begins another rollout, which would be the newest one.
		if err := rolloutstore.HoldNewest(ctx, u.Tx, u.Caller.Tenant, name); err != nil {
			return none, err
		}
		wanted, err := u.Latest(ctx, events.KindFleetSubscription, name)
		if err != nil {
			return none, err
		}
		if !wanted.Exists() {
			return none, fleetsubscription.NotFound(name)
		}
		newest, err := s.newest(ctx, u, name)
		if err != nil {
			return none, err
		}
		return decideIn(ctx, u, Rollout{name, newest},
			func(ctx context.Context, u *unit.Work, now rollout.State) (rollout.Command, error) {
				if now.Started.Stream != wanted.ID.String() || now.Started.Version != wanted.Version {
					return nil, errs.New(errs.Conflict, "rollout %s is not what fleet subscription %q says by now: the next "+
						"one takes its place", fleetmodel.RolloutSubject(name, newest), name).At("path.name",
						fleetsubscription.RuleNewestRollout)
				}
				before, err := s.Rollouts.Before(ctx, u.Tx, u.Caller.Tenant, name, newest)
				if err != nil {
					return nil, err
				}
				return withReason(ctx, u, now, said, func(reason string) rollout.Command {
					return rollout.Rollback{Before: before, To: in.To, Reason: reason}
				})
			})
	})
}

// newest is the number of the newest rollout: the log may be ahead of the read model.
func (s *Service) newest(ctx context.Context, u *unit.Work, name string) (int, error) {
	n, err := s.Rollouts.Newest(ctx, u.Tx, u.Caller.Tenant, name)
	for err == nil {
		var more bool
		if more, err = u.Exists(ctx, events.KindRollout, fleetmodel.RolloutSubject(name, n+1)); err == nil && !more {
			break
		}
		n++
	}
	if err == nil && n == 0 {
		err = errs.New(errs.NotFound, "fleet subscription %q has no rollout yet", name)
	}
	return n, err
}
