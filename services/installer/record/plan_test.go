package record_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

func proposed(approval string) installplan.State {
	s, err := installplan.Fold(events.InstallPlanProposed{Plan: "p", Name: "install-x", Approval: approval, Steps: 3})
	if err != nil {
		panic(err)
	}
	return s
}

func types(list []events.Payload) string {
	names := make([]string, 0, len(list))
	for _, p := range list {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(string(p.EventType()), "installplan."), ".v1"))
	}
	return strings.Join(names, " ")
}

// One event per phase (D2), gap-free: a report of the end makes up for a start that was never reported.
func TestPlanReports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		report protocol.PlanReport
		want   string
	}{
		{"started", protocol.PlanReport{Phase: protocol.PlanStarted, Begun: true}, "started"},
		{"blocked before the first step", protocol.PlanReport{
			Phase: protocol.PlanBlocked, Class: "transient",
			Reason: "X",
		}, "blocked"},
		{"blocked behind it", protocol.PlanReport{
			Phase: protocol.PlanBlocked, Begun: true, Class: "transient",
			Reason: "X",
		}, "started blocked"},
		{"finished", protocol.PlanReport{Phase: protocol.PlanFinished, Begun: true}, "started finished"},
		{
			"failed",
			protocol.PlanReport{Phase: protocol.PlanFailed, Begun: true, Done: 1, Reason: "Invalid"},
			"started failed",
		},
		{"a phase of a later version", protocol.PlanReport{Phase: "Pondering"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := proposed(installplan.Automatic)
			got, err := record.DecidePlan(s, c.report, "log", granted)
			if err != nil || types(got) != c.want {
				t.Fatalf("recorded %q (%v), want %q", types(got), err, c.want)
			}
			for _, p := range got {
				if s, err = installplan.Evolve(s, p); err != nil {
					t.Fatal(err)
				}
			}
			if again, err := record.DecidePlan(s, c.report, "log", granted); err != nil || len(again) != 0 {
				t.Errorf("the same report again records %q (%v)", types(again), err)
			}
		})
	}
}

func TestFailedPlanNamesItsStep(t *testing.T) {
	t.Parallel()
	got, err := record.DecidePlan(proposed(installplan.Automatic),
		protocol.PlanReport{Phase: protocol.PlanFailed, Begun: true, Done: 1, Reason: "Invalid"}, "log", granted)
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := got[1].(events.InstallPlanFailed); !ok ||
		f != (events.InstallPlanFailed{Step: 2, Reason: "Invalid", StepLog: "log"}) {
		t.Errorf("recorded %+v", got[1])
	}
}

// granted is a start while the grant of the plan is good.
var granted = installplan.Start{Epoch: 1, Now: start, Grant: start.Add(time.Minute)}

// TestStartWithoutAuthority: R-IP-11, DESIGN D7: what was begun without approval, or without a grant, is recorded as
// just that, and the plan stays as it was.
func TestStartWithoutAuthority(t *testing.T) {
	t.Parallel()
	for _, r := range []protocol.PlanReport{
		{Phase: protocol.PlanStarted, Begun: true},
		{Phase: protocol.PlanFinished, Begun: true},
		{Phase: protocol.PlanFailed, Begun: true},
	} {
		for name, c := range map[string]struct {
			plan  installplan.State
			start installplan.Start
		}{
			"not approved": {proposed(installplan.Manual), granted},
			"no grant":     {proposed(installplan.Automatic), installplan.Start{Epoch: 1, Now: start}},
		} {
			got, err := record.DecidePlan(c.plan, r, "", c.start)
			if err != nil || types(got) != "start-unauthorised" {
				t.Errorf("%s, %s: recorded %s, %v", name, r.Phase, types(got), err)
			}
		}
	}
	late := protocol.PlanReport{Phase: protocol.PlanStarted, Begun: true, Started: start.Add(time.Hour)}
	if got, err := record.DecidePlan(proposed(installplan.Automatic), late, "", granted); err != nil ||
		types(got) != "start-unauthorised" {
		t.Errorf("begun after the grant as it says itself: recorded %s, %v", types(got), err)
	}
}

