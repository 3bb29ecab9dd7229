package compare_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/compare"
)

// TestLeaveReplicas: the number of replicas is an autoscaler's as long as that holds it, and nobody else's.
func TestLeaveReplicas(t *testing.T) {
	t.Parallel()
	replicas := `{"f:spec":{"f:replicas":{}}}`
	for name, c := range map[string]struct {
		manager, subresource, fields string
		left                         bool
	}{
		"an autoscaler":                    {"kube-controller-manager", "scale", replicas, true},
		"one that holds something else":    {"kube-controller-manager", "scale", `{"f:metadata":{}}`, false},
		"a person who scales":              {"kubectl", "scale", replicas, false},
		"a person who edits":               {"kubectl-edit", "", replicas, false},
		"the controller of its own status": {"kube-controller-manager", "status", replicas, false},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{}}
		live.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: c.manager, Subresource: c.subresource, FieldsV1: metav1.NewFieldsV1(c.fields)},
		})
		want := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"replicas": int64(1), "paused": false},
		}}
		compare.LeaveReplicas(want, live)
		_, has, err := unstructured.NestedFieldNoCopy(want.Object, "spec", "replicas")
		if err != nil || has == c.left {
			t.Errorf("%s: replicas are written: %v (%v)", name, has, err)
		}
	}
}
