package cluster_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestPlatformUpgrade proves R-CSV-60: the lowest limit counts, as a number of two parts, and who sets one is named.
func TestPlatformUpgrade(t *testing.T) {
	t.Parallel()
	limit := func(csv, value string) cluster.Limit {
		return cluster.Limit{Namespace: "ops", CSV: csv, Value: json.RawMessage(value)}
	}
	named := func(csv, version string) model.PlatformLimit {
		return model.PlatformLimit{Namespace: "ops", Name: csv, MaxVersion: version}
	}
	cases := []struct {
		name   string
		limits []cluster.Limit
		want   *model.PlatformUpgrade
	}{
		{"nobody says anything", nil, nil},
		{"4.9 is below 4.15", []cluster.Limit{limit("a.v1", `"4.15"`), limit("b.v1", `4.9`)}, &model.PlatformUpgrade{
			Reason: cluster.ReasonIncompatible, MaxVersion: "4.9",
			Operators: []model.PlatformLimit{named("a.v1", "4.15"), named("b.v1", "4.9")},
			Message:   "the platform must not be upgraded beyond 4.9 before these operators are",
		}},
		{"said twice", []cluster.Limit{limit("a.v1", `"4.15"`), limit("a.v1", `"4.15"`)}, &model.PlatformUpgrade{
			Reason: cluster.ReasonErrorChecking, MaxVersion: "4.15",
			Operators: []model.PlatformLimit{named("a.v1", "4.15")},
			Message:   "property olm.maxOpenShiftVersion cannot be read: ops/a.v1 has several of them",
		}},
		{"no version", []cluster.Limit{limit("a.v1", `"soon"`)}, &model.PlatformUpgrade{
			Reason:  cluster.ReasonErrorChecking,
			Message: `property olm.maxOpenShiftVersion cannot be read: ops/a.v1 has "soon", which is not <major>.<minor>`,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, cluster.PlatformUpgrade(c.limits, nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRemovedAPIs proves what is warned of before the next version of Kubernetes (R-CSV-61), beside limits and without.
func TestRemovedAPIs(t *testing.T) {
	t.Parallel()
	budget := protocol.Component{ObjectRef: protocol.ObjectRef{
		Group: "policy", Version: "v1beta1",
		Kind: "PodDisruptionBudget", Namespace: "ops", Name: "a",
	}}
	installed := []cluster.Installed{
		{Namespace: "ops", CSV: "a.v1", Components: []protocol.Component{budget, budget}},
		{Namespace: "ops", CSV: "b.v1", Components: []protocol.Component{
			{ObjectRef: protocol.ObjectRef{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget", Name: "b"}},
		}},
		{Namespace: "ops", CSV: "c.v1", Requirements: []model.Requirement{
			{Group: "batch", Version: "v1beta1", Kind: "CronJob", Status: "Present"},
		}},
	}
	want := []model.RemovedAPI{
		{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget", Removed: "1.25", For: "ops/a.v1"},
		{Group: "batch", Version: "v1beta1", Kind: "CronJob", Removed: "1.25", For: "ops/c.v1"},
	}
	removed := cluster.RemovedAPIs("v1.24.9", installed)
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if later := cluster.RemovedAPIs("v1.23.9", installed); later != nil {
		t.Errorf("two versions before: %v", later)
	}
	limit := []cluster.Limit{{Namespace: "ops", CSV: "a.v1", Value: json.RawMessage(`"4.15"`)}}
	if both := cluster.PlatformUpgrade(limit, removed); both.Reason != cluster.ReasonIncompatible ||
		!cmp.Equal(want, both.RemovedAPIs) {
		t.Errorf("beside a limit: %+v", both)
	}
	if alone := cluster.PlatformUpgrade(nil, removed); alone.Reason != cluster.ReasonRemovedAPIs ||
		alone.MaxVersion != "" || !cmp.Equal(want, alone.RemovedAPIs) {
		t.Errorf("without a limit: %+v", alone)
	}
}

// TestRemovedByPlan proves what a plan is warned of before its cluster is asked (R-CSV-61).
func TestRemovedByPlan(t *testing.T) {
	t.Parallel()
	const document = `{"steps": [
		{"group": "policy", "version": "v1beta1", "kind": "PodDisruptionBudget", "namespace": "ops", "name": "gauge"},
		{"group": "policy", "version": "v1", "kind": "PodDisruptionBudget", "namespace": "ops", "name": "buoy"},
		{"group": "apiextensions.k8s.io", "version": "v1beta1", "kind": "CustomResourceDefinition", "name": "gauges.sea.test"}]}`
	want := []model.RemovedAPI{
		{
			Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget", Removed: "1.25",
			For: "PodDisruptionBudget ops/gauge",
		},
		{
			Group: "apiextensions.k8s.io", Version: "v1beta1", Kind: "CustomResourceDefinition", Removed: "1.22",
			For: "CustomResourceDefinition gauges.sea.test",
		},
	}
	if diff := cmp.Diff(want, cluster.RemovedByPlan("v1.24.1", json.RawMessage(document))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for version, other := range map[string]string{"v1.20.1": document, "v1.24.1": `[]`, "": document, "v1.30.0": ``} {
		if got := cluster.RemovedByPlan(version, json.RawMessage(other)); got != nil {
			t.Errorf("%s, %s: %v", version, other, got)
		}
	}
}
