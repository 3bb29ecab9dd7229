package model_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var start = time.Date(2030, 5, 6, 7, 0, 0, 0, time.UTC)

func minute(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

// step is one event of a plan and who caused it.
type step struct {
	payload events.Payload
	actor   string
}

func evolve(t *testing.T, steps ...step) model.PlanState {
	t.Helper()
	var s model.PlanState
	for i, x := range steps {
		var err error
		if s, err = s.Evolve(x.payload, x.actor, minute(i)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func proposed(approvers int) step {
	return step{payload: events.InstallPlanProposed{
		Plan: "p1", Name: "install-a", Cluster: "harbour", Namespace: "ops", Approval: "Manual", Digest: "sha256:d",
		Approvers: approvers,
	}}
}

// TestPlanShowsWhoApprovedWhen: the approval that completes a plan lists every consent that still held, and no other
// (R-IP-10).
func TestPlanShowsWhoApprovedWhen(t *testing.T) {
	t.Parallel()
	day := minute(24 * 60)
	for _, c := range []struct {
		name  string
		steps []step
		want  []model.PlanApproval
	}{
		{
			"one person",
			[]step{proposed(1), {events.InstallPlanApproved{Digest: "sha256:d", Expires: day}, "ann"}},
			[]model.PlanApproval{{By: "ann", At: minute(1), Expires: day}},
		},
		{
			"two people",
			[]step{
				proposed(2),
				{events.InstallPlanApprovalGiven{Digest: "sha256:d", By: "ann", Expires: day}, "ann"},
				{events.InstallPlanApproved{Digest: "sha256:d", Expires: day}, "bob"},
			},
			[]model.PlanApproval{{By: "ann", At: minute(1), Expires: day}, {By: "bob", At: minute(2), Expires: day}},
		},
		{
			"a consent that expired before the last one",
			[]step{
				proposed(2),
				{events.InstallPlanApprovalGiven{Digest: "sha256:d", By: "ann", Expires: minute(2)}, "ann"},
				{events.InstallPlanApprovalGiven{Digest: "sha256:d", By: "eve", Expires: day}, "eve"},
				{events.InstallPlanApproved{Digest: "sha256:d", Expires: day}, "bob"},
			},
			[]model.PlanApproval{{By: "eve", At: minute(2), Expires: day}, {By: "bob", At: minute(3), Expires: day}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := evolve(t, c.steps...).InstallPlanAt(minute(10))
			if diff := cmp.Diff(c.want, p.Approvals); diff != "" {
				t.Errorf("approvals (-want +got):\n%s", diff)
			}
			if last := c.want[len(c.want)-1]; p.Approved == nil || *p.Approved != last {
				t.Errorf("approved %+v, want %+v", p.Approved, last)
			}
		})
	}
}

// TestPlanTimes: a start that crossed a supersede revives the plan, which has no end any more then.
func TestPlanTimes(t *testing.T) {
	t.Parallel()
	superseded := step{payload: events.InstallPlanSuperseded{By: "p2"}}
	s := evolve(t, proposed(1), superseded)
	if p := s.InstallPlanAt(minute(5)); p.EndedAt == nil || !p.EndedAt.Equal(minute(1)) || p.SupersededBy != "p2" ||
		p.Phase != "Superseded" {
		t.Errorf("after a supersede: %+v", p)
	}
	s = evolve(t, proposed(1), superseded, step{payload: events.InstallPlanStarted{}})
	if p := s.InstallPlanAt(minute(5)); p.EndedAt != nil || p.SupersededBy != "" || p.StartedAt == nil ||
		!p.StartedAt.Equal(minute(2)) || !p.Begun {
		t.Errorf("after a start: %+v", p)
	}
}

// TestPlanIsBlockedOnlyWhileItLives: what has ended waits for nothing.
func TestPlanIsBlockedOnlyWhileItLives(t *testing.T) {
	t.Parallel()
	steps := []step{
		proposed(1),
		{events.InstallPlanApproved{Digest: "sha256:d", Expires: minute(60)}, "ann"},
		{payload: events.InstallPlanBlocked{Class: "conflict", Reason: "OwnedByOther"}},
	}
	if p := evolve(t, steps...).InstallPlanAt(minute(3)); p.Blocked == nil || p.Blocked.Reason != "OwnedByOther" {
		t.Errorf("a blocked plan shows %+v", p.Blocked)
	}
	if p := evolve(t, append(steps, step{payload: events.InstallPlanRejected{}})...).InstallPlanAt(
		minute(4)); p.Blocked != nil {
		t.Errorf("a rejected plan is shown as blocked: %+v", p.Blocked)
	}
	steps = append(steps, step{payload: events.InstallPlanStarted{}},
		step{payload: events.InstallPlanFailed{Step: 3, Reason: "Denied", StepLog: "sha256:l"}})
	if p := evolve(t, steps...).InstallPlanAt(minute(5)); p.Failure == nil ||
		*p.Failure != (model.PlanFailure{Step: 3, Reason: "Denied"}) {
		t.Errorf("a failed plan shows %+v", p.Failure)
	}
}

// TestChoicesReplaceThoseOfTheSamePerson: of each person and object the newest choice is shown (R-IP-10).
func TestChoicesReplaceThoseOfTheSamePerson(t *testing.T) {
	t.Parallel()
	settled := func(by, object, choice string) step {
		return step{events.InstallPlanObstaclesSettled{
			By:      by,
			Choices: []events.PlanChoice{{Object: object, Choice: choice, Finding: "f"}},
		}, by}
	}
	p := evolve(t, proposed(1), settled("ann", "ClusterRole/a", "Keep"), settled("bob", "ClusterRole/a", "Take"),
		settled("ann", "ClusterRole/a", "Take")).InstallPlanAt(minute(9))
	want := []model.PlanChoice{
		{Object: "ClusterRole/a", Choice: "Take", Finding: "f", By: "bob", At: minute(2)},
		{Object: "ClusterRole/a", Choice: "Take", Finding: "f", By: "ann", At: minute(3)},
	}
	if diff := cmp.Diff(want, p.Choices); diff != "" {
		t.Errorf("choices (-want +got):\n%s", diff)
	}
}

// TestPlanStateSurvivesNoForeignEvent: an event that cannot follow stops the read model instead of showing something
// else.
func TestPlanStateSurvivesNoForeignEvent(t *testing.T) {
	t.Parallel()
	if _, err := (model.PlanState{}).Evolve(events.InstallPlanStarted{}, "", start); err == nil {
		t.Error("a start before the proposal was folded")
	}
	if _, err := evolve(t, proposed(1)).Evolve(events.ClusterRemoved{}, "", start); err == nil {
		t.Error("an event of a cluster was folded into a plan")
	}
}
