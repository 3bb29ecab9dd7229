// Package installplans carries out what people decide about install plans: approve, reject, label.
package installplans

import (
	"context"
	"strings"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var aggregate = unit.Aggregate[model.PlanState, installplan.Command]{
	Kind: events.KindInstallPlan,
	Subject: func(s model.PlanState) string {
		return s.Plan.Proposed.Cluster + "/" + s.Plan.Proposed.Namespace + "/" + s.Plan.Proposed.Name
	},
	Decide: func(s model.PlanState, c installplan.Command) ([]events.Payload, error) {
		return installplan.Decide(s.Plan, c)
	},
	Evolve: func(s model.PlanState, r eventlog.Recorded) (model.PlanState, error) {
		return s.Evolve(r.Payload, r.Actor, r.Time)
	},
}

// Service carries out what people decide about install plans.
type Service struct{ Units *unit.Runner }

// Approve records a person's consent to exactly one digest on one base (DESIGN D6).
func (s *Service) Approve(
	ctx context.Context, who model.Caller, id string, in model.ApprovePlan,
) (model.InstallPlan, error) {
	return s.write(ctx, who, id, func(ctx context.Context, u *unit.Work, now model.PlanState) (installplan.Command,
		error,
	) {
		c := installplan.Approve{Digest: in.Digest, Actor: who.Actor, Base: (*events.PlanBase)(in.Base), Now: u.Now()}
		if in.Expires != nil {
			c.Expires = in.Expires.UTC()
		}
		var err error
		if c.Choices, err = commitChoices(ctx, u, now.Plan, in.Choices); err != nil {
			return nil, err
		}
		c.Successor, err = successor(ctx, u, now.Plan)
		return c, err
	})
}

// commitChoices are what an approver decides about obstacles; the reasons are stored where they can be erased (DESIGN
// D2). Who says the same again changes nothing.
func commitChoices(
	ctx context.Context, u *unit.Work, now installplan.State, in []model.SettleObstacle,
) ([]events.PlanChoice, error) {
	var out []events.PlanChoice
	for _, c := range in {
		choice := events.PlanChoice{Object: c.Object, Choice: c.Choice, Finding: c.Finding}
		previous := ""
		for _, o := range now.Choices {
			if o.By == u.Caller.Actor && o.Object == c.Object {
				previous = o.Reason
			}
		}
		if text := strings.TrimSpace(c.Reason); text != "" {
			var err error
			if choice.Reason, err = bodies.Commit(ctx, u, store.KindPlanReason, []byte(text), previous); err != nil {
				return nil, err
			}
		}
		out = append(out, choice)
	}
	return out, nil
}

// successor is the plan that took a plan's place, so that a refusal can say what changed; nil where none did.
func successor(ctx context.Context, u *unit.Work, was installplan.State) (*events.InstallPlanProposed, error) {
	if was.Phase != installplan.Superseded || was.SupersededBy == "" {
		return nil, nil
	}
	next, found, err := unit.Load(ctx, u, aggregate, was.SupersededBy, model.PlanState{})
	if err != nil || !found {
		return nil, err
	}
	return &next.Plan.Proposed, nil
}

// SetMetadata replaces the labels and annotations of a plan, whatever became of it.
func (s *Service) SetMetadata(
	ctx context.Context, who model.Caller, id string, in model.Metadata,
) (model.InstallPlan, error) {
	p, err := s.write(ctx, who, id, func(ctx context.Context, u *unit.Work, now model.PlanState) (installplan.Command,
		error,
	) {
		committed, err := bodies.CommitMetadata(ctx, u, events.KindInstallPlan, in, now.Plan.Metadata)
		return installplan.Note{Metadata: committed}, err
	})
	p.Annotations = in.Kept().Annotations
	return p, err
}

// Reject ends a plan.
func (s *Service) Reject(
	ctx context.Context, who model.Caller, id string, in model.RejectPlan,
) (model.InstallPlan, error) {
	return s.write(ctx, who, id, func(context.Context, *unit.Work, model.PlanState) (installplan.Command, error) {
		return installplan.Reject{Digest: in.Digest, Actor: who.Actor}, nil
	})
}

// write decides on a plan in a unit of its own, and answers with what it is from then on.
func (s *Service) write(ctx context.Context, who model.Caller, id string,
	command func(ctx context.Context, u *unit.Work, now model.PlanState) (installplan.Command, error),
) (model.InstallPlan, error) {
	out, position, err := unit.Write(ctx, s.Units, who, "intent installplan",
		func(ctx context.Context, u *unit.Work) (unit.Decision[model.PlanState], error) {
			return unit.Decide(ctx, u, aggregate, id, model.PlanState{},
				func(now model.PlanState) (installplan.Command, error) { return command(ctx, u, now) })
		})
	if err != nil {
		return model.InstallPlan{}, err
	}
	p := out.State.InstallPlanAt(out.Time)
	p.Stream, p.Version, p.Position = out.Stream.String(), out.Version, position
	return p, nil
}
