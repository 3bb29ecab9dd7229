package model

import (
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
)

// Caller is who asks, as authentication has found it: opaque ids, never a name or an address. What a caller may do is
// for Rights to say, and for nobody else.
type Caller struct {
	Tenant string
	Actor  string // of who holds the credential: a person, or a service account
	Kind   string // access.KindUser or access.KindServiceAccount; "" is a user
	Groups []string
	// OnBehalfOf is the person for whom a service account asks; "" where it asks for itself.
	OnBehalfOf   string
	PersonGroups []string // of that person
	Role         Role     // of the token itself; "" without a token
	Token        string   // id of the token
	IdentityID   string   // of whom a provider vouches for; "" of others
	Machine      string   // id of the identity of a client certificate; "" without one
	// BreakGlass: the token is the one that works while nobody can sign in. Outside of a session it has the role none.
	BreakGlass bool
	// Session is what lets the caller in.
	Session Session
	// Rights are what the caller may do; nil is nothing.
	Rights *access.Rights
}

// Person is who wants what the caller asks for: requesters and approvers are compared by it, whatever tokens they have
// and through whatever portal they come.
func (c Caller) Person() string {
	if c.OnBehalfOf != "" {
		return c.OnBehalfOf
	}
	return c.Actor
}

// Via is the service account through which a person asks; "" where nobody stands between.
func (c Caller) Via() string {
	if c.OnBehalfOf != "" {
		return c.Actor
	}
	return ""
}

// Identity is what rights are found by.
func (c Caller) Identity() access.Identity {
	return access.Identity{
		Kind: c.Kind, Name: c.Actor, Groups: c.Groups, Role: string(c.Role), OnBehalfOf: c.OnBehalfOf,
		PersonGroups: c.PersonGroups,
	}
}

// May decides whether the caller may do something.
func (c Caller) May(v access.Verb, on access.Resource, at access.Target) bool {
	return c.Rights.Allow(v, on, at)
}

// AccessRule allows verbs on resources.
type AccessRule struct {
	Verbs     []string `json:"verbs" nullable:"false" maxItems:"30" doc:"Such as get, list, create, approve; * is every one"`
	Resources []string `json:"resources" nullable:"false" maxItems:"50" doc:"Such as clusters, subscriptions, installplans; * is every one"`
}

// RulesOf are rules as answers.
func RulesOf(list []events.AccessRule) []AccessRule {
	out := make([]AccessRule, len(list))
	for i, r := range list {
		out[i] = AccessRule(r)
	}
	return out
}

// RoleSpec is what a role allows.
type RoleSpec struct {
	Rules []AccessRule `json:"rules" nullable:"false" maxItems:"50"`
}

// Event is the spec as events have it.
func (s RoleSpec) Event() []events.AccessRule {
	out := make([]events.AccessRule, len(s.Rules))
	for i, r := range s.Rules {
		out[i] = events.AccessRule(r)
	}
	return out
}

