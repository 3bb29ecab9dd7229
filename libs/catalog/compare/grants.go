package compare

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// defaultAccount exists in every namespace; pods that name none have it.
const defaultAccount = "default"

// suggestedNamespace is where the author of a bundle wants it to be installed.
const suggestedNamespace = "operatorframework.io/suggested-namespace"

// aggregateTo is by which a ClusterRole's rules become those of another one, as Kubernetes itself has it for admin,
// edit and view.
const aggregateTo = "aggregate-to-"

// scopedRule is one rule with where it holds and who has it; or a role that the bundle does not bring, whose rules are
// not known. Which of its own accounts an operator uses is left out: what counts is what it can do.
type scopedRule struct {
	scope, holder, role string
	rule                rbacv1.PolicyRule
}

// knownRoles are Kubernetes' own ones whose rules no cluster changes for good: the API server restores them.
var knownRoles = map[string][]rbacv1.PolicyRule{
	"ClusterRole/cluster-admin": {
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
	},
	"ClusterRole/system:auth-delegator": {
		{Verbs: []string{"create"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}},
		{
			Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"},
			Resources: []string{"subjectaccessreviews"},
		},
	},
}

// granter gathers who may do what by a bundle.
type granter struct {
	*demands
	accounts   map[string]bool   // of the operator: brought, or given rights
	namespaces map[string]bool   // where its author thinks that it is
	groups     map[string]bool   // of the definitions that it brings
	roles      map[string][]role // by Kind/name
	bound      map[string]bool   // roles that a binding names
	rules      []scopedRule
}

// role is one that the bundle brings.
type role struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Rules           []rbacv1.PolicyRule `json:"rules"`
	AggregationRule any                 `json:"aggregationRule"`
	object          bundle.Object
}

type binding struct {
	RoleRef  rbacv1.RoleRef   `json:"roleRef"`
	Subjects []rbacv1.Subject `json:"subjects"`
}

// grants reads the roles and bindings of a bundle, and what its CSV gives.
func (g *granter) grants(csv *bundle.CSV, objects []bundle.Object) error {
	if csv != nil {
		g.permissions(ScopeCluster, csv.Spec.Install.Spec.ClusterPermissions)
		g.permissions(ScopeNamespace, csv.Spec.Install.Spec.Permissions)
	}
	g.roles, g.bound = map[string][]role{}, map[string]bool{}
	for _, o := range objects {
		if o.Kind != "ClusterRole" && o.Kind != "Role" {
			continue
		}
		r := role{object: o}
		if err := manifest(o, &r); err != nil {
			return err
		}
		g.roles[o.Kind+"/"+o.Name] = append(g.roles[o.Kind+"/"+o.Name], r)
	}
	for _, o := range objects {
		if o.Kind != "ClusterRoleBinding" && o.Kind != "RoleBinding" {
			continue
		}
		var b binding
		if err := manifest(o, &b); err != nil {
			return err
		}
		g.bind(o, b)
	}
	for _, key := range slices.Sorted(maps.Keys(g.roles)) {
		for _, r := range g.roles[key] {
			g.unbound(key, r)
		}
	}
	return nil
}

func (g *granter) permissions(scope string, all []bundle.Permissions) {
	for _, p := range all {
		for _, r := range p.Rules {
			g.rules = append(g.rules, scopedRule{scope: scope, rule: r})
		}
	}
}

// bind adds what a binding gives each of its subjects.
func (g *granter) bind(o bundle.Object, b binding) {
	scope := ScopeNamespace
	if o.Kind == "ClusterRoleBinding" {
		scope = ScopeCluster
	}
	key := b.RoleRef.Kind + "/" + b.RoleRef.Name
	g.bound[key] = g.bound[key] || len(b.Subjects) > 0
	holders := make([]string, 0, len(b.Subjects))
	for _, s := range b.Subjects {
		holders = append(holders, g.holder(s))
	}
	slices.Sort(holders)
	for _, h := range slices.Compact(holders) {
		g.give(scope, h, key)
	}
}

