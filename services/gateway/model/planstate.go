package model

import (
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// PlanState is an install plan with who did what when, which the aggregate does not need for its decisions.
type PlanState struct {
	Plan       installplan.State
	ProposedAt time.Time
	StartedAt  *time.Time
	EndedAt    *time.Time
	UpdatedAt  time.Time
	Approved   *PlanApproval  `json:",omitempty"` // the consent that completed the approval
	Given      []PlanApproval `json:",omitempty"` // while more are missing
	Approvals  []PlanApproval `json:",omitempty"` // of the approval
	Choices    []MadeChoice   `json:",omitempty"`
	Comments   []MadeComment  `json:",omitempty"`
}

// MadeComment is what a person said of a plan; the words are a commitment.
type MadeComment struct {
	By, About, Comment string

	At time.Time
}

// MadeChoice is what an approver said of one obstacle; the reason is a commitment.
type MadeChoice struct {
	events.PlanChoice

	By string
	At time.Time
}

// Evolve folds one event: what it means is decided by the aggregate alone.
func (s PlanState) Evolve(p events.Payload, actor string, at time.Time) (PlanState, error) {
	var err error
	if s.Plan, err = installplan.Evolve(s.Plan, p); err != nil {
		return s, err
	}
	s.UpdatedAt = at
	switch e := p.(type) {
	case events.InstallPlanProposed:
		s.ProposedAt = at
	case events.InstallPlanApprovalGiven:
		s.Given = append(others(s.Given, e.By, at), PlanApproval{By: e.By, At: at, Expires: e.Expires})
	case events.InstallPlanApproved:
		s.Approved = &PlanApproval{By: actor, At: at, Expires: e.Expires}
		s.Approvals, s.Given = append(others(s.Given, actor, at), *s.Approved), nil
	case events.InstallPlanObstaclesSettled:
		for _, c := range e.Choices {
			s.Choices = slices.DeleteFunc(slices.Clone(s.Choices),
				func(o MadeChoice) bool { return o.By == e.By && o.Object == c.Object })
			s.Choices = append(s.Choices, MadeChoice{PlanChoice: c, By: e.By, At: at})
		}
	case events.InstallPlanCommented:
		s.Comments = append(slices.Clip(s.Comments), MadeComment{By: e.By, About: e.About, Comment: e.Comment, At: at})
	case events.InstallPlanStarted:
		s.StartedAt, s.EndedAt = &at, nil
	case events.InstallPlanSuperseded, events.InstallPlanRejected, events.InstallPlanFinished, events.InstallPlanFailed:
		s.EndedAt = &at
	}
	return s, nil
}

// others are the consents of other people that have not expired at a time.
func others(list []PlanApproval, by string, at time.Time) []PlanApproval {
	return slices.DeleteFunc(slices.Clone(list), func(a PlanApproval) bool {
		return a.By == by ||
			!at.Before(a.Expires)
	})
}
