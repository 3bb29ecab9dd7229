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
	noted    = events.InstallPlanMetadataChanged{Metadata: note.Metadata}
	note     = installplan.Note{Metadata: events.Metadata{Labels: map[string]string{"team": "sea"}}}
	approved = events.InstallPlanApproved{Digest: ours, Base: base, Expires: noon.Add(installplan.DefaultApprovalTTL)}
	// start is heard of while its grant is good, noon is long before any window.
	start = installplan.Start{Epoch: 7, Now: noon, Grant: noon.Add(30 * time.Minute)}
	down  = events.InstallPlanBlocked{Class: "transient", Reason: "ClusterUnreachable"}
)

// unauthorised is what is recorded of a start of the hold of epoch 7.
func unauthorised(reason string) list {
	return list{events.InstallPlanStartUnauthorised{Epoch: 7, Reason: reason}}
}

func proposed(approval string) events.InstallPlanProposed {
	return events.InstallPlanProposed{
		Plan: "id", Name: "install-7xk2p", Cluster: "harbour", Namespace: "coast-ops", Generation: 1,
		Component: "tidegauge", Approval: approval, Digest: ours, Document: ours, Input: "input",
		Semantics: "1", Rendering: "1",
		Steps: 4, Base: base, Bundles: []events.PlannedBundle{{CSV: "tidegauge.v2.1.0"}, {CSV: "brinestore.v3.2.0"}},
	}
}

// two is a plan that wants two approvers, each for an hour at most.
func two() events.InstallPlanProposed {
	p := proposed(installplan.Manual)
	p.Approvers, p.ApprovalSeconds, p.Policies = 2, 3600, []string{"production"}
	return p
}

// given is a consent that was given at noon.
func given(by string) events.InstallPlanApprovalGiven {
	return events.InstallPlanApprovalGiven{Digest: ours, Base: base, By: by, Expires: noon.Add(time.Hour)}
}

// saturdays may begin on Saturdays from 10:00 to 12:00; noon is a Sunday.
func saturdays(approval string) events.InstallPlanProposed {
	p := proposed(approval)
	p.Policies = []string{"weekend"}
	p.Windows = []events.WindowGroup{{Policy: "weekend", Windows: []events.Window{
		{Days: []string{"Sat"}, Start: "10:00", Minutes: 120, TimeZone: "UTC"},
	}}}
	return p
}

// saturday is the next opening after noon, nextSaturday the one after it.
var (
	saturday     = time.Date(2026, 3, 7, 10, 0, 0, 0, time.UTC)
	nextSaturday = saturday.AddDate(0, 0, 7)
)

// twoOnSaturdays is a plan that wants two approvers and begins on Saturdays.
func twoOnSaturdays() events.InstallPlanProposed {
	p := saturdays(installplan.Manual)
	p.Approvers = 2
	return p
}

// early is a consent that outlasts the first Saturday's window by a day.
var early = events.InstallPlanApprovalGiven{Digest: ours, Base: base, By: "a1", Expires: saturday.Add(24 * time.Hour)}

// never has windows of two policies that are never open together.
func never() events.InstallPlanProposed {
	p := saturdays(installplan.Manual)
	p.Policies = append(p.Policies, "mondays")
	p.Windows = append(p.Windows, events.WindowGroup{
		Policy:  "mondays",
		Windows: []events.Window{{Days: []string{"Mon"}, Start: "10:00", Minutes: 60, TimeZone: "UTC"}},
	})
	return p
}

type list = []events.Payload

