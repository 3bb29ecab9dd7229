package clusterconfig

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// TestCopyGoesOn: R-IP-22: a secret of somebody else under the name of a copy keeps none of the other copies away, nor
// the accounts from naming them; it is an error all the same.
func TestCopyGoesOn(t *testing.T) {
	t.Parallel()
	account := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount",
		"metadata": map[string]any{"namespace": "ops", "name": "tide"},
	}}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(
		runtime.NewScheme(), map[schema.GroupVersionResource]string{{Version: "v1", Resource: "secrets"}: "SecretList"},
		account)
	client.PrependReactor("patch", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p, ok := a.(clienttesting.PatchAction)
		if !ok || p.GetName() == "chandler-pull-first" {
			return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "chandler-pull-first", nil)
		}
		o := &unstructured.Unstructured{}
		return true, o, json.Unmarshal(p.GetPatch(), &o.Object)
	})
	wrote := map[string]bool{}
	secrets := []PullSecret{{Name: "chandler-pull-first", Data: "e30="}, {Name: "chandler-pull-second", Data: "e30="}}
	err := New(&kube.Epoch{Dynamic: client}).Copy(t.Context(), "ops", secrets, []string{"tide"},
		func(o *unstructured.Unstructured) { wrote[o.GetName()] = true })
	if err == nil || !strings.Contains(err.Error(), "pull secret ops/chandler-pull-first") {
		t.Errorf("the error is %v", err)
	}
	if !wrote["chandler-pull-second"] || !wrote["tide"] {
		t.Errorf("written: %v", wrote)
	}
}
