package allowance_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/allowance"
	"github.com/chandler-fleet/chandler/libs/render"
)

func bound(kind, role string, subjects ...map[string]any) render.Object {
	list := make([]any, len(subjects))
	for i, s := range subjects {
		list[i] = s
	}
	return render.Object{
		GVK:  schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind},
		Name: "tide", Body: map[string]any{
			"roleRef": map[string]any{"kind": "ClusterRole", "name": role}, "subjects": list,
		},
	}
}

func aggregated(chosen map[string]any) render.Object {
	o := bound("ClusterRole", "")
	o.Body = map[string]any{"aggregationRule": map[string]any{
		"clusterRoleSelectors": []any{map[string]any{"matchLabels": chosen}},
	}}
	return o
}

func hook(gvk schema.GroupVersionKind, groups ...any) render.Object {
	return render.Object{GVK: gvk, Name: "tide", Body: map[string]any{"webhooks": []any{map[string]any{
		"name": "v.sea.test", "rules": []any{map[string]any{
			"apiGroups": groups, "apiVersions": []any{"*"}, "operations": []any{"*"}, "resources": []any{"*"},
		}},
	}}}}
}

// TestNeeded: what gives a cluster away, or lets it be stopped, needs an administrator's word; what operators need does
// not (DESIGN D10).
func TestNeeded(t *testing.T) {
	t.Parallel()
	sa := map[string]any{"kind": "ServiceAccount", "namespace": "sea", "name": "tide"}
	group := func(n string) map[string]any { return map[string]any{"kind": "Group", "name": n} }
	const crb = "ClusterRoleBinding"
	for name, c := range map[string]struct {
		object render.Object
		says   string // "" is nothing
	}{
		"its own account":           {bound(crb, "tide", sa), ""},
		"accounts of one namespace": {bound(crb, "tide", group("system:serviceaccounts:sea")), ""},
		"who has a name":            {bound(crb, "tide", sa, group("system:authenticated")), "everybody"},
		"who has none":              {bound("RoleBinding", "tide", group("system:unauthenticated")), "everybody"},
		"every account":             {bound(crb, "tide", group("system:serviceaccounts")), "everybody"},
		"the user of nobody": {
			bound(crb, "tide", map[string]any{"kind": "User", "name": "system:anonymous"}), "everybody",
		},
		"cluster-admin":                          {bound(crb, "cluster-admin", sa), "to ServiceAccount sea/tide"},
		"cluster-admin in one place":             {bound("RoleBinding", "cluster-admin", sa), "may do everything"},
		"cluster-admin of nobody":                {bound(crb, "cluster-admin"), "nobody yet"},
		"a role that is put together of its own": {aggregated(map[string]any{"sea": "tide"}), ""},
		"a role that is put together of all":     {aggregated(map[string]any{}), "may do everything"},
		"a role of what every cluster has": {
			aggregated(map[string]any{"kubernetes.io/bootstrapping": "rbac-defaults"}), "may do everything",
		},
		"a binding of another form": {
			render.Object{GVK: bound(crb, "").GVK, Name: "tide", Body: map[string]any{"subjects": "all"}},
			"cannot be read",
		},
		"a webhook on pods":       {hook(render.GVKMutatingWebhook, "", "apps"), ""},
		"a webhook on roles":      {hook(render.GVKMutatingWebhook, "rbac.authorization.k8s.io"), "rest"},
		"a webhook on leases":     {hook(render.GVKValidatingWebhook, "apps", "coordination.k8s.io"), "rest"},
		"a webhook on everything": {hook(render.GVKValidatingWebhook, "*"), "rest"},
		"a webhook of another form": {
			render.Object{GVK: render.GVKMutatingWebhook, Body: map[string]any{"webhooks": "x"}}, "cannot be read",
		},
	} {
		got := allowance.Needed([]render.Object{c.object})
		if len(got) != min(1, len(c.says)) || len(got) > 0 && !strings.Contains(got[0], c.says) {
			t.Errorf("%s: got %q, want %q", name, got, c.says)
		}
	}
}

// TestFinding: an allowance holds for one bundle by its digest, and for exactly what was shown.
func TestFinding(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, c := range [][]string{
		{"tide.v1", "sha256:a", "x"},
		{"tide.v2", "sha256:a", "x"},
		{"tide.v1", "sha256:b", "x"},
		{"tide.v1", "sha256:a", "x", "y"},
	} {
		d, err := allowance.Finding(c[0], c[1], c[2:])
		if err != nil || seen[d] != "" {
			t.Errorf("%q has the finding of %s (%v)", c, seen[d], err)
		}
		seen[d] = strings.Join(c, " ")
	}
}
