package executor

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
)

func ids(plans []protocol.PlanReport) string {
	out := make([]string, 0, len(plans))
	for _, p := range plans {
		out = append(out, p.ID+" "+p.Phase)
	}
	return strings.Join(out, ", ")
}

// TestUnlisted: every begun plan that the hub does not name is told: those under way before all, the ended ones
// newest first, and no more step logs than leave room for what the hub asks for.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	cfg := Config{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
	run := func(id, phase string, begun bool, age time.Duration, bytes int) *cluster.Execution {
		x := &cluster.Execution{Spec: cluster.ExecutionSpec{Plan: id, Steps: 3}}
		x.Status.Phase, x.Status.Begun, x.Status.Ended = phase, begun, now.Add(-age)
		x.Status.Steps = []cluster.Step{{Index: 1, Name: strings.Repeat("x", bytes), State: cluster.StepDone}}
		return x
	}
	w := &work{
		session: &session{Executor: &Executor{cfg: cfg}},
		plans:   protocol.ScopePlans{Plans: []protocol.Plan{{ID: "listed"}}},
		executions: []*cluster.Execution{
			run("old", protocol.PlanFinished, true, 3*time.Hour, maxUnlistedLogs/2),
			run("new", protocol.PlanFailed, true, time.Hour, 1),
			run("middle", protocol.PlanFinished, true, 2*time.Hour, maxUnlistedLogs/2),
			run("listed", protocol.PlanStarted, true, 0, 1),
			run("opened", "", false, 0, 1),
			run("running", protocol.PlanStarted, true, 0, 1),
		},
	}
	got := w.unlisted()
	if ids(got) != "running Started, new Failed, middle Finished" {
		t.Errorf("told %s", ids(got))
	}
	if r := got[0]; !r.Begun || r.Steps != 3 || r.Done != 1 || r.StepLog != nil || len(got[1].StepLog) == 0 {
		t.Errorf("told %+v", r)
	}
}

// TestReportsOfBegunPlansStay: neither an error of a look nor a cluster that is away takes back what was told of a
// plan that was begun.
func TestReportsOfBegunPlansStay(t *testing.T) {
	t.Parallel()
	r := newReporter(nil, slog.New(slog.DiscardHandler), time.Hour, time.Now)
	scope := protocol.Scope{Namespace: "ops"}
	r.scope(protocol.ScopeReport{
		Scope: scope, Epoch: 1, CSVs: []protocol.CSVReport{{Name: "tide.v1.0.0"}},
		Plans: []protocol.PlanReport{{ID: "a", Phase: protocol.PlanStarted, Begun: true}, {ID: "b", Phase: protocol.PlanBlocked}},
	})
	r.begun(protocol.ScopeReport{Scope: scope, Epoch: 2, Plans: []protocol.PlanReport{{ID: "a", Phase: protocol.PlanFinished, Begun: true}}})
	if got := r.scopes["ops"]; ids(got.Plans) != "a Finished, b Blocked" || len(got.CSVs) != 1 || got.Epoch != 2 {
		t.Errorf("after an error: %+v", got)
	}
	r.blocked(protocol.ScopePlans{Scope: scope, Plans: []protocol.Plan{{ID: "c", Document: json.RawMessage(`{}`)}}}, 1, failure{class: classTransient, reason: reasonUnreachable})
	got := r.scopes["ops"].Plans
	if ids(got) != "c Blocked, a Finished" || !slices.ContainsFunc(got, func(p protocol.PlanReport) bool { return p.Reason == reasonUnreachable }) {
		t.Errorf("while the cluster is away: %+v", got)
	}
}
