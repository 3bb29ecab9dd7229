package fleets

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/budget"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/fleetbudget"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// budgets decides about the budget of mass changes. The fleet controller tells in the same stream that it is used up,
// which is no change of what somebody read and replaces.
var budgets = unit.Aggregate[fleetbudget.State, fleetbudget.Command]{
	Kind: events.KindFleetBudget, Subject: func(fleetbudget.State) string { return events.FleetBudgetSubject },
	Decide: fleetbudget.Decide,
	Evolve: func(s fleetbudget.State, r eventlog.Recorded) (fleetbudget.State, error) {
		return fleetbudget.Evolve(s, r.Payload, r.Version, r.Time)
	},
	Version: func(s fleetbudget.State) int64 { return s.Version },
}

// Budget returns the budget of the tenant, what of it is used, and what waits for it.
func (s *Service) Budget(ctx context.Context, who model.Caller) (out fleetmodel.FleetBudget, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		state, _, err := unit.Load(ctx, u, budgets, events.FleetBudgetSubject, fleetbudget.State{})
		if err == nil {
			out, err = shown(ctx, u, state)
		}
		return err
	})
	return out, err
}

// SetBudget replaces the bounds.
func (s *Service) SetBudget(
	ctx context.Context, who model.Caller, in fleetmodel.SetFleetBudget,
) (fleetmodel.FleetBudget, error) {
	return s.budget(ctx, who, func(ctx context.Context, u *unit.Work) (unit.Decision[fleetbudget.State], error) {
		return unit.Change(ctx, u, budgets, events.FleetBudgetSubject, fleetbudget.State{},
			func(fleetbudget.State) (fleetbudget.Command, error) { return fleetbudget.Set(in), nil })
	})
}

// AllowBudget lets more clusters be changed, or leave, within the hour that follows. The words of whoever allows it
// stay outside of the log.
func (s *Service) AllowBudget(
	ctx context.Context, who model.Caller, in fleetmodel.AllowFleetBudget,
) (fleetmodel.FleetBudget, error) {
	said, err := words(in.Reason)
	if err != nil {
		return fleetmodel.FleetBudget{}, err
	}
	return s.budget(ctx, who, func(ctx context.Context, u *unit.Work) (unit.Decision[fleetbudget.State], error) {
		return unit.Decide(ctx, u, budgets, events.FleetBudgetSubject, fleetbudget.State{},
			func(now fleetbudget.State) (fleetbudget.Command, error) {
				c := fleetbudget.Allow{Changed: in.Changed, Leaving: in.Leaving}
				// What is refused leaves no body that nothing refers to.
				if _, err := fleetbudget.Decide(now, c); err != nil {
					return nil, err
				}
				var err error
				c.Reason, err = bodies.Commit(ctx, u, store.KindPlanReason, []byte(said), "")
				return c, err
			})
	})
}

func (s *Service) budget(
	ctx context.Context, who model.Caller,
	decide func(context.Context, *unit.Work) (unit.Decision[fleetbudget.State], error),
) (fleetmodel.FleetBudget, error) {
	out, position, err := unit.Write(ctx, s.Units, who, "intent fleet budget",
		func(ctx context.Context, u *unit.Work) (fleetmodel.FleetBudget, error) {
			d, err := decide(ctx, u)
			if err != nil {
				return fleetmodel.FleetBudget{}, err
			}
			return shown(ctx, u, d.State)
		})
	out.Position = position
	return out, err
}

// shown is the budget as people see it: the bounds as the log has them, what of it is used as the controller counts.
func shown(ctx context.Context, u *unit.Work, s fleetbudget.State) (fleetmodel.FleetBudget, error) {
	bounds, now := s.Bounds(), u.Now()
	out := fleetmodel.FleetBudget{
		Changed: bounds.Changed, Leaving: bounds.Leaving, Default: s.Set == nil, Held: []fleetmodel.FleetHeld{},
		// No bound has nothing beyond it.
		Allowed: fleetmodel.FleetClusters{
			Changed: budget.Raised(bounds.Changed, s.Changed, now) - bounds.Changed,
			Leaving: budget.Raised(bounds.Leaving, s.Leaving, now) - bounds.Leaving,
		},
	}
	if s.Set != nil {
		head, err := u.Latest(ctx, events.KindFleetBudget, events.FleetBudgetSubject)
		if err != nil {
			return out, err
		}
		out.Stream, out.Version, out.UpdatedAt = head.ID.String(), s.Version, &s.At
	}
	err := u.Tx.QueryRow(ctx, `select count(distinct cluster) filter (where kind = $3),
		count(distinct cluster) filter (where kind = $4) from resolver_api.fleet_changes where tenant = $1 and at > $2`,
		u.Caller.Tenant, now.Add(-budget.Window), events.BudgetChanged, events.BudgetLeaving).
		Scan(&out.Used.Changed, &out.Used.Leaving)
	if err != nil {
		return out, pg.Err(err)
	}
	rows, err := u.Tx.Query(ctx, `select name, held from resolver_api.fleet_held where tenant = $1 order by name`,
		u.Caller.Tenant)
	if err != nil {
		return out, pg.Err(err)
	}
	var name string
	var held json.RawMessage
	_, err = pgx.ForEachRow(rows, []any{&name, &held}, func() error {
		h := fleetmodel.FleetHeld{FleetSubscription: name, Reason: fleetmodel.ReasonBudget}
		out.Held = append(out.Held, h)
		return json.Unmarshal(held, &out.Held[len(out.Held)-1])
	})
	return out, pg.Err(err)
}
