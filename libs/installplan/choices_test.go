package installplan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// TestChoices: an approval may say what holds of obstacles that a person may settle (DESIGN D6): with it, or alone
// where the plan needs no approval, or has it, or has begun. A choice names one finding, and an override a reason.
func TestChoices(t *testing.T) {
	t.Parallel()
	of := func(approval string, approvers int, more ...events.Payload) installplan.State {
		t.Helper()
		s, err := installplan.Fold(append([]events.Payload{
			events.InstallPlanProposed{
				Plan: "p", Name: "install-7xk2p", Digest: ours, Approval: approval,
				Approvers: approvers,
			},
		}, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	keep := events.PlanChoice{Object: "ClusterRole/metrics-reader", Choice: events.ChoiceKeep, Finding: "sha256:f"}
	take := keep
	take.Choice = events.ChoiceTake
	override := events.PlanChoice{
		Object: "CustomResourceDefinition/gauges.sea.test", Choice: events.ChoiceOverride,
		Finding: "sha256:g", Reason: "c1:r",
	}
	allow := events.PlanChoice{
		Object: "ClusterServiceVersion/tide.v1.0.1", Choice: events.ChoiceAllow, Finding: "sha256:a", Reason: "c1:r",
	}
	unwarranted, keptBundle, allowedObject := allow, allow, keep
	unwarranted.Reason, keptBundle.Choice, allowedObject.Choice = "", events.ChoiceKeep, events.ChoiceAllow
	unfounded, unreasoned, nameless := keep, override, keep
	unfounded.Finding, unreasoned.Reason, nameless.Object = "", "", "metrics-reader"
	kept, taken := override, override
	kept.Choice, taken.Object = events.ChoiceKeep, keep.Object
	settled := func(by string, c ...events.PlanChoice) events.InstallPlanObstaclesSettled {
		return events.InstallPlanObstaclesSettled{Digest: ours, By: by, Choices: c}
	}
	approved := events.InstallPlanApproved{Digest: ours, Expires: noon.Add(24 * time.Hour)}
	for name, c := range map[string]struct {
		state   installplan.State
		choices []events.PlanChoice
		actor   string
		want    []events.Payload
		kind    errs.Kind
	}{
		"with an approval": {
			state:   of(installplan.Manual, 0),
			choices: []events.PlanChoice{override, keep},
			want:    []events.Payload{settled("a1", keep, override), approved},
		},
		"of an Automatic plan": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{keep},
			want: []events.Payload{settled("a1", keep)},
		},
		"an Automatic plan without": {state: of(installplan.Automatic, 0), kind: errs.Unprocessable},
		"of a plan that has begun": {
			state:   of(installplan.Automatic, 0, events.InstallPlanStarted{}),
			choices: []events.PlanChoice{take}, want: []events.Payload{settled("a1", take)},
		},
		"of a plan that is approved": {
			state:   of(installplan.Manual, 0, approved),
			choices: []events.PlanChoice{take}, want: []events.Payload{settled("a1", take)},
		},
		"of a plan that is complete": {
			state:   of(installplan.Automatic, 0, events.InstallPlanFinished{}),
			choices: []events.PlanChoice{take}, kind: errs.Conflict,
		},
		"said before": {
			state:   of(installplan.Automatic, 0, settled("a1", keep)),
			choices: []events.PlanChoice{keep},
		},
		"said by somebody else": {
			state:   of(installplan.Automatic, 0, settled("a2", keep)),
			choices: []events.PlanChoice{keep}, want: []events.Payload{settled("a1", keep)},
		},
		"another choice than before": {
			state:   of(installplan.Automatic, 0, settled("a1", keep)),
			choices: []events.PlanChoice{take}, want: []events.Payload{settled("a1", take)},
		},
		"first of two people": {
			state: of(installplan.Manual, 2), choices: []events.PlanChoice{keep},
			want: []events.Payload{settled("a1", keep), events.InstallPlanApprovalGiven{
				Digest: ours, By: "a1", Expires: approved.Expires,
			}},
		},
		"without a finding": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{unfounded},
			kind: errs.Invalid,
		},
		"an override without a reason": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{unreasoned},
			kind: errs.Invalid,
		},
		"an object without a kind": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{nameless},
			kind: errs.Invalid,
		},
		"a definition that is kept": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{kept},
			kind: errs.Invalid,
		},
		"an object that is overridden": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{taken},
			kind: errs.Invalid,
		},
		"a bundle that is allowed": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{allow},
			want: []events.Payload{settled("a1", allow)},
		},
		"a bundle that is allowed without a reason": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{unwarranted},
			kind: errs.Invalid,
		},
		"a bundle that is kept": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{keptBundle},
			kind: errs.Invalid,
		},
		"an object that is allowed": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{allowedObject},
			kind: errs.Invalid,
		},
		"the same object twice": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{keep, take},
			kind: errs.Invalid,
		},
		"more than an approval may say": {
			state:   of(installplan.Automatic, 0),
			choices: make([]events.PlanChoice, installplan.MaxChoices+1), kind: errs.Invalid,
		},
		"by nobody": {
			state: of(installplan.Automatic, 0), choices: []events.PlanChoice{keep}, actor: "-",
			kind: errs.Invalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actor := "a1"
			if c.actor == "-" {
				actor = ""
			}
			got, err := installplan.Decide(c.state, installplan.Approve{
				Digest: ours, Actor: actor, Now: noon,
				Choices: c.choices,
			})
			if c.kind != "" {
				if !errs.Is(err, c.kind) {
					t.Fatalf("got %v, %v; want an error of kind %s", got, err, c.kind)
				}
				return
			}
			if err != nil || !cmp.Equal(got, c.want) {
				t.Errorf("got %v, %v\nwant %v", got, err, c.want)
			}
		})
	}
}

