package render

import (
	"crypto/sha256"
	"maps"
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels and annotations (R-IP-23, R-CSV-21, R-CSV-22, R-OG §7.3).
const (
	LabelManaged         = "olm.managed"
	LabelOwner           = "olm.owner"
	LabelOwnerKind       = "olm.owner.kind"
	LabelOwnerNamespace  = "olm.owner.namespace"
	LabelPermissionsHash = "olm.permissions.hash"
	LabelDeploymentHash  = "olm.deployment-spec-hash"
	LabelAPIPrefix       = "olm.api."

	AnnotationOperatorGroup      = "olm.operatorGroup"
	AnnotationOperatorNamespace  = "olm.operatorNamespace"
	AnnotationTargetNamespaces   = "olm.targetNamespaces"
	AnnotationProvidedAPIs       = "olm.providedAPIs"
	AnnotationInstalledAlongside = "operatorframework.io/installed-alongside-"

	// EnvOperatorCondition carries the operator condition's name to the operator (R-COND-1, R-SUB-11).
	EnvOperatorCondition = "OPERATOR_CONDITION_NAME"
)

const (
	// maxName is the length of a label value, to which generated names are cut (R-CSV-21).
	maxName = 63
	// nameHashLength gives 51 bits: enough for distinct names of the permissions of all operators of a cluster.
	nameHashLength = 10
	// apiHashLength and specHashLength fill labels whose keys and values people rarely read.
	apiHashLength  = 13
	specHashLength = 20
)

type scope int

const (
	namespaced scope = iota
	clusterScoped
)

// Kinds that render writes by itself.
var (
	gvkCSV = schema.GroupVersionKind{
		Group: "operators.coreos.com", Version: "v1alpha1",
		Kind: "ClusterServiceVersion",
	}
	gvkCRD = schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition",
	}
	gvkServiceAccount     = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	gvkRole               = rbac("Role")
	gvkRoleBinding        = rbac("RoleBinding")
	gvkClusterRole        = rbac("ClusterRole")
	gvkClusterRoleBinding = rbac("ClusterRoleBinding")
	gvkService            = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	gvkDeployment         = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

func rbac(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind}
}

// supported is the table of R-CAT-53 with the scope of each kind. PodMonitor is left out there on purpose.
func supported(gvk schema.GroupVersionKind) (scope, bool) {
	switch gvk.Group + "/" + gvk.Kind {
	case "/ConfigMap", "/Secret", "/Service", "/ServiceAccount", "policy/PodDisruptionBudget",
		"monitoring.coreos.com/PrometheusRule", "monitoring.coreos.com/ServiceMonitor",
		"rbac.authorization.k8s.io/Role", "rbac.authorization.k8s.io/RoleBinding",
		"autoscaling.k8s.io/VerticalPodAutoscaler", "networking.k8s.io/NetworkPolicy":
		return namespaced, true
	case "rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/ClusterRoleBinding",
		"console.openshift.io/ConsoleCLIDownload", "console.openshift.io/ConsoleLink",
		"console.openshift.io/ConsolePlugin", "console.openshift.io/ConsoleQuickStart",
		"console.openshift.io/ConsoleYAMLSample", "scheduling.k8s.io/PriorityClass":
		return clusterScoped, true
	}
	return namespaced, false
}

// Shared reports a kind of which several operators may bring the same object: what is the cluster's in several
// namespaces, the others in one. Each names itself in an annotation, and the object goes with the last of them.
func Shared(gvk schema.GroupVersionKind) bool {
	_, ok := supported(gvk)
	return ok
}

// Formed reports a kind of shared objects of which the form matters: several operators may want different ones.
// Accounts are no more than names.
func Formed(gvk schema.GroupVersionKind) bool { return Shared(gvk) && gvk != gvkServiceAccount }

