package cluster

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
func (e *Epoch) ResetConversion(ctx context.Context, crd *unstructured.Unstructured, label string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": crd.GetUID(), "resourceVersion": crd.GetResourceVersion(), "labels": map[string]any{label: nil},
		},
		"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}},
	})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode")
	}
	_, err = e.objects(gvkCRD, "").Patch(ctx, crd.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Decode reads an object into a Go value.
func Decode(o *unstructured.Unstructured, into any) error { return fromMap(o.Object, into) }
