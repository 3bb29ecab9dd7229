package bundles_test

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// bringAPI makes a custom resource definition for a kind, as the operator that serves it would have.
func (s *spoke) bringAPI(ctx context.Context, gvk schema.GroupVersionKind) error {
	dyn, err := dynamic.NewForConfig(s.cluster.RESTConfig())
	if err != nil {
		return err
	}
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	crds := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions",
	}
	_, err = dyn.Resource(crds).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural.GroupResource().String()},
		"spec": map[string]any{
			"group": gvk.Group, "scope": "Namespaced",
			"names": map[string]any{
				"kind": gvk.Kind, "listKind": gvk.Kind + "List", "plural": plural.Resource,
				"singular": singular.Resource,
			},
			"versions": []any{map[string]any{
				"name": gvk.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// crdOf names the definition that bringAPI makes for kind.version.group.
func crdOf(kind string) protocol.ObjectRef {
	gvk, _ := schema.ParseKindArg(kind)
	plural, _ := meta.UnsafeGuessKindToResource(*gvk)
	return protocol.ObjectRef{
		Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition",
		Name: strings.ToLower(plural.GroupResource().String()),
	}
}
