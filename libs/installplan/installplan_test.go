package installplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

var (
	noon     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	theirs   = string(digest.Bytes([]byte("another plan")))
	ours     = string(digest.Bytes([]byte("this plan")))
	stepLog  = string(digest.Bytes([]byte("step log")))
	base     = events.PlanBase{Installed: "i", CRDs: "c", OperatorGroup: "o", Config: "f", Policy: "p"}
	started  = events.InstallPlanStarted{Steps: 4}
	finished = events.InstallPlanFinished{Steps: 4, StepLog: stepLog}
	failed   = events.InstallPlanFailed{Step: 2, Reason: "Invalid", StepLog: stepLog}
	replaced = events.InstallPlanSuperseded{By: "next"}
	rejected = events.InstallPlanRejected{Digest: ours}
	approved = events.InstallPlanApproved{Digest: ours, Base: base, Expires: noon.Add(installplan.DefaultApprovalTTL)}
	down     = events.InstallPlanBlocked{Class: "transient", Reason: "ClusterUnreachable"}
)

func proposed(approval string) events.InstallPlanProposed {
	return events.InstallPlanProposed{
		Plan: "id", Name: "install-7xk2p", Cluster: "harbour", Namespace: "coast-ops", Generation: 1, Component: "tidegauge",
		Approval: approval, Digest: ours, Document: ours, Input: "input", Semantics: "1", Steps: 4, Base: base,
		Bundles: []events.PlannedBundle{{CSV: "tidegauge.v2.1.0"}, {CSV: "brinestore.v3.2.0"}},
	}
}

type list = []events.Payload

