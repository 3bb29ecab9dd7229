package group

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/installer/executor/scope"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/render"
)

// LabelPart marks what is kept for operator groups and is no step of a plan; its value says which part it is.
const LabelPart = "chandler-fleet.io/operatorgroup-part"

// Parts.
const (
	PartGroup  = "group"  // aggregating roles of one group (R-OG-40)
	PartAPI    = "api"    // roles of one API, whoever provides it (R-OG-42)
	PartTarget = "target" // rights of a member in the targets (R-OG-44)
)

// AnnotationAPI names the API of a role of PartAPI.
const AnnotationAPI = "chandler-fleet.io/api"

const (
	aggregatePrefix = "olm.opgroup.permissions/aggregate-to-"
	rbacPrefix      = "rbac.authorization.k8s.io/aggregate-to-"
	// maxName is what the API server takes for the name of a role.
	maxName = 253
)

// levels of rights with their verbs (R-OG-42).
var levels = []struct {
	name  string
	verbs []any
}{
	{"admin", []any{"*"}},
	{"edit", []any{"create", "update", "patch", "delete"}},
	{"view", []any{"get", "list", "watch"}},
}

// view is the level that may read.
const view = "view"

var (
	gvkClusterRole = schema.GroupVersionKind{
		Group: "rbac.authorization.k8s.io", Version: "v1",
		Kind: "ClusterRole",
	}
	gvkClusterRoleBinding = schema.GroupVersionKind{
		Group: "rbac.authorization.k8s.io", Version: "v1",
		Kind: "ClusterRoleBinding",
	}
)

// Roles are the three roles of a group (R-OG-40): each aggregates the roles of the APIs that the group provides
// (R-OG-41). While it provides none they grant nothing.
func Roles(g operatorgroup.Group, provided []string) []render.Object {
	out := make([]render.Object, 0, len(levels))
	for _, l := range levels {
		body := map[string]any{"rules": []any{}}
		if len(provided) > 0 {
			selectors := make([]any, len(provided))
			for i, api := range provided {
				selectors[i] = map[string]any{"matchLabels": map[string]any{aggregateLabel(api, l.name): "true"}}
			}
			// The rules are then the cluster's to fill in.
			body = map[string]any{"aggregationRule": map[string]any{"clusterRoleSelectors": selectors}}
		}
		out = append(out, clusterRole(RoleName(g, l.name), body, map[string]any{
			render.LabelManaged: "true", LabelPart: PartGroup, render.LabelOwnerKind: "OperatorGroup",
			render.LabelOwner: render.OwnerLabelValue(g.Name), render.LabelOwnerNamespace: g.Namespace,
		}, nil))
	}
	return out
}

// RoleName is olm.og.<group>.<level>-<hash>: users search it by the group's name, the hash tells apart groups of
// the same name in two namespaces.
func RoleName(g operatorgroup.Group, level string) string {
	return limited("olm.og."+g.Name+"."+level, digest.Bytes([]byte(g.Namespace+"/"+g.Name+"/"+level)).Short())
}

// RoleNames are the names of the roles of a group.
func RoleNames(g operatorgroup.Group) []string {
	out := make([]string, len(levels))
	for i, l := range levels {
		out[i] = RoleName(g, l.name)
	}
	return out
}

// RolesOf are the roles of those APIs that are claimed. Of an API of Kubernetes, OLM or Chandler itself there are none,
// whoever says that it provides it: they would give the users of every namespace rights to it.
func RolesOf(apis []operatorgroup.API, claimed []string) []render.Object {
	var out []render.Object
	for _, a := range apis {
		if slices.Contains(claimed, a.String()) && !bundle.Reserved(a.Group) {
			out = append(out, APIRoles(a)...)
		}
	}
	return out
}

// APIRoles are the roles of one API (R-OG-42): admin, edit and view, which also extend the cluster's roles of
// these names (R-OG-43), and the right to read the definition itself.
func APIRoles(a operatorgroup.API) []render.Object {
	prefix := a.CRDName() + "-" + a.Version + "-"
	out := make([]render.Object, 0, len(levels)+1)
	for _, l := range levels {
		rule := map[string]any{"apiGroups": []any{a.Group}, "resources": []any{a.Resource}, "verbs": l.verbs}
		out = append(out, apiRole(a, prefix+l.name, l.name, rule))
	}
	if !a.CRD {
		return out
	}
	return append(out, apiRole(a, prefix+"crdview", view, map[string]any{
		"apiGroups": []any{"apiextensions.k8s.io"}, "resources": []any{"customresourcedefinitions"},
		"resourceNames": []any{a.CRDName()}, "verbs": []any{"get"},
	}))
}

func apiRole(a operatorgroup.API, name, level string, rule map[string]any) render.Object {
	short := digest.Bytes([]byte(name)).Short()
	if len(name) > maxName {
		name = limited(name, short)
	}
	return clusterRole(name, map[string]any{"rules": []any{rule}}, map[string]any{
		render.LabelManaged: "true", LabelPart: PartAPI, rbacPrefix + level: "true",
		aggregateLabel(a.String(), level): "true",
	}, map[string]any{AnnotationAPI: a.String()})
}

// aggregateLabel is the label by which the roles of an API are found: one for each API and level.
func aggregateLabel(api, level string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(api)) // a hash takes everything
	return fmt.Sprintf("%s%x-%s", aggregatePrefix, h.Sum64(), level)
}

func clusterRole(name string, body, labels, annotations map[string]any) render.Object {
	meta := map[string]any{"name": name, "labels": labels}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	body["apiVersion"], body["kind"], body["metadata"] = gvkClusterRole.GroupVersion().String(), gvkClusterRole.Kind,
		meta
	return render.Object{GVK: gvkClusterRole, Name: name, Body: body}
}

// limited is base-hash in at most maxName characters.
func limited(base, hash string) string {
	if room := maxName - len(hash) - 1; len(base) > room {
		base = strings.TrimRight(base[:room], "-.")
	}
	return base + "-" + hash
}

// LabelID is the id of the group that a label of a namespace stands for.
func LabelID(label string) (id string, ok bool) {
	return strings.CutPrefix(label, scope.LabelNamespacePrefix)
}

// APISelectors choose the roles of one API, whichever group of roles they extend.
func APISelectors(api string) []string {
	out := make([]string, len(levels))
	for i, l := range levels {
		out[i] = LabelPart + "=" + PartAPI + "," + aggregateLabel(api, l.name) + "=true"
	}
	return out
}
