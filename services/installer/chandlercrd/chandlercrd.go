// Package chandlercrd decides about the CustomResourceDefinitions that Chandler itself installs in a cluster: whether
// an existing one is Chandler's, whether it has to be updated, and to what.
package chandlercrd

import (
	"bytes"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotation holds the revision in which Chandler wrote a definition. One without it is of revision 0.
const Annotation = "chandler-fleet.io/definition-revision"

// Stamp writes the revision of a definition into an annotation. Every change of the definition raises it, so that an
// older Chandler does not replace the definition of a newer one.
func Stamp(d *apiextensionsv1.CustomResourceDefinition, revision int) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, Annotation, strconv.Itoa(revision))
}

// RevisionOf reads what Stamp wrote; 0 for none.
func RevisionOf(o metav1.Object) int {
	n, err := strconv.Atoi(o.GetAnnotations()[Annotation])
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// MadeBy reports whether a field manager, and nobody else, wrote the spec of a definition: one that somebody else
// changed or replaced is not Chandler's.
func MadeBy(o metav1.Object, manager string) bool {
	made := false
	for _, f := range o.GetManagedFields() {
		if f.Subresource != "" || f.FieldsV1 == nil || !bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
			continue
		}
		if f.Manager != manager {
			return false
		}
		made = true
	}
	return made
}

// Upgrade returns the update of a definition of ours in the cluster if it is older than the shipped one, else nil. What
// belongs to the cluster stays: identity, status, versions in which objects may be stored, and labels and annotations
// of others.
func Upgrade(live, shipped *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	if RevisionOf(live) >= RevisionOf(shipped) || live.DeletionTimestamp != nil {
		return nil
	}
	next := live.DeepCopy()
	next.Spec.Versions = slices.Clone(shipped.Spec.Versions)
	for _, v := range live.Spec.Versions {
		stored := slices.Contains(live.Status.StoredVersions, v.Name)
		if stored && !slices.ContainsFunc(shipped.Spec.Versions,
			func(s apiextensionsv1.CustomResourceDefinitionVersion) bool { return s.Name == v.Name }) {
			v.Served, v.Storage = false, false
			next.Spec.Versions = append(next.Spec.Versions, v)
		}
	}
	next.Spec.Names.ShortNames, next.Spec.Names.Categories = shipped.Spec.Names.ShortNames,
		shipped.Spec.Names.Categories
	for k, v := range shipped.Labels {
		metav1.SetMetaDataLabel(&next.ObjectMeta, k, v)
	}
	for k, v := range shipped.Annotations {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, k, v)
	}
	return next
}
