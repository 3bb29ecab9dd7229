package kube

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestNotServed: whoever acts on the absence of InstalledOperators is told that their kind is not served; to the others
// it is no object.
func TestNotServed(t *testing.T) {
	t.Parallel()
	resource := Resource(GVKInstalledOperator)
	client := fake.NewSimpleDynamicClientWithCustomListKinds(
		runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "InstalledOperatorList"})
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(resource.GroupResource(), "")
	})
	e := &Epoch{Dynamic: client}
	if _, err := e.ListServed(t.Context(), GVKInstalledOperator, "ops"); !apierrors.IsNotFound(err) {
		t.Errorf("a kind that is not served: %v", err)
	}
	if list, err := e.List(t.Context(), GVKInstalledOperator, "ops", ""); err != nil || len(list) != 0 {
		t.Errorf("List says %v, %v", list, err)
	}
}
