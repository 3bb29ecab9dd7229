package installplan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// TestAnyCommandsKeepTheStream: whatever commands come in whatever order, their events fold, the same
// command again adds nothing (R-IP-44), and what has begun ends in Complete or Failed only.
func TestAnyCommandsKeepTheStream(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s installplan.State
		now := noon
		for range rapid.IntRange(1, 20).Draw(t, "length") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "hours")) * time.Hour)
			c := anyCommand(t, s, now)
			decided, err := installplan.Decide(s, c)
			if err != nil {
				continue
			}
			begun, executable := s.Begun, s.Executable(now)
			s = evolveAll(t, s, decided)
			if _, reported := c.(installplan.Start); reported && !executable && s.Executable(now) {
				t.Fatalf("a report has made the plan executable: %#v", c)
			}
			if again, err := installplan.Decide(s, c); err != nil || len(again) > 0 {
				t.Fatalf("%#v repeated gives %v, %v", c, again, err)
			}
			if begun && (s.Phase == installplan.Superseded || s.Phase == installplan.Rejected ||
				s.Phase == installplan.RequiresApproval) {
				t.Fatalf("a begun plan became %s", s.Phase)
			}
		}
	})
}

func evolveAll(t *rapid.T, s installplan.State, decided []events.Payload) installplan.State {
	for _, e := range decided {
		next, err := installplan.Evolve(s, e)
		if err != nil {
			t.Fatalf("decided event does not fold: %v", err)
		}
		s = next
	}
	return s
}

func anyCommand(t *rapid.T, s installplan.State, now time.Time) installplan.Command {
	var grant time.Time // the hub signs none for what may not be executed
	if s.Executable(now) {
		grant = s.Until(now, now.Add(30*time.Minute))
	}
	return rapid.SampledFrom([]installplan.Command{
		installplan.Propose{Plan: proposed(installplan.Manual)},
		installplan.Propose{Plan: proposed(installplan.Automatic)},
		installplan.Propose{Plan: two()},
		installplan.Propose{Plan: saturdays(installplan.Manual)},
		installplan.Supersede{By: "next"},
		installplan.Supersede{},
		installplan.Approve{Digest: ours, Actor: "a1", Now: now},
		installplan.Approve{Digest: ours, Actor: "a2", Now: now},
		installplan.Approve{Digest: theirs, Actor: "a1", Now: now},
		installplan.Reject{},
		installplan.Note{Metadata: events.Metadata{Labels: map[string]string{"team": "sea"}}},
		installplan.Start{Epoch: 1, Now: now, Grant: grant},
		installplan.Start{Epoch: 1, Now: now},
		installplan.Block{Class: "transient", Reason: "ClusterUnreachable"},
		installplan.Block{Class: "conflict", Reason: "Forbidden"},
		installplan.Finish{StepLog: stepLog, Start: installplan.Start{Epoch: 2, Now: now, Grant: grant}},
		installplan.Fail{
			Step: 1, Reason: "Invalid", StepLog: stepLog, Start: installplan.Start{Epoch: 1, Now: now, Grant: grant},
		},
	}).Draw(t, "command")
}
