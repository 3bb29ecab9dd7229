package plans

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestChecked is what a person reads of what stands in the way of a plan (R-IP-41, R-CRD, P13).
func TestChecked(t *testing.T) {
	t.Parallel()
	const account = "system:serviceaccount:ports:installer"
	for name, c := range map[string]struct {
		check model.PlanCheck
		want  string
	}{
		"nothing": {
			model.PlanCheck{Ready: true, CRDs: []model.CRDVerdict{{CRD: "a.b", Safe: true, Reversible: true}}},
			"No obstacles.",
		},
		"an account that may do it": {
			model.PlanCheck{Ready: true, Account: account}, "No obstacles.\nIt runs as " + account +
				", which has all permissions that it needs.",
		},
		"rights and an obstacle": {
			model.PlanCheck{
				Account: account, Obstacles: []model.Obstacle{
					{
						Class: "conflict", Reason: "OperatorConditionNotUpgradeable",
						Message: "The operator is migrating.",
					},
				},
				Permissions: []model.MissingPermission{
					{
						Verb: "create", Group: "apps", Resource: "deployments", Name: "web", Namespace: "ports",
						For: "Deployment ports/web",
					},
					{Verb: "get", Resource: "nodes", For: "ClusterRole reader"},
					{Verb: "get", URL: "/metrics", For: "ClusterRole reader"},
				},
			},
			`OperatorConditionNotUpgradeable (conflict): The operator is migrating.

system:serviceaccount:ports:installer lacks these permissions:
  - create deployments.apps web in ports, for Deployment ports/web
  - get nodes in the whole cluster, for ClusterRole reader
  - get /metrics, for ClusterRole reader`,
		},
		"definitions": {
			model.PlanCheck{CRDs: []model.CRDVerdict{
				{
					CRD: "bad.sea.test", Problems: []string{"2 objects become invalid"}, Invalid: 2,
					Sample: []string{"ports/a: spec.size: too large"}, Reversible: true, Finding: "sha256:f",
				},
				{CRD: "moved.sea.test", Problems: []string{"its scope changes"}},
				{CRD: "oneway.sea.test", Safe: true, Irreversible: []string{"objects are stored as v2"}},
				{CRD: "warned.sea.test", Safe: true, Reversible: true, Warnings: []string{"no longer served in v0"}},
			}},
			`bad.sea.test: it cannot be changed safely
  ! 2 objects become invalid
    ports/a: spec.size: too large
  - to override: chandler approve PLAN --override-crd bad.sea.test --reason TEXT

moved.sea.test: it cannot be changed safely
  ! its scope changes
  - this cannot be overridden

oneway.sea.test: it can be changed, but not changed back without data loss
  - cannot be undone: objects are stored as v2

warned.sea.test: it can be changed, and changed back
  - no longer served in v0`,
		},
		"APIs that go (R-CSV-61)": {
			model.PlanCheck{Ready: true, RemovedAPIs: []model.RemovedAPI{
				{
					Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget", Removed: "1.25",
					For: "PodDisruptionBudget ports/web",
				},
			}},
			"No obstacles.\n\nAPIs that the next version of Kubernetes no longer serves:\n  - policy/v1beta1 " +
				"PodDisruptionBudget, removed in 1.25, used by PodDisruptionBudget ports/web",
		},
		"one way, and ready": {
			model.PlanCheck{Ready: true, CRDs: []model.CRDVerdict{
				{CRD: "oneway.sea.test", Safe: true, Irreversible: []string{"x"}},
			}},
			"No obstacles.\n\noneway.sea.test: it can be changed, but not changed back without data loss\n  - cannot " +
				"be undone: x",
		},
	} {
		var p printer.Text
		writeCheck(&p, c.check)
		if diff := cmp.Diff(c.want, strings.TrimLeft(p.String(), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
