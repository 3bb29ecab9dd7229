package kube

import (
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// OldestKubernetes is the first version that serves what the fence needs, ValidatingAdmissionPolicy v1.
const OldestKubernetes = "1.30"

// UnsupportedError says that a cluster cannot be served.
type UnsupportedError struct{ text string }

func (e UnsupportedError) Error() string { return e.text }

// IsUnsupported reports a cluster that cannot be served.
func IsUnsupported(err error) bool {
	_, ok := errors.AsType[UnsupportedError](err)
	return ok
}

// CheckSupported wants a cluster that can be served, by its version and by what it serves: without the fence nothing
// would keep a former holder from writing. It reads only.
func (b *Base) CheckSupported(kubernetes string) error {
	v, err := version.ParseGeneric(kubernetes)
	if err == nil && v.LessThan(version.MustParseGeneric(OldestKubernetes)) {
		return UnsupportedError{fmt.Sprintf(
			"Kubernetes %s is older than %s, the oldest version that Chandler serves: upgrade the cluster", kubernetes,
			OldestKubernetes)}
	}
	list, err := b.Kube.Discovery().ServerResourcesForGroupVersion(admissionv1.SchemeGroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ask the API server for %s: %w", admissionv1.SchemeGroupVersion, err)
	}
	if list != nil {
		if slices.ContainsFunc(list.APIResources,
			func(r metav1.APIResource) bool { return r.Name == "validatingadmissionpolicies" }) {
			return nil
		}
	}
	return UnsupportedError{fmt.Sprintf(
		"the API server (Kubernetes %s) does not serve ValidatingAdmissionPolicy of %s, which Chandler needs to be "+
			"the only one that writes as Chandler: enable it",
		kubernetes, admissionv1.SchemeGroupVersion)}
}
