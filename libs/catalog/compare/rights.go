package compare

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Where a right holds.
const (
	ScopeCluster   = "Cluster"
	ScopeNamespace = "Namespace" // each target namespace of the operator group
)

// Right is what an operator may do with one resource.
type Right struct {
	Scope    string   `json:"scope"`
	Group    string   `json:"group,omitempty"`
	Resource string   `json:"resource,omitempty"`
	Name     string   `json:"name,omitempty"` // "" is every name
	URL      string   `json:"url,omitempty"`  // a path that is no resource
	Verbs    []string `json:"verbs"`
	// Sensitive says why somebody should look twice; "" where there is no such reason.
	Sensitive string `json:"sensitive,omitempty"`
}

// Reasons to look twice at a right.
const (
	Everything       = "Everything"       // all verbs on all resources
	EscalatesRights  = "EscalatesRights"  // can give itself or others more rights
	ReadsSecrets     = "ReadsSecrets"     // sees credentials
	RunsInPods       = "RunsInPods"       // runs programs in containers of others
	ChangesAdmission = "ChangesAdmission" // sees and changes what others write
)

// scopedRule is one rule with where it holds. Accounts are left out: what counts is what the operator can do.
type scopedRule struct {
	scope string
	rule  rbacv1.PolicyRule
}

// rulesOf gathers the rules that a bundle gives its operator: of the CSV, and of roles that it brings and binds.
func rulesOf(c bundle.Content, objects []bundle.Object) ([]scopedRule, error) {
	var out []scopedRule
	if slices.ContainsFunc(objects, func(o bundle.Object) bool { return o.Kind == bundle.KindCSV }) {
		csv, err := c.CSV()
		if err != nil {
			return nil, err
		}
		out = append(out, permissions(ScopeCluster, csv.Spec.Install.Spec.ClusterPermissions)...)
		out = append(out, permissions(ScopeNamespace, csv.Spec.Install.Spec.Permissions)...)
	}
	roles := map[string][]rbacv1.PolicyRule{}
	for _, o := range objects {
		if o.Kind != "ClusterRole" && o.Kind != "Role" {
			continue
		}
		var r struct {
			Rules []rbacv1.PolicyRule `json:"rules"`
		}
		if err := json.Unmarshal(o.Raw, &r); err != nil {
			return nil, errs.New(errs.Invalid, "%s cannot be read: %v", o, err).At("/rules", "R-CAT-53")
		}
		roles[o.Kind+"/"+o.Name] = r.Rules
	}
	for _, o := range objects {
		scope := map[string]string{"ClusterRoleBinding": ScopeCluster, "RoleBinding": ScopeNamespace}[o.Kind]
		if scope == "" {
			continue
		}
		var b struct {
			RoleRef rbacv1.RoleRef `json:"roleRef"`
		}
		if err := json.Unmarshal(o.Raw, &b); err != nil {
			return nil, errs.New(errs.Invalid, "%s cannot be read: %v", o, err).At("/roleRef", "R-CAT-53")
		}
		for _, r := range roles[b.RoleRef.Kind+"/"+b.RoleRef.Name] {
			out = append(out, scopedRule{scope, r})
		}
	}
	return out, nil
}

func permissions(scope string, all []bundle.Permissions) []scopedRule {
	var out []scopedRule
	for _, p := range all {
		for _, r := range p.Rules {
			out = append(out, scopedRule{scope, r})
		}
	}
	return out
}

// atom is one right of one verb.
type atom struct{ scope, group, resource, name, url, verb string }

// gained returns what rules allow that others did not, verbs of one resource together, sorted.
func gained(others, rules []scopedRule) []Right {
	byPlace := map[atom][]string{}
	left := MaxRights
	for _, r := range rules {
		if slices.ContainsFunc(others, func(o scopedRule) bool { return same(o, r) }) {
			continue
		}
		for _, a := range r.atoms(&left) {
			if slices.ContainsFunc(others, func(o scopedRule) bool { return o.covers(a) }) {
				continue
			}
			verb := a.verb
			a.verb = ""
			byPlace[a] = append(byPlace[a], verb)
		}
	}
	out := make([]Right, 0, len(byPlace))
	for a, verbs := range byPlace {
		slices.Sort(verbs)
		r := Right{
			Scope: a.scope, Group: a.group, Resource: a.resource, Name: a.name, URL: a.url,
			Verbs: slices.Compact(verbs),
		}
		r.Sensitive = r.sensitive()
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Right) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.URL, b.URL))
	})
	if len(out) == 0 {
		return nil
	}
	return out
}

