// Package installplans carries out what people decide about install plans: approve, reject, label.
package installplans

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var aggregate = unit.Aggregate[state, installplan.Command]{
	Kind:    events.KindInstallPlan,
	Subject: func(s state) string { return s.Proposed.Cluster + "/" + s.Proposed.Namespace + "/" + s.Proposed.Name },
	Decide:  func(s state, c installplan.Command) ([]events.Payload, error) { return installplan.Decide(s.State, c) },
	Evolve:  evolve,
}

// Service carries out what people decide about install plans.
type Service struct{ Units *unit.Runner }

// state is a plan with what its answers say beside it.
type state struct {
	installplan.State
	given     []model.PlanApproval // while more are missing
	approvals []model.PlanApproval // of the approval
	choices   []model.PlanChoice   // without their reasons
}

func evolve(s state, r eventlog.Recorded) (state, error) {
	var err error
	s.State, err = installplan.Evolve(s.State, r.Payload)
	switch e := r.Payload.(type) {
	case events.InstallPlanApprovalGiven:
		s.given = append(others(s.given, e.By, r.Time), model.PlanApproval{By: e.By, At: r.Time, Expires: e.Expires})
	case events.InstallPlanObstaclesSettled:
		for _, c := range e.Choices {
			s.choices = slices.DeleteFunc(slices.Clone(s.choices), func(o model.PlanChoice) bool { return o.By == e.By && o.Object == c.Object })
			s.choices = append(s.choices, model.PlanChoice{Object: c.Object, Choice: c.Choice, Finding: c.Finding, By: e.By, At: r.Time})
		}
	case events.InstallPlanApproved:
		s.approvals = append(others(s.given, r.Actor, r.Time), model.PlanApproval{By: r.Actor, At: r.Time, Expires: e.Expires})
		s.given = nil
	}
	return s, err
}

// others are the consents of other people that have not expired at a time.
func others(list []model.PlanApproval, by string, at time.Time) []model.PlanApproval {
	return slices.DeleteFunc(slices.Clone(list), func(a model.PlanApproval) bool { return a.By == by || !at.Before(a.Expires) })
}

// Approve records a person's consent to exactly one digest on one base (DESIGN D6).
func (s *Service) Approve(ctx context.Context, who model.Caller, id string, in model.ApprovePlan) (model.InstallPlan, error) {
	return s.write(ctx, who, id, func(ctx context.Context, u *unit.Work, now state) (installplan.Command, error) {
		c := installplan.Approve{Digest: in.Digest, Actor: who.Actor, Base: (*events.PlanBase)(in.Base), Now: u.Now()}
		if in.Expires != nil {
			c.Expires = in.Expires.UTC()
		}
		var err error
		if c.Choices, err = commitChoices(ctx, u, now.State, in.Choices); err != nil {
			return nil, err
		}
		c.Successor, err = successor(ctx, u, now.State)
		return c, err
	})
}

// commitChoices are what an approver says of obstacles; the reasons are stored where they can be erased (DESIGN D2). Who says the same
// again changes nothing.
func commitChoices(ctx context.Context, u *unit.Work, now installplan.State, in []model.SettleObstacle) ([]events.PlanChoice, error) {
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
	next, found, err := unit.Load(ctx, u, aggregate, was.SupersededBy, state{})
	if err != nil || !found {
		return nil, err
	}
	return &next.Proposed, nil
}

// SetMetadata replaces the labels and annotations of a plan, whatever became of it.
func (s *Service) SetMetadata(ctx context.Context, who model.Caller, id string, in model.Metadata) (model.InstallPlan, error) {
	p, err := s.write(ctx, who, id, func(ctx context.Context, u *unit.Work, now state) (installplan.Command, error) {
		committed, err := bodies.CommitMetadata(ctx, u, events.KindInstallPlan, in, now.Metadata)
		return installplan.Note{Metadata: committed}, err
	})
	p.Annotations = in.Kept().Annotations
	return p, err
}

// Reject ends a plan.
func (s *Service) Reject(ctx context.Context, who model.Caller, id string, in model.RejectPlan) (model.InstallPlan, error) {
	return s.write(ctx, who, id, func(context.Context, *unit.Work, state) (installplan.Command, error) {
		return installplan.Reject{Digest: in.Digest, Actor: who.Actor}, nil
	})
}

// write decides on a plan in a unit of its own, and answers with what it is from then on.
func (s *Service) write(ctx context.Context, who model.Caller, id string,
	command func(ctx context.Context, u *unit.Work, now state) (installplan.Command, error),
) (model.InstallPlan, error) {
	out, position, err := unit.Write(ctx, s.Units, who, "intent installplan", func(ctx context.Context, u *unit.Work) (unit.Decision[state], error) {
		return unit.Decide(ctx, u, aggregate, id, state{}, func(now state) (installplan.Command, error) { return command(ctx, u, now) })
	})
	if err != nil {
		return model.InstallPlan{}, err
	}
	p := out.State.Proposed
	answer := model.InstallPlan{
		ID: p.Plan, Cluster: p.Cluster, Namespace: p.Namespace, Name: p.Name, Generation: p.Generation, Component: p.Component,
		Approval: p.Approval, Phase: string(out.State.PhaseAt(out.Time)), Digest: p.Digest, Steps: p.Steps,
		Base: model.PlanBase(p.Base), Bundles: model.Bundles(p.Bundles), Begun: out.State.Begun, UpdatedAt: out.Time,
		PlanTerms: model.Terms(out.State.State, out.State.given, out.State.approvals, out.Time),
		Choices:   out.State.choices,
		Metadata:  model.Metadata{Labels: out.State.Metadata.Labels},
		Stream:    out.Stream.String(), Version: out.Version, Position: position,
	}
	if n := len(out.State.approvals); n > 0 {
		answer.Approved = &out.State.approvals[n-1]
	}
	return answer, nil
}
