package kube

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
)

const (
	// ownPrefix begins Chandler's own labels and annotations.
	ownPrefix = "chandler-fleet.io/"
	// annotationAdopted marks an object that was there before Chandler wrote it first: it is let go, never deleted.
	annotationAdopted = ownPrefix + "adopted"
	// adopter is the field manager of that mark: who applies an object takes back what it does not apply any more.
	adopter = "chandler/adopted"
)

// Adopted reports an object that was there before Chandler.
func Adopted(o metav1.Object) bool { return o.GetAnnotations()[annotationAdopted] == "true" }

// GetMetadata returns the metadata of an object, nil where there is none or its API is not served. Large objects, such
// as InstalledOperators and definitions, are costly to read whole.
func (e *Epoch) GetMetadata(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (
	*metav1.PartialObjectMetadata, error,
) {
	o, err := e.metadata(ctx, gvk, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	return o, err
}

// GetServedMetadata is GetMetadata for those who act on absence, as GetServed is Get.
func (e *Epoch) GetServedMetadata(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (
	*metav1.PartialObjectMetadata, error,
) {
	o, err := e.metadata(ctx, gvk, namespace, name)
	if isAbsent(err) {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	return o, err
}

func (e *Epoch) metadata(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (
	*metav1.PartialObjectMetadata, error,
) {
	ctx, cancel := e.Limit(ctx)
	defer cancel()
	return e.Metadata.Resource(Resource(gvk)).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// isAbsent reports that an object of an API that is served is not there.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// Foreign returns the metadata of an object that Chandler has never written, nil where there is none.
func (e *Epoch) Foreign(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (
	*metav1.PartialObjectMetadata, error,
) {
	o, err := e.GetMetadata(ctx, gvk, namespace, name)
	if err != nil || o == nil || written(o) || o.DeletionTimestamp != nil {
		return nil, err
	}
	return o, nil
}

// controllers are the field managers of Kubernetes' own controllers that write into what is being installed.
var controllers = []string{"kube-controller-manager", "clusterrole-aggregation-controller"}

// CameFirst reports of an object that a manager has just made that it had been there, and that Chandler had not written
// it: somebody else's fields are in it. The status is the cluster's own business.
func CameFirst(o metav1.Object, manager string) bool {
	others := false
	for _, f := range o.GetManagedFields() {
		switch {
		case f.Subresource != "" || f.Manager == manager || slices.Contains(controllers, f.Manager):
		case strings.HasPrefix(f.Manager, managerPrefix):
			return false
		default:
			others = true
		}
	}
	return others
}

// written reports an object that Chandler has written before, even if somebody took the label off since.
func written(o metav1.Object) bool {
	if o.GetLabels()[LabelManaged] == "true" {
		return true
	}
	for key := range o.GetAnnotations() {
		if strings.HasPrefix(key, ownPrefix) && key != annotationAdopted {
			return true
		}
	}
	return false
}

// Adopt marks an object that Foreign returned, before it is written. One that is gone by now, or another one, stays as
// it is.
func (e *Epoch) Adopt(ctx context.Context, gvk schema.GroupVersionKind, o metav1.Object) error {
	return e.patchMetadata(ctx, gvk, o, map[string]any{"annotations": map[string]any{annotationAdopted: "true"}})
}

// Remove deletes an object of an operator. From one that was there before Chandler, what names its owner is taken off,
// and no more.
func (e *Epoch) Remove(ctx context.Context, o *unstructured.Unstructured) error {
	if !Adopted(o) {
		return e.Delete(ctx, o)
	}
	return e.patchMetadata(ctx, o.GroupVersionKind(), o, letGo(o))
}

func (e *Epoch) patchMetadata(ctx context.Context, gvk schema.GroupVersionKind, o metav1.Object,
	metadata map[string]any,
) error {
	metadata["uid"] = string(o.GetUID())
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode the metadata of %s %s", gvk.Kind, o.GetName())
	}
	_, err = e.writer(gvk, o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: adopter})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or another object by now
	}
	return err
}

// letGo is the merge patch of the metadata that takes Chandler's labels, annotations and owner references off an
// object.
func letGo(o metav1.Object) map[string]any {
	owners := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(r metav1.OwnerReference) bool {
		return r.Kind == GVKInstalledOperator.Kind && strings.HasPrefix(r.APIVersion, GVKInstalledOperator.Group+"/")
	})
	out := map[string]any{"labels": without(o.GetLabels()), "annotations": without(o.GetAnnotations())}
	if len(owners) != len(o.GetOwnerReferences()) {
		out["ownerReferences"] = owners
	}
	return out
}

// ownWords begin the labels and annotations that say whose an object is and how it was installed.
var ownWords = []string{ownPrefix, "olm.", componentPrefix, render.AnnotationInstalledAlongside}

func without(words map[string]string) map[string]any {
	out := map[string]any{}
	for key := range words {
		if slices.ContainsFunc(ownWords, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			out[key] = nil
		}
	}
	return out
}

const (
	// LabelNamespaceLabels marks a namespace that has labels or annotations by its operator group; its value is a
	// digest of them, so that a change is seen in what is watched.
	LabelNamespaceLabels = ownPrefix + "namespace-labels"
	// labeller is the field manager of both: those that are not wanted any more go with the next write.
	labeller = "chandler/namespace-labels"
	// markLength is how much of a digest tells sets of labels apart that people write; a label holds 63 characters.
	markLength = 16
)

// NamespaceMetadata are labels and annotations of a namespace.
type NamespaceMetadata struct{ Labels, Annotations map[string]string }

// WantedOfNamespace are the labels and annotations that an operator group wants of its namespace.
func WantedOfNamespace(group events.OperatorGroupSpec) NamespaceMetadata {
	return NamespaceMetadata{Labels: group.NamespaceLabels, Annotations: group.NamespaceAnnotations}
}

// Empty reports that nothing is wanted.
func (m NamespaceMetadata) Empty() bool { return len(m.Labels)+len(m.Annotations) == 0 }

// NamespaceKept reports whether a namespace has the labels and annotations that its operator group wants. Its
// annotations are known where it has the mark.
func NamespaceKept(have, want NamespaceMetadata) bool {
	_, mark := have.Labels[LabelNamespaceLabels]
	return mark != want.Empty() && has(have.Labels, marked(want)) && has(have.Annotations, want.Annotations)
}

func has(have, want map[string]string) bool {
	for key, value := range want {
		if got, ok := have[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// marked are labels with the mark of them and of the annotations; none where nothing is wanted.
func marked(want NamespaceMetadata) map[string]string {
	if want.Empty() {
		return nil
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(want.Labels)) {
		text.WriteString(key + "=" + want.Labels[key] + "\n")
	}
	for _, key := range slices.Sorted(maps.Keys(want.Annotations)) {
		text.WriteString("annotation " + key + "=" + want.Annotations[key] + "\n")
	}
	out := map[string]string{}
	maps.Copy(out, want.Labels)
	out[LabelNamespaceLabels] = digest.Bytes([]byte(text.String())).Hex()[:markLength]
	return out
}

// KeepNamespace gives a namespace the labels and annotations that its operator group wants, and takes from it those
// that the group wanted before. One that somebody else has set otherwise is a conflict that names both: limits that
// administrators set are not lifted that way. It makes no namespace: one that is gone is an error, also where it goes
// between the look and the write, which the API server refuses for its uid.
func (e *Epoch) KeepNamespace(ctx context.Context, name string, want NamespaceMetadata) error {
	live, err := e.metadata(ctx, GVKNamespace, "", name)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(GVKNamespace)
	o.SetName(name)
	o.SetUID(live.UID)
	o.SetLabels(marked(want))
	o.SetAnnotations(want.Annotations)
	_, err = e.applyOwn(ctx, o, labeller)
	return err
}

// LabelNamespace sets labels of a namespace, which is somebody else's: nothing but these labels is touched, and nil
// takes one away. A namespace that is gone has none.
func (e *Epoch) LabelNamespace(ctx context.Context, name string, labels map[string]*string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "labels of namespace %s", name)
	}
	_, err = e.MergePatch(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", name, patch)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
