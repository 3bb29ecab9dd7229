package access

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Kinds of subjects.
const (
	KindUser           = "User"
	KindGroup          = "Group"
	KindServiceAccount = "ServiceAccount"
)

// Identity is who asks, as authentication has found it.
type Identity struct {
	Kind   string   // KindUser or KindServiceAccount
	Name   string   // opaque id of the actor
	Groups []string // that whoever authenticated it vouches for
	// Role is the built-in role that the token itself gives in the whole tenant; "" without one.
	Role string
	// OnBehalfOf is the person for whom a service account asks: both must be allowed to.
	OnBehalfOf string
	// PersonGroups are groups of that person.
	PersonGroups []string
}

// key tells identities apart.
func (i Identity) key() string {
	parts := append([]string{i.Kind, i.Name, i.Role, i.OnBehalfOf}, slices.Sorted(slices.Values(i.Groups))...)
	parts = append(parts, "\x01") // no group is called so
	return strings.Join(append(parts, slices.Sorted(slices.Values(i.PersonGroups))...), "\x00")
}

// Grant is a binding of a role to an identity.
type Grant struct {
	Binding string // "" where the token itself gives the role
	Role    string
	Rules   []events.AccessRule // of the role
	Scope   events.AccessScope

	ready Scope
	may   map[permission]bool
}

// Rights are what one identity may do. Nil is nothing.
type Rights struct {
	// layers must all allow: of a service account that asks for a person, its own and the person's.
	layers [][]Grant
	notes  *notes // of what they allow; nil where nobody asks
}

// Everything are the rights of what the installation does by itself.
func Everything() *Rights {
	return &Rights{layers: [][]Grant{{{Role: RoleAdmin, may: permissions([]events.AccessRule{allow(on(All), Every)})}}}}
}

// Allow decides. It is the only function that does.
func (r *Rights) Allow(v Verb, on Resource, at Target) bool {
	if r == nil || len(r.layers) == 0 {
		return false
	}
	for _, grants := range r.layers {
		if !slices.ContainsFunc(grants, func(g Grant) bool { return g.may[permission{v, on}] && g.ready.holds(at) }) {
			return false
		}
	}
	r.notes.allowed(Allowed{v, on, at})
	return true
}

// Scopes are where a verb on a resource is allowed, one list for each layer; an object must lie in a scope of each.
// unlimited says that it may be anywhere.
func (r *Rights) Scopes(v Verb, on Resource) (layers [][]Scope, unlimited bool) {
	if r == nil || len(r.layers) == 0 {
		return [][]Scope{nil}, false
	}
	for _, grants := range r.layers {
		var list []Scope
		whole := false
		for _, g := range grants {
			if g.may[permission{v, on}] {
				list, whole = append(list, g.ready), whole || g.ready.Whole()
			}
		}
		if !whole {
			layers = append(layers, list)
		}
	}
	return layers, len(layers) == 0
}

// Nowhere says that a verb on a resource is allowed in no scope at all. A scope that holds no cluster today is one.
func (r *Rights) Nowhere(v Verb, on Resource) bool {
	layers, _ := r.Scopes(v, on)
	return slices.ContainsFunc(layers, func(list []Scope) bool { return len(list) == 0 })
}

// By names the grants that allow something, for explanations.
func (r *Rights) By(v Verb, on Resource, at Target) (out []Grant) {
	if !r.Allow(v, on, at) {
		return nil
	}
	for _, grants := range r.layers {
		for _, g := range grants {
			if g.may[permission{v, on}] && g.ready.holds(at) {
				out = append(out, g)
			}
		}
	}
	return out
}

// Grants are all of them, by binding.
func (r *Rights) Grants() (out []Grant) {
	if r == nil {
		return nil
	}
	for _, grants := range r.layers {
		out = append(out, grants...)
	}
	slices.SortStableFunc(out, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Binding, b.Binding), cmp.Compare(a.Role, b.Role))
	})
	return out
}

// covers says whether everything that rules allow in a scope is allowed by these rights already; else what is missing.
func (r *Rights) covers(rules []events.AccessRule, s events.AccessScope) (missing permission, ok bool) {
	if r == nil || len(r.layers) == 0 {
		return permission{}, false
	}
	all := permissions(rules)
	for _, p := range sorted(all) {
		for _, grants := range r.layers {
			if !slices.ContainsFunc(grants, func(g Grant) bool { return g.may[p] && covers(g.Scope, s) }) {
				return p, false
			}
		}
	}
	r.notes.covered(Covered{rules, s})
	return permission{}, true
}

// CoverScope says whether a verb on a resource is allowed by these rights in all of a scope.
func (r *Rights) CoverScope(v Verb, on Resource, s events.AccessScope) bool {
	_, ok := r.covers([]events.AccessRule{allow([]Resource{on}, v)}, s)
	return ok
}

