package executor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// fresh is the history of an install that meets nothing in its way (R-CSV-10).
var fresh = []string{
	"Pending(RequirementsUnknown)", "InstallReady(AllRequirementsMet)", "Installing(InstallSucceeded)",
	"Succeeded(InstallSucceeded)",
}

// TestInstallAndUpgrade: R-IP-20, R-CSV-20, R-CSV-50, R-OG-44, on a real API server.
func TestInstallAndUpgrade(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	one := operator{
		name: "tide", version: "1.0.0", group: "tide.sea.test", configMap: "settings",
		deployments: []string{"tide-a", "tide-b"},
	}
	p := b.plan("ops", "tide", planned{content: one.content(t)})
	b.want("ops", p)
	b.awaitPlan("ops", p.ID, phase(protocol.PlanFinished))
	c := b.awaitCSV("ops", one.csv(), reached("Succeeded"))
	if diff := cmp.Diff(fresh, history(c)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	two := operator{
		name: "tide", version: "2.0.0", replaces: one.csv(), group: "tide.sea.test",
		deployments: []string{"tide-b", "tide-c"},
	}
	q := b.plan("ops", "tide", planned{content: two.content(t), replaces: one.csv()})
	s := b.scope("ops")
	s.Plans, s.Installed = []protocol.Plan{q}, []protocol.Installed{{CSV: one.csv(), Content: c.Content, Plan: p.ID}}
	b.publish(s)
	b.awaitPlan("ops", q.ID, phase(protocol.PlanFinished))
	b.awaitCSV("ops", two.csv(), reached("Succeeded"))
	gone := b.awaitCSV("ops", one.csv(), func(r protocol.CSVReport) bool { return r.Removed })
	if diff := cmp.Diff(append(fresh[:4:4], "Replacing(BeingReplaced)", "Deleting(Replaced)"),
		history(gone)); diff != "" {
		t.Errorf("history of the old one (-want +got):\n%s", diff)
	}
	if gone.RemovedReason != "Replaced" || gone.UID != c.UID {
		t.Errorf("removed %s uid %s, want Replaced uid %s", gone.RemovedReason, gone.UID, c.UID)
	}
	b.checkUpgraded(t)
}

// checkUpgraded: what only the old version had is gone, what both have is the new one's.
func (b *bed) checkUpgraded(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	list, err := b.kube.AppsV1().Deployments("ops").List(ctx, metav1.ListOptions{})
	must(t, err)
	owners := map[string]string{}
	for _, d := range list.Items {
		owners[d.Name] = d.Labels["olm.owner"]
	}
	if diff := cmp.Diff(map[string]string{"tide-b": "tide.v2.0.0", "tide-c": "tide.v2.0.0"}, owners); diff != "" {
		t.Errorf("deployments and their owners (-want +got):\n%s", diff)
	}
	await(t, "rights of the new version alone", func(ctx context.Context) error {
		return b.rightsOf(
			ctx, "tide.v2.0.0")
	})
	await(t, "config map of the old version", func(ctx context.Context) error {
		_, err := b.kube.CoreV1().ConfigMaps("ops").Get(ctx, "settings", metav1.GetOptions{})
		return wantNotFound(err)
	})
}

// rightsOf is an error unless there are roles of each kind, and bindings to them, and all of them are of this operator.
func (b *bed) rightsOf(ctx context.Context, csv string) error {
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	if err != nil {
		return err
	}
	for _, kind := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		of := dyn.Resource(rbacv1.SchemeGroupVersion.WithResource(kind))
		list, err := of.List(ctx, metav1.ListOptions{LabelSelector: "olm.owner.kind=ClusterServiceVersion"})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("there are no %s of an operator", kind)
		}
		for _, o := range list.Items {
			if owner := o.GetLabels()["olm.owner"]; owner != csv {
				return fmt.Errorf("%s %s is of %s", kind, o.GetName(), owner)
			}
		}
	}
	return nil
}
