package queries_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// plans knows one plan, of cluster east.
type plans struct{}

func (plans) PlanQuestion(_ context.Context, _, plan string) (string, protocol.PlanQuestion, error) {
	if plan != "p" {
		return "", protocol.PlanQuestion{}, errs.New(errs.NotFound, "there is no install plan %s", plan)
	}
	return "east", protocol.PlanQuestion{Namespace: "ports", Plan: protocol.Plan{ID: plan}, OperatorGroups: 1}, nil
}

// TestChecks: a plan is checked by the executor of its cluster, with what the hub knows of it; an approver is shown no
// preflight that another made up.
func TestChecks(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.serving(d.ServePlanChecks)
	about := func(plan string) protocol.LivePlanQuestion {
		return protocol.LivePlanQuestion{Tenant: events.DefaultTenant, Plan: plan}
	}
	if _, err := put[protocol.PlanCheck](d, protocol.RPCInstallerCheck, about("none")); !errs.Is(err, errs.NotFound) {
		t.Errorf("a plan that there is not: %v", err)
	}
	if _, err := put[protocol.PlanCheck](d, protocol.RPCInstallerCheck, about("p")); !errs.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), `cluster "east"`) {
		t.Errorf("a cluster that nobody holds: %v", err)
	}
	want := protocol.PlanCheck{
		Account: "system:serviceaccount:ports:installer",
		CRDs:    []protocol.CRDVerdict{{CRD: "gauges.sea.test", Safe: true}},
	}
	executor(d, protocol.RPCCheckPlan, func(q protocol.PlanQuestion) (any, error) {
		if q.Namespace != "ports" || q.Plan.ID != "p" || q.OperatorGroups != 1 {
			return nil, errs.New(errs.Invalid, "asked %+v", q)
		}
		return want, nil
	})
	if diff := cmp.Diff(want, patient[protocol.PlanCheck](d, protocol.RPCInstallerCheck, about("p"))); diff != "" {
		t.Error(diff)
	}
}