// CoverRole says whether everything that a role allows in the whole tenant is allowed by these rights.
func (r *Rights) CoverRole(name string) bool {
	role, ok := builtIn(name)
	if !ok {
		return false
	}
	_, ok = r.covers(role.Rules, events.AccessScope{})
	return ok
}

// Cover says whether everything that others are allowed is allowed by these rights.
func (r *Rights) Cover(others *Rights) bool {
	for _, g := range others.Grants() {
		if _, ok := r.covers(g.Rules, g.Scope); !ok {
			return false
		}
	}
	return true
}

func sorted(all map[permission]bool) []permission {
	list := make([]permission, 0, len(all))
	for p := range all {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b permission) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb))
	})
	return list
}

// maxKept bounds the identities whose rights a policy remembers: more than people and programs of an installation.
// Beyond
// it all are made anew.
const maxKept = 10_000

// Policy is the roles and bindings of a tenant at one moment, with the labels of its clusters.
type Policy struct {
	state    State
	clusters map[string]map[string]string

	mu   sync.Mutex
	kept map[string]*Rights
}

// NewPolicy makes roles and bindings ready.
func NewPolicy(s State, clusters map[string]map[string]string) *Policy {
	return &Policy{state: s, clusters: clusters, kept: map[string]*Rights{}}
}

// RightsOf are what an identity may do. They are made once for each identity. For somebody else nothing is allowed to
// who may not ask for people: what outlives a request, such as a stream, looks at its rights alone.
func (p *Policy) RightsOf(id Identity) *Rights {
	key := id.key()
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.kept[key]; ok {
		return r
	}
	own := Subjects(id.Kind, id.Name, id.Groups)
	r := &Rights{layers: [][]Grant{p.grants(own, id.Role)}}
	switch {
	case id.OnBehalfOf == "":
	case !r.Allow(Impersonate, People, Target{Anywhere: true}):
		r.layers = [][]Grant{nil} // one layer, which allows nothing
	default:
		r.layers = append(r.layers, p.grants(Subjects(KindUser, id.OnBehalfOf, id.PersonGroups), ""))
	}
	if len(p.kept) >= maxKept {
		clear(p.kept)
	}
	p.kept[key] = r
	return r
}

// Within are the rights of an identity to a verb on a resource, as far as they lie in a scope: of what acts for
// somebody in a part of the fleet.
func (p *Policy) Within(id Identity, v Verb, on Resource, s events.AccessScope) *Rights {
	rules := []events.AccessRule{allow([]Resource{on}, v)}
	limit := Grant{Rules: rules, Scope: s, ready: scopeOf(s, p.clusters), may: permissions(rules)}
	return &Rights{layers: append(slices.Clone(p.RightsOf(id).layers), []Grant{limit})}
}

// Subjects are those that stand for an identity.
func Subjects(kind, name string, groups []string) []events.AccessSubject {
	list := []events.AccessSubject{{Kind: cmp.Or(kind, KindUser), Name: name}}
	for _, g := range groups {
		list = append(list, events.AccessSubject{Kind: KindGroup, Name: g})
	}
	return list
}

func (p *Policy) grants(own []events.AccessSubject, tokenRole string) (out []Grant) {
	if role, ok := builtIn(tokenRole); ok {
		out = append(out, Grant{Role: role.Name, Rules: role.Rules, may: permissions(role.Rules)})
	}
	for _, b := range p.state.SortedBindings() {
		if !slices.ContainsFunc(b.Subjects, func(s events.AccessSubject) bool { return slices.Contains(own, s) }) {
			continue
		}
		out = append(out, p.grant(b))
	}
	return out
}

func (p *Policy) grant(b events.RoleBindingDefined) Grant {
	role, _ := p.state.Role(b.Role)
	return Grant{
		Binding: b.Name, Role: b.Role, Rules: role.Rules, Scope: b.Scope, ready: scopeOf(b.Scope, p.clusters),
		may: permissions(role.Rules),
	}
}

// Can are the bindings that allow something, by name.
func (p *Policy) Can(v Verb, on Resource, at Target) (out []events.RoleBindingDefined) {
	for _, b := range p.state.SortedBindings() {
		if g := p.grant(b); g.may[permission{v, on}] && g.ready.holds(at) {
			out = append(out, b)
		}
	}
	return out
}

// RoleAllows says whether a role allows a verb on a resource somewhere.
func (p *Policy) RoleAllows(role string, v Verb, on Resource) bool {
	r, _ := p.state.Role(role)
	return permissions(r.Rules)[permission{v, on}]
}

// Denied is the refusal of what somebody may not do in a place that they know of.
func Denied(v Verb, on Resource, at Target) error {
	return errs.New(errs.Forbidden, "you may not %s %s in %s: no role that you have allows it there. Who may update "+
		"rolebindings gives roles", v, on, at).At("", RuleAllowed)
}