func same(a, b scopedRule) bool {
	return a.scope == b.scope && slices.Equal(a.rule.Verbs, b.rule.Verbs) &&
		slices.Equal(a.rule.APIGroups, b.rule.APIGroups) &&
		slices.Equal(a.rule.Resources, b.rule.Resources) && slices.Equal(a.rule.ResourceNames, b.rule.ResourceNames) &&
		slices.Equal(a.rule.NonResourceURLs, b.rule.NonResourceURLs)
}

// atoms takes a rule apart. Past the bound a rule counts as everything that it could be: a hostile one
// must look worse, never harmless.
func (r scopedRule) atoms(left *int) []atom {
	names := r.rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	n := len(r.rule.Verbs) * (len(r.rule.APIGroups)*len(r.rule.Resources)*len(names) + len(r.rule.NonResourceURLs))
	if n > *left {
		return []atom{{scope: r.scope, group: "*", resource: "*", verb: "*"}}
	}
	*left -= n
	out := make([]atom, 0, n)
	for _, verb := range r.rule.Verbs {
		for _, g := range r.rule.APIGroups {
			for _, res := range r.rule.Resources {
				for _, name := range names {
					out = append(out, atom{scope: r.scope, group: g, resource: res, name: name, verb: verb})
				}
			}
		}
		for _, u := range r.rule.NonResourceURLs {
			out = append(out, atom{scope: r.scope, url: u, verb: verb})
		}
	}
	return out
}

// covers reports whether a rule allows what an atom asks, with the wildcards of RBAC. A right in the
// whole cluster holds in every namespace, too.
func (r scopedRule) covers(a atom) bool {
	if r.scope != a.scope && r.scope != ScopeCluster || !has(r.rule.Verbs, a.verb) {
		return false
	}
	if a.url != "" {
		return slices.ContainsFunc(r.rule.NonResourceURLs, func(u string) bool {
			prefix, wild := strings.CutSuffix(u, "*")
			return u == a.url || wild && strings.HasPrefix(a.url, prefix)
		})
	}
	if !has(r.rule.APIGroups, a.group) || len(r.rule.ResourceNames) > 0 &&
		!slices.Contains(r.rule.ResourceNames, a.name) {
		return false
	}
	return has(r.rule.Resources, a.resource) || subresource(r.rule.Resources, a.resource)
}

func has(list []string, want string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, want)
}

// subresource: "*/scale" is the scale of everything.
func subresource(list []string, want string) bool {
	_, sub, ok := strings.Cut(want, "/")
	return ok && slices.Contains(list, "*/"+sub)
}

// sensitive says why a right deserves a second look.
func (r Right) sensitive() string {
	may := func(list []string, verbs ...string) bool {
		return slices.ContainsFunc(verbs, func(v string) bool { return has(list, v) })
	}
	in := func(group string, resources ...string) bool {
		return (r.Group == "*" || r.Group == group) && (r.Resource == "*" || slices.Contains(resources, r.Resource))
	}
	writes := may(r.Verbs, "create", "update", "patch")
	switch {
	case r.URL != "":
		return ""
	case r.Group == "*" && r.Resource == "*" && has(r.Verbs, "*"):
		return Everything
	case may(r.Verbs, "escalate", "bind") && in(rbacv1.GroupName, "roles", "clusterroles"),
		in("", "users", "groups", "serviceaccounts") && may(r.Verbs, "impersonate"):
		return EscalatesRights
	case writes && in(rbacv1.GroupName, "roles", "clusterroles", "rolebindings", "clusterrolebindings"),
		in("", "serviceaccounts/token") && may(r.Verbs, "create"):
		return EscalatesRights
	case in("", "secrets") && may(r.Verbs, "get", "list", "watch"):
		return ReadsSecrets
	case in("", "pods/exec", "pods/attach", "pods/ephemeralcontainers", "nodes/proxy") &&
		may(r.Verbs, "create", "get", "update", "patch"):
		return RunsInPods
	case writes && in("admissionregistration.k8s.io", "mutatingwebhookconfigurations",
		"validatingwebhookconfigurations", "mutatingadmissionpolicies", "validatingadmissionpolicies"):
		return ChangesAdmission
	default:
		return ""
	}
}