// give gives the rules of a role. Those of one that the bundle does not bring, or that is put together in the cluster,
// are not known.
func (g *granter) give(scope, holder, key string) {
	rules, known := knownRoles[key]
	for _, r := range g.roles[key] {
		known = known || r.AggregationRule == nil
		rules = append(slices.Clip(rules), r.Rules...)
		if r.AggregationRule != nil {
			g.rules = append(g.rules, scopedRule{
				scope: scope, holder: holder, role: key + " aggregated by " + compact(r.AggregationRule),
			})
		}
	}
	if !known && len(g.roles[key]) == 0 {
		g.rules = append(g.rules, scopedRule{scope: scope, holder: holder, role: key})
	}
	for _, r := range rules {
		g.rules = append(g.rules, scopedRule{scope: scope, holder: holder, rule: r})
	}
}

// holder is who a subject is: "" is the operator. An account of its name elsewhere is somebody else.
func (g *granter) holder(s rbacv1.Subject) string {
	if s.Kind != rbacv1.ServiceAccountKind {
		return s.Kind + " " + s.Name
	}
	if g.accounts[s.Name] && (s.Namespace == "" || g.namespaces[s.Namespace] && s.Name != defaultAccount) {
		return ""
	}
	return s.Kind + " " + s.Namespace + "/" + s.Name
}

// unbound adds what a role of the bundle gives beside its bindings: to those who have it by bindings of others, or a
// role into which it is aggregated.
func (g *granter) unbound(key string, r role) {
	if name := r.object.Name; r.object.Kind == "ClusterRole" && builtin(name) {
		g.add(BuiltinRole, r.object.String(), "")
	}
	named := g.bound[key]
	for label, value := range r.Metadata.Labels {
		_, to, ok := strings.Cut(label, aggregateTo)
		switch {
		case ok && value == "true":
			named = true
			g.spread(ScopeCluster, "ClusterRole "+to, key, r)
		case !descriptive(label):
			// Somebody's aggregation rule may choose by it: to whom the rules then go is not known.
			g.add(Unknown, r.object.String(), "label "+label+"="+value+" may add its rules to another role")
		}
	}
	if !named {
		g.spread(ScopeCluster, strings.Replace(key, "/", " ", 1), key, r)
	}
}

// spread adds the rules of a role for those who have another one. What these may do with the operator's own resources
// is left out as far as Chandler gives it to them anyway (R-OG-42), or as nobody has it yet.
func (g *granter) spread(scope, holder, key string, r role) {
	if r.AggregationRule != nil {
		g.give(scope, holder, key)
		return
	}
	for _, rule := range r.Rules {
		if len(rule.APIGroups) > 0 && len(rule.NonResourceURLs) == 0 &&
			!slices.ContainsFunc(rule.APIGroups, func(s string) bool { return !g.groups[s] }) && usual(holder, rule) {
			continue
		}
		g.rules = append(g.rules, scopedRule{scope: scope, holder: holder, rule: rule})
	}
}

// usual reports verbs that holders of Kubernetes' roles for users have on what operators provide.
func usual(holder string, rule rbacv1.PolicyRule) bool {
	allowed := map[string][]string{
		"ClusterRole view": {"get", "list", "watch"},
		"ClusterRole edit": {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
	}[holder]
	return allowed == nil ||
		!slices.ContainsFunc(rule.Verbs, func(v string) bool { return !slices.Contains(allowed, v) })
}

// builtin reports names of roles that clusters have of themselves, and that bindings of others name.
func builtin(name string) bool {
	return strings.HasPrefix(name, "system:") || words("cluster-admin admin edit view")[name]
}

// descriptive reports labels by which people and tools tell objects apart.
func descriptive(label string) bool {
	prefix, _, prefixed := strings.Cut(label, "/")
	if !prefixed {
		return strings.HasPrefix(label, "olm.") ||
			words("app name component control-plane release chart heritage version")[label]
	}
	return words("app.kubernetes.io helm.sh operators.coreos.com kustomize.toolkit.fluxcd.io")[prefix]
}
