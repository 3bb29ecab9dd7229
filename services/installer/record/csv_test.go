package record_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

var (
	start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	scope = protocol.Scope{Tenant: "t", Cluster: "east", Namespace: "ns"}
)

// at is a transition so many seconds after the start; phase is "Phase/Reason".
func at(second int, phase string) protocol.Transition {
	p, reason, _ := strings.Cut(phase, "/")
	return protocol.Transition{Phase: p, Reason: reason, Time: start.Add(time.Duration(second) * time.Second)}
}

func say(list []events.Payload) []string {
	output := make([]string, 0, len(list))
	for _, p := range list {
		switch p := p.(type) {
		case events.CSVPhaseChanged:
			output = append(output, p.Phase+"/"+p.Reason)
		case events.CSVRemoved:
			output = append(output, "removed "+p.Reason)
		case events.CSVFlapping:
			output = append(output, fmt.Sprintf("flapping %d in %d s", p.Changes, p.Window))
		}
	}
	return output
}

func equal(t *testing.T, got []events.Payload, want ...string) {
	t.Helper()
	if g := strings.Join(say(got), ", "); g != strings.Join(want, ", ") {
		t.Errorf("recorded\n  %s\nwant\n  %s", g, strings.Join(want, ", "))
	}
}

func csv(history ...protocol.Transition) protocol.CSVReport {
	return protocol.CSVReport{
		Name: "etcd.v1", Package: "etcd", Version: "1.0.0", UID: "u", Content: "sha256:c",
		Plan: "p", History: history,
	}
}

// R-CSV §6.2: the phases of an install, each once however often and in whatever pieces they are reported.
func TestInstallIsRecordedOnce(t *testing.T) {
	t.Parallel()
	all := []protocol.Transition{
		at(0, "Pending/RequirementsUnknown"), at(1, "Pending/RequirementsNotMet"),
		at(2, "InstallReady/AllRequirementsMet"), at(3, "Installing/InstallSucceeded"),
		at(4, "Installing/InstallWaiting"), at(5, "Succeeded/InstallSucceeded"),
	}
	first, s := record.DecideCSV(record.CSV{}, scope, csv(all[:2]...), start)
	equal(t, first, "Pending/RequirementsUnknown", "Pending/RequirementsNotMet")
	again, s := record.DecideCSV(s, scope, csv(all[:2]...), start)
	equal(t, again)
	rest, s := record.DecideCSV(s, scope, csv(all...), start)
	equal(t, rest, "InstallReady/AllRequirementsMet", "Installing/InstallSucceeded", "Succeeded/InstallSucceeded")
	p, ok := rest[0].(events.CSVPhaseChanged)
	want := events.CSVPhaseChanged{
		Cluster: "east", Namespace: "ns", Name: "etcd.v1", Package: "etcd", Version: "1.0.0", Content: "sha256:c",
		Plan: "p", Phase: "InstallReady", Reason: "AllRequirementsMet",
	}
	if !ok || p != want {
		t.Errorf("recorded %+v", rest[0])
	}
	old, _ := record.DecideCSV(s, scope, csv(all[:1]...), start)
	equal(t, old)
}

// What was dropped from the front of a history is not taken for news.
func TestDroppedTransitions(t *testing.T) {
	t.Parallel()
	_, s := record.DecideCSV(record.CSV{}, scope, csv(at(0, "Pending/A"), at(1, "InstallReady/B")), start)
	r := csv(at(1, "InstallReady/B"), at(2, "Installing/C"))
	r.Dropped = 1
	got, s := record.DecideCSV(s, scope, r, start)
	equal(t, got, "Installing/C")
	r = csv(at(9, "Succeeded/D")) // 5 were dropped, 2 of them unseen
	r.Dropped = 5
	got, _ = record.DecideCSV(s, scope, r, start)
	equal(t, got, "Succeeded/D")
}

func TestRemovalEndsTheLifeOnce(t *testing.T) {
	t.Parallel()
	r := csv(at(0, "Pending/A"))
	r.Removed, r.RemovedReason = true, "Replaced"
	got, s := record.DecideCSV(record.CSV{}, scope, r, start)
	equal(t, got, "Pending/A", "removed Replaced")
	got, _ = record.DecideCSV(s, scope, r, start)
	equal(t, got)
	got, _ = record.EndCSV(s, "", "")
	equal(t, got)
	got, _ = record.EndCSV(record.CSV{}, "", "")
	equal(t, got)
	_, s = record.DecideCSV(record.CSV{}, scope, csv(at(0, "Pending/A")), start)
	got, _ = record.EndCSV(s, "", "")
	equal(t, got, "removed Deleted")
}

// D2: one that flaps is one csv.flapping, and its last phase is recorded when it is calm again.
func TestFlappingIsBounded(t *testing.T) {
	t.Parallel()
	var history []protocol.Transition
	for i := range 100 {
		history = append(history, at(2*i, []string{"Succeeded/InstallSucceeded", "Failed/ComponentUnhealthy"}[i%2]))
	}
	got, s := record.DecideCSV(record.CSV{}, scope, csv(history...), start.Add(200*time.Second))
	if n := len(got); n != record.FlapLimit+1 {
		t.Errorf("%d events recorded of 100 transitions, want %d", n, record.FlapLimit+1)
	}
	if last := say(got[len(got)-1:])[0]; last != "flapping 21 in 300 s" {
		t.Errorf("the last is %q", last)
	}
	if s.Settled() {
		t.Error("settled while it flaps")
	}
	history = append(history, at(250, "Succeeded/InstallSucceeded"))
	got, s = record.DecideCSV(s, scope, csv(history...), start.Add(260*time.Second))
	equal(t, got)
	got, s = record.DecideCSV(s, scope, csv(history...), start.Add(record.FlapWindow))
	equal(t, got, "Succeeded/InstallSucceeded") // where it came to rest
	history = append(history, at(400, "Failed/ComponentUnhealthy"))
	got, s = record.DecideCSV(s, scope, csv(history...), start.Add(401*time.Second))
	equal(t, got, "Failed/ComponentUnhealthy")
	if !s.Settled() {
		t.Error("not settled when calm")
	}
}

// However a history is cut into reports, doubled and reordered, the same events are recorded in the end.
func TestReportsInAnyPiecesGiveTheSameFacts(t *testing.T) {
	t.Parallel()
	phases := []string{
		"Pending/A", "InstallReady/B", "Installing/C", "Succeeded/D", "Failed/E",
		"Installing/InstallWaiting",
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "transitions")
		second := 0
		history := make([]protocol.Transition, n)
		for i := range history {
			second += rapid.IntRange(0, 40).Draw(t, "pause")
			history[i] = at(second, rapid.SampledFrom(phases).Draw(t, "phase"))
		}
		end := start.Add(time.Duration(second) * time.Second)
		whole, _ := record.DecideCSV(record.CSV{}, scope, csv(history...), end)
		var pieces []events.Payload
		var s record.CSV
		report := func(n int) {
			var got []events.Payload
			got, s = record.DecideCSV(s, scope, csv(history[:n]...), history[n-1].Time)
			pieces = append(pieces, got...)
		}
		for range rapid.IntRange(0, 20).Draw(t, "reports") {
			report(rapid.IntRange(1, n).Draw(t, "length")) // longer, shorter, the same
		}
		report(n)
		if a, b := strings.Join(say(whole), ","), strings.Join(say(pieces), ","); a != b {
			t.Fatalf("in one report\n  %s\nin pieces\n  %s", a, b)
		}
	})
}
