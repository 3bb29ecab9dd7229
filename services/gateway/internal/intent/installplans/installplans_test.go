package installplans_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/installplans"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var base = events.PlanBase{Installed: "i", CRDs: "c", OperatorGroup: "g", Config: "s", Policy: "p"}

// propose records a plan that people have to approve, and returns its id.
func propose(e *intenttest.Env, name string, approvers int) string {
	id := uuid.NewString()
	e.Fact(events.Resolver, events.KindInstallPlan, id, "harbour/ops/"+name, events.InstallPlanProposed{
		Plan: id, Name: name, Cluster: "harbour", Namespace: "ops", Component: "tide", Approval: "Manual",
		Approvers: approvers, Digest: "sha256:" + name, Document: "sha256:" + name, Base: base,
	})
	return id
}

// TestApprove: R-IP-10: an approval names the digest and the base that the approver saw; several people are needed
// where the plan says so, each once; who approves again changes nothing; a plan of another tenant is not found.
func TestApprove(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &installplans.Service{Units: e.Units}
	id := propose(e, "install-aaaaa", 2)
	approve := func(who model.Caller, in model.ApprovePlan) error {
		_, err := s.Approve(t.Context(), who, id, in)
		return err
	}
	seen := model.ApprovePlan{Digest: "sha256:install-aaaaa"}
	other := model.PlanBase(base)
	other.Config = "changed"
	past := e.Now.Add(-time.Minute)
	for _, c := range []struct {
		name string
		who  model.Caller
		in   model.ApprovePlan
		kind errs.Kind
	}{
		{"another digest", intenttest.Ann, model.ApprovePlan{Digest: "sha256:other"}, errs.Conflict},
		{"another base", intenttest.Ann, model.ApprovePlan{Digest: seen.Digest, Base: &other}, errs.Conflict},
		{"an end that is over", intenttest.Ann, model.ApprovePlan{Digest: seen.Digest, Expires: &past}, errs.Invalid},
		{"a plan of another tenant", intenttest.Eve, seen, errs.NotFound},
	} {
		if err := approve(c.who, c.in); !errs.Is(err, c.kind) {
			t.Errorf("%s: %v, want %s", c.name, err, c.kind)
		}
	}
	for _, who := range []model.Caller{intenttest.Ann, intenttest.Ann, intenttest.Bob, intenttest.Bob} {
		if err := approve(who, seen); err != nil {
			t.Fatal(err)
		}
	}
	want := []events.Type{
		events.InstallPlanProposed{}.EventType(), events.InstallPlanApprovalGiven{}.EventType(),
		events.InstallPlanApproved{}.EventType(),
	}
	if got := e.Events(intenttest.Ann, events.KindInstallPlan, id); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	e.Now = e.Now.Add(25 * time.Hour) // the approvals have expired: both are wanted again
	if p, err := s.Approve(t.Context(), intenttest.Ann, id, seen); err != nil || p.Phase != "RequiresApproval" {
		t.Errorf("one of two after the end: phase %s, %v", p.Phase, err)
	}
}

// TestApproveSuperseded: an approval that comes too late is refused with what changed in the plan that took its place.
func TestApproveSuperseded(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &installplans.Service{Units: e.Units}
	old, next := propose(e, "install-aaaaa", 1), uuid.NewString()
	e.Fact(events.Resolver, events.KindInstallPlan, next, "harbour/ops/install-bbbbb", events.InstallPlanProposed{
		Plan: next, Name: "install-bbbbb", Cluster: "harbour", Namespace: "ops", Component: "tide",
		Approval: "Manual", Digest: "sha256:b", Document: "sha256:b",
		Base: events.PlanBase{Installed: "i", CRDs: "c", OperatorGroup: "g", Config: "changed", Policy: "p"},
	})
	e.Fact(events.Resolver, events.KindInstallPlan, old, "harbour/ops/install-aaaaa",
		events.InstallPlanSuperseded{By: next})
	_, err := s.Approve(t.Context(), intenttest.Ann, old, model.ApprovePlan{Digest: "sha256:install-aaaaa"})
	if !errs.Is(err, errs.Conflict) || !strings.Contains(err.Error(), "install-bbbbb") {
		t.Errorf("%v, want a conflict that names the plan that took its place", err)
	}
}

// TestRejectAndNote: a plan is rejected once, by its digest; labels can be set whatever became of it; the words of an
// approver about an obstacle are kept where they can be erased.
func TestRejectAndNote(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &installplans.Service{Units: e.Units}
	id := propose(e, "install-aaaaa", 1)
	settle := model.ApprovePlan{Digest: "sha256:install-aaaaa", Choices: []model.SettleObstacle{{
		Object: "ClusterRole/reader", Choice: "Keep", Finding: "sha256:f", Reason: "ann was told s3cr3t",
	}}}
	for range 2 { // who says the same again changes nothing
		if _, err := s.Approve(t.Context(), intenttest.Ann, id, settle); err != nil {
			t.Fatal(err)
		}
	}
	settled := 0
	for _, r := range e.Recorded(intenttest.Ann, events.KindInstallPlan, id) {
		if p, ok := r.Payload.(events.InstallPlanObstaclesSettled); ok {
			settled++
			if n := e.Count(`select count(*) from gateway.bodies where commitment = $1`, p.Choices[0].Reason); n != 1 {
				t.Errorf("%d bodies with the reason %q of the event", n, p.Choices[0].Reason)
			}
		}
	}
	if n := e.Count(`select count(*) from gateway.bodies`); settled != 1 || n != 1 {
		t.Errorf("%d events about the obstacle with %d reasons, want 1 of each", settled, n)
	}
	if _, err := s.Reject(t.Context(), intenttest.Ann, id, model.RejectPlan{Digest: "sha256:other"}); !errs.Is(err,
		errs.Conflict) {
		t.Errorf("rejected by another digest: %v", err)
	}
	if _, err := s.Reject(t.Context(), intenttest.Eve, id, model.RejectPlan{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("rejected by another tenant: %v", err)
	}
	for range 2 {
		p, err := s.Reject(t.Context(), intenttest.Ann, id, model.RejectPlan{})
		if err != nil || p.Phase != "Rejected" {
			t.Errorf("rejected: phase %s, %v", p.Phase, err)
		}
	}
	if _, err := s.Approve(t.Context(), intenttest.Ann, id, settle); !errs.Is(err, errs.Conflict) {
		t.Errorf("approved after it was rejected: %v", err)
	}
	noted := model.Metadata{Labels: map[string]string{"ticket": "7"}}
	if p, err := s.SetMetadata(t.Context(), intenttest.Ann, id, noted); err != nil || p.Labels["ticket"] != "7" {
		t.Errorf("labels %v, %v", p.Labels, err)
	}
	if _, err := s.SetMetadata(t.Context(), intenttest.Ann, uuid.NewString(), noted); !errs.Is(err, errs.NotFound) {
		t.Errorf("labels of no plan: %v", err)
	}
}
