package report_test

import (
	"log/slog"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/report"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/steplog"
)

// sent takes what is sent to the hub.
type sent struct{ whole, begun []protocol.ScopeReport }

func (s *sent) Scope(r protocol.ScopeReport) { s.whole = append(s.whole, r) }
func (s *sent) Begun(r protocol.ScopeReport) { s.begun = append(s.begun, r) }

type drifts struct{}

func (drifts) Of(_, operator string, _ time.Time) []protocol.Drift {
	return []protocol.Drift{{ObjectRef: protocol.ObjectRef{Kind: "ConfigMap", Name: operator}}}
}

func stage(to *sent) *report.Stage {
	return &report.Stage{
		Reporter: to, Logs: steplog.New(steplog.Config{}), Drifts: drifts{},
		Group:    func(*scope.Scope) *protocol.GroupReport { return &protocol.GroupReport{ID: "g"} },
		Removals: func(*scope.Scope) []protocol.RemovalReport { return []protocol.RemovalReport{{ID: "r"}} },
	}
}

func namespace(plans ...protocol.Plan) *scope.Scope {
	now := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	env := &scope.Env{
		Client: &kube.Epoch{}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		Seen: func(string) kube.Seen { return kube.Seen{} },
	}
	return scope.New(env, protocol.ScopePlans{Scope: protocol.Scope{Namespace: "ports"}, Plans: plans}, nil, time.Hour)
}

// TestSend: a report says of every plan that the hub names what became of it, in the hub's order, and of every operator
// how it is: those that are there, and those that are gone.
func TestSend(t *testing.T) {
	t.Parallel()
	var to sent
	sc := namespace(protocol.Plan{ID: "q"}, protocol.Plan{ID: "p"}, protocol.Plan{ID: "young"})
	sc.Found.Outcomes["p"], sc.Found.Outcomes["q"] = protocol.PlanReport{ID: "p"}, protocol.PlanReport{ID: "q"}
	m := &scope.Operator{
		Object: &unstructured.Unstructured{Object: map[string]any{}},
		Status: csv.Status{Phase: csv.PhaseSucceeded, Message: "well"},
	}
	m.Object.SetName("tide.v1")
	sc.Snapshot.Installed = scope.InstalledOf([]*scope.Operator{m}, nil)
	sc.Found.Conditions = map[string]protocol.OperatorCondition{"tide.v1": {Upgradeable: true}}
	sc.Found.Unready = map[string]map[string]protocol.NotReady{
		"tide.v1": {"b": {Deployment: "b"}, "a": {Deployment: "a"}},
	}
	sc.Found.Deleted = []protocol.CSVReport{{Name: "wind.v1", Removed: true}}
	if _, err := stage(&to).Reconcile(t.Context(), sc); err != nil {
		t.Fatal(err)
	}
	if len(to.whole) != 1 || len(to.begun) != 0 {
		t.Fatalf("sent %+v", to)
	}
	r := to.whole[0]
	if len(r.Plans) != 2 || r.Plans[0].ID != "q" || r.Plans[1].ID != "p" {
		t.Errorf("plans %+v", r.Plans)
	}
	if r.Group == nil || r.Group.ID != "g" || len(r.Removals) != 1 {
		t.Errorf("group %+v, removals %+v", r.Group, r.Removals)
	}
	if len(r.CSVs) != 2 || r.CSVs[0].Name != "wind.v1" || r.CSVs[1].Name != "tide.v1" {
		t.Fatalf("operators %+v", r.CSVs)
	}
	c := r.CSVs[1]
	if c.Message != "well" || c.Condition == nil || len(c.Drift) != 1 || len(c.NotReady) != 2 ||
		c.NotReady[0].Deployment != "a" {
		t.Errorf("operator %+v", c)
	}
}

// TestSendBegun: after an error nothing is reported of operators, and no outcome that no log in the cluster holds.
func TestSendBegun(t *testing.T) {
	t.Parallel()
	var to sent
	sc := namespace(protocol.Plan{ID: "p"})
	sc.Found.Outcomes["p"] = protocol.PlanReport{ID: "p", Phase: protocol.PlanFinished}
	stage(&to).SendBegun(t.Context(), sc)
	if len(to.begun) != 1 || len(to.whole) != 0 || len(to.begun[0].Plans) != 0 || len(to.begun[0].CSVs) != 0 {
		t.Errorf("sent %+v", to)
	}
}
