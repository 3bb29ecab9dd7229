package permissions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
)

const (
	// MaxMissing bounds what is listed; the rest is counted.
	MaxMissing = 500
	// MaxRules bounds the number of single rules (one verb, group and resource) of one role: real roles have at most
	// 2,000.
	MaxRules = 50_000
)

// Kinds of roles and bindings.
const (
	kindRole               = "Role"
	kindClusterRole        = "ClusterRole"
	kindRoleBinding        = "RoleBinding"
	kindClusterRoleBinding = "ClusterRoleBinding"
)

// Role names a Role, or with no namespace a ClusterRole.
type Role struct{ Namespace, Name string }

// Plan is what is written through an account.
type Plan struct {
	// Objects are those of the plan that are written through the account, in order.
	Objects []render.Object
	// Targets are the namespaces that the operator group serves; "" among them is the whole cluster.
	Targets []string
	// Roles are the rules of roles that the plan binds and does not bring. One that does not exist is absent.
	Roles map[Role][]rbacv1.PolicyRule
}

// References returns the roles that the plan binds and does not bring, sorted.
func (p Plan) References() ([]Role, error) {
	brought, err := p.bundledRoles()
	if err != nil {
		return nil, err
	}
	seen := map[Role]bool{}
	for _, o := range p.Objects {
		ref, ok, err := reference(o)
		if err != nil {
			return nil, err
		}
		if _, own := brought[ref]; ok && !own {
			seen[ref] = true
		}
	}
	out := make([]Role, 0, len(seen))
	for r := range seen {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Role) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Access is one thing that an authorizer allows or not. It is a map key.
type Access struct{ Verb, Group, Resource, Name, Namespace string }

func (a Access) rule() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		Verbs: []string{a.Verb}, APIGroups: []string{a.Group}, Resources: []string{a.Resource},
		ResourceNames: []string{a.Name},
	}}
}

// Result is what an account lacks.
type Result struct {
	Missing []protocol.MissingPermission // sorted, each once
	More    int                          // not listed
	// Unknown are the accesses that RBAC does not allow and another authorizer might: ask it, and call Missing again
	// with those that it allows.
	Unknown []Access
}

// Missing compares a plan with what the account user holds; allowed are accesses known to be allowed whatever RBAC
// says.
//
//	an object is written                     → create and patch on it (R-OG-65)
//	a Role or ClusterRole is written         → every rule of it is held where it is, or "escalate" on it is
//	a binding is written                     → every rule of its role is held where it binds, or "bind" on the role is
//	a Role of the strategy's permissions     → every rule is held in each target namespace, or in the whole cluster
//	                                           for all namespaces, since it is copied there (R-OG-44)
//	a binding's role is not there            → "bind" on it, since its rules are unknown
//
// Rules that the operator has already are checked again: the account's present permissions bound every upgrade
// (R-OG-64).
func Missing(p Plan, user string, held Held, allowed map[Access]bool) (Result, error) {
	c := collector{
		plan: p, user: user, held: held, allowed: allowed, seen: map[protocol.MissingPermission]bool{},
		asked: map[Access]bool{},
	}
	var err error
	if c.bundled, err = p.bundledRoles(); err != nil {
		return Result{}, err
	}
	for _, o := range p.Objects {
		if err := c.object(o); err != nil {
			return Result{}, err
		}
	}
	return c.out.bounded(), nil
}

func compareMissing(a, b protocol.MissingPermission) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.URL, b.URL), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Verb, b.Verb))
}

// collector gathers what is missing.
type collector struct {
	plan    Plan
	user    string
	held    Held
	allowed map[Access]bool
	bundled map[Role][]rbacv1.PolicyRule
	seen    map[protocol.MissingPermission]bool // without For
	asked   map[Access]bool
	out     Result
}

// allows reports whether an access is allowed, and notes a question where RBAC does not say so.
func (c *collector) allows(a Access) bool {
	if c.allowed[a] || len(c.held.Lacks(a.Namespace, a.rule())) == 0 {
		return true
	}
	if !c.asked[a] {
		c.asked[a] = true
		c.out.Unknown = append(c.out.Unknown, a)
	}
	return false
}

func (c *collector) add(m protocol.MissingPermission, o render.Object) {
	m.User = c.user
	if c.seen[m] {
		return
	}
	c.seen[m] = true
	m.For = o.String()
	c.out.Missing = append(c.out.Missing, m)
}

func (c *collector) object(o render.Object) error {
	plural, _ := meta.UnsafeGuessKindToResource(o.GVK)
	for _, verb := range []string{"create", "patch"} {
		a := Access{Verb: verb, Group: o.GVK.Group, Resource: plural.Resource, Name: o.Name, Namespace: o.Namespace}
		if !c.allows(a) {
			c.add(protocol.MissingPermission{
				Verb: a.Verb, Group: a.Group, Resource: a.Resource, Name: a.Name,
				Namespace: a.Namespace,
			}, o)
		}
	}
	if o.GVK.Group != rbacv1.GroupName {
		return nil
	}
	if o.GVK.Kind == kindRole || o.GVK.Kind == kindClusterRole {
		return c.role(o)
	}
	return c.binding(o)
}

