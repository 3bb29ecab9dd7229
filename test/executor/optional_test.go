package executor_test

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const monitorCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, listKind: ServiceMonitorList, plural: servicemonitors, singular: servicemonitor}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestOptionalKinds: kinds of monitoring that the cluster does not serve keep no operator from running. It says what it
// waits for, gets its objects when the kind appears, and is removed with objects that never were. Where the setting
// says so, and of other kinds, the plan waits (R-CAT-53).
func TestOptionalKinds(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	install := func(ns, object string, settings events.ClusterSettings) (protocol.Plan, operator) {
		o := operator{name: ns, version: "1.0.0", group: ns + ".sea.test"}
		content, err := bundle.FromManifests([][]byte{
			[]byte(o.manifest()),
			[]byte(strings.ReplaceAll(crdManifest, "%[1]s", o.group)), []byte(object),
		})
		must(t, err)
		b.namespace(t, ns)
		p := b.plan(ns, ns, planned{content: content})
		s := b.scope(ns)
		s.Plans, s.Settings = []protocol.Plan{p}, settings
		b.publish(s)
		return p, o
	}
	const monitor = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: gauge}\nspec: " +
		"{selector: {}}\n"
	const link = "apiVersion: console.openshift.io/v1\nkind: ConsoleLink\nmetadata: {name: gauge}\nspec: {}\n"
	p, o := install("quay", monitor, events.ClusterSettings{})
	gone, lost := install("mole", monitor, events.ClusterSettings{})
	strict, waits := install("jetty", monitor, events.ClusterSettings{Optional: events.OptionalNone})
	console, _ := install("pier", link, events.ClusterSettings{})

	b.finishes(t, "quay", p, o.csv())
	b.finishes(t, "mole", gone, lost.csv())
	left := func(c protocol.Component) bool {
		return c.Kind == "ServiceMonitor" && c.Status == "Waiting" &&
			c.Message == "waits for ServiceMonitor (monitoring.coreos.com)"
	}
	b.awaitCSV("quay", o.csv(), func(r protocol.CSVReport) bool {
		return slices.ContainsFunc(r.Components, left) && len(r.Conditions) == 1 &&
			r.Conditions[0].Type == "OptionalKindsNotServed" && !r.Conditions[0].Since.IsZero()
	})
	for ns, plan := range map[string]protocol.Plan{"jetty": strict, "pier": console} {
		b.awaitPlan(ns, plan.ID, blocked("APINotServed"))
	}

	// Removed before the kind ever came.
	b.remove(t, "mole", lost.csv(), b.scope("mole"))

	var crd unstructured.Unstructured
	must(t, yaml.Unmarshal([]byte(monitorCRD), &crd.Object))
	_, err = dyn.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions",
	}).Create(t.Context(), &crd, metav1.CreateOptions{})
	must(t, err)
	b.finishes(t, "jetty", strict, waits.csv())
	b.awaitCSV("quay", o.csv(), func(r protocol.CSVReport) bool {
		return len(r.Components) > 0 && len(r.Conditions) == 0 && !slices.ContainsFunc(r.Components, left) &&
			slices.ContainsFunc(r.Components, func(c protocol.Component) bool {
				return c.Kind == "ServiceMonitor" &&
					c.Status == "Current"
			})
	})
	monitors := dyn.Resource(schema.GroupVersionResource{
		Group: "monitoring.coreos.com", Version: "v1",
		Resource: "servicemonitors",
	})
	if _, err := monitors.Namespace("quay").Get(t.Context(), "gauge", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := monitors.Namespace("mole").Get(t.Context(), "gauge", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the object of an operator that is gone: %v", err)
	}
}
