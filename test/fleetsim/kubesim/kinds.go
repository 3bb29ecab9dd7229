package kubesim

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a kind that is served, with its objects.
type kind struct {
	group      string
	versions   []string // served, the first one is preferred
	plural     string
	kind       string
	namespaced bool
	status     bool // it has the subresource
	*objects
}

func (k *kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.plural}
}

func (k *kind) gvk(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: version, Kind: k.kind}
}

// builtIn are the kinds that every cluster serves: group/version, then kinds, * for those of the cluster and ! for
// those with a status.
var builtIn = map[string]string{
	"/v1": "*Namespace! *Node! Pod! Service! ServiceAccount Secret ConfigMap Event Endpoints " +
		"PersistentVolumeClaim!",
	"apps/v1":                      "Deployment! ReplicaSet! StatefulSet! DaemonSet!",
	"batch/v1":                     "Job! CronJob!",
	"policy/v1":                    "PodDisruptionBudget!",
	"coordination.k8s.io/v1":       "Lease",
	"events.k8s.io/v1":             "Event",
	"discovery.k8s.io/v1":          "EndpointSlice",
	"networking.k8s.io/v1":         "NetworkPolicy Ingress!",
	"scheduling.k8s.io/v1":         "*PriorityClass",
	"storage.k8s.io/v1":            "*StorageClass",
	"rbac.authorization.k8s.io/v1": "Role RoleBinding *ClusterRole *ClusterRoleBinding",
	"apiextensions.k8s.io/v1":      "*CustomResourceDefinition!",
	"apiregistration.k8s.io/v1":    "*APIService!",
	"admissionregistration.k8s.io/v1": "*ValidatingWebhookConfiguration *MutatingWebhookConfiguration " +
		"*ValidatingAdmissionPolicy! *ValidatingAdmissionPolicyBinding",
}

// plurals are those that do not follow the rule.
var plurals = map[string]string{"Endpoints": "endpoints"}

func builtInKinds() []*kind {
	var list []*kind
	for gv, names := range builtIn {
		group, version, _ := strings.Cut(gv, "/")
		for name := range strings.FieldsSeq(names) {
			bare := strings.Trim(name, "*!")
			list = append(list, &kind{
				group: group, versions: []string{version}, plural: pluralOf(bare), kind: bare,
				namespaced: !strings.HasPrefix(name, "*"), status: strings.HasSuffix(name, "!"), objects: newObjects(),
			})
		}
	}
	return list
}

func pluralOf(name string) string {
	lower := strings.ToLower(name)
	switch {
	case plurals[name] != "":
		return plurals[name]
	case strings.HasSuffix(lower, "y"):
		return strings.TrimSuffix(lower, "y") + "ies"
	case strings.HasSuffix(lower, "s"):
		return lower + "es"
	}
	return lower + "s"
}

// define serves what a CustomResourceDefinition defines, and returns its status.
func (c *Cluster) define(crd *unstructured.Unstructured) map[string]any {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	name, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	names, _, _ := unstructured.NestedMap(crd.Object, "spec", "names")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	k := &kind{group: group, plural: plural, kind: name, namespaced: scope == "Namespaced"}
	var stored []any
	for _, v := range versions {
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		version, _ := m["name"].(string)
		if m["served"] == true {
			k.versions = append(k.versions, version)
		}
		if m["storage"] == true {
			stored = append(stored, version)
		}
		if _, has, _ := unstructured.NestedMap(m, "subresources", "status"); has {
			k.status = true
		}
	}
	if was := c.kinds[k.resource()]; was != nil {
		k.objects = was.objects
	} else {
		k.objects = newObjects()
	}
	c.kinds[k.resource()] = k
	now := c.now()
	condition := func(typ, reason string) any {
		return map[string]any{"type": typ, "status": "True", "reason": reason, "lastTransitionTime": now}
	}
	return map[string]any{
		"acceptedNames": names, "storedVersions": stored,
		"conditions": []any{
			condition("NamesAccepted", "NoConflicts"), condition("Established", "InitialNamesAccepted"),
		},
	}
}

// resources is what the discovery of a group and version answers, nil where it is not served.
func (c *Cluster) resources(group, version string) *metav1.APIResourceList {
	verbs := metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: schema.GroupVersion{Group: group, Version: version}.String(),
	}
	for _, k := range c.kinds {
		if k.group != group || !slices.Contains(k.versions, version) {
			continue
		}
		one := metav1.APIResource{Name: k.plural, Kind: k.kind, Namespaced: k.namespaced, Verbs: verbs}
		list.APIResources = append(list.APIResources, one)
		if k.status {
			one.Name, one.Verbs = k.plural+"/status", metav1.Verbs{"get", "patch", "update"}
			list.APIResources = append(list.APIResources, one)
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}

// groups is what the discovery of groups answers.
func (c *Cluster) groups() *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	versions := map[string][]string{}
	for _, k := range c.kinds {
		for _, v := range k.versions {
			if k.group != "" && !slices.Contains(versions[k.group], v) {
				versions[k.group] = append(versions[k.group], v)
			}
		}
	}
	for group, served := range versions {
		g := metav1.APIGroup{Name: group}
		for _, v := range served {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v, Version: v})
		}
		g.PreferredVersion = g.Versions[0]
		list.Groups = append(list.Groups, g)
	}
	return list
}
