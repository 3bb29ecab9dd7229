// Package installplans carries out what people decide about install plans: approve, reject, label.
package installplans

import (
	"context"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
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
	return s.write(ctx, who, access.Approve, id, func(ctx context.Context, u *unit.Work, now model.PlanState) (
		installplan.Command, error,
	) {
		if err := mayApproveOwn(ctx, u, now.Plan); err != nil {
			return nil, err
		}
		if n := now.Plan.Approvers(); n > 1 && who.Kind == access.KindServiceAccount && who.OnBehalfOf == "" {
			return nil, errs.New(errs.Forbidden, "%d people must approve install plan %s, and a service account is none of them",
				n, now.Plan.Proposed.Name).At("", RulePersons)
		}
		if whole := (access.Target{Cluster: now.Plan.Proposed.Cluster}); len(in.Choices) > 0 &&
			now.Plan.Proposed.Plan != "" && !who.May(access.Override, access.InstallPlans, whole) {
			return nil, access.Denied(access.Override, access.InstallPlans, whole)
		}
		c := installplan.Approve{
			Digest: in.Digest, Actor: who.Person(), Base: (*events.PlanBase)(in.Base), Now: u.Now(),
		}
		if in.Expires != nil {
			c.Expires = in.Expires.UTC()
		}
		var err error
		if c.Choices, err = commitChoices(ctx, u, now.Plan, in.Choices); err != nil {
			return nil, err
		}
		if c.Successor, err = successor(ctx, u, now.Plan); err != nil {
			return nil, err
		}
		approve := func(reason string) installplan.Command {
			said := c
			said.Reason = reason
			return said
		}
		reason, err := commitReason(ctx, u, now, events.CommentApproval, in.Reason, approve)
		return approve(reason), err
	})
}

// commitReason keeps the words of a person about a plan where they can be erased. The same words again are the same.
// Words that the command would not say, since it changes nothing or is refused, are not kept: no event would name them,
// and nobody could erase them.
func commitReason(
	ctx context.Context, u *unit.Work, now model.PlanState, about, words string,
	saying func(reason string) installplan.Command,
) (string, error) {
	text := strings.TrimSpace(words)
	if text == "" || now.Plan.Proposed.Plan == "" {
		return "", nil
	}
	comes, err := installplan.Decide(now.Plan, saying("words"))
	if err != nil || !slices.ContainsFunc(comes, isComment) {
		return "", nil //nolint:nilerr // the command is decided again, and refused there
	}
	previous := ""
	for _, c := range now.Comments {
		if c.By == u.Caller.Person() && c.About == about {
			previous = c.Comment
		}
	}
	return bodies.Commit(ctx, u, store.KindPlanReason, []byte(text), previous)
}

func isComment(p events.Payload) bool {
	_, is := p.(events.InstallPlanCommented)
	return is
}

func target(p installplan.State) access.Target {
	return access.Target{Cluster: p.Proposed.Cluster, Namespace: p.Proposed.Namespace}
}

// asked is the person who has said last what a subscription is to be. A plan is requested by those who did so for the
// subscriptions that it serves, whatever brought it about: a new version that a catalog offers is what they asked for.
var asked = unit.Aggregate[request, struct{}]{
	Kind: events.KindSubscription,
	Evolve: func(last request, r eventlog.Recorded) (request, error) {
		switch p := r.Payload.(type) {
		case events.SubscriptionCreated, events.SubscriptionChanged, events.SubscriptionRollbackRequested:
			return request{by: r.Actor}, nil
		case events.SubscriptionPlaced:
			return request{fleet: p.Owner, rollout: p.Rollout}, nil
		default:
			return last, nil
		}
	},
}

// request is who asks for a subscription: a person, or the fleet subscription that places it.
type request struct {
	by, fleet string
	rollout   int // number of the one that places it
}

// askedFleet is the person who has set a fleet subscription last.
var askedFleet = unit.Aggregate[string, struct{}]{
	Kind: events.KindFleetSubscription,
	Evolve: func(last string, r eventlog.Recorded) (string, error) {
		if _, set := r.Payload.(events.FleetSubscriptionSet); set {
			return r.Actor, nil
		}
		return last, nil
	},
}

// askedBack is who had a rollout taken back, and the number of the rollout that a rollout takes back.
var askedBack = unit.Aggregate[back, struct{}]{
	Kind: events.KindRollout,
	Evolve: func(last back, r eventlog.Recorded) (back, error) {
		switch p := r.Payload.(type) {
		case events.RolloutStarted:
			last.of, last.goesOn = p.Rollback.Of, p.IntentVersion != 0 || len(p.Avoids) > 0
		case events.RolloutRollbackRequested:
			last.by = r.Actor
		}
		return last, nil
	},
}

type back struct {
	of     int
	goesOn bool // with what a rollback before it chose
	by     string
}

// mostAfterBack bounds how many rollouts are looked at for the rollback that they go on with: each is for clusters that
// joined since.
const mostAfterBack = 100