func TestStepLogDigestIsOfCanonicalBytes(t *testing.T) {
	t.Parallel()
	a, body, err := record.StepLog(protocol.PlanReport{StepLog: json.RawMessage(`{"b": 1, "a": 2}`)})
	if err != nil || string(body) != `{"a":2,"b":1}` {
		t.Fatalf("%s %v", body, err)
	}
	b, _, err := record.StepLog(protocol.PlanReport{StepLog: json.RawMessage(`{"a":2,"b":1}`)})
	if err != nil || a != b {
		t.Errorf("%s and %s: %v", a, b, err)
	}
	if d, body, err := record.StepLog(protocol.PlanReport{}); d != "" || body != nil || err != nil {
		t.Errorf("no step log: %q %q %v", d, body, err)
	}
}

// cluster.observed only when something changed, and not more often than the limit.
func TestClusterReports(t *testing.T) {
	t.Parallel()
	r := protocol.ClusterReport{State: "Connected", KubernetesVersion: "v1.34.4", HolderEpoch: 3}
	got, s := record.DecideCluster(record.Cluster{}, r, start)
	if len(got) != 1 {
		t.Fatalf("recorded %v", got)
	}
	if got, _ := record.DecideCluster(s, r, start); len(got) != 0 {
		t.Errorf("the same again recorded %v", got)
	}
	got, s = record.DecideCluster(s, protocol.ClusterReport{
		State: "Unreachable", Reason: "ConnectionRefused",
	}, start)
	want := events.ClusterObserved{
		State: "Unreachable", Reason: "ConnectionRefused", KubernetesVersion: "v1.34.4",
		HolderEpoch: 3,
	}
	if len(got) != 1 || got[0] != want {
		t.Errorf("recorded %v, want what is not known now as it was", got)
	}
	n := 0
	for i := range 99 {
		r.State = []string{"Connected", "Unreachable"}[i%2]
		// The executor's clock jumps about: nothing hangs on it.
		r.Reported = start.Add(time.Duration(i%3-1) * 1000 * time.Hour)
		got, s = record.DecideCluster(s, r, start.Add(time.Duration(i)*time.Second))
		n += len(got)
	}
	if n != record.ObserveLimit-2 || s.Settled() {
		t.Errorf("%d recorded, settled %v", n, s.Settled())
	}
	r.State = "Connected"
	if got, s = record.DecideCluster(s, r, start.Add(record.ObserveWindow)); len(got) != 1 || !s.Settled() {
		t.Errorf("at the end of the window recorded %v", got)
	}
	// The recorder's clock is set back by a day: the window that now lies in the future holds nothing up.
	for i := range 2 * record.ObserveLimit {
		r.State = []string{"Unreachable", "Connected"}[i%2]
		_, s = record.DecideCluster(s, r, start.Add(record.ObserveWindow))
	}
	r.State = "Unauthorized"
	if got, s = record.DecideCluster(s, r, start.Add(-24*time.Hour)); len(got) != 1 || !s.Settled() {
		t.Errorf("after the clock was set back recorded %v", got)
	}
}

// TestTokenAuthReports: R-TOK-1: the mode is recorded when it changes, stays while nobody can say, and none is no news
// of a cluster that never had one.
func TestTokenAuthReports(t *testing.T) {
	t.Parallel()
	var s record.Cluster
	for i, c := range []struct {
		found    string
		recorded bool
		mode     string
	}{
		{"", true, ""}, // the cluster is connected
		{protocol.TokenAuthNone, false, ""},
		{protocol.TokenAuthAWS, true, "AWS"},
		{"", false, "AWS"},
		{protocol.TokenAuthNone, true, ""},
	} {
		var got []events.Payload
		got, s = record.DecideCluster(s, protocol.ClusterReport{
			State: "Connected", KubernetesVersion: "v1.34.4",
			TokenAuth: c.found,
		}, start)
		want := []events.Payload{events.ClusterObserved{
			State: "Connected", KubernetesVersion: "v1.34.4",
			TokenAuth: c.mode,
		}}
		if !c.recorded {
			want = nil
		}
		if !slices.Equal(got, want) || s.TokenAuth != c.mode {
			t.Errorf("report %d: recorded %v and keeps %q, want %v", i, got, s.TokenAuth, want)
		}
	}
}
