package kube

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Apply writes an object by server-side apply under a field manager and returns what the cluster
// holds now.
//
// Fields of other managers are taken over only in objects that belong to the same operator, or to nobody who is still
// there, as the table above allowed says: there a person's edit is reverted (R-CSV-24). In anybody else's object they
// are a conflict that names both.
//
// Published bundles hold fields that Kubernetes does not know. It drops them from what is created or
// updated, but refuses to apply them; so they are dropped here as it would have done.
func (e *Epoch) Apply(ctx context.Context, body *unstructured.Unstructured, manager string) (
	*unstructured.Unstructured, error,
) {
	return e.known(ctx, body, func(body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return e.apply(ctx, body, manager)
	})
}

// Make is Apply for an object that is relied on not to be there: it takes over nothing from anybody (IsTaken). One that
// is there all the same, and exactly so, is what it returns (CameFirst).
func (e *Epoch) Make(ctx context.Context, body *unstructured.Unstructured, manager string) (
	*unstructured.Unstructured, error,
) {
	return e.known(ctx, body, func(body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return e.applyOwn(ctx, body, manager)
	})
}

// known writes an object, and once more without the fields that the API server does not know.
func (e *Epoch) known(ctx context.Context, body *unstructured.Unstructured,
	write func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) (*unstructured.Unstructured, error) {
	applied, err := write(body)
	if !isUnknownField(err) {
		return applied, err
	}
	known, pruneErr := e.prune(ctx, body)
	if pruneErr != nil {
		return nil, untried(pruneErr, err)
	}
	return write(known)
}

// applyOwn applies what nobody else has.
func (e *Epoch) applyOwn(ctx context.Context, body *unstructured.Unstructured, manager string) (
	*unstructured.Unstructured, error,
) {
	return e.writer(body.GroupVersionKind(), body.GetNamespace()).Apply(
		ctx, body.GetName(), body, metav1.ApplyOptions{FieldManager: manager})
}

func (e *Epoch) apply(ctx context.Context, body *unstructured.Unstructured, manager string) (
	*unstructured.Unstructured, error,
) {
	applied, err := e.applyOwn(ctx, body, manager)
	if !IsTaken(err) {
		return applied, err
	}
	live, getErr := e.objects(body.GroupVersionKind(), body.GetNamespace()).Get(
		ctx, body.GetName(), metav1.GetOptions{})
	if getErr != nil {
		return nil, getErr
	}
	if live.GetLabels()[LabelManaged] != "true" {
		return nil, err // it names the other manager
	}
	if err := e.MayTake(ctx, live, body, manager); err != nil {
		return nil, err
	}
	writer := e.writer(body.GroupVersionKind(), body.GetNamespace())
	return writer.Apply(ctx, body.GetName(), body, metav1.ApplyOptions{FieldManager: manager, Force: true})
}

// WouldApply returns what Apply would make of an object that Chandler wrote before. It changes nothing.
func (e *Epoch) WouldApply(ctx context.Context, body *unstructured.Unstructured, manager string) (
	*unstructured.Unstructured, error,
) {
	trial := metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}}
	client := e.objects(body.GroupVersionKind(), body.GetNamespace())
	would, err := client.Apply(ctx, body.GetName(), body, trial)
	if !isUnknownField(err) {
		return would, err
	}
	known, pruneErr := e.prune(ctx, body)
	if pruneErr != nil {
		return nil, untried(pruneErr, err)
	}
	return client.Apply(ctx, body.GetName(), known, trial)
}

// WouldMake returns what the API server would make of an object that is not there. It changes nothing.
func (e *Epoch) WouldMake(ctx context.Context, body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	how := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationIgnore}
	return e.objects(body.GroupVersionKind(), body.GetNamespace()).Create(ctx, body, how)
}