// TestDecide walks the decision table above Decide, cell by cell (R-IP-10, R-IP-11, R-IP-43, R-IP-44).
func TestDecide(t *testing.T) {
	t.Parallel()
	manual, automatic := proposed(installplan.Manual), proposed(installplan.Automatic)
	approve := installplan.Approve{Digest: ours, Actor: "a1", Now: noon}
	finish, fail := installplan.Finish{StepLog: stepLog}, installplan.Fail{Step: 2, Reason: "Invalid", StepLog: stepLog}
	block := installplan.Block{Class: "transient", Reason: "ClusterUnreachable"}
	cases := []struct {
		name  string
		given list
		when  installplan.Command
		then  list
		kind  errs.Kind
		says  []string
	}{
		{name: "propose", when: installplan.Propose{Plan: manual}, then: list{manual}},
		{name: "propose again", given: list{manual}, when: installplan.Propose{Plan: manual}},
		{name: "propose other", given: list{manual}, when: installplan.Propose{Plan: events.InstallPlanProposed{Plan: "id", Digest: theirs}}, kind: errs.AlreadyExists, says: []string{ours}},
		{name: "propose nothing", when: installplan.Propose{}, kind: errs.Invalid, says: []string{"plan is empty"}},

		{name: "supersede waiting", given: list{manual}, when: installplan.Supersede{By: "next"}, then: list{replaced}},
		{name: "supersede automatic", given: list{automatic}, when: installplan.Supersede{By: "next"}, then: list{replaced}},
		{name: "supersede approved", given: list{manual, approved}, when: installplan.Supersede{By: "next"}, then: list{replaced}},
		{name: "supersede again", given: list{manual, replaced}, when: installplan.Supersede{By: "next"}},
		{name: "supersede by another", given: list{manual, replaced}, when: installplan.Supersede{By: "other"}, kind: errs.Conflict, says: []string{"superseded by plan next"}},
		{name: "supersede begun", given: list{automatic, started}, when: installplan.Supersede{By: "next"}, kind: errs.Conflict, says: []string{"has begun"}},
		{name: "supersede complete", given: list{automatic, started, finished}, when: installplan.Supersede{}, kind: errs.Conflict, says: []string{"complete"}},
		{name: "supersede failed", given: list{automatic, started, failed}, when: installplan.Supersede{}, kind: errs.Conflict, says: []string{"failed"}},
		{name: "supersede rejected", given: list{manual, rejected}, when: installplan.Supersede{}, kind: errs.Conflict, says: []string{"rejected"}},
		{name: "supersede unknown", when: installplan.Supersede{}, kind: errs.NotFound},

		{name: "approve", given: list{manual}, when: approve, then: list{approved}},
		{
			name: "approve until", given: list{manual}, when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon, Expires: noon.Add(time.Hour)},
			then: list{events.InstallPlanApproved{Digest: ours, Base: base, Expires: noon.Add(time.Hour)}},
		},
		{name: "approve again", given: list{manual, approved}, when: approve},
		{name: "approve begun", given: list{manual, approved, started}, when: approve},
		{
			name: "approve after expiry", given: list{manual, approved}, when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon.Add(25 * time.Hour)},
			then: list{events.InstallPlanApproved{Digest: ours, Base: base, Expires: noon.Add(49 * time.Hour)}},
		},
		{name: "approve other digest", given: list{manual}, when: installplan.Approve{Digest: theirs, Actor: "a1", Now: noon}, kind: errs.Conflict, says: []string{ours, theirs, "install-7xk2p"}},
		{name: "approve without digest", given: list{manual}, when: installplan.Approve{Actor: "a1", Now: noon}, kind: errs.Conflict, says: []string{ours}},
		{
			name: "approve on other base", given: list{manual}, when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon, Base: &events.PlanBase{Installed: "i", CRDs: "other", OperatorGroup: "o", Config: "other", Policy: "p"}},
			kind: errs.Conflict, says: []string{"void", "CRDs, configuration changed"},
		},
		{name: "approve on same base", given: list{manual}, when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon, Base: &base}, then: list{approved}},
		{name: "approve by nobody", given: list{manual}, when: installplan.Approve{Digest: ours, Now: noon}, kind: errs.Invalid, says: []string{"no approver"}},
		{name: "approve in the past", given: list{manual}, when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon, Expires: noon}, kind: errs.Invalid, says: []string{"would expire"}},
		{name: "approve for ever", given: list{manual}, when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon, Expires: noon.AddDate(1, 0, 0)}, kind: errs.Invalid, says: []string{"would expire"}},
		{name: "approve automatic", given: list{automatic}, when: approve, kind: errs.Unprocessable, says: []string{"needs no approval"}},
		{name: "approve complete", given: list{manual, approved, started, finished}, when: approve, kind: errs.Conflict, says: []string{"it is complete"}},
		{name: "approve failed", given: list{manual, approved, started, failed}, when: approve, kind: errs.Conflict, says: []string{"it has failed"}},
		{name: "approve superseded", given: list{manual, replaced}, when: approve, kind: errs.Conflict, says: []string{"superseded by plan next"}},
		{name: "approve rejected", given: list{manual, rejected}, when: approve, kind: errs.Conflict, says: []string{"it was rejected"}},
		{name: "approve unknown", when: approve, kind: errs.NotFound},

		{name: "reject", given: list{manual}, when: installplan.Reject{Digest: ours}, then: list{rejected}},
		{name: "reject whatever it is", given: list{automatic}, when: installplan.Reject{}, then: list{rejected}},
		{name: "reject again", given: list{manual, rejected}, when: installplan.Reject{Digest: ours}},
		{name: "reject other digest", given: list{manual}, when: installplan.Reject{Digest: theirs}, kind: errs.Conflict, says: []string{ours, theirs}},
		{name: "reject begun", given: list{automatic, started}, when: installplan.Reject{}, kind: errs.Conflict, says: []string{"has begun"}},
		{name: "reject complete", given: list{automatic, started, finished}, when: installplan.Reject{}, kind: errs.Conflict},
		{name: "reject unknown", when: installplan.Reject{}, kind: errs.NotFound},

		{name: "start automatic", given: list{automatic}, when: installplan.Start{}, then: list{started}},
		{name: "start approved", given: list{manual, approved}, when: installplan.Start{}, then: list{started}},
		{name: "start again", given: list{automatic, started}, when: installplan.Start{}},
		{name: "start after the end", given: list{automatic, started, finished}, when: installplan.Start{}},
		{name: "start unapproved", given: list{manual}, when: installplan.Start{}, kind: errs.Conflict, says: []string{"without approval"}},
		{name: "start crosses supersede", given: list{automatic, replaced}, when: installplan.Start{}, then: list{started}},
		{name: "start crosses reject", given: list{automatic, rejected}, when: installplan.Start{}, then: list{started}},
		{name: "start unknown", when: installplan.Start{}, kind: errs.NotFound},

		{name: "block", given: list{automatic}, when: block, then: list{down}},
		{name: "block again", given: list{automatic, down}, when: block},
		{name: "block otherwise", given: list{automatic, started, down}, when: installplan.Block{Class: "conflict", Reason: "Forbidden"}, then: list{events.InstallPlanBlocked{Class: "conflict", Reason: "Forbidden"}}},
		{name: "block after the end", given: list{automatic, started, finished}, when: block},
		{name: "block without reason", given: list{automatic}, when: installplan.Block{Class: "transient"}, kind: errs.Invalid},

		{name: "finish", given: list{automatic, started}, when: finish, then: list{finished}},
		{name: "finish again", given: list{automatic, started, finished}, when: finish},
		{name: "finish, start lost", given: list{automatic}, when: finish, then: list{started, finished}},
		{name: "finish superseded", given: list{automatic, replaced}, when: finish, then: list{started, finished}},
		{name: "finish failed", given: list{automatic, started, failed}, when: finish, kind: errs.Conflict},
		{name: "finish unapproved", given: list{manual}, when: finish, kind: errs.Conflict, says: []string{"without approval"}},
		{name: "fail", given: list{automatic, started}, when: fail, then: list{failed}},
		{name: "fail again", given: list{automatic, started, failed}, when: fail},
		{name: "fail, start lost", given: list{manual, approved}, when: fail, then: list{started, failed}},
		{name: "fail complete", given: list{automatic, started, finished}, when: fail, kind: errs.Conflict},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			state, err := installplan.Fold(c.given...)
			if err != nil {
				t.Fatalf("given: %v", err)
			}
			got, err := installplan.Decide(state, c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
			if c.kind == "" {
				if diff := cmp.Diff(c.then, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestExpiredApprovalIsVoid: nothing of a plan is applied after its approval expired, unless it had begun (R-IP-11, DESIGN D6).
func TestExpiredApprovalIsVoid(t *testing.T) {
	t.Parallel()
	late := noon.Add(installplan.DefaultApprovalTTL)
	cases := []struct {
		name       string
		given      list
		now        time.Time
		executable bool
		phase      installplan.Phase
	}{
		{"unapproved", list{proposed(installplan.Manual)}, noon, false, installplan.RequiresApproval},
		{"approved", list{proposed(installplan.Manual), approved}, noon, true, installplan.Installing},
		{"expired", list{proposed(installplan.Manual), approved}, late, false, installplan.RequiresApproval},
		{"begun in time", list{proposed(installplan.Manual), approved, started}, late, true, installplan.Installing},
		{"automatic", list{proposed(installplan.Automatic)}, late, true, installplan.Installing},
		{"complete", list{proposed(installplan.Automatic), started, finished}, late, false, installplan.Complete},
	}
	for _, c := range cases {
		state, err := installplan.Fold(c.given...)
		if err != nil {
			t.Fatal(err)
		}
		if got := state.Executable(c.now); got != c.executable {
			t.Errorf("%s: executable is %v", c.name, got)
		}
		if got := state.PhaseAt(c.now); got != c.phase {
			t.Errorf("%s: phase is %s, want %s", c.name, got, c.phase)
		}
	}
}

// TestEvolveRefuses: an event that cannot follow, or is another aggregate's, stops the reader.
func TestEvolveRefuses(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]list{
		"before proposal": {approved},
		"proposed twice":  {proposed(installplan.Manual), proposed(installplan.Manual)},
		"foreign":         {proposed(installplan.Manual), events.CSVRemoved{}},
	} {
		if _, err := installplan.Fold(given...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestStateTells: what read models take from the state.
func TestStateTells(t *testing.T) {
	t.Parallel()
	s, err := installplan.Fold(proposed(installplan.Automatic), down, started, failed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"brinestore.v3.2.0", "tidegauge.v2.1.0"}, s.CSVs()); diff != "" {
		t.Error(diff)
	}
	if s.Failure != (installplan.Failure{Step: 2, Reason: "Invalid"}) || s.StepLog != stepLog || s.Blocked != (installplan.Blocked{}) || s.Live() {
		t.Errorf("state %+v", s)
	}
}
