package mirror

import (
	"encoding/json"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
)

// LabelMirror marks a mirror; its value is the namespace of the operators that it shows.
const LabelMirror = "chandler-fleet.io/mirror"

// LabelCopiedFrom marks a copy of a ClusterServiceVersion with the namespace of its source (R-OG-25).
const LabelCopiedFrom = "olm.copiedFrom"

// gvk names a kind.
type gvk = runtimeschema.GroupVersionKind

// The kinds.
var (
	GVKCSV               = olm("v1alpha1", "ClusterServiceVersion")
	GVKSubscription      = olm("v1alpha1", "Subscription")
	GVKInstallPlan       = olm("v1alpha1", "InstallPlan")
	GVKOperatorGroup     = olm("v1", "OperatorGroup")
	GVKOperator          = olm("v1", "Operator")
	GVKCatalogSource     = olm("v1alpha1", "CatalogSource")
	GVKOLMConfig         = olm("v1", "OLMConfig")
	GVKOperatorCondition = olm("v2", "OperatorCondition")
	gvkRole              = gvk{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	gvkRoleBinding       = gvk{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
	gvkEvent             = gvk{Version: "v1", Kind: "Event"}
)

const groupOLM = "operators.coreos.com"

func olm(version, kind string) gvk {
	return gvk{Group: groupOLM, Version: version, Kind: kind}
}

// Kinds are those of which there can be mirrors. OLMConfig and OperatorCondition are not among them.
func Kinds() []runtimeschema.GroupVersionKind {
	return []runtimeschema.GroupVersionKind{
		GVKCSV, GVKSubscription, GVKInstallPlan, GVKOperatorGroup, GVKOperator,
		GVKCatalogSource,
	}
}

// Object is one object as it is to be.
type Object struct {
	GVK       gvk
	Namespace string // "" for cluster-scoped objects
	Name      string
	Body      map[string]any // JSON values as apimachinery has them, without status
	// Status is what its status is to be; nil leaves it as it is.
	Status map[string]any
	// Events are what happened to it, oldest first.
	Events []Event
	// Owned objects go with the InstalledOperator of the same namespace that OwnedBy names.
	OwnedBy string
}

// newObject has apiVersion, kind and metadata.
func newObject(kind gvk, namespace, name string, labels, annotations map[string]string) Object {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	setStrings(meta, "labels", labels)
	setStrings(meta, "annotations", annotations)
	return Object{GVK: kind, Namespace: namespace, Name: name, Body: map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": meta,
	}}
}

func setStrings(m map[string]any, key string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	out := make(map[string]any, len(values))
	for k, v := range values {
		out[k] = v
	}
	m[key] = out
}

// shown are the labels of a mirror that shows operators of a namespace.
func shown(namespace string) map[string]string {
	return map[string]string{render.LabelManaged: "true", LabelMirror: namespace}
}

// ComponentLabel is the key of the label by which all parts of an operator are found (R-CSV-62), cut as OLM cuts it.
func ComponentLabel(pkg, namespace string) string {
	return groupOLM + "/" + cut(OperatorName(pkg, namespace))
}

// OperatorName is the name of the Operator object of a package in a namespace (R-CSV-62).
func OperatorName(pkg, namespace string) string { return pkg + "." + namespace }

// maxLabel is the length of a label's name and of its value.
const maxLabel = 63

func cut(name string) string {
	if len(name) > maxLabel {
		name = strings.TrimRight(name[:maxLabel], "-._")
	}
	return name
}

// jsonOf makes the JSON values of v: maps, lists, strings, numbers.
func jsonOf(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode")
	}
	var out map[string]any
	if err := unmarshal(raw, &out); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "decode")
	}
	return out, nil
}
