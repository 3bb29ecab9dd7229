package operatorgroup

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/render"
)

const (
	// MaxNamespaceAnnotations bounds the annotations of a namespace that a group keeps: they stand in the event log,
	// and the settings of a namespace are a handful.
	MaxNamespaceAnnotations = 32
	// MaxNamespaceAnnotation bounds the value of one, in bytes: the longest are lists of tolerations. What is longer is
	// a document that a program notes for itself.
	MaxNamespaceAnnotation = 1 << 10
)

// clusterNotes say of annotations that they are no settings: the cluster or a program writes them. A name that ends
// with a slash or a dot stands for all that begin with it.
var clusterNotes = []struct{ name, why string }{
	{"kubectl.kubernetes.io/last-applied-configuration", "kubectl notes there what it applied"},
	{"openshift.io/sa.scc.", "each cluster gives its namespaces ranges of their own"},
	{"openshift.io/requester", "the cluster notes there which person asked for the project"},
	{"security.openshift.io/MinimallySufficientPodSecurityStandard", "OpenShift notes there what its pods need"},
	{"meta.helm.sh/", "Helm notes there whose release the object is"},
	{"argocd.argoproj.io/tracking-id", "Argo CD finds by it what it may delete"},
	{"objectset.rio.cattle.io/", "Rancher notes there what it applied"},
	{"lifecycle.cattle.io/", "Rancher notes there what it has done for the namespace"},
	{"cattle.io/status", "Rancher notes there what it has done for the namespace"},
}

// ReservedAnnotation says why no operator group keeps an annotation of its namespace, "" of one that it may.
func ReservedAnnotation(key string) (why string) {
	if render.OwnWord(key) {
		return "by such keys objects of operators are found in clusters"
	}
	i := slices.IndexFunc(clusterNotes, func(n struct{ name, why string }) bool {
		if strings.HasSuffix(n.name, "/") || strings.HasSuffix(n.name, ".") {
			return strings.HasPrefix(key, n.name)
		}
		return key == n.name
	})
	if i < 0 {
		return ""
	}
	return clusterNotes[i].why
}
