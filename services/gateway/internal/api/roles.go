package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/roles"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

const tagRoles = "Roles"

// RolePath is a role or a role binding in a path.
type RolePath struct {
	Name string `path:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
}

// roleHandlers are the operations on roles and bindings, and the questions about who may do what.
type roleHandlers struct{ Deps }

func (h roleHandlers) register(a *API) {
	registerList(a, fleetWide(access.List, access.Roles), operation(http.MethodGet, "/roles", "list-roles", tagRoles,
		"List roles by name, the built-in ones among them"), watchedRoles, h.listRoles)
	register(a, fleetWide(access.Get, access.Roles), operation(http.MethodGet, "/roles/{name}", "get-role", tagRoles,
		"Get a role"), h.getRole)
	register(a, fleetWide(access.Update, access.Roles), operation(http.MethodPut, "/roles/{name}", "set-role", tagRoles,
		"Define a role, or replace all of it; nobody defines one that allows more than they may"), h.setRole)
	register(a, fleetWide(access.Delete, access.Roles), operation(http.MethodDelete, "/roles/{name}", "delete-role",
		tagRoles, "Delete a role that no binding gives"), h.deleteRole)
	h.bindings(a)
	h.questions(a)
}

func (h roleHandlers) bindings(a *API) {
	registerList(a, fleetWide(access.List, access.RoleBindings), operation(http.MethodGet, "/rolebindings",
		"list-role-bindings", tagRoles, "List role bindings by name"), watchedBindings, h.listBindings)
	register(a, fleetWide(access.Get, access.RoleBindings), operation(http.MethodGet, "/rolebindings/{name}",
		"get-role-binding", tagRoles, "Get a role binding"), h.getBinding)
	register(a, fleetWide(access.Update, access.RoleBindings), operation(http.MethodPut, "/rolebindings/{name}",
		"set-role-binding", tagRoles,
		"Give a role, or replace all of a binding; nobody gives more than they have. The answer comes when it holds"),
		h.setBinding)
	register(a, fleetWide(access.Delete, access.RoleBindings), operation(http.MethodDelete, "/rolebindings/{name}",
		"delete-role-binding", tagRoles,
		"Take a role away; the last administrator stays. The answer comes when it holds"), h.deleteBinding)
}

func (h roleHandlers) questions(a *API) {
	register(a, everybody, classed(operation(http.MethodGet, "/whoami", "who-am-i", tagRoles,
		"Say who the caller is, and what they may do where"), limit.Read), h.whoAmI)
	register(a, everybody, classed(operation(http.MethodGet, "/access/can-i", "can-i", tagRoles,
		"Say whether the caller may do something"), limit.Read), h.canI)
	register(a, fleetWide(access.List, access.RoleBindings), operation(http.MethodGet, "/access/who-can", "who-can",
		tagRoles, "List who may do something, by role bindings, by tokens that give a role, and by the break-glass token"), h.whoCan)
}

var (
	watchedRoles = watchedInFleet(func(r model.AccessRole) watch.Name { return watch.Name{Name: r.Name} },
		events.KindAccess)
	watchedBindings = watchedInFleet(func(b model.RoleBinding) watch.Name { return watch.Name{Name: b.Name} },
		events.KindAccess)
)

func (h roleHandlers) listRoles(
	ctx context.Context, who model.Caller, in *FleetListQuery,
) (*listOutput[model.AccessRole], error) {
	page, err := h.waitList(ctx, who, roles.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Roles.Roles(ctx, who, page))
}

type getRoleInput struct {
	RolePath
	ReadQuery
}

func (h roleHandlers) getRole(
	ctx context.Context, who model.Caller, in *getRoleInput,
) (*output[model.AccessRole], error) {
	if err := h.wait(ctx, who, roles.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Roles.Role(ctx, who, in.Name))
}

type setRoleInput struct {
	RolePath
	MakeHeaders
	TryQuery
	Body model.RoleSpec
}

func (h roleHandlers) setRole(
	ctx context.Context, who model.Caller, in *setRoleInput,
) (*written[model.AccessRole], error) {
	r, err := h.Intents.Roles.SetRole(ctx, who, in.Name, in.Body)
	return wrote(r, r.Position, "", h.inForce(ctx, who, r.Position, err))
}

type deleteRoleInput struct {
	RolePath
	TryQuery
}

func (h roleHandlers) deleteRole(
	ctx context.Context, who model.Caller, in *deleteRoleInput,
) (*written[model.Removed], error) {
	r, err := h.Intents.Roles.DeleteRole(ctx, who, in.Name)
	return wrote(r, r.Position, "", h.inForce(ctx, who, r.Position, err))
}

func (h roleHandlers) listBindings(
	ctx context.Context, who model.Caller, in *FleetListQuery,
) (*listOutput[model.RoleBinding], error) {
	page, err := h.waitList(ctx, who, roles.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Roles.Bindings(ctx, who, page))
}

func (h roleHandlers) getBinding(
	ctx context.Context, who model.Caller, in *getRoleInput,
) (*output[model.RoleBinding], error) {
	if err := h.wait(ctx, who, roles.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Roles.Binding(ctx, who, in.Name))
}

type setBindingInput struct {
	RolePath
	MakeHeaders
	TryQuery
	Body model.RoleBindingSpec
}

func (h roleHandlers) setBinding(
	ctx context.Context, who model.Caller, in *setBindingInput,
) (*written[model.RoleBinding], error) {
	b, err := h.Intents.Roles.SetBinding(ctx, who, in.Name, in.Body)
	return wrote(b, b.Position, "", h.inForce(ctx, who, b.Position, err))
}

func (h roleHandlers) deleteBinding(
	ctx context.Context, who model.Caller, in *deleteRoleInput,
) (*written[model.Removed], error) {
	r, err := h.Intents.Roles.DeleteBinding(ctx, who, in.Name)
	return wrote(r, r.Position, "", h.inForce(ctx, who, r.Position, err))
}

// inForce waits until what was written is what gateways decide by, so that who takes a role away knows that it is gone.
// Where that takes too long, the write is still done, and the answer says that it is not in force yet.
func (h roleHandlers) inForce(ctx context.Context, who model.Caller, position string, err error) error {
	if err != nil {
		return err
	}
	return h.Reads.Positions.WaitForWrite(ctx, who.Tenant, roles.Name, position)
}

func (h roleHandlers) whoAmI(ctx context.Context, who model.Caller, _ *struct{}) (*output[model.WhoAmI], error) {
	out := model.WhoAmI{
		Tenant: who.Tenant, Actor: who.Actor, Kind: access.KindUser, Groups: who.Groups, OnBehalfOf: who.OnBehalfOf,
		Token: who.Token, Identity: who.IdentityID, Permissions: model.PermissionsOf(who.Rights.Grants()),
	}
	if who.Kind != "" {
		out.Kind = who.Kind
	}
	var err error
	out.BreakGlass, err = h.Intents.Tokens.BreakGlass.Told(ctx, who)
	return read(out, err)
}

// AccessQuery is what somebody wants to do, and where.
type AccessQuery struct {
	Verb      string `query:"verb" required:"true" maxLength:"32" doc:"Such as get, create or approve"`
	Resource  string `query:"resource" required:"true" maxLength:"32" doc:"Such as clusters or installplans"`
	Cluster   string `query:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"In this cluster; in the fleet as a whole without cluster, namespace and catalog"`
	Namespace string `query:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"In this namespace of the cluster"`
	Catalog   string `query:"catalog" maxLength:"317" doc:"Of this catalog, or of subscriptions that name it: a name, or namespace/name"`
	Anywhere  bool   `query:"anywhere" doc:"In any place at all"`
}

func (q AccessQuery) question() (v access.Verb, on access.Resource, at access.Target, err error) {
	v, on = access.Verb(q.Verb), access.Resource(q.Resource)
	at = access.Target{Cluster: q.Cluster, Namespace: q.Namespace, Catalog: q.Catalog, Anywhere: q.Anywhere}
	switch {
	case access.Known(v, on):
		return v, on, at, nil
	case len(access.VerbsOf(on)) > 0:
		err = errs.New(errs.Invalid, "%s know no verb %q: want one of %v", on, q.Verb, access.VerbsOf(on)).At(
			"query.verb", access.RuleVerb)
	default:
		err = errs.New(errs.Invalid, "there is no resource %q: want one of %v", q.Resource, access.AllResources()).At(
			"query.resource", rule.OneOf)
	}
	return v, on, at, err
}

func (h roleHandlers) canI(_ context.Context, who model.Caller, in *AccessQuery) (*output[model.CanI], error) {
	v, on, at, err := in.question()
	if err != nil {
		return nil, err
	}
	out := model.CanI{Allowed: who.May(v, on, at)}
	for _, g := range who.Rights.By(v, on, at) {
		if g.Binding == "" {
			out.By = append(out.By, "token "+who.Token+" (role "+g.Role+")")
			continue
		}
		out.By = append(out.By, "rolebinding/"+g.Binding+" (role "+g.Role+")")
	}
	if !out.Allowed {
		out.Reason = access.Denied(v, on, at).Error()
	}
	return read(out, nil)
}

func (h roleHandlers) whoCan(
	ctx context.Context, who model.Caller, in *AccessQuery,
) (*listOutput[model.Holder], error) {
	v, on, at, err := in.question()
	if err != nil {
		return nil, err
	}
	policy, err := h.Reads.Roles.Current(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	var list []model.Holder
	for _, b := range policy.Can(v, on, at) {
		for _, s := range b.Subjects {
			list = append(list, model.Holder{
				Subject: model.AccessSubject(s), Role: b.Role, Binding: b.Name, Scope: model.AccessScope(b.Scope),
			})
		}
	}
	tokens, err := h.Intents.Tokens.Giving(ctx, who)
	if err != nil {
		return nil, err
	}
	for _, t := range tokens {
		if policy.RoleAllows(string(t.Role), v, on) {
			list = append(list, model.Holder{
				Subject: model.AccessSubject{Kind: access.KindUser, Name: t.Actor}, Role: string(t.Role), Token: t.ID,
			})
		}
	}
	broken, err := h.Intents.Tokens.BreakGlass.Held(ctx, who)
	if broken.ID != "" && policy.RoleAllows(access.RoleAdmin, v, on) {
		state := "sealed"
		if broken.Use != nil && broken.Use.Open {
			state = "open"
		}
		list = append(list, model.Holder{
			Subject: model.AccessSubject{Kind: access.KindUser, Name: broken.ID}, Role: access.RoleAdmin,
			Token: broken.ID, BreakGlass: state,
		})
	}
	return listed(list, nil, err)
}

const (
	pathBreakGlass = "/breakglass"
	// pathBreakGlassSessions is the one route that takes a break-glass token outside of a session.
	pathBreakGlassSessions = pathBreakGlass + "/sessions"
)

// breakGlassHandlers are the operations on the token that works while nobody can sign in.
type breakGlassHandlers struct{ Deps }

func (h breakGlassHandlers) register(a *API) {
	register(a, fleetWide(access.List, access.Tokens), operation(http.MethodGet, pathBreakGlass, "get-break-glass",
		tagTokens, "Show the break-glass token, and when it was used last; for administrators"), h.get)
	register(a, fleetWide(access.Escalate, access.Roles),
		classed(created(pathBreakGlass, "create-break-glass", tagTokens,
			"Make the token of the tenant that works while nobody can sign in; it takes the place of the one before, and "+
				"is answered this once"), limit.SignIn), h.create)
	register(a, fleetWide(access.Delete, access.Tokens), operation(http.MethodDelete, pathBreakGlass,
		"revoke-break-glass", tagTokens, "Have the break-glass token refused from now on, and end its session"), h.revoke)
	register(a, everybody, classed(created(pathBreakGlassSessions, "open-break-glass", tagTokens,
		"Have the break-glass token of the request let in for an hour, for a reason; that is an event"),
		limit.SignIn), h.open)
}

func (h breakGlassHandlers) get(ctx context.Context, who model.Caller, _ *struct{}) (*output[model.BreakGlass], error) {
	return read(h.Intents.Tokens.BreakGlass.Get(ctx, who))
}

func (h breakGlassHandlers) create(
	ctx context.Context, who model.Caller, _ *struct{},
) (*output[model.NewBreakGlass], error) {
	return read(h.Intents.Tokens.BreakGlass.Create(ctx, who))
}

func (h breakGlassHandlers) revoke(ctx context.Context, who model.Caller, _ *struct{}) (*struct{}, error) {
	if err := h.Intents.Tokens.BreakGlass.Revoke(ctx, who); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
}

type openBreakGlassInput struct{ Body model.OpenBreakGlass }

func (h breakGlassHandlers) open(
	ctx context.Context, who model.Caller, in *openBreakGlassInput,
) (*output[model.BreakGlassUse], error) {
	return read(h.Intents.Tokens.BreakGlass.Open(ctx, who, in.Body))
}

// sealed refuses a break-glass token outside of a session, wherever it goes but to open one.
func sealed(r *http.Request, who model.Caller) error {
	if !who.BreakGlass || who.Role != model.RoleNone ||
		r.Method == http.MethodPost && r.URL.Path == prefix+pathBreakGlassSessions {
		return nil
	}
	return errs.New(errs.Forbidden, "the break-glass token lets in only in a session, which names a reason: "+
		"chandler auth break-glass open --reason TEXT, or POST %s", pathBreakGlassSessions).At("header.Authorization",
		access.RuleAllowed)
}
