package steplog

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func ids(plans []protocol.PlanReport) string {
	out := make([]string, 0, len(plans))
	for _, p := range plans {
		out = append(out, p.ID+" "+p.Phase)
	}
	return strings.Join(out, ", ")
}

// TestUnlisted: every begun plan that the hub does not name is reported: those under way before all, the ended ones
// newest first, and no more step logs than leave room for what the hub asks for.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	env := &scope.Env{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
	run := func(id, phase string, begun bool, age time.Duration, bytes int) *kube.Execution {
		x := &kube.Execution{Spec: kube.ExecutionSpec{Plan: id, Steps: 3}}
		x.Status.Phase, x.Status.Begun, x.Status.Ended = phase, begun, now.Add(-age)
		x.Status.Steps = []kube.Step{{Index: 1, Name: strings.Repeat("x", bytes), State: kube.StepDone}}
		return x
	}
	w := New(Config{Grace: time.Second}).In(scope.New(env, protocol.ScopePlans{Plans: []protocol.Plan{{ID: "listed"}}},
		nil, time.Hour))
	w.Snapshot.Executions = scope.Executions{
		run("old", protocol.PlanFinished, true, 3*time.Hour, maxUnlistedLogs/2),
		run("new", protocol.PlanFailed, true, time.Hour, 1),
		run("middle", protocol.PlanFinished, true, 2*time.Hour, maxUnlistedLogs/2),
		run("listed", protocol.PlanStarted, true, 0, 1),
		run("opened", "", false, 0, 1),
		run("running", protocol.PlanStarted, true, 0, 1),
	}
	got := w.Unlisted()
	if ids(got) != "running Started, new Failed, middle Finished" {
		t.Errorf("told %s", ids(got))
	}
	if r := got[0]; !r.Begun || r.Steps != 3 || r.Done != 1 || r.StepLog != nil || len(got[1].StepLog) == 0 {
		t.Errorf("told %+v", r)
	}
}
