package intent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var plans = aggregate[installplan.State, installplan.Command]{
	events.KindInstallPlan, planSubject, installplan.Decide, fold(installplan.Evolve),
}

func planSubject(s installplan.State) string {
	return s.Proposed.Cluster + "/" + s.Proposed.Namespace + "/" + s.Proposed.Name
}

// ApprovePlan records a person's consent to exactly one digest on one base (DESIGN D6).
func (s *Service) ApprovePlan(ctx context.Context, who model.Caller, id string, in model.ApprovePlan) (model.InstallPlan, error) {
	return s.onPlan(ctx, who, id, func(installplan.State) installplan.Command {
		c := installplan.Approve{Digest: in.Digest, Actor: who.Actor, Base: (*events.PlanBase)(in.Base), Now: s.Now().UTC()}
		if in.Expires != nil {
			c.Expires = in.Expires.UTC()
		}
		return c
	})
}

// RejectPlan ends a plan.
func (s *Service) RejectPlan(ctx context.Context, who model.Caller, id string, in model.RejectPlan) (model.InstallPlan, error) {
	return s.onPlan(ctx, who, id, func(installplan.State) installplan.Command {
		return installplan.Reject{Digest: in.Digest, Actor: who.Actor}
	})
}

func (s *Service) onPlan(ctx context.Context, who model.Caller, id string, command func(installplan.State) installplan.Command) (model.InstallPlan, error) {
	out, err := run(ctx, s, who, plans, id, installplan.State{},
		func(_ context.Context, _ pgx.Tx, now installplan.State) (installplan.Command, error) {
			return command(now), nil
		})
	if err != nil {
		return model.InstallPlan{}, err
	}
	p := out.State.Proposed
	answer := model.InstallPlan{
		ID: p.Plan, Cluster: p.Cluster, Namespace: p.Namespace, Name: p.Name, Generation: p.Generation, Component: p.Component,
		Approval: p.Approval, Phase: string(out.State.PhaseAt(out.Time)), Digest: p.Digest, Steps: p.Steps,
		Base: model.PlanBase(p.Base), Bundles: model.Bundles(p.Bundles), Begun: out.State.Begun, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version, Position: out.Position,
	}
	if a := out.State.Approval; a.Digest != "" {
		answer.Approved = &model.PlanApproval{By: who.Actor, At: out.Time, Expires: a.Expires}
	}
	return answer, nil
}
