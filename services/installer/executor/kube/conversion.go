package kube

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// ResetConversion lets the API server convert the objects of a CRD by their version's name alone, as it does where no
// operator converts them (R-CSV-46), and takes a label off. It changes exactly the object that was looked at: one that
// has changed since is a conflict, to be looked at again.
func (e Definitions) ResetConversion(ctx context.Context, crd *unstructured.Unstructured, label string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": crd.GetUID(), "resourceVersion": crd.GetResourceVersion(), "labels": map[string]any{label: nil},
		},
		"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}},
	})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode")
	}
	_, err = e.objects(GVKCRD, "").Patch(ctx, crd.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Convert has the objects of a CRD converted in another way and leaves the rest of exactly the object that was looked
// at. It is applied as the operator's manager: fields of another manager would outlive a later form that does not have
// them.
func (e Definitions) Convert(ctx context.Context, crd *unstructured.Unstructured, conversion map[string]any,
	manager string,
) error {
	body := &unstructured.Unstructured{Object: map[string]any{}}
	spec, _, err := unstructured.NestedMap(crd.Object, "spec")
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "CustomResourceDefinition %s", crd.GetName())
	}
	spec["conversion"] = conversion
	body.Object["spec"] = spec
	body.SetGroupVersionKind(GVKCRD)
	body.SetName(crd.GetName())
	body.SetUID(crd.GetUID())
	body.SetResourceVersion(crd.GetResourceVersion())
	body.SetLabels(crd.GetLabels())
	body.SetAnnotations(crd.GetAnnotations())
	_, err = e.objects(GVKCRD, "").Apply(ctx, crd.GetName(), body,
		metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// Decode reads an object into a Go value.
func Decode(o *unstructured.Unstructured, into any) error { return fromMap(o.Object, into) }
