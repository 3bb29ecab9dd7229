package intent

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var plans = aggregate[planState, installplan.Command]{
	events.KindInstallPlan, planSubject, decidePlan, evolvePlan,
}

// planState is a plan with what its answers say beside it.
type planState struct {
	installplan.State
	given     []model.PlanApproval // while more are missing
	approvals []model.PlanApproval // of the approval
	choices   []model.PlanChoice   // without their reasons
}

func planSubject(s planState) string {
	return s.Proposed.Cluster + "/" + s.Proposed.Namespace + "/" + s.Proposed.Name
}

func decidePlan(s planState, c installplan.Command) ([]events.Payload, error) {
	return installplan.Decide(s.State, c)
}

func evolvePlan(s planState, r eventlog.Recorded) (planState, error) {
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

// ApprovePlan records a person's consent to exactly one digest on one base (DESIGN D6).
func (s *Service) ApprovePlan(ctx context.Context, who model.Caller, id string, in model.ApprovePlan) (model.InstallPlan, error) {
	return s.onPlan(ctx, who, id, func(ctx context.Context, tx pgx.Tx, now planState) (installplan.Command, error) {
		c := installplan.Approve{Digest: in.Digest, Actor: who.Actor, Base: (*events.PlanBase)(in.Base), Now: s.Now().UTC()}
		if in.Expires != nil {
			c.Expires = in.Expires.UTC()
		}
		var err error
		if c.Choices, err = s.choices(ctx, tx, who, now.State, in.Choices); err != nil {
			return nil, err
		}
		c.Successor, err = s.successor(ctx, tx, who.Tenant, now.State)
		return c, err
	})
}

// kindPlanReason is the kind of body that holds why an approver chose something.
const kindPlanReason = "plan-reason"

// choices are what an approver says of obstacles; the words are kept where they can be erased (DESIGN D2). Who says the same
// again changes nothing.
func (s *Service) choices(ctx context.Context, tx pgx.Tx, who model.Caller, now installplan.State, in []model.SettleObstacle) ([]events.PlanChoice, error) {
	var out []events.PlanChoice
	for _, c := range in {
		choice := events.PlanChoice{Object: c.Object, Choice: c.Choice, Finding: c.Finding}
		previous := ""
		for _, o := range now.Choices {
			if o.By == who.Actor && o.Object == c.Object {
				previous = o.Reason
			}
		}
		if text := strings.TrimSpace(c.Reason); text != "" {
			var err error
			if choice.Reason, err = s.Bodies.Commit(ctx, tx, who.Tenant, kindPlanReason, []byte(text), previous); err != nil {
				return nil, err
			}
		}
		out = append(out, choice)
	}
	return out, nil
}

// successor is the plan that took a plan's place, so that a refusal can say what changed; nil where none did.
func (s *Service) successor(ctx context.Context, tx pgx.Tx, tenant string, was installplan.State) (*events.InstallPlanProposed, error) {
	if was.Phase != installplan.Superseded || was.SupersededBy == "" {
		return nil, nil
	}
	head, err := s.Log.Latest(ctx, tx, tenant, events.KindInstallPlan, was.SupersededBy)
	if err != nil || !head.Exists() {
		return nil, err
	}
	next, err := replay(ctx, s, tx, tenant, plans, head, planState{})
	return &next.Proposed, err
}

// NotePlan replaces the labels and annotations of a plan, whatever became of it.
func (s *Service) NotePlan(ctx context.Context, who model.Caller, id string, in model.Metadata) (model.InstallPlan, error) {
	p, err := s.onPlan(ctx, who, id, func(ctx context.Context, tx pgx.Tx, now planState) (installplan.Command, error) {
		noted, err := s.metadata(ctx, tx, who, events.KindInstallPlan, in, now.Metadata)
		return installplan.Note{Metadata: noted}, err
	})
	p.Annotations = in.Kept().Annotations
	return p, err
}

// RejectPlan ends a plan.
func (s *Service) RejectPlan(ctx context.Context, who model.Caller, id string, in model.RejectPlan) (model.InstallPlan, error) {
	return s.onPlan(ctx, who, id, func(context.Context, pgx.Tx, planState) (installplan.Command, error) {
		return installplan.Reject{Digest: in.Digest, Actor: who.Actor}, nil
	})
}

func (s *Service) onPlan(ctx context.Context, who model.Caller, id string, command commander[planState, installplan.Command]) (model.InstallPlan, error) {
	out, err := run(ctx, s, who, plans, id, planState{}, command)
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
		Stream:    out.Stream.String(), Version: out.Version, Position: out.Position,
	}
	if n := len(out.State.approvals); n > 0 {
		answer.Approved = &out.State.approvals[n-1]
	}
	return answer, nil
}
