package access

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Stream is the natural key and subject of the one stream of roles and bindings.
const Stream = "roles"

// State is the roles that people defined and all bindings of a tenant, as folded from their events.
type State struct {
	Roles    map[string]events.RoleDefined
	Bindings map[string]events.RoleBindingDefined
}

// Role finds a role, built in or defined.
func (s State) Role(name string) (Role, bool) {
	if r, ok := builtIn(name); ok {
		return r, true
	}
	d, ok := s.Roles[name]
	return Role{Name: d.Name, Rules: d.Rules}, ok
}

// SortedBindings are the bindings by name.
func (s State) SortedBindings() []events.RoleBindingDefined {
	list := make([]events.RoleBindingDefined, 0, len(s.Bindings))
	for _, name := range slices.Sorted(maps.Keys(s.Bindings)) {
		list = append(list, s.Bindings[name])
	}
	return list
}

// Command is one of SetRole, DeleteRole, SetBinding and DeleteBinding.
type Command interface{ accessCommand() }

// By is who commands, and how many administrators there are beside those of bindings.
type By struct {
	Rights *Rights
	// Admins is how many tokens make somebody an administrator by themselves.
	Admins int
}

// SetRole defines a role, or replaces all of it.
type SetRole struct {
	By    By
	Name  string
	Rules []events.AccessRule
}

// DeleteRole ends a role that nobody has.
type DeleteRole struct{ Name string }

// SetBinding gives a role, or replaces all of a binding.
type SetBinding struct {
	By      By
	Binding events.RoleBindingDefined
}

// DeleteBinding takes a role from those who have it by a binding.
type DeleteBinding struct {
	By   By
	Name string
}

func (SetRole) accessCommand()       {}
func (DeleteRole) accessCommand()    {}
func (SetBinding) accessCommand()    {}
func (DeleteBinding) accessCommand() {}

// Decide returns the events that the command leads to; none if it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	switch c := c.(type) {
	case SetRole:
		return c.decide(s)
	case DeleteRole:
		return c.decide(s)
	case SetBinding:
		return c.decide(s)
	case DeleteBinding:
		return c.decide(s)
	default:
		return nil, fmt.Errorf("access: command %T is not known", c)
	}
}

// Evolve returns the state after an event. An event of another kind of stream is an error.
func Evolve(s State, p events.Payload) (State, error) {
	out := State{Roles: maps.Clone(s.Roles), Bindings: maps.Clone(s.Bindings)}
	if out.Roles == nil {
		out.Roles = map[string]events.RoleDefined{}
	}
	if out.Bindings == nil {
		out.Bindings = map[string]events.RoleBindingDefined{}
	}
	switch e := p.(type) {
	case events.RoleDefined:
		out.Roles[e.Name] = e
	case events.RoleDeleted:
		delete(out.Roles, e.Name)
	case events.RoleBindingDefined:
		out.Bindings[e.Name] = e
	case events.RoleBindingDeleted:
		delete(out.Bindings, e.Name)
	default:
		return s, fmt.Errorf("access: event %s does not belong in the stream of roles", p.EventType())
	}
	return out, nil
}

// Object is one of the roles and bindings that share the stream: its kind is Roles or RoleBindings.
type Object struct {
	Kind Resource
	Name string
}

// About says which object an event is about, and whether it is there afterwards. The zero Object is none.
func About(p events.Payload) (o Object, there bool) {
	switch e := p.(type) {
	case events.RoleDefined:
		return Object{Roles, e.Name}, true
	case events.RoleDeleted:
		return Object{Roles, e.Name}, false
	case events.RoleBindingDefined:
		return Object{RoleBindings, e.Name}, true
	case events.RoleBindingDeleted:
		return Object{RoleBindings, e.Name}, false
	default:
		return Object{}, false
	}
}

func (c SetRole) decide(s State) ([]events.Payload, error) {
	if _, ok := builtIn(c.Name); ok {
		return nil, fixed(c.Name)
	}
	rules := normalRules(c.Rules)
	if err := checkRole(c.Name, rules); err != nil {
		return nil, err
	}
	have, known := s.Roles[c.Name]
	if known && reflect.DeepEqual(have.Rules, rules) {
		return nil, nil
	}
	if !known && len(s.Roles) >= MaxRoles {
		return nil, errs.New(errs.Unprocessable, "role %q would be number %d, at most %d are allowed: delete one", c.Name,
			len(s.Roles)+1, MaxRoles).At("path.name", rule.MaxItems)
	}
	if missing, ok := c.By.Rights.covers(rules, events.AccessScope{}); !ok &&
		!c.By.Rights.Allow(Escalate, Roles, Target{}) {
		return nil, errs.New(errs.Forbidden, "role %q would allow to %s %s, which you may not in the whole tenant: nobody "+
			"defines a role that allows more than they may, but for who may %s %s",
			c.Name, missing.verb, missing.resource, Escalate, Roles).At("/rules", RuleEscalation)
	}
	return []events.Payload{events.RoleDefined{Name: c.Name, Rules: rules}}, nil
}

