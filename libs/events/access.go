package events

import "time"

// accessEvents are the events of the stop switch and of who may call the API, in the order of docs/events.md.
func accessEvents() []Definition {
	return []Definition{
		define(KindAccess, Gateway, EffectsStopped{}, "No plan may begin or take another step."),
		define(KindAccess, Gateway, EffectsResumed{}, "A person lets plans go on."),
		define(KindAccess, Gateway, TokenCreated{}, "A token for the API was made, or got another secret."),
		define(KindAccess, Gateway, TokenRotated{}, "A token for the API got another secret; the one before ends."),
		define(KindAccess, Gateway, TokenRevoked{}, "A token for the API is refused from now on."),
		define(KindAccess, Gateway, BreakGlassUsed{}, "Somebody uses the token that works while nobody can sign in."),
		define(KindAccess, Gateway, IdentityDefined{}, "Somebody at an identity provider, or a machine with a certificate, became known, has another actor, or is let in no more."),
		define(KindAccess, Gateway, HookCreated{}, "A catalog got a hook, or its hook another secret."),
		define(KindAccess, Gateway, HookRevoked{}, "The hook of a catalog is refused from now on."),
		define(KindAccess, Gateway, BodyErased{}, "What an event has a commitment to was erased."),
		define(KindAccess, Gateway, RoleDefined{}, "A role allows this from now on."),
		define(KindAccess, Gateway, RoleDeleted{}, "A role is gone."),
		define(KindAccess, Gateway, RoleBindingDefined{}, "People, groups or service accounts have a role somewhere."),
		define(KindAccess, Gateway, RoleBindingDeleted{}, "A binding of a role ended."),
		define(KindAccess, Gateway, QuotaSet{}, "A tenant may have and ask for so much from now on."),
	}
}

// EffectsStopped says that no plan may begin or take another step. Subject: fleet, or cluster/<name>.
type EffectsStopped struct {
	Reason string `json:"reason"` // RecordLostCommits, Operator
}

// EventType implements Payload.
func (EffectsStopped) EventType() Type { return "access.effects-stopped.v1" }

// EffectsResumed says that a person lets plans go on.
type EffectsResumed struct {
	Epoch int64 `json:"epoch"` // the epoch that the person has seen and accepts
}

// EventType implements Payload.
func (EffectsResumed) EventType() Type { return "access.effects-resumed.v1" }

// TokenCreated says that a token was made, or that one got another secret. Subject: token/<id>. Neither the secret nor
// the name of a person is in it.
type TokenCreated struct {
	Token  string `json:"token"`  // id
	Role   string `json:"role"`   // admin, viewer, none
	Holder string `json:"holder"` // the actor who acts with it
	// Kind is ServiceAccount where the actor is a program's; absent for a person's.
	Kind string `json:"kind,omitempty"`
	// Ends is when the token is refused, in UTC; absent where it does not end.
	Ends time.Time `json:"ends,omitzero"`
	// BreakGlass: it is the token of the tenant that works while nobody can sign in, in sessions alone.
	BreakGlass bool `json:"breakGlass,omitempty"`
}

// EventType implements Payload.
func (TokenCreated) EventType() Type { return "access.token-created.v1" }

// TokenRotated says that a token got another secret. Subject: token/<id>.
type TokenRotated struct {
	Token string    `json:"token"` // id
	Ends  time.Time `json:"ends"`  // when the token is refused, in UTC
	// PreviousEnds is when the secret before is refused, in UTC.
	PreviousEnds time.Time `json:"previousEnds"`
}

// EventType implements Payload.
func (TokenRotated) EventType() Type { return "access.token-rotated.v1" }

// TokenRevoked says that a token is refused from now on.
type TokenRevoked struct {
	Token string `json:"token"` // id
}

// EventType implements Payload.
func (TokenRevoked) EventType() Type { return "access.token-revoked.v1" }

// BreakGlassUsed says that somebody uses the break-glass token of the tenant, and why. It is written before anything is
// done or read with it, and again for each session. Subject: token/<id>.
type BreakGlassUsed struct {
	Token  string    `json:"token"`  // id
	Reason string    `json:"reason"` // commitment to the reason
	Ends   time.Time `json:"ends"`   // when the session ends, in UTC
}

// EventType implements Payload.
func (BreakGlassUsed) EventType() Type { return "access.break-glass-used.v1" }

