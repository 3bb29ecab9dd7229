package render

import (
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// defaultAccount exists in every namespace and is never written (R-IP-2).
const defaultAccount = "default"

// serviceAccounts renders one account per distinct name in the permissions (R-CSV-20). An account
// that the bundle brings as an object gives its body.
func (r *renderer) serviceAccounts() error {
	bodies, err := r.broughtAccounts()
	if err != nil {
		return err
	}
	s := r.csv.Spec.Install.Spec
	for _, p := range append(slices.Clone(s.Permissions), s.ClusterPermissions...) {
		if p.ServiceAccountName == "" {
			return errs.New(errs.Invalid, "%s: permissions without serviceAccountName", r.csv.Name).At(
				"/spec/install/spec", "R-CSV-20")
		}
		if _, ok := bodies[p.ServiceAccountName]; !ok {
			bodies[p.ServiceAccountName] = map[string]any{}
		}
	}
	delete(bodies, defaultAccount)
	for _, name := range sortedKeys(bodies) {
		body := bodies[name]
		set(child(body, "metadata"), "labels", r.ownerLabels())
		set(child(body, "metadata"), "annotations", r.alongside())
		r.add(gvkServiceAccount, r.in.Namespace, name, body)
	}
	return nil
}

func (r *renderer) broughtAccounts() (map[string]map[string]any, error) {
	others, err := r.in.Content.Others()
	if err != nil {
		return nil, err
	}
	bodies := map[string]map[string]any{}
	for _, o := range others {
		if schema.FromAPIVersionAndKind(o.APIVersion, o.Kind) != gvkServiceAccount {
			continue
		}
		if bodies[o.Name], err = decode(o.Raw); err != nil {
			return nil, err
		}
	}
	return bodies, nil
}

// Permissions are the Roles and RoleBindings of a ClusterServiceVersion's permissions in its own namespace, as
// Render gives them, too (R-CSV-20).
func Permissions(csv bundle.CSV, namespace string) ([]Object, error) {
	r := &renderer{in: Input{Namespace: namespace}, csv: csv}
	err := r.permissions()
	return r.out, err
}

func (r *renderer) permissions() error {
	seen := map[string]bool{}
	for _, p := range r.csv.Spec.Install.Spec.Permissions {
		h, err := rulesHash(r.in.Namespace, r.csv.Name, p)
		if err != nil {
			return err
		}
		name := cutName(r.csv.Name+"-"+p.ServiceAccountName, h)
		if seen[name] {
			continue // the same rules for the same account, written twice
		}
		seen[name] = true
		r.grant(gvkRole, gvkRoleBinding, r.in.Namespace, name, h, p)
	}
	return nil
}

// roles renders the permissions as Roles in the operator's namespace and the cluster permissions as
// ClusterRoles (R-CSV-20). What the permissions come to in the targets of the operator group (R-OG-44)
// follows the cluster and is no step of a plan.
func (r *renderer) roles() error {
	if err := r.permissions(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, p := range r.csv.Spec.Install.Spec.ClusterPermissions {
		h, err := rulesHash("cluster", r.in.Namespace, p, r.csv.Name)
		if err != nil {
			return err
		}
		name := cutName(r.csv.Name, h)
		if seen[name] {
			continue
		}
		seen[name] = true
		r.grant(gvkClusterRole, gvkClusterRoleBinding, "", name, h, p)
	}
	return nil
}

// grant adds a role with its binding to the account in the operator's namespace.
func (r *renderer) grant(role, binding schema.GroupVersionKind, namespace, name, h string, p bundle.Permissions) {
	labels := r.ownerLabels()
	labels[LabelPermissionsHash] = h
	body := map[string]any{"rules": rules(p.Rules)}
	set(child(body, "metadata"), "labels", labels)
	r.add(role, namespace, name, body)
	bound := map[string]any{
		"roleRef": map[string]any{"apiGroup": role.Group, "kind": role.Kind, "name": name},
		"subjects": []any{map[string]any{
			"kind": gvkServiceAccount.Kind, "name": p.ServiceAccountName,
			"namespace": r.in.Namespace,
		}},
	}
	set(child(bound, "metadata"), "labels", labels)
	r.add(binding, namespace, name, bound)
}

// rules returns the rules as JSON values. A rule's fields are only lists of strings.
func rules(in []rbacv1.PolicyRule) []any {
	out := make([]any, 0, len(in))
	for _, p := range in {
		m := map[string]any{"verbs": stringList(p.Verbs)}
		for key, list := range map[string][]string{
			"apiGroups": p.APIGroups, "resources": p.Resources, "resourceNames": p.ResourceNames,
			"nonResourceURLs": p.NonResourceURLs,
		} {
			if len(list) > 0 {
				m[key] = stringList(list)
			}
		}
		out = append(out, m)
	}
	return out
}

func stringList(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

func rulesHash(a, b string, p bundle.Permissions, more ...string) (string, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return "", errs.Wrap(errs.Internal, err, "encode rules of %s", p.ServiceAccountName)
	}
	return hash(nameHashLength, append([]string{a, b, string(raw)}, more...)...), nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