// AccessRole is a role: what somebody may do wherever a binding gives it.
type AccessRole struct {
	Name        string     `json:"name"`
	BuiltIn     bool       `json:"builtIn,omitempty" doc:"It is there from the start and cannot be changed"`
	Description string     `json:"description,omitempty" doc:"Of a role that is built in"`
	Spec        RoleSpec   `json:"spec"`
	CreatedAt   *time.Time `json:"createdAt,omitempty" doc:"Absent for a role that is built in"`
	UpdatedAt   *time.Time `json:"updatedAt,omitempty"`
	Stream      string     `json:"stream,omitempty" doc:"Id of the stream of events of all roles and role bindings"`
	Version     int64      `json:"version,omitempty" doc:"Of the event in that stream that defined it"`
	Position    string     `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// AccessSubject is who has a role.
type AccessSubject struct {
	Kind string `json:"kind" enum:"User,Group,ServiceAccount"`
	Name string `json:"name" minLength:"1" maxLength:"253" doc:"Of a user or a service account the opaque id of the actor, as tokens and events have it; of a group its name at who authenticates people"`
}

// AccessScope is where a binding holds.
type AccessScope struct {
	Clusters      []string          `json:"clusters,omitempty" maxItems:"100" doc:"Names, or prefixes followed by *; without it all, and what belongs to no cluster"`
	ClusterLabels map[string]string `json:"clusterLabels,omitempty" maxProperties:"64" doc:"Labels that clusters have, all of them"`
	Namespaces    []string          `json:"namespaces,omitempty" maxItems:"100" doc:"Names, or prefixes followed by *; without it all, and what belongs to no namespace"`
	Catalogs      []string          `json:"catalogs,omitempty" maxItems:"100" doc:"Names, namespace/name for a cluster's own, or prefixes followed by *: of catalogs, and of those that subscriptions name"`
}

// RoleBindingSpec gives a role to somebody, somewhere.
type RoleBindingSpec struct {
	Role     string          `json:"role" minLength:"1" maxLength:"253"`
	Subjects []AccessSubject `json:"subjects" nullable:"false" maxItems:"100"`
	Scope    AccessScope     `json:"scope,omitzero" doc:"Where; without it in the whole tenant"`
}

// BindingSpecOf is a spec as an answer.
func BindingSpecOf(role string, subjects []events.AccessSubject, scope events.AccessScope) RoleBindingSpec {
	s := RoleBindingSpec{Role: role, Subjects: make([]AccessSubject, len(subjects)), Scope: AccessScope(scope)}
	for i, x := range subjects {
		s.Subjects[i] = AccessSubject(x)
	}
	return s
}

// Event is the binding as events have it.
func (s RoleBindingSpec) Event(name string) events.RoleBindingDefined {
	b := events.RoleBindingDefined{Name: name, Role: s.Role, Scope: events.AccessScope(s.Scope)}
	for _, x := range s.Subjects {
		b.Subjects = append(b.Subjects, events.AccessSubject(x))
	}
	return b
}

// RoleBinding says who has a role, and where.
type RoleBinding struct {
	Name      string          `json:"name"`
	Spec      RoleBindingSpec `json:"spec"`
	CreatedAt time.Time       `json:"createdAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
	Stream    string          `json:"stream,omitempty" doc:"Id of the stream of events of all roles and role bindings"`
	Version   int64           `json:"version,omitempty" doc:"Of the event in that stream that defined it"`
	Position  string          `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// Permission is a role that the caller has, and where.
type Permission struct {
	Role    string       `json:"role"`
	Binding string       `json:"binding,omitempty" doc:"Name of the binding; absent where the token itself gives the role"`
	Scope   AccessScope  `json:"scope,omitzero" doc:"Where; absent for the whole tenant"`
	Rules   []AccessRule `json:"rules" nullable:"false"`
}

// WhoAmI is the caller, as Chandler sees them.
type WhoAmI struct {
	Tenant      string       `json:"tenant"`
	Actor       string       `json:"actor" doc:"Opaque id, as events and approvals have it"`
	Kind        string       `json:"kind" enum:"User,ServiceAccount"`
	Groups      []string     `json:"groups,omitempty"`
	OnBehalfOf  string       `json:"onBehalfOf,omitempty" doc:"Person for whom a service account asks"`
	Token       string       `json:"token,omitempty" doc:"Id of the token"`
	Identity    string       `json:"identity,omitempty" doc:"Id of the identity, of somebody whom a provider vouches for"`
	Permissions []Permission `json:"permissions" nullable:"false"`
	// BreakGlass is told to everybody.
	BreakGlass *BreakGlassUse `json:"breakGlass,omitempty" doc:"The break-glass token of the tenant is in use, or was in the last 24 hours"`
}

// CanI says whether the caller may do something.
type CanI struct {
	Allowed bool     `json:"allowed"`
	By      []string `json:"by,omitempty" doc:"Bindings that allow it; the role of the token where that does"`
	Reason  string   `json:"reason,omitempty" doc:"What is missing, and who gives it"`
}

// Holder is somebody who may do something.
type Holder struct {
	Subject AccessSubject `json:"subject"`
	Role    string        `json:"role"`
	Binding string        `json:"binding,omitempty" doc:"Absent where a token gives the role"`
	Token   string        `json:"token,omitempty" doc:"Id of the token that gives the role"`
	// BreakGlass is of the token that works while nobody can sign in.
	BreakGlass string `json:"breakGlass,omitempty" enum:"sealed,open" doc:"The token is the break-glass token of the tenant: it gives the role in a session alone, which is open, or whose holder can open one"`

	Scope AccessScope `json:"scope,omitzero"`
}

// PermissionsOf are the grants of a caller as answers.
func PermissionsOf(grants []access.Grant) []Permission {
	out := make([]Permission, 0, len(grants))
	for _, g := range grants {
		p := Permission{Role: g.Role, Binding: g.Binding, Scope: AccessScope(g.Scope), Rules: RulesOf(g.Rules)}
		if !slices.ContainsFunc(out, func(o Permission) bool { return o.Binding == p.Binding && o.Role == p.Role }) {
			out = append(out, p)
		}
	}
	return out
}
