package permissions

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Held are the RBAC rules that an account has: in the whole cluster, and in single namespaces beside.
type Held struct {
	Cluster    []rbacv1.PolicyRule
	Namespaces map[string][]rbacv1.PolicyRule
}

// In returns the rules that hold in a namespace; "" is the whole cluster.
func (h Held) In(namespace string) []rbacv1.PolicyRule {
	if namespace == "" {
		return h.Cluster
	}
	return append(slices.Clone(h.Cluster), h.Namespaces[namespace]...)
}

// Lacks returns what of rules is not held in a namespace, each with one verb, group, resource and name.
func (h Held) Lacks(namespace string, rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	_, missing := validation.Covers(h.In(namespace), rules)
	return missing
}

// Subject is an account with the groups that it is in.
type Subject struct {
	Namespace, Name string
	User            string
	Groups          []string
}

// Matches reports whether a binding is about the subject; namespace is the binding's own, "" of a ClusterRoleBinding.
func (s Subject) Matches(namespace string, subjects []rbacv1.Subject) bool {
	return slices.ContainsFunc(subjects, func(b rbacv1.Subject) bool {
		switch b.Kind {
		case rbacv1.UserKind:
			return b.Name == s.User
		case rbacv1.GroupKind:
			return slices.Contains(s.Groups, b.Name)
		case rbacv1.ServiceAccountKind:
			of := namespace
			if b.Namespace != "" {
				of = b.Namespace
			}
			return b.Name == s.Name && of == s.Namespace
		}
		return false
	})
}
