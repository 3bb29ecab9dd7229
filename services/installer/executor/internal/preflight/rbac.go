package preflight

import (
	"context"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

func rbacKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: rbacv1.GroupName, Version: "v1", Kind: kind}
}

// roles reads each role of the cluster once.
type roles struct {
	cluster *kube.Epoch
	rules   map[permissions.Role][]rbacv1.PolicyRule
	read    map[permissions.Role]bool // whether it exists
}

func newRoles(c *kube.Epoch) *roles {
	return &roles{cluster: c, rules: map[permissions.Role][]rbacv1.PolicyRule{}, read: map[permissions.Role]bool{}}
}

// role returns the rules of a role; ok is false where it does not exist. Aggregated rules are in it: the cluster's
// controller writes them there.
func (r *roles) role(ctx context.Context, ref permissions.Role) (rules []rbacv1.PolicyRule, ok bool, err error) {
	if exists, read := r.read[ref]; read {
		return r.rules[ref], exists, nil
	}
	kind := "Role"
	if ref.Namespace == "" {
		kind = "ClusterRole"
	}
	o, err := r.cluster.Get(ctx, rbacKind(kind), ref.Namespace, ref.Name)
	if err != nil {
		return nil, false, err
	}
	r.read[ref] = o != nil
	if o == nil {
		return nil, false, nil
	}
	var found rbacv1.ClusterRole // a Role has its rules in the same place
	if err := decode(o, &found); err != nil {
		return nil, false, err
	}
	r.rules[ref] = found.Rules
	return found.Rules, true, nil
}

func (r *roles) all(ctx context.Context, refs []permissions.Role) (map[permissions.Role][]rbacv1.PolicyRule, error) {
	out := map[permissions.Role][]rbacv1.PolicyRule{}
	for _, ref := range refs {
		rules, ok, err := r.role(ctx, ref)
		if err != nil {
			return nil, err
		}
		if ok {
			out[ref] = rules
		}
	}
	return out, nil
}

// held finds what RBAC gives an account in the cluster and in some namespaces, as the API server finds it.
func (r *roles) held(ctx context.Context, a kube.Account, namespaces []string) (permissions.Held, error) {
	who := permissions.Subject{Namespace: a.Namespace, Name: a.Name, User: a.User(), Groups: a.Groups()}
	out := permissions.Held{Namespaces: map[string][]rbacv1.PolicyRule{}}
	var err error
	if out.Cluster, err = r.bound(ctx, who, "ClusterRoleBinding", ""); err != nil {
		return out, err
	}
	for _, ns := range slices.Compact(slices.Sorted(slices.Values(namespaces))) {
		if ns == "" {
			continue
		}
		if out.Namespaces[ns], err = r.bound(ctx, who, "RoleBinding", ns); err != nil {
			return out, err
		}
	}
	return out, nil
}

// bound gathers the rules that the bindings of a namespace, or of the cluster, give a subject.
func (r *roles) bound(ctx context.Context, who permissions.Subject, kind, namespace string) (
	[]rbacv1.PolicyRule, error,
) {
	list, err := r.cluster.List(ctx, rbacKind(kind), namespace, "")
	if err != nil {
		return nil, err
	}
	var out []rbacv1.PolicyRule
	for i := range list {
		var b rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
		if err := decode(&list[i], &b); err != nil {
			return nil, err
		}
		if !who.Matches(namespace, b.Subjects) {
			continue
		}
		ref := permissions.Role{Name: b.RoleRef.Name}
		if b.RoleRef.Kind == "Role" {
			ref.Namespace = namespace
		}
		rules, _, err := r.role(ctx, ref) // one that does not exist gives nothing
		if err != nil {
			return nil, err
		}
		out = append(out, rules...)
	}
	return out, nil
}

func decode(o *unstructured.Unstructured, into any) error {
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
	return errs.Wrap(errs.Internal, err, "read %s %s", o.GetKind(), o.GetName())
}

// ask returns the accesses that the API server allows an account although RBAC does not say so.
func ask(ctx context.Context, c *kube.Epoch, a kube.Account, unknown []permissions.Access) (
	map[permissions.Access]bool, error,
) {
	allowed := map[permissions.Access]bool{}
	for _, u := range unknown[:min(len(unknown), maxAsked)] {
		ok, err := c.Allowed(ctx, a, authorizationv1.ResourceAttributes{
			Verb: u.Verb, Group: u.Group, Resource: u.Resource, Name: u.Name, Namespace: u.Namespace,
		})
		if err != nil {
			return nil, err
		}
		if ok {
			allowed[u] = true
		}
	}
	return allowed, nil
}
