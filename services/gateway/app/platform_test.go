package app_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestRemovedAPIs proves that people are told before an upgrade of Kubernetes which operators use what it drops
// (R-CSV-61): of the cluster, of the operator, of a plan, and of a plan that is only asked about.
func TestRemovedAPIs(t *testing.T) {
	t.Parallel()
	b, o := setupOracle(t)
	b.cluster("spoke")
	b.catalog("fleet")
	b.installed()
	b.fact(events.Installer, events.KindCluster, "spoke", "spoke",
		events.ClusterObserved{State: "Connected", KubernetesVersion: "v1.24.2"})
	id := uuid.NewString()
	b.exec("installer",
		`insert into installer.clusters (tenant, name, cluster_id, stream, credential) values ('default', 'spoke', $1, '', '')`, id)
	b.exec("installer",
		`insert into installer.operator_details (tenant, cluster_id, namespace, name, requirements, drift, components, updated) values ('default', $1, 'ops', $2,
		'[{"group": "batch", "version": "v1beta1", "kind": "CronJob", "name": "", "status": "Present"}]', '[]',
		'[{"group": "policy", "version": "v1beta1", "kind": "PodDisruptionBudget", "namespace": "ops", "name": "gauge", "message": "odd \u0000 text"}, {"version": "v1", "kind": "Service", "name": "gauge"}]',
		now())`, id, gauge)
	removed := []model.RemovedAPI{
		{Group: "batch", Version: "v1beta1", Kind: "CronJob", Removed: "1.25", For: "ops/" + gauge},
		{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget", Removed: "1.25", For: "ops/" + gauge},
	}
	c := must[model.Cluster](b, 200, b.do("GET", b.seen("/api/v1/clusters/spoke"), nil))
	want := &model.PlatformUpgrade{
		Reason: "RemovedAPIsInUse", Operators: []model.PlatformLimit{}, RemovedAPIs: removed,
		Message: "installed operators use APIs that the next version of Kubernetes no longer serves: replace them " +
			"before the upgrade",
	}
	if diff := cmp.Diff(want, c.PlatformUpgrade); diff != "" {
		t.Errorf("the cluster (-want +got):\n%s", diff)
	}
	operator := must[model.Operator](b, 200, b.do("GET",
		b.seen("/api/v1/clusters/spoke/namespaces/ops/operators/"+gauge), nil))
	if operator.Details == nil || !cmp.Equal(removed, operator.Details.RemovedAPIs) {
		t.Errorf("the operator: %+v", operator.Details)
	}

	const document = `{"steps":[{"group":"policy","version":"v1beta1","kind":"PodDisruptionBudget","namespace":"ops","name":"gauge"}]}`
	planned := []model.RemovedAPI{{
		Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget", Removed: "1.25",
		For: "PodDisruptionBudget ops/gauge",
	}}
	id = uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.1.0", "tidegauge")
	b.exec("resolver",
		`insert into resolver.plan_documents (tenant, plan, digest, document, effect, properties) values ('default', $1, $2, $3, '', '{}')`, id, p.Document, document)
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", p)
	if got := must[model.InstallPlan](b, 200, b.do("GET", b.seen("/api/v1/installplans/"+id),
		nil)).RemovedAPIs; !cmp.Equal(planned, got) {
		t.Errorf("the plan: %+v", got)
	}
	o.mu.Lock()
	o.document = json.RawMessage(document)
	o.mu.Unlock()
	asked := must[model.Preview](b, 200, b.do("POST", subscriptions+"?dryRun=true",
		subscribe("tidegauge", "tidegauge")))
	warning := []string{
		"PodDisruptionBudget ops/gauge of the plan for tidegauge is policy/v1beta1, which Kubernetes 1.25 no longer " +
			"serves; cluster spoke has v1.24.2",
	}
	if !cmp.Equal(warning, asked.Warnings) {
		t.Errorf("the preview: %q", asked.Warnings)
	}

	b.fact(events.Installer, events.KindCluster, "spoke", "spoke",
		events.ClusterObserved{State: "Connected", KubernetesVersion: "v1.23.17"})
	c = must[model.Cluster](b, 200, b.do("GET", b.seen("/api/v1/clusters/spoke"), nil))
	operator = must[model.Operator](b, 200, b.do("GET",
		b.seen("/api/v1/clusters/spoke/namespaces/ops/operators/"+gauge), nil))
	if c.PlatformUpgrade != nil || len(operator.Details.RemovedAPIs) > 0 {
		t.Errorf("two versions before: %+v, %+v", c.PlatformUpgrade, operator.Details.RemovedAPIs)
	}
}