// TestDecide walks the decision table above Decide, cell by cell (R-IP-10, R-IP-11, R-IP-43, R-IP-44).
func TestDecide(t *testing.T) {
	t.Parallel()
	manual, automatic := proposed(installplan.Manual), proposed(installplan.Automatic)
	approve := installplan.Approve{Digest: ours, Actor: "a1", Now: noon}
	finish, fail := installplan.Finish{StepLog: stepLog, Start: start},
		installplan.Fail{Step: 2, Reason: "Invalid", StepLog: stepLog, Start: start}
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
		{
			name: "propose other", given: list{manual}, when: installplan.Propose{
				Plan: events.InstallPlanProposed{Plan: "id", Digest: theirs},
			}, kind: errs.AlreadyExists,
			says: []string{ours},
		},
		{name: "propose nothing", when: installplan.Propose{}, kind: errs.Invalid, says: []string{"plan is empty"}},

		{name: "supersede waiting", given: list{manual}, when: installplan.Supersede{By: "next"}, then: list{replaced}},
		{
			name: "supersede automatic", given: list{automatic}, when: installplan.Supersede{By: "next"},
			then: list{replaced},
		},
		{
			name: "supersede approved", given: list{manual, approved}, when: installplan.Supersede{By: "next"},
			then: list{replaced},
		},
		{name: "supersede again", given: list{manual, replaced}, when: installplan.Supersede{By: "next"}},
		{
			name: "supersede by another", given: list{manual, replaced}, when: installplan.Supersede{By: "other"},
			kind: errs.Conflict, says: []string{"superseded by plan next"},
		},
		{
			name: "supersede begun", given: list{automatic, started}, when: installplan.Supersede{By: "next"},
			kind: errs.Conflict, says: []string{"has begun"},
		},
		{
			name: "supersede complete", given: list{automatic, started, finished}, when: installplan.Supersede{},
			kind: errs.Conflict, says: []string{"complete"},
		},
		{
			name: "supersede failed", given: list{automatic, started, failed}, when: installplan.Supersede{},
			kind: errs.Conflict, says: []string{"failed"},
		},
		{
			name: "supersede rejected", given: list{manual, rejected}, when: installplan.Supersede{},
			kind: errs.Conflict, says: []string{"rejected"},
		},
		{name: "supersede unknown", when: installplan.Supersede{}, kind: errs.NotFound},

		{name: "approve", given: list{manual}, when: approve, then: list{approved}},
		{
			name: "approve until", given: list{manual}, when: installplan.Approve{
				Digest: ours, Actor: "a1", Now: noon,
				Expires: noon.Add(time.Hour),
			},
			then: list{events.InstallPlanApproved{Digest: ours, Base: base, Expires: noon.Add(time.Hour)}},
		},
		{name: "approve again", given: list{manual, approved}, when: approve},
		{name: "approve begun", given: list{manual, approved, started}, when: approve},
		{
			name: "approve after expiry", given: list{manual, approved},
			when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon.Add(25 * time.Hour)},
			then: list{events.InstallPlanApproved{Digest: ours, Base: base, Expires: noon.Add(49 * time.Hour)}},
		},
		{
			name: "approve other digest", given: list{manual},
			when: installplan.Approve{Digest: theirs, Actor: "a1", Now: noon}, kind: errs.Conflict,
			says: []string{ours, theirs, "install-7xk2p"},
		},
		{
			name: "approve without digest", given: list{manual}, when: installplan.Approve{Actor: "a1", Now: noon},
			kind: errs.Conflict, says: []string{ours},
		},
		{
			name: "approve on other base", given: list{manual},
			when: installplan.Approve{
				Digest: ours, Actor: "a1", Now: noon,
				Base: &events.PlanBase{
					Installed: "i", CRDs: "other", OperatorGroup: "o", Config: "other",
					Policy: "p",
				},
			}, kind: errs.Conflict, says: []string{"void", "CRDs, configuration changed"},
		},
		{
			name: "approve on same base", given: list{manual},
			when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon, Base: &base}, then: list{approved},
		},
		{
			name: "approve by nobody", given: list{manual}, when: installplan.Approve{Digest: ours, Now: noon},
			kind: errs.Invalid, says: []string{"no approver"},
		},
		{
			name: "approve in the past", given: list{manual},
			when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon, Expires: noon}, kind: errs.Invalid,
			says: []string{"would expire"},
		},
		{name: "approve for ever", given: list{manual}, when: installplan.Approve{
			Digest: ours, Actor: "a1", Now: noon,
			Expires: noon.AddDate(1, 0, 0),
		}, kind: errs.Invalid, says: []string{"would expire"}},
		{
			name: "approve automatic", given: list{automatic}, when: approve, kind: errs.Unprocessable,
			says: []string{"needs no approval"},
		},
		{
			name: "approve complete", given: list{manual, approved, started, finished}, when: approve,
			kind: errs.Conflict, says: []string{"it is complete"},
		},
		{
			name: "approve failed", given: list{manual, approved, started, failed}, when: approve, kind: errs.Conflict,
			says: []string{"it has failed"},
		},
		{
			name: "approve superseded", given: list{manual, replaced}, when: approve, kind: errs.Conflict,
			says: []string{"superseded by plan next"},
		},
		{
			name: "approve rejected", given: list{manual, rejected}, when: approve, kind: errs.Conflict,
			says: []string{"it was rejected"},
		},
		{name: "approve unknown", when: approve, kind: errs.NotFound},
		{
			name: "approve superseded, what changed", given: list{manual, replaced},
			when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon, Successor: &events.InstallPlanProposed{
				Plan: "next", Name: "install-b8z4x", Bundles: manual.Bundles,
				Base: events.PlanBase{Installed: "i", CRDs: "c", OperatorGroup: "o", Config: "f", Policy: "other"},
			}},
			kind: errs.Conflict, says: []string{"install-b8z4x", "since approval policy changed"},
		},

		{name: "first of two", given: list{two()}, when: approve, then: list{given("a1")}},
		{name: "first of two again", given: list{two(), given("a1")}, when: approve},
		{
			name: "second of two, until the first consent ends", given: list{two(), given("a1")},
			when: installplan.Approve{Digest: ours, Actor: "a2", Now: noon.Add(time.Minute)},
			then: list{events.InstallPlanApproved{Digest: ours, Base: base, Expires: noon.Add(time.Hour)}},
		},
		{
			name: "second of two, the first has expired", given: list{two(), given("a1")},
			when: installplan.Approve{Digest: ours, Actor: "a2", Now: noon.Add(time.Hour)},
			then: list{events.InstallPlanApprovalGiven{
				Digest: ours, Base: base, By: "a2",
				Expires: noon.Add(2 * time.Hour),
			}},
		},
		{
			name: "first of two once more after its end", given: list{two(), given("a1")},
			when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon.Add(time.Hour)},
			then: list{events.InstallPlanApprovalGiven{
				Digest: ours, Base: base, By: "a1",
				Expires: noon.Add(2 * time.Hour),
			}},
		},
		{
			name: "two, after the approval's end", given: list{
				two(), given("a1"), events.InstallPlanApproved{Digest: ours, Base: base, Expires: noon.Add(time.Hour)},
			},
			when: installplan.Approve{Digest: ours, Actor: "a2", Now: noon.Add(time.Hour)},
			then: list{events.InstallPlanApprovalGiven{
				Digest: ours, Base: base, By: "a2",
				Expires: noon.Add(2 * time.Hour),
			}},
		},
		{
			name: "second of two, other digest", given: list{two(), given("a1")},
			when: installplan.Approve{Digest: theirs, Actor: "a2", Now: noon}, kind: errs.Conflict,
			says: []string{ours, theirs},
		},
		{
			name: "second of two, other policy", given: list{two(), given("a1")},
			when: installplan.Approve{
				Digest: ours, Actor: "a2", Now: noon,
				Base: &events.PlanBase{Installed: "i", CRDs: "c", OperatorGroup: "o", Config: "f", Policy: "before"},
			},
			kind: errs.Conflict, says: []string{"void", "approval policy changed"},
		},
		{
			name: "longer than policies allow", given: list{two()},
			when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon, Expires: noon.Add(2 * time.Hour)},
			kind: errs.Invalid, says: []string{"at most 1h0m0s"},
		},
		{
			name: "started by one of two", given: list{two(), given("a1")}, when: start,
			then: unauthorised("NotApproved"),
		},
		{
			name: "supersede with one of two", given: list{two(), given("a1")}, when: installplan.Supersede{By: "next"},
			then: list{replaced},
		},
		{
			name: "reject with one of two", given: list{two(), given("a1")}, when: installplan.Reject{Digest: ours},
			then: list{rejected},
		},
		{name: "block with one of two", given: list{two(), given("a1")}, when: block, then: list{down}},

		{
			name: "approve before the window: a day from its opening", given: list{saturdays(installplan.Manual)},
			when: approve, then: list{events.InstallPlanApproved{
				Digest: ours, Base: base, Expires: saturday.Add(installplan.DefaultApprovalTTL),
			}},
		},
		{
			name: "approve until before the window", given: list{saturdays(installplan.Manual)},
			when: installplan.Approve{Digest: ours, Actor: "a1", Now: noon, Expires: noon.Add(time.Hour)},
			kind: errs.Unprocessable, says: []string{"before its maintenance window opens at 2026-03-07T10:00:00Z"},
		},
		{
			name: "second of two, the first ends before the next opening", given: list{twoOnSaturdays(), early},
			when: installplan.Approve{
				Digest: ours, Actor: "a2", Now: saturday.Add(2 * time.Hour),
				Expires: nextSaturday.Add(time.Hour),
			},
			then: list{events.InstallPlanApprovalGiven{
				Digest: ours, Base: base, By: "a2",
				Expires: nextSaturday.Add(time.Hour),
			}},
		},
		{
			name:  "first of two, whose consent ends before the next opening, once more",
			given: list{twoOnSaturdays(), early}, when: installplan.Approve{
				Digest: ours, Actor: "a1", Now: saturday.Add(2 * time.Hour), Expires: nextSaturday.Add(time.Hour),
			},
			then: list{events.InstallPlanApprovalGiven{
				Digest: ours, Base: base, By: "a1",
				Expires: nextSaturday.Add(time.Hour),
			}},
		},
		{
			name: "second of two while the window is open", given: list{twoOnSaturdays(), early},
			when: installplan.Approve{Digest: ours, Actor: "a2", Now: saturday, Expires: nextSaturday},
			then: list{events.InstallPlanApproved{Digest: ours, Base: base, Expires: early.Expires}},
		},
		{
			name: "approve what can never begin", given: list{never()}, when: approve, kind: errs.Unprocessable,
			says: []string{"weekend, mondays", "never open together"},
		},

		{name: "reject", given: list{manual}, when: installplan.Reject{Digest: ours}, then: list{rejected}},
		{name: "reject whatever it is", given: list{automatic}, when: installplan.Reject{}, then: list{rejected}},
		{name: "reject again", given: list{manual, rejected}, when: installplan.Reject{Digest: ours}},
		{
			name: "reject other digest", given: list{manual}, when: installplan.Reject{Digest: theirs},
			kind: errs.Conflict, says: []string{ours, theirs},
		},
		{
			name: "reject begun", given: list{automatic, started}, when: installplan.Reject{}, kind: errs.Conflict,
			says: []string{"has begun"},
		},
		{
			name: "reject begun and blocked", given: list{
				automatic, started, events.InstallPlanBlocked{Class: "conflict", Reason: "OwnerConflict"},
			},
			when: installplan.Reject{}, kind: errs.Conflict,
			says: []string{
				"has begun", "it waits (conflict, OwnerConflict)",
				"chandler uninstall harbour/coast-ops/tidegauge.v2.1.0",
			},
		},
		{
			name: "reject complete", given: list{automatic, started, finished}, when: installplan.Reject{},
			kind: errs.Conflict,
		},
		{name: "reject unknown", when: installplan.Reject{}, kind: errs.NotFound},

		{name: "note", given: list{manual}, when: note, then: list{noted}},
		{name: "note again", given: list{manual, noted}, when: note},
		{
			name: "note nothing", given: list{manual, noted}, when: installplan.Note{},
			then: list{events.InstallPlanMetadataChanged{}},
		},
		{name: "note after the end", given: list{automatic, started, finished}, when: note, then: list{noted}},
		{name: "note superseded", given: list{automatic, replaced}, when: note, then: list{noted}},
		{name: "note unknown", when: note, kind: errs.NotFound},
		{name: "start noted", given: list{automatic, noted}, when: start, then: list{started}},

		{name: "start automatic", given: list{automatic}, when: start, then: list{started}},
		{name: "start approved", given: list{manual, approved}, when: start, then: list{started}},
		{name: "start again", given: list{automatic, started}, when: start},
		{name: "start after the end", given: list{automatic, started, finished}, when: start},
		{name: "start unknown", when: start, kind: errs.NotFound},

		{name: "start unapproved", given: list{manual}, when: start, then: unauthorised("NotApproved")},
		{name: "start superseded", given: list{automatic, replaced}, when: start, then: unauthorised("Superseded")},
		{
			name: "start superseded after approval", given: list{manual, approved, replaced}, when: start,
			then: unauthorised("Superseded"),
		},
		{name: "start rejected", given: list{automatic, rejected}, when: start, then: unauthorised("Rejected")},
		{
			name: "start without a grant", given: list{automatic}, when: installplan.Start{Epoch: 7, Now: noon},
			then: unauthorised("NoGrant"),
		},
		{
			name: "start after the approval", given: list{manual, approved}, when: installplan.Start{
				Epoch: 7, Now: approved.Expires.Add(installplan.StartReportDelay + 1), Grant: approved.Expires,
			}, then: unauthorised("GrantExpired"),
		},
		{
			name: "start that was on its way when the approval ended", given: list{manual, approved},
			when: installplan.Start{
				Epoch: 7, Now: approved.Expires.Add(installplan.StartReportDelay), Grant: approved.Expires,
			}, then: list{started},
		},
		{
			name: "start outside the window", given: list{saturdays(installplan.Automatic)},
			when: installplan.Start{Epoch: 7, Now: saturday.Add(3 * time.Hour), Grant: saturday.Add(2 * time.Hour)},
			then: unauthorised("GrantExpired"),
		},
		{
			name: "start in the window", given: list{saturdays(installplan.Automatic)},
			when: installplan.Start{Epoch: 7, Now: saturday.Add(time.Hour), Grant: saturday.Add(2 * time.Hour)},
			then: list{started},
		},
		{
			name: "start with a grant that had ended, as it says itself", given: list{automatic},
			when: installplan.Start{
				Epoch: 7, Now: noon.Add(time.Hour), Grant: noon,
				Begun: noon.Add(installplan.StartClockSkew + 1),
			}, then: unauthorised("GrantExpired"),
		},
		{
			name: "start that says it was in time", given: list{manual, approved},
			when: installplan.Start{Epoch: 7, Now: noon.AddDate(0, 0, 9), Grant: approved.Expires, Begun: noon},
			then: unauthorised("GrantExpired"),
		},
		{
			name: "start unauthorised again", given: append(list{automatic, replaced}, unauthorised("Superseded")...),
			when: start,
		},
		{
			name: "start unauthorised of another hold", given: append(list{automatic, replaced},
				unauthorised("Superseded")...), when: installplan.Start{Epoch: 8, Now: noon},
			then: list{events.InstallPlanStartUnauthorised{Epoch: 8, Reason: "Superseded"}},
		},
		{
			name:  "start once it is approved",
			given: append(append(list{manual}, unauthorised("NotApproved")...), approved),
			when:  start, then: list{started},
		},

		{name: "block", given: list{automatic}, when: block, then: list{down}},
		{name: "block again", given: list{automatic, down}, when: block},
		{
			name: "block otherwise", given: list{automatic, started, down},
			when: installplan.Block{Class: "conflict", Reason: "Forbidden"},
			then: list{events.InstallPlanBlocked{Class: "conflict", Reason: "Forbidden"}},
		},
		{name: "block after the end", given: list{automatic, started, finished}, when: block},
		{
			name: "block without reason", given: list{automatic}, when: installplan.Block{Class: "transient"},
			kind: errs.Invalid,
		},

		{name: "finish", given: list{automatic, started}, when: finish, then: list{finished}},
		{name: "finish again", given: list{automatic, started, finished}, when: finish},
		{name: "finish, start lost", given: list{automatic}, when: finish, then: list{started, finished}},
		{name: "finish superseded", given: list{automatic, replaced}, when: finish, then: unauthorised("Superseded")},
		{name: "finish rejected", given: list{automatic, rejected}, when: finish, then: unauthorised("Rejected")},
		{name: "fail superseded", given: list{automatic, replaced}, when: fail, then: unauthorised("Superseded")},
		{
			name: "finish begun, superseded by nobody", given: list{manual, approved, started},
			when: installplan.Finish{StepLog: stepLog, Start: installplan.Start{Now: noon.AddDate(0, 0, 9)}},
			then: list{finished},
		},
		{name: "finish failed", given: list{automatic, started, failed}, when: finish, kind: errs.Conflict},
		{
			name: "finish unapproved", given: list{manual}, when: finish, then: unauthorised("NotApproved"),
		},
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