func fixed(name string) error {
	return errs.New(errs.Conflict, "role %q is built in and cannot be changed: define one of another name", name).At(
		"path.name", RuleBuiltIn)
}

func (c DeleteRole) decide(s State) ([]events.Payload, error) {
	if _, ok := builtIn(c.Name); ok {
		return nil, fixed(c.Name)
	}
	if _, ok := s.Roles[c.Name]; !ok {
		return nil, errs.New(errs.NotFound, "no role %q exists", c.Name)
	}
	for _, b := range s.SortedBindings() {
		if b.Role == c.Name {
			return nil, errs.New(errs.Conflict, "role %q is given by role binding %q: delete that first", c.Name, b.Name).
				At("path.name", RuleInUse)
		}
	}
	return []events.Payload{events.RoleDeleted{Name: c.Name}}, nil
}

func (c SetBinding) decide(s State) ([]events.Payload, error) {
	b := normalBinding(c.Binding)
	if err := checkBinding(b); err != nil {
		return nil, err
	}
	role, ok := s.Role(b.Role)
	if !ok {
		return nil, errs.New(errs.Unprocessable, "no role %q exists: want one of %s", b.Role,
			rule.Choices(s.names())).At(
			"/role", RuleRoleKnown)
	}
	have, known := s.Bindings[b.Name]
	if known && reflect.DeepEqual(have, b) {
		return nil, nil
	}
	if !known && len(s.Bindings) >= MaxBindings {
		return nil, errs.New(errs.Unprocessable, "role binding %q would be number %d, at most %d are allowed: bind groups",
			b.Name, len(s.Bindings)+1, MaxBindings).At("path.name", rule.MaxItems)
	}
	if missing, ok := c.By.Rights.covers(role.Rules, b.Scope); !ok && !c.By.Rights.Allow(Bind, Roles, Target{}) {
		return nil, errs.New(errs.Forbidden, "role %q allows to %s %s, which you may not in all of this scope: nobody gives "+
			"more than they have, but for who may %s %s", b.Role, missing.verb, missing.resource, Bind, Roles).At(
			"/role", RuleEscalation)
	}
	if known && isAdmin(have) && !isAdmin(b) {
		if err := s.lastAdmin(have.Name, c.By.Admins); err != nil {
			return nil, err
		}
	}
	return []events.Payload{b}, nil
}

func (c DeleteBinding) decide(s State) ([]events.Payload, error) {
	have, ok := s.Bindings[c.Name]
	if !ok {
		return nil, errs.New(errs.NotFound, "no role binding %q exists", c.Name)
	}
	if isAdmin(have) {
		if err := s.lastAdmin(have.Name, c.By.Admins); err != nil {
			return nil, err
		}
	}
	return []events.Payload{events.RoleBindingDeleted{Name: c.Name}}, nil
}

// isAdmin says whether a binding makes administrators of the whole tenant.
func isAdmin(b events.RoleBindingDefined) bool {
	return b.Role == RoleAdmin && scopeOf(b.Scope, nil).Whole()
}

// lastAdmin refuses to take away the last one: nobody could give anybody anything any more.
func (s State) lastAdmin(name string, tokens int) error {
	if tokens > 0 {
		return nil
	}
	for _, b := range s.Bindings {
		if b.Name != name && isAdmin(b) {
			return nil
		}
	}
	return errs.New(errs.Conflict, "role binding %q is the last that makes an administrator: make another one first",
		name).At("path.name", RuleLastAdmin)
}

func (s State) names() []string {
	var list []string
	for _, r := range builtIns {
		list = append(list, r.Name)
	}
	return append(list, slices.Sorted(maps.Keys(s.Roles))...)
}

// normalRules gives what means the same one form: lists are sets.
func normalRules(rules []events.AccessRule) []events.AccessRule {
	out := make([]events.AccessRule, 0, len(rules))
	for _, r := range rules {
		out = append(out, events.AccessRule{Verbs: set(r.Verbs), Resources: set(r.Resources)})
	}
	return out
}

func normalBinding(b events.RoleBindingDefined) events.RoleBindingDefined {
	b.Subjects = slices.Clone(b.Subjects)
	slices.SortFunc(b.Subjects, func(x, y events.AccessSubject) int {
		return slices.Compare([]string{x.Kind, x.Name}, []string{y.Kind, y.Name})
	})
	b.Subjects = slices.Compact(b.Subjects)
	b.Scope = NormalScope(b.Scope)
	return b
}

// NormalScope gives what means the same one form: lists are sets, empty ones are none.
func NormalScope(s events.AccessScope) events.AccessScope {
	for _, list := range []*[]string{&s.Clusters, &s.Namespaces, &s.Catalogs} {
		*list = set(*list)
	}
	if len(s.ClusterLabels) == 0 {
		s.ClusterLabels = nil
	}
	return s
}

func set(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
