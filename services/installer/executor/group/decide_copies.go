package group

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/render"
)

// CopiedRoles are the rights that a member has in its own namespace, as they are to be in the targets of its group
// (R-OG-44): copies of its Roles and RoleBindings in each served namespace, or, where the group is global, ClusterRoles
// and ClusterRoleBindings under the same names. own are those of its permissions, as render.Permissions gives them;
// their labels name the member, so that the removal of an operator finds what was carried, too (R-OG-45).
func CopiedRoles(own []render.Object, served []string, global bool) []render.Object {
	var out []render.Object
	for _, o := range own {
		if global {
			out = append(out, toClusterScope(mark(o)))
			continue
		}
		for _, ns := range served {
			c := mark(o)
			c.Namespace = ns
			metaOf(c)["namespace"] = ns
			out = append(out, c)
		}
	}
	return out
}

// mark clones an object and labels it as one that is kept for a group.
func mark(o render.Object) render.Object {
	o = o.Clone()
	labels, ok := metaOf(o)["labels"].(map[string]any)
	if !ok {
		labels = map[string]any{}
		metaOf(o)["labels"] = labels
	}
	labels[LabelPart] = PartTarget
	return o
}

// toClusterScope makes of a Role or RoleBinding its like for the whole cluster. Who watches all namespaces needs to see
// which there are.
func toClusterScope(o render.Object) render.Object {
	delete(metaOf(o), "namespace")
	o.Namespace = ""
	if rules, ok := o.Body["rules"].([]any); ok {
		o.GVK = gvkClusterRole
		o.Body["rules"] = append(slices.Clone(rules), map[string]any{
			"apiGroups": []any{""}, "resources": []any{"namespaces"}, "verbs": []any{"get", "list", "watch"},
		})
	} else {
		o.GVK = gvkClusterRoleBinding
		if ref, ok := o.Body["roleRef"].(map[string]any); ok {
			ref["kind"] = gvkClusterRole.Kind
		}
	}
	o.Body["kind"] = o.GVK.Kind
	return o
}

func metaOf(o render.Object) map[string]any {
	meta, ok := o.Body["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		o.Body["metadata"] = meta
	}
	return meta
}