func (c *collector) role(o render.Object) error {
	rules := c.bundled[Role{o.Namespace, o.Name}]
	plural, _ := meta.UnsafeGuessKindToResource(o.GVK)
	if !c.allows(Access{
		Verb: "escalate", Group: rbacv1.GroupName, Resource: plural.Resource, Name: o.Name,
		Namespace: o.Namespace,
	}) {
		if err := c.rules(o.Namespace, rules, o); err != nil {
			return err
		}
	}
	if _, ofStrategy := labels(o)[render.LabelPermissionsHash]; !ofStrategy || o.GVK.Kind != kindRole {
		return nil
	}
	for _, target := range c.plan.Targets {
		if target == o.Namespace {
			continue
		}
		if err := c.rules(target, rules, o); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) binding(o render.Object) error {
	ref, ok, err := reference(o)
	if err != nil || !ok {
		return err
	}
	resource := "roles"
	if ref.Namespace == "" {
		resource = "clusterroles"
	}
	bind := Access{Verb: "bind", Group: rbacv1.GroupName, Resource: resource, Name: ref.Name, Namespace: o.Namespace}
	if c.allows(bind) {
		return nil
	}
	rules, known := c.bundled[ref]
	if !known {
		rules, known = c.plan.Roles[ref]
	}
	if !known {
		c.add(protocol.MissingPermission{
			Verb: bind.Verb, Group: bind.Group, Resource: bind.Resource, Name: bind.Name,
			Namespace: bind.Namespace,
		}, o)
		return nil
	}
	return c.rules(o.Namespace, rules, o)
}

// rules adds what of rules is not held in a namespace.
func (c *collector) rules(namespace string, rules []rbacv1.PolicyRule, o render.Object) error {
	if n := count(rules); n > MaxRules {
		return errs.New(errs.TooLarge, "%s has %d single rules, more than %d", o, n, MaxRules).At(
			"/rules", "permissions.MaxRules")
	}
	for _, r := range c.held.Lacks(namespace, rules) {
		m := protocol.MissingPermission{Verb: r.Verbs[0], Namespace: namespace}
		if len(r.NonResourceURLs) > 0 {
			m.URL, m.Namespace = r.NonResourceURLs[0], ""
		} else {
			m.Group, m.Resource = r.APIGroups[0], r.Resources[0]
		}
		if len(r.ResourceNames) > 0 {
			m.Name = r.ResourceNames[0]
		}
		c.add(m, o)
	}
	return nil
}

func count(rules []rbacv1.PolicyRule) int {
	n := 0
	for _, r := range rules {
		n += len(r.Verbs) * (len(r.APIGroups)*len(r.Resources)*max(1, len(r.ResourceNames)) + len(r.NonResourceURLs))
	}
	return n
}

// bundledRoles are the rules of the roles of the plan.
func (p Plan) bundledRoles() (map[Role][]rbacv1.PolicyRule, error) {
	out := map[Role][]rbacv1.PolicyRule{}
	for _, o := range p.Objects {
		if o.GVK.Group != rbacv1.GroupName || o.GVK.Kind != kindRole && o.GVK.Kind != kindClusterRole {
			continue
		}
		var r struct {
			Rules []rbacv1.PolicyRule `json:"rules"`
		}
		if err := decode(o, &r); err != nil {
			return nil, err
		}
		out[Role{o.Namespace, o.Name}] = r.Rules
	}
	return out, nil
}

// reference is the role that a binding binds; ok is false of what is none.
func reference(o render.Object) (r Role, ok bool, err error) {
	if o.GVK.Group != rbacv1.GroupName || o.GVK.Kind != kindRoleBinding && o.GVK.Kind != kindClusterRoleBinding {
		return r, false, nil
	}
	var b struct {
		RoleRef rbacv1.RoleRef `json:"roleRef"`
	}
	if err := decode(o, &b); err != nil {
		return r, false, err
	}
	r.Name = b.RoleRef.Name
	if b.RoleRef.Kind == kindRole {
		r.Namespace = o.Namespace
	}
	return r, true, nil
}

func decode(o render.Object, into any) error {
	raw, err := json.Marshal(o.Body)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return errs.New(errs.Invalid, "%s cannot be read: %v", o, err).At("/", "R-CAT-53")
	}
	return nil
}

func labels(o render.Object) map[string]string {
	var m struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if decode(o, &m) != nil {
		return nil
	}
	return m.Metadata.Labels
}

// maxListed is how many permissions a message names; the check of the plan lists them all.
const maxListed = 20

// ForbiddenMessage is one message about everything that an account lacks (R-IP-41), in the API server's words.
func ForbiddenMessage(r Result) string {
	listed := make([]string, 0, maxListed+1)
	for _, m := range r.Missing[:min(len(r.Missing), maxListed)] {
		listed = append(listed, m.String())
	}
	if n := len(r.Missing) + r.More - len(listed); n > 0 {
		listed = append(listed, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(listed, "; ")
}
