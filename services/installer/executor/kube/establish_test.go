package kube

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestForgottenDefinition: an API server that ended between accepting the names of a CRD and establishing it leaves the
// CRD behind for minutes. Its status is written again, which makes the next API server establish it (R-IP-20); one
// whose names are not accepted yet is left alone.
func TestForgottenDefinition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		accepted string
		reminded bool
	}{
		"names accepted":         {"True", true},
		"names not looked at":    {"Unknown", false},
		"another one's name":     {"False", false},
		"no condition of a name": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, writes := forgetful(unestablished(c.accepted))
				began := time.Now()
				got, err := client.AwaitEstablished(t.Context(), unestablished(c.accepted), nil)
				if !c.reminded {
					if err == nil || *writes != 0 {
						t.Errorf("got %v after %d writes, want an error and none", err, *writes)
					}
					return
				}
				if err != nil || !established(got) {
					t.Fatalf("got %v, %v", got, err)
				}
				if took := time.Since(began); *writes != 1 || took < crdForgotten || took > crdTimeout {
					t.Errorf("%d writes within %s, want one between %s and %s", *writes, took, crdForgotten, crdTimeout)
				}
			})
		})
	}
}

func unestablished(accepted string) *unstructured.Unstructured {
	conditions := []any{map[string]any{"type": "Established", "status": "False", "reason": "Installing"}}
	if accepted != "" {
		conditions = append(conditions, map[string]any{
			"type": "NamesAccepted", "status": accepted,
			"message": "gauges is taken",
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gauges.tide.sea.test"},
		"status":   map[string]any{"conditions": conditions},
	}}
}

// forgetful is an API server that establishes a CRD only when its status is written, and counts these writes.
func forgetful(crd *unstructured.Unstructured) (client Definitions, writes *int) {
	resource := Resource(GVKCRD)
	lists := map[schema.GroupVersionResource]string{resource: "CustomResourceDefinitionList"}
	dyn := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, crd)
	writes = new(int)
	dyn.PrependReactor("update", resource.Resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		update, ok := a.(clienttesting.UpdateAction)
		if !ok || a.GetSubresource() != "status" {
			return false, nil, nil
		}
		*writes++
		o, ok := update.GetObject().(*unstructured.Unstructured)
		if !ok {
			return false, nil, nil
		}
		conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
		if err == nil {
			condition(conditions, "Established")["status"] = "True"
			err = unstructured.SetNestedSlice(o.Object, conditions, "status", "conditions")
		}
		return false, nil, err // the fake keeps what the object has become
	})
	return Definitions{&Epoch{Dynamic: dyn}}, writes
}