// alongside is the annotation by which an operator says that it brought an object (R-CSV-22).
func (r *renderer) alongside() map[string]string {
	owner := r.in.Namespace + "/" + r.csv.Name
	return map[string]string{AlongsideKey(owner): owner}
}

// AlongsideKey is the key of that annotation for an operator, as namespace/csv.
func AlongsideKey(owner string) string {
	return AnnotationInstalledAlongside + hash(apiHashLength, owner)
}

// reservedName reports a name under which Chandler keeps objects of its own that concern a whole cluster. Kubernetes
// has names of its own, too, which begin with system: or system-: of these the API server decides, and what it keeps
// there itself is in the way as anybody else's object is.
func reservedName(name string) bool {
	return strings.HasPrefix(name, "chandler-") || strings.HasPrefix(name, "chandler:")
}

// ownWords begin the labels and annotations that say who owns an object and how it was installed.
var ownWords = []string{
	"chandler-fleet.io/", AnnotationInstalledAlongside, "olm.owner", "olm.managed", "olm.copiedFrom",
	"olm.opgroup.permissions/", "olm.operatorgroup.uid/",
}

// disown drops such words from the metadata of a manifest.
func disown(meta map[string]any) {
	for _, field := range []string{"labels", "annotations"} {
		words, ok := meta[field].(map[string]any)
		if !ok {
			continue
		}
		maps.DeleteFunc(words, func(key string, _ any) bool { return OwnWord(key) })
		if len(words) == 0 {
			delete(meta, field)
		}
	}
}

// OwnWord reports the key of such a label or annotation.
func OwnWord(key string) bool {
	return slices.ContainsFunc(ownWords, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func (r *renderer) managedLabels() map[string]string { return map[string]string{LabelManaged: "true"} }

// ownerLabels mark what belongs to the CSV and goes when it goes (R-IP-23). Namespaced objects bear
// them, too, so that those copied to target namespaces are found.
func (r *renderer) ownerLabels() map[string]string {
	return map[string]string{
		LabelManaged:        "true",
		LabelOwner:          labelValue(r.csv.Name),
		LabelOwnerKind:      gvkCSV.Kind,
		LabelOwnerNamespace: r.in.Namespace,
	}
}

// labelValue cuts a name to what a label holds, with a hash where it was cut.
func labelValue(name string) string {
	if len(name) <= maxName {
		return name
	}
	return cutName(name, hash(nameHashLength, name))
}

// OwnerLabelValue is the value of LabelOwner for a CSV.
func OwnerLabelValue(csv string) string { return labelValue(csv) }

// cutName is base-hash in at most 63 characters (R-CSV-21).
func cutName(base, h string) string {
	if room := maxName - len(h) - 1; len(base) > room {
		base = strings.TrimRight(base[:room], "-.")
	}
	return base + "-" + h
}

// hash returns n base-36 digits over the parts; the separator keeps ("ab","c") and ("a","bc") apart.
func hash(n int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	s := new(big.Int).SetBytes(sum[:]).Text(36)
	if len(s) < n {
		s = strings.Repeat("0", n-len(s)) + s
	}
	return s[:n]
}

// child returns m[key] as a map, which it makes where it is absent or something else.
func child(m map[string]any, key string) map[string]any {
	c, ok := m[key].(map[string]any)
	if !ok {
		c = map[string]any{}
		m[key] = c
	}
	return c
}

// set merges values into the string map at key; values win.
func set(m map[string]any, key string, values ...map[string]string) {
	c := child(m, key)
	for _, v := range values {
		for k, s := range v {
			c[k] = s
		}
	}
	if len(c) == 0 {
		delete(m, key)
	}
}

// setDefault merges values into the string map at key; what is there wins.
func setDefault(m map[string]any, key string, values map[string]string) {
	c := child(m, key)
	for k, s := range values {
		if _, ok := c[k]; !ok {
			c[k] = s
		}
	}
	if len(c) == 0 {
		delete(m, key)
	}
}