// TestSettled: a choice counts when as many people made it as must approve the plan, of each object the newest.
func TestSettled(t *testing.T) {
	t.Parallel()
	keep := events.PlanChoice{Object: "ClusterRole/r", Choice: events.ChoiceKeep, Finding: "sha256:f"}
	take, moved := keep, keep
	take.Choice, moved.Finding = events.ChoiceTake, "sha256:other"
	said := func(by string, c events.PlanChoice) events.InstallPlanObstaclesSettled {
		return events.InstallPlanObstaclesSettled{By: by, Choices: []events.PlanChoice{c}}
	}
	for name, c := range map[string]struct {
		approvers int
		said      []events.Payload
		want      []installplan.Settled
	}{
		"nothing": {},
		"one of one": {
			1,
			[]events.Payload{said("a", keep)},
			[]installplan.Settled{{Object: "ClusterRole/r", Choice: "Keep", Finding: "sha256:f", By: []string{"a"}}},
		},
		"the newest of two people": {
			1,
			[]events.Payload{said("a", keep), said("b", take)},
			[]installplan.Settled{{Object: "ClusterRole/r", Choice: "Take", Finding: "sha256:f", By: []string{"b"}}},
		},
		"one of two": {2, []events.Payload{said("a", keep)}, nil},
		"two of two": {
			2,
			[]events.Payload{said("a", keep), said("b", keep)},
			[]installplan.Settled{{
				Object: "ClusterRole/r", Choice: "Keep", Finding: "sha256:f",
				By: []string{"a", "b"},
			}},
		},
		"two of two, and one thinks again": {
			2,
			[]events.Payload{said("a", keep), said("b", keep), said("a", take)},
			nil,
		},
		"two who saw different findings":      {2, []events.Payload{said("a", keep), said("b", moved)}, nil},
		"the same person twice is one person": {2, []events.Payload{said("a", keep), said("a", keep)}, nil},
	} {
		s, err := installplan.Fold(append([]events.Payload{
			events.InstallPlanProposed{Plan: "p", Approval: installplan.Manual, Approvers: c.approvers},
		}, c.said...)...)
		if got := s.Settled(); err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, c.want)
		}
	}
}