// TestExpiredApprovalIsVoid: nothing of a plan is applied after its approval expired, unless it had begun (R-IP-11,
// DESIGN D6).
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
		{"one of two", list{two(), given("a1")}, noon, false, installplan.RequiresApproval},
		{"outside its window", list{saturdays(installplan.Automatic)}, noon, false, installplan.Installing},
		{"in its window", list{saturdays(installplan.Automatic)}, saturday, true, installplan.Installing},
		{
			"window closed",
			list{saturdays(installplan.Automatic)},
			saturday.Add(2 * time.Hour), false,
			installplan.Installing,
		},
		{
			"begun, window closed",
			list{saturdays(installplan.Automatic), started},
			saturday.Add(2 * time.Hour), true,
			installplan.Installing,
		},
		{
			"in its window, unapproved",
			list{saturdays(installplan.Manual)},
			saturday, false,
			installplan.RequiresApproval,
		},
		{
			"approved, outside its window",
			list{saturdays(installplan.Manual), approved},
			noon, false,
			installplan.Installing,
		},
		{
			"in its window, expired",
			list{saturdays(installplan.Manual), approved},
			saturday, false,
			installplan.RequiresApproval,
		},
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
	if s.Failure != (installplan.Failure{Step: 2, Reason: "Invalid"}) || s.StepLog != stepLog ||
		s.Blocked != (installplan.Blocked{}) || s.Live() {
		t.Errorf("state %+v", s)
	}
}

