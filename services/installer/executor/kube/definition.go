package kube

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/chandlercrd"
)

// Definition is a CustomResourceDefinition that Chandler brings.
type Definition struct {
	CRD *apiextensionsv1.CustomResourceDefinition
	// Manager is the field manager that writes it.
	Manager string
	// Ours reports whether one of its name that is in the cluster is Chandler's. Any other one stays as it is.
	Ours func(metav1.Object) bool
	// At is called before and after a write; nil is not called.
	At func(point string) error
}

// Definitions are the custom resource definitions of a cluster.
type Definitions struct{ *Epoch }

// Ensure makes a definition where it is missing, writes one of ours anew that is older, and returns the one that is
// there.
func (e Definitions) Ensure(ctx context.Context, d Definition) (*unstructured.Unstructured, error) {
	return d.ensure(ctx, e.objects(GVKCRD, ""))
}

// EnsureOwn makes Chandler's own definitions where they are missing, as at the start.
func (e Definitions) EnsureOwn(ctx context.Context) error {
	return ensureOwn(ctx, e.objects(GVKCRD, ""))
}

func ensureOwn(ctx context.Context, client dynamic.ResourceInterface) error {
	// The group is Chandler's own: nobody else defines anything in it.
	ours := func(o metav1.Object) bool { return o.GetLabels()[LabelManaged] == "true" }
	for _, crd := range ownCRDs() {
		found, err := Definition{CRD: crd.object(), Manager: userAgent, Ours: ours}.ensure(ctx, client)
		if err == nil {
			_, err = establishment{client: client}.await(ctx, found)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", crd.Name, err)
		}
	}
	return nil
}

func (d Definition) ensure(ctx context.Context, client dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
	found, err := client.Get(ctx, d.CRD.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return d.write(d.CRD, func(body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			made, err := client.Create(ctx, body, metav1.CreateOptions{FieldManager: d.Manager})
			if apierrors.IsAlreadyExists(err) { // somebody else made it in this moment
				return client.Get(ctx, d.CRD.Name, metav1.GetOptions{})
			}
			return made, err
		})
	case err != nil:
		return nil, err
	case found.GetDeletionTimestamp() != nil:
		return nil, errs.New(errs.Unavailable,
			"CustomResourceDefinition %s is being deleted; it is made again when it is gone", d.CRD.Name)
	case !d.Ours(found):
		return found, nil
	}
	live := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, live); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "decode")
	}
	next := chandlercrd.Upgrade(live, d.CRD)
	if next == nil {
		return found, nil
	}
	next.ManagedFields = nil // the API server keeps them
	return d.write(next, func(body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		// of exactly the one that was read
		return client.Update(ctx, body, metav1.UpdateOptions{FieldManager: d.Manager})
	})
}

func (d Definition) write(crd *apiextensionsv1.CustomResourceDefinition,
	send func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) (*unstructured.Unstructured, error) {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode")
	}
	u := &unstructured.Unstructured{Object: body}
	u.SetGroupVersionKind(GVKCRD)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")
	if err := d.at("before mirror"); err != nil {
		return nil, err
	}
	made, err := send(u)
	if err != nil {
		return nil, err
	}
	return made, d.at("mirrored")
}

func (d Definition) at(point string) error {
	if d.At == nil {
		return nil
	}
	return d.At(point)
}
