package kinds

import (
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestSummary is what chandler describe says of a plan's check in a line (R-IP-41, R-CRD, P13).
func TestSummary(t *testing.T) {
	t.Parallel()
	oneWay := model.CRDVerdict{CRD: "oneway.sea.test", Safe: true, Irreversible: []string{"x"}}
	for want, c := range map[string]model.PlanCheck{
		"no obstacles": {Ready: true, CRDs: []model.CRDVerdict{{CRD: "a.b", Safe: true, Reversible: true}}},
		"OperatorConditionNotUpgradeable; 3 missing permissions (chandler plan check)": {
			Obstacles:   []model.Obstacle{{Reason: "OperatorConditionNotUpgradeable"}},
			Permissions: make([]model.MissingPermission, 3),
		},
		"bad.sea.test cannot be changed safely; oneway.sea.test cannot be changed back without data loss (chandler plan check)": {
			CRDs: []model.CRDVerdict{{CRD: "bad.sea.test", Reversible: true}, oneWay},
		},
		"no obstacles; 1 use of APIs that the next version of Kubernetes removes": {
			Ready: true, RemovedAPIs: []model.RemovedAPI{
				{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget", Removed: "1.25"},
			},
		},
		"no obstacles; oneway.sea.test cannot be changed back without data loss": {
			Ready: true,
			CRDs:  []model.CRDVerdict{oneWay},
		},
	} {
		if got := summary(c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