// TestConsentsAreCounted: how many more people have to approve, at a moment.
func TestConsentsAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given   list
		now     time.Time
		missing int
	}{
		"none":           {list{two()}, noon, 2},
		"one":            {list{two(), given("a1")}, noon, 1},
		"one expired":    {list{two(), given("a1")}, noon.Add(time.Hour), 2},
		"one in time":    {list{twoOnSaturdays(), early}, noon, 1},
		"one too early":  {list{twoOnSaturdays(), early}, saturday.Add(2 * time.Hour), 2},
		"all":            {list{two(), given("a1"), approved}, noon, 0},
		"all, expired":   {list{two(), given("a1"), approved}, noon.AddDate(0, 0, 2), 2},
		"rejected":       {list{two(), given("a1"), rejected}, noon, 0},
		"automatic":      {list{proposed(installplan.Automatic)}, noon, 0},
		"one approver":   {list{proposed(installplan.Manual)}, noon, 1},
		"begun, expired": {list{two(), given("a1"), approved, started}, noon.AddDate(0, 0, 2), 0},
	} {
		s, err := installplan.Fold(c.given...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Missing(c.now); got != c.missing {
			t.Errorf("%s: %d are missing, want %d", name, got, c.missing)
		}
	}
}

// TestUntil: a grant ends with the approval or the window that it rests on, unless the plan has begun.
func TestUntil(t *testing.T) {
	t.Parallel()
	limit := func(now time.Time) time.Time { return now.Add(30 * time.Minute) }
	soon := events.InstallPlanApproved{Digest: ours, Base: base, Expires: saturday.Add(100 * time.Minute)}
	for name, c := range map[string]struct {
		given list
		now   time.Time
		until time.Time
	}{
		"automatic":      {list{proposed(installplan.Automatic)}, noon, noon.Add(30 * time.Minute)},
		"not executable": {list{saturdays(installplan.Automatic)}, noon, noon},
		"window open":    {list{saturdays(installplan.Automatic)}, saturday, saturday.Add(30 * time.Minute)},
		"window closes": {
			list{saturdays(installplan.Automatic)},
			saturday.Add(115 * time.Minute),
			saturday.Add(2 * time.Hour),
		},
		"begun": {
			list{saturdays(installplan.Automatic), started},
			saturday.Add(3 * time.Hour),
			saturday.Add(210 * time.Minute),
		},
		"approval ends": {
			list{saturdays(installplan.Manual), soon},
			saturday.Add(95 * time.Minute),
			saturday.Add(100 * time.Minute),
		},
		"approval is later": {list{proposed(installplan.Manual), approved}, noon, noon.Add(30 * time.Minute)},
	} {
		s, err := installplan.Fold(c.given...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Until(c.now, limit(c.now)); !got.Equal(c.until) {
			t.Errorf("%s: until %s, want %s", name, got, c.until)
		}
	}
}

// TestWindowsThatCannotBeReadStayClosed: a plan never begins because its policy is not understood.
func TestWindowsThatCannotBeReadStayClosed(t *testing.T) {
	t.Parallel()
	p := saturdays(installplan.Automatic)
	p.Windows[0].Windows[0].TimeZone = "Mars/Olympus"
	s, err := installplan.Fold(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.NextOpening(saturday); ok || s.Executable(saturday) {
		t.Error("a plan with an unknown time zone may begin")
	}
}

// TestBaseCoversPolicies: what policies make of a plan is in its base, and plans without policies have the
// base that they always had.
func TestBaseCoversPolicies(t *testing.T) {
	t.Parallel()
	f := installplan.BaseFacts{Approvals: map[string]string{"tidegauge": "Manual"}}
	plain, err := f.Base()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := digest.JSON(installplan.BaseType, f.Approvals); err != nil || plain.Policy != string(want) {
		t.Errorf("without policies: %s, want %s", plain.Policy, want)
	}
	seen := map[string]string{plain.Policy: "none"}
	for name, p := range map[string]installplan.PolicyFacts{
		"mode": {Approval: "Manual"}, "approvers": {Approvers: 2}, "seconds": {ApprovalSeconds: 60},
		"windows": {Windows: saturdays("").Windows},
	} {
		f.Policy = p
		b, err := f.Base()
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[b.Policy]; taken {
			t.Errorf("%s gives the base of %s", name, other)
		}
		seen[b.Policy] = name
		if changed := installplan.BaseChanges(plain, b); len(changed) != 1 || changed[0] != "approval policy" {
			t.Errorf("%s changes %v", name, changed)
		}
	}
}

// TestBaseLeavesOutWhatBindsNothing: reasons, and under which names and in which order windows are written, are no part
// of a base, so that approvals survive a policy that is renamed, split or said in other words (D6, R-IP-10).
func TestBaseLeavesOutWhatBindsNothing(t *testing.T) {
	t.Parallel()
	day := events.Window{Days: []string{"Sat", "Sun"}, Start: "10:00", Minutes: 120, TimeZone: "UTC"}
	night := events.Window{Start: "22:00", Minutes: 60, TimeZone: "UTC"}
	group := func(policy string, windows ...events.Window) events.WindowGroup {
		return events.WindowGroup{Policy: policy, Windows: windows}
	}
	turned := day
	turned.Days = []string{"Sun", "Sat"}
	was := installplan.PolicyFacts{Approvers: 2, Windows: []events.WindowGroup{
		group("a", day, night), group("b", night),
	}}
	want, err := installplan.BaseFacts{Policy: was}.Base()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		windows []events.WindowGroup
		reasons []string
		same    bool
	}{
		"as it was":     {was.Windows, nil, true},
		"a reason":      {was.Windows, []string{"MajorUpgrade"}, true},
		"other names":   {[]events.WindowGroup{group("x", night), group("y", day, night)}, nil, true},
		"another order": {[]events.WindowGroup{group("a", night, turned), group("b", night)}, nil, true},
		"said twice": {[]events.WindowGroup{
			group("a", day, night), group("b", night),
			group("c", night, night),
		}, nil, true},
		"one of them is gone": {[]events.WindowGroup{group("a", day, night)}, nil, false},
		"joined":              {[]events.WindowGroup{group("a", day, night, night)}, nil, false},
	} {
		got, err := installplan.BaseFacts{Policy: installplan.PolicyFacts{
			Approvers: 2, Windows: c.windows, ManualReasons: c.reasons,
		}}.Base()
		if err != nil || got.Policy == want.Policy != c.same {
			t.Errorf("%s: same base is %v, %v", name, got.Policy == want.Policy, err)
		}
	}
	if was.Windows[0].Windows[0].Days[0] != "Sat" || was.Windows[0].Policy != "a" {
		t.Error("the facts were changed by asking")
	}
}

// TestReportsCreateNoAuthority: DESIGN D7: whatever an executor reports of a plan that has not begun, in whatever
// phase: nothing is executable afterwards that was not before.
func TestReportsCreateNoAuthority(t *testing.T) {
	t.Parallel()
	late := approved.Expires.Add(time.Hour)
	for name, given := range map[string]list{
		"waits":      {proposed(installplan.Manual)},
		"one of two": {two(), given("a1")},
		"expired":    {proposed(installplan.Manual), approved},
		"superseded": {proposed(installplan.Automatic), replaced},
		"rejected":   {proposed(installplan.Manual), rejected},
		"closed":     {saturdays(installplan.Automatic)},
	} {
		claim := installplan.Start{Epoch: 1, Now: late, Grant: approved.Expires, Begun: noon}
		for _, c := range []installplan.Command{
			claim, installplan.Finish{Start: claim}, installplan.Fail{Start: claim, Reason: "x"},
		} {
			s, err := installplan.Fold(given...)
			if err != nil {
				t.Fatal(err)
			}
			before := s
			got, err := installplan.Decide(s, c)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range got {
				if s, err = installplan.Evolve(s, p); err != nil {
					t.Fatal(err)
				}
			}
			before.Unauthorised = s.Unauthorised
			if s.Executable(late) || s.Unauthorised.Reason == "" || !cmp.Equal(s, before) || s.Begun {
				t.Errorf("%s: after %T the plan is %s, begun %v, executable %v", name, c, s.Phase, s.Begun,
					s.Executable(late))
			}
		}
	}
}
