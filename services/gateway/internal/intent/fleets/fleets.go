// Package fleets carries out intents about fleet subscriptions, and what people decide about their rollouts.
package fleets

import (
	"context"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/fleetsubscription"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/resolverclient"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
)

const span = "intent fleet"

var aggregate = unit.Aggregate[fleetsubscription.State, fleetsubscription.Command]{
	Kind: events.KindFleetSubscription, Subject: func(s fleetsubscription.State) string { return s.Name },
	Decide: fleetsubscription.Decide, Evolve: unit.ByPayload(fleetsubscription.Evolve),
}

// Service carries out intents about fleet subscriptions and rollouts.
type Service struct {
	Units    *unit.Runner
	Resolver resolverclient.Client
	Rollouts Rollouts
}

// Set makes a fleet subscription, or replaces all of it.
func (s *Service) Set(
	ctx context.Context, who model.Caller, name string, in fleetmodel.SetFleetSubscription,
) (fleetmodel.FleetSubscription, error) {
	out, position, err := unit.Write(ctx, s.Units, who, span,
		func(ctx context.Context, u *unit.Work) (fleetmodel.FleetSubscription, error) {
			return set(ctx, u, name, in)
		})
	out.Position = position
	return out, err
}

func set(
	ctx context.Context, u *unit.Work, name string, in fleetmodel.SetFleetSubscription,
) (fleetmodel.FleetSubscription, error) {
	out, err := decideSet(ctx, u, name, in)
	answer := fleetmodel.FleetSubscription{
		Name: name, Spec: fleetmodel.FleetSpec(out.State.Spec), CreatedAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version,
	}
	answer.Spec.Config = in.Config
	for i := range answer.Spec.Overrides {
		answer.Spec.Overrides[i].Config = in.Overrides[i].Config
	}
	return answer, err
}

func decideSet(
	ctx context.Context, u *unit.Work, name string, in fleetmodel.SetFleetSubscription,
) (unit.Decision[fleetsubscription.State], error) {
	return unit.Change(ctx, u, aggregate, name, fleetsubscription.State{Name: name},
		func(now fleetsubscription.State) (fleetsubscription.Command, error) {
			others, err := countOthers(ctx, u, name)
			if err != nil {
				return nil, err
			}
			// What is refused leaves no body that nothing refers to.
			given, invalid := configsOf(in)
			c := fleetsubscription.Set{Spec: given.draft(in), Others: others}
			if c.Clusters, err = overridden(ctx, u, in); err != nil {
				return nil, err
			}
			if err := mayLabel(u.Caller, now.Spec.OperatorGroup.Spec, c.Spec.OperatorGroup.Spec); err != nil {
				return nil, err
			}
			if err := mayUninstall(u.Caller, c.Spec); err != nil {
				return nil, err
			}
			if _, err := fleetsubscription.Decide(now, c); err != nil {
				return nil, err
			}
			if invalid != nil {
				return nil, invalid
			}
			return c, given.commit(ctx, u, now.Spec, &c.Spec)
		})
}

// mayLabel wants of who has labels or annotations of namespaces written what approvers of plans may everywhere: the
// placement may choose any cluster (ADR 0063).
func mayLabel(who model.Caller, before, next events.OperatorGroupSpec) error {
	if !operatorgroup.WritesNamespace(before, next) || who.May(access.Approve, access.InstallPlans, access.Target{}) {
		return nil
	}
	return access.Denied(access.Approve, access.InstallPlans, access.Target{})
}

// mayUninstall wants of who writes or deletes a fleet subscription whose policy uninstalls operators what they need to
// uninstall one themselves, everywhere: the placement may choose any cluster, and leave it.
func mayUninstall(who model.Caller, spec events.FleetSubscriptionSpec) error {
	switch spec.DeletionPolicy {
	case "", events.DeletionPolicyOrphan:
		return nil
	}
	if who.May(access.Delete, access.Operators, access.Target{}) {
		return nil
	}
	return access.Denied(access.Delete, access.Operators, access.Target{})
}

// Delete ends a fleet subscription. What becomes of what is on the clusters, its deletion policy says.
func (s *Service) Delete(ctx context.Context, who model.Caller, name string) (model.Removed, error) {
	_, position, err := unit.Write(ctx, s.Units, who, span,
		func(ctx context.Context, u *unit.Work) (unit.Decision[fleetsubscription.State], error) {
			return unit.Decide(ctx, u, aggregate, name, fleetsubscription.State{Name: name},
				func(now fleetsubscription.State) (fleetsubscription.Command, error) {
					return fleetsubscription.Delete{}, mayUninstall(u.Caller, now.Spec)
				})
		})
	return model.Removed{Position: position}, err
}

// countOthers counts the fleet subscriptions of a tenant beside one, as the read model has them: those that are made in
// the same moment may exceed the bound by a few.
func countOthers(ctx context.Context, u *unit.Work, name string) (n int, err error) {
	err = u.Tx.QueryRow(ctx, `select count(*) from fleet_subscriptions where tenant = $1 and name <> $2`,
		u.Caller.Tenant, name).Scan(&n)
	return n, pg.Err(err)
}

// words are what a person says, without what surrounds them.
func words(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errs.New(errs.Invalid, "a reason is missing: it is what others will read who ask why").
			At("body.reason", "required")
	}
	return text, nil
}