// IdentityDefined says whose an identity is, at a provider of OpenID Connect or of an authority of client certificates,
// and whether it lets anybody in. Subject: identity/<id>. Neither the provider's id of the person, nor the name of a
// machine, nor an address is in it.
type IdentityDefined struct {
	Identity string `json:"identity"` // id
	Provider string `json:"provider"` // name of the provider or authority in the settings
	Holder   string `json:"holder"`   // the actor who acts with it
	Disabled bool   `json:"disabled,omitempty"`
	// Kind is ServiceAccount where the actor is a machine that shows a certificate; absent for a person.
	Kind string `json:"kind,omitempty"`
}

// EventType implements Payload.
func (IdentityDefined) EventType() Type { return "access.identity-defined.v1" }

// HookCreated says that a catalog got a hook, or its hook another secret. Subject: hook/<catalog>.
type HookCreated struct {
	Catalog string `json:"catalog"`
}

// EventType implements Payload.
func (HookCreated) EventType() Type { return "access.hook-created.v1" }

// HookRevoked says that the hook of a catalog is refused from now on.
type HookRevoked struct {
	Catalog string `json:"catalog"`
}

// EventType implements Payload.
func (HookRevoked) EventType() Type { return "access.hook-revoked.v1" }

// BodyErased says that what events have a commitment to is gone: a configuration, annotations, a reason, a source.
// Events keep the commitment, which tells nothing of it. Subject: body/<commitment>.
type BodyErased struct {
	Body string `json:"body"` // commitment
	Kind string `json:"kind"` // subscription-config, catalog-source, annotations, plan-reason
}

// EventType implements Payload.
func (BodyErased) EventType() Type { return "access.body-erased.v1" }

// RoleDefined carries the whole of a custom role: a new one, or what takes the place of one. Subject: "roles", the
// stream of all roles and bindings of a tenant.
type RoleDefined struct {
	Name  string       `json:"name"`
	Rules []AccessRule `json:"rules"`
}

// AccessRule allows each of the verbs on each of the resources; "*" is every one.
type AccessRule struct {
	Verbs     []string `json:"verbs"`
	Resources []string `json:"resources"`
}

// EventType implements Payload.
func (RoleDefined) EventType() Type { return "access.role-defined.v1" }

// RoleDeleted ends a custom role, which no binding names.
type RoleDeleted struct {
	Name string `json:"name"`
}

// EventType implements Payload.
func (RoleDeleted) EventType() Type { return "access.role-deleted.v1" }

// RoleBindingDefined carries the whole of a binding: a new one, or what takes the place of one.
type RoleBindingDefined struct {
	Name     string          `json:"name"`
	Role     string          `json:"role"`
	Subjects []AccessSubject `json:"subjects"`
	Scope    AccessScope     `json:"scope"`
}

// AccessSubject is who has the role of a binding.
type AccessSubject struct {
	Kind string `json:"kind"` // User, Group, ServiceAccount
	Name string `json:"name"` // of a user or service account the opaque id of the actor
}

// AccessScope is where a binding holds. Each list is names, or prefixes followed by "*"; an empty one is all. All that
// is given must fit.
type AccessScope struct {
	Clusters      []string          `json:"clusters,omitempty"`
	ClusterLabels map[string]string `json:"clusterLabels,omitempty"`
	Namespaces    []string          `json:"namespaces,omitempty"`
	Catalogs      []string          `json:"catalogs,omitempty"` // name, or namespace/name of a cluster's own
}

// EventType implements Payload.
func (RoleBindingDefined) EventType() Type { return "access.role-binding-defined.v1" }

// RoleBindingDeleted ends a binding.
type RoleBindingDeleted struct {
	Name string `json:"name"`
}

// EventType implements Payload.
func (RoleBindingDeleted) EventType() Type { return "access.role-binding-deleted.v1" }

// QuotaSet says what the tenant may have and ask for at most. It carries all bounds, each once; what is absent is not
// bounded. Subject: quota. The actor is an administrator of the installation, whatever the tenant.
type QuotaSet struct {
	Bounds []QuotaBound `json:"bounds"`
}

// QuotaBound is the bound of one resource.
type QuotaBound struct {
	Resource string `json:"resource"` // subscriptions, catalogs, requestsPerSecond, streams
	Hard     int64  `json:"hard"`     // at most so many
}

// EventType implements Payload.
func (QuotaSet) EventType() Type { return "access.quota-set.v1" }
