package kube

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
)

// TestAllowed names the rows of the table above allowed.
func TestAllowed(t *testing.T) {
	t.Parallel()
	core := func(kind string) schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: kind} }
	priority := schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}
	gauge, rival := Operator{"ports", "gauge.v2"}, Operator{"bay", "rival.v1"}
	for name, c := range map[string]struct {
		gvk       schema.GroupVersionKind
		namespace string
		foreign   bool // without Chandler's label
		held, by  Operator
		applied   string // a manager that has applied it before
		holder    string // package of the operator that the object belongs to, while it is there
		want      bool
		refusal   string
	}{
		"1 not Chandler's": {
			gvk: core("ConfigMap"), namespace: "ports", foreign: true, by: gauge,
			refusal: "Chandler did not write it",
		},
		"1 not Chandler's, with labels of the operator": {
			gvk: core("ConfigMap"), namespace: "ports", foreign: true,
			held: gauge, by: gauge,
		},
		"2 Chandler's own": {gvk: priority, want: true},
		"3 an operator's over Chandler's own": {
			gvk: priority, by: gauge,
			refusal: "it is Chandler's own; operator ports/gauge.v2",
		},
		"3 the same, and its manager was there": {
			gvk: priority, by: gauge,
			applied: Manager("ports", "gauge"),
		},
		"4 the same operator's": {
			gvk: core("Service"), namespace: "ports", held: gauge,
			by: gauge, holder: "gauge", want: true,
		},
		"4 an earlier version's": {
			gvk: core("Service"), namespace: "ports",
			held: Operator{"ports", "gauge.v1"}, by: gauge, applied: Manager("ports", "gauge"), holder: "gauge",
			want: true,
		},
		"5 of an operator that is gone": {
			gvk: core("Service"), namespace: "ports",
			held: Operator{"ports", "old.v1"}, by: gauge, want: true,
		},
		"6 of the package in another namespace": {
			gvk: priority, held: Operator{"bay", "gauge.v2"}, by: gauge,
			holder: "gauge", want: true,
		},
		"6 an account of the namespace": {
			gvk: core("ServiceAccount"), namespace: "ports",
			held: Operator{"ports", "rival.v1"}, by: gauge, holder: "rival", want: true,
		},
		"7 of another package": {
			gvk: priority, held: rival, by: gauge, holder: "rival",
			refusal: "belongs to operator bay/rival.v1, and operator ports/gauge.v2",
		},
		"7 of another package, where it was last updated": {
			gvk: priority, held: rival, by: gauge, holder: "rival",
			applied: Manager("ports", "rival"),
		},
		"7 an aggregated API, of the same package": {
			gvk: render.GVKAPIService, held: Operator{"bay", "gauge.v2"},
			by: gauge, holder: "gauge",
		},
		"7 a Deployment of the namespace": {
			gvk: schema.GroupVersionKind{
				Group: "apps", Version: "v1", Kind: "Deployment",
			}, namespace: "ports", held: Operator{"ports", "rival.v1"},
			by: gauge, holder: "rival",
		},
		"7 Chandler's own over an operator's": {
			gvk: priority, held: rival, holder: "rival",
			refusal: "and Chandler itself would take it over",
		},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{}}
		live.SetNamespace(c.namespace)
		labels := map[string]string{}
		if !c.foreign {
			labels[LabelManaged] = "true"
		}
		if c.held != (Operator{}) {
			labels[render.LabelOwner], labels[render.LabelOwnerNamespace] = c.held.Name, c.held.Namespace
		}
		live.SetLabels(labels)
		live.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply},
			{Manager: Manager("ports", "gauge"), Operation: metav1.ManagedFieldsOperationUpdate},
		})
		if c.applied != "" {
			live.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: c.applied, Operation: metav1.ManagedFieldsOperationApply},
			})
		}
		asked := claim{gvk: c.gvk, live: live, by: c.by, manager: Manager(c.by.Namespace, "gauge")}
		if c.holder != "" {
			holder := &unstructured.Unstructured{Object: map[string]any{}}
			holder.SetAnnotations(map[string]string{AnnotationPackage: c.holder})
			asked.holder = holder
		}
		if got := asked.allowed(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if text := asked.refusal().Error(); !c.want && !strings.Contains(text, c.refusal) {
			t.Errorf("%s: %q lacks %q", name, text, c.refusal)
		}
	}
}