// rollbackRequester is the person who asked for what a rollout does that takes back another one, or that brings to
// clusters that joined since what such a one chose; "" where it does neither.
func rollbackRequester(ctx context.Context, u *unit.Work, fleet string, number int) (string, error) {
	load := func(number int) (back, error) {
		b, _, err := unit.LoadLast(ctx, u, askedBack, fleetmodel.RolloutSubject(fleet, number), back{})
		return b, err
	}
	for n := number; n > max(0, number-mostAfterBack); n-- {
		does, err := load(n)
		if err != nil {
			return "", err
		}
		if does.of != 0 {
			of, err := load(does.of)
			return of.by, err
		}
		if !does.goesOn {
			break
		}
	}
	return "", nil
}

// requester is the person who asks for a subscription, and in which words. A fleet subscription that was deleted
// meanwhile has asked all the same.
func requester(ctx context.Context, u *unit.Work, key string) (person, what string, err error) {
	r, _, err := unit.Load(ctx, u, asked, key, request{})
	if err != nil || r.fleet == "" {
		return r.by, "subscription " + key, err
	}
	person, err = rollbackRequester(ctx, u, r.fleet, r.rollout)
	if err != nil || person != "" {
		return person, "rollback of fleet subscription " + r.fleet, err
	}
	person, _, err = unit.LoadLast(ctx, u, askedFleet, r.fleet, "")
	return person, "fleet subscription " + r.fleet, err
}

// mayApproveOwn refuses the approval of a plan by a person who has asked for it, unless a role allows that by itself.
// It is persons who are compared, not their tokens nor the portals that they come through.
func mayApproveOwn(ctx context.Context, u *unit.Work, p installplan.State) error {
	who, at := u.Caller, target(p)
	if who.May(access.ApproveOwn, access.InstallPlans, at) {
		return nil
	}
	for _, b := range p.Proposed.Bundles {
		for _, s := range b.Subscriptions {
			key := at.Cluster + "/" + at.Namespace + "/" + s[strings.LastIndex(s, "/")+1:]
			person, what, err := requester(ctx, u, key)
			if err != nil {
				return err
			}
			if person == who.Person() {
				return errs.New(errs.Forbidden, "you have asked for what install plan %s does (%s): somebody else "+
					"approves it, unless a role allows you to %s %s in %s", p.Proposed.Name, what, access.ApproveOwn,
					access.InstallPlans, at).At("", RuleRequester)
			}
		}
	}
	return nil
}

// RuleRequester is the rule that who asks for something does not approve it.
const RuleRequester = "requester-not-approver"

// RulePersons is the rule that where several must approve they are people: one program more is no second opinion.
const RulePersons = "people-approve"

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
			if o.By == u.Caller.Person() && o.Object == c.Object {
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
	p, err := s.write(ctx, who, access.Update, id, func(ctx context.Context, u *unit.Work, now model.PlanState) (
		installplan.Command, error,
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
	return s.write(ctx, who, access.Reject, id, func(ctx context.Context, u *unit.Work, now model.PlanState) (
		installplan.Command, error,
	) {
		reject := func(reason string) installplan.Command {
			return installplan.Reject{Digest: in.Digest, Actor: who.Person(), Reason: reason}
		}
		reason, err := commitReason(ctx, u, now, events.CommentRejection, in.Reason, reject)
		return reject(reason), err
	})
}

// Comment records what a person says of a plan, whatever became of it.
func (s *Service) Comment(
	ctx context.Context, who model.Caller, id string, in model.CommentPlan,
) (model.PlanComment, error) {
	text := strings.TrimSpace(in.Text)
	words := ""
	p, err := s.write(ctx, who, access.Comment, id, func(ctx context.Context, u *unit.Work, now model.PlanState) (
		installplan.Command, error,
	) {
		var err error
		switch {
		case now.Plan.Proposed.Plan == "": // refused by the aggregate
		case text == "":
			err = errs.New(errs.Invalid, "the comment is empty").At("body.text", "plan-comments")
		default:
			words, err = bodies.Commit(ctx, u, store.KindPlanReason, []byte(text), "")
		}
		return installplan.Comment{Actor: who.Person(), Words: words}, err
	})
	return model.PlanComment{
		Number: p.Comments, By: who.Person(), At: p.UpdatedAt, Text: text, Body: words, Position: p.Position,
	}, err
}

// write decides on a plan in a unit of its own, and answers with what it is from then on.
func (s *Service) write(ctx context.Context, who model.Caller, v access.Verb, id string,
	command func(ctx context.Context, u *unit.Work, now model.PlanState) (installplan.Command, error),
) (model.InstallPlan, error) {
	out, position, err := unit.Write(ctx, s.Units, who, "intent installplan",
		func(ctx context.Context, u *unit.Work) (unit.Decision[model.PlanState], error) {
			return unit.Decide(ctx, u, aggregate, id, model.PlanState{},
				func(now model.PlanState) (installplan.Command, error) {
					at := target(now.Plan)
					switch {
					case now.Plan.Proposed.Plan == "" || who.May(v, access.InstallPlans, at):
						return command(ctx, u, now)
					case who.May(access.Get, access.InstallPlans, at):
						return nil, access.Denied(v, access.InstallPlans, at)
					}
					_, err := installplan.Decide(installplan.State{}, installplan.Reject{}) // as if it were not there
					return nil, err
				})
		})
	if err != nil {
		return model.InstallPlan{}, err
	}
	p := out.State.InstallPlanAt(out.Time)
	p.Stream, p.Version, p.Position = out.Stream.String(), out.Version, position
	return p, nil
}
