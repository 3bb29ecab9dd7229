package record_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// TestDecideGroup: R-OG §7.1, R-OG-20: what a group comes to is recorded when it changes, each set in one order.
func TestDecideGroup(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	report := protocol.GroupReport{
		Name: "coast", Targets: []string{"b", "a", "b"}, ProvidedAPIs: []string{"Gauge.v1.sea.test"},
		Conditions: []protocol.GroupCondition{{
			Type: "TargetNamespacesMissing", Reason: "NamespaceNotFound",
			Message: "b",
		}},
	}
	got, state := record.DecideGroup(record.Group{}, report, now)
	want := []events.Payload{events.OperatorGroupObserved{
		Targets: []string{"a", "b"}, ProvidedAPIs: []string{"Gauge.v1.sea.test"},
		Conditions: []string{"TargetNamespacesMissing"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	report.Targets, report.Conditions[0].Message = []string{"a", "b"}, "another text"
	if again, _ := record.DecideGroup(state, report, now); again != nil {
		t.Errorf("the same was recorded again: %v", again)
	}
	report.Conditions = nil
	if fixed, _ := record.DecideGroup(state, report, now); len(fixed) != 1 {
		t.Errorf("a condition that ended gives %v", fixed)
	}
	if none, _ := record.DecideGroup(record.Group{}, protocol.GroupReport{Name: "coast"}, now); len(none) != 1 {
		t.Error("the first report of a group that serves nothing is not recorded")
	}
}

// TestDecideGroupIsBounded: DESIGN D2: labels that change all the time make at most ObserveLimit facts in a window, and
// what stands at its end is recorded then.
func TestDecideGroupIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	var state record.Group
	facts := 0
	report := func(i int) protocol.GroupReport { return protocol.GroupReport{Targets: []string{fmt.Sprint("ns", i)}} }
	for i := range 3 * record.ObserveLimit {
		var p []events.Payload
		p, state = record.DecideGroup(state, report(i), now)
		facts += len(p)
	}
	if facts != record.ObserveLimit || state.Settled() {
		t.Errorf("%d facts, settled %v", facts, state.Settled())
	}
	p, state := record.DecideGroup(state, report(3*record.ObserveLimit-1), now.Add(record.ObserveWindow))
	if len(p) != 1 || !state.Settled() {
		t.Errorf("at the end of the window: %v, settled %v", p, state.Settled())
	}
}
