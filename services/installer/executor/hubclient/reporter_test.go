package hubclient

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

func ids(plans []protocol.PlanReport) string {
	out := make([]string, 0, len(plans))
	for _, p := range plans {
		out = append(out, p.ID+" "+p.Phase)
	}
	return strings.Join(out, ", ")
}

// TestReportsOfBegunPlansStay: neither an error of a reconcile nor a cluster that is away takes back what was reported
// of a plan that was begun.
func TestReportsOfBegunPlansStay(t *testing.T) {
	t.Parallel()
	r := NewReporter(nil, slog.New(slog.DiscardHandler), time.Hour, time.Now)
	scope := protocol.Scope{Namespace: "ops"}
	r.Scope(protocol.ScopeReport{
		Scope: scope, Epoch: 1, CSVs: []protocol.CSVReport{{Name: "tide.v1.0.0"}},
		Plans: []protocol.PlanReport{
			{ID: "a", Phase: protocol.PlanStarted, Begun: true},
			{ID: "b", Phase: protocol.PlanBlocked},
		},
	})
	r.Begun(protocol.ScopeReport{Scope: scope, Epoch: 2, Plans: []protocol.PlanReport{
		{ID: "a", Phase: protocol.PlanFinished, Begun: true},
	}})
	if got := r.scopes["ops"]; ids(got.Plans) != "a Finished, b Blocked" || len(got.CSVs) != 1 || got.Epoch != 2 {
		t.Errorf("after an error: %+v", got)
	}
	r.Blocked(protocol.ScopePlans{Scope: scope, Plans: []protocol.Plan{{ID: "c", Document: json.RawMessage(`{}`)}}}, 1,
		Block{Class: "transient", Reason: "ClusterUnreachable"})
	got := r.scopes["ops"].Plans
	if ids(got) != "c Blocked, a Finished" || !slices.ContainsFunc(
		got, func(p protocol.PlanReport) bool { return p.Reason == "ClusterUnreachable" }) {
		t.Errorf("while the cluster is away: %+v", got)
	}
}