// IsTaken reports fields that another manager has.
func IsTaken(err error) bool {
	return apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// Get returns an object, nil when it does not exist.
func (e *Epoch) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (
	*unstructured.Unstructured, error,
) {
	o, err := e.objects(gvk, namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is an answer here, not an error
	}
	return o, err
}

// GetServed is Get for those who act on absence: an API that is not served says nothing about its objects, so that is
// an error.
func (e *Epoch) GetServed(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (
	*unstructured.Unstructured, error,
) {
	o, err := e.objects(gvk, namespace).Get(ctx, name, metav1.GetOptions{})
	if isAbsent(err) {
		return nil, nil //nolint:nilnil // absence is an answer here, not an error
	}
	return o, err
}

// List returns the objects of a kind that bear the labels; an API that is not served has none.
func (e *Epoch) List(ctx context.Context, gvk schema.GroupVersionKind, namespace, selector string) (
	[]unstructured.Unstructured, error,
) {
	l, err := e.objects(gvk, namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// ListServed returns all objects of a kind in a namespace, for those who act on absence: an API that is not served is
// an error.
func (e *Epoch) ListServed(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (
	[]unstructured.Unstructured, error,
) {
	l, err := e.objects(gvk, namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// ListAs returns objects of a kind in their own type.
func ListAs[T any](ctx context.Context, e *Epoch, gvk schema.GroupVersionKind, namespace string,
	o metav1.ListOptions,
) ([]T, error) {
	out, _, err := PageAs[T](ctx, e, gvk, namespace, o)
	return out, err
}

// PageAs returns objects of a kind in their own type, and whether there are more than the limit of the question.
func PageAs[T any](ctx context.Context, e *Epoch, gvk schema.GroupVersionKind, namespace string,
	o metav1.ListOptions,
) (out []T, more bool, err error) {
	found, err := e.Dynamic.Resource(Resource(gvk)).Namespace(namespace).List(ctx, o)
	if err != nil {
		return nil, false, err
	}
	out = make([]T, len(found.Items))
	for i := range found.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, &out[i]); err != nil {
			return nil, false, errs.Wrap(errs.Internal, err, "decode %s %s", gvk.Kind, found.Items[i].GetName())
		}
	}
	return out, found.GetContinue() != "", nil
}

// PodLog opens the log of a container. What comes is bounded in time by the context alone.
func PodLog(ctx context.Context, e *Epoch, namespace, pod string, o corev1.PodLogOptions) (io.ReadCloser, error) {
	return e.discovery.RESTClient().Get().AbsPath("/api/v1").Namespace(namespace).Resource("pods").Name(pod).
		SubResource("log").SpecificallyVersionedParams(&o, scheme.ParameterCodec, corev1.SchemeGroupVersion).Stream(ctx)
}

// Delete removes exactly the object that was looked at: a namesake made since stays.
func (e *Epoch) Delete(ctx context.Context, o *unstructured.Unstructured) error {
	uid := o.GetUID()
	background := metav1.DeletePropagationBackground
	err := e.objects(o.GroupVersionKind(), o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or another object by now
	}
	return err
}

// UpdateStatus writes status if the object is still the one that was read.
func (e *Epoch) UpdateStatus(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return e.objects(o.GroupVersionKind(), o.GetNamespace()).UpdateStatus(ctx, o, metav1.UpdateOptions{})
}

// EnsureNamespace creates a namespace that is missing.
func (e *Epoch) EnsureNamespace(ctx context.Context, name string) error {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	found, err := e.Get(ctx, gvk, "", name)
	if err != nil || found != nil {
		return err
	}
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	_, err = e.objects(gvk, "").Create(ctx, ns, metav1.CreateOptions{})
	return existing(err)
}

// Established reports what a requirement check needs of a CRD: whether it is established, and the
// versions that it serves.
func Established(crd *unstructured.Unstructured) (bool, []string) {
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return false, nil
	}
	var served []string
	for _, v := range versions {
		m, ok := v.(map[string]any)
		if !ok || m["served"] != true {
			continue
		}
		if name, ok := m["name"].(string); ok {
			served = append(served, name)
		}
	}
	return established(crd), served
}

// Serves reports whether the cluster serves a kind.
func (e *Epoch) Serves(gvk schema.GroupVersionKind) (bool, error) {
	list, err := e.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, r := range list.APIResources {
		if r.Kind == gvk.Kind {
			return true, nil
		}
	}
	return false, nil
}

// MergePatch changes a part of one object and returns what the cluster holds now.
func (e *Epoch) MergePatch(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string, patch []byte) (
	*unstructured.Unstructured, error,
) {
	return e.writer(gvk, namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
}
