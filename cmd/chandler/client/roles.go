package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Roles lists roles, the built-in ones among them.
func (c *Client) Roles(ctx context.Context) ([]model.AccessRole, error) {
	return all[model.AccessRole](ctx, c, client.NewListRolesRequest(nil))
}

// Role returns one role.
func (c *Client) Role(ctx context.Context, name string) (model.AccessRole, error) {
	return get[model.AccessRole](ctx, c, client.NewGetRoleRequest(name, nil))
}

// SetRole defines a role, or replaces all of the one whose tag is match.
func (c *Client) SetRole(ctx context.Context, name, match string, want model.RoleSpec) (model.AccessRole, error) {
	return replace[model.AccessRole](ctx, c, with(client.NewSetRoleRequest(name, nil, client.RoleSpec{}), want), match)
}

// DeleteRole ends a role.
func (c *Client) DeleteRole(ctx context.Context, name string) (model.Removed, error) {
	return get[model.Removed](ctx, c, client.NewDeleteRoleRequest(name, nil))
}

// RoleBindings lists role bindings.
func (c *Client) RoleBindings(ctx context.Context) ([]model.RoleBinding, error) {
	return all[model.RoleBinding](ctx, c, client.NewListRoleBindingsRequest(nil))
}

// RoleBinding returns one role binding.
func (c *Client) RoleBinding(ctx context.Context, name string) (model.RoleBinding, error) {
	return get[model.RoleBinding](ctx, c, client.NewGetRoleBindingRequest(name, nil))
}

// SetRoleBinding gives a role, or replaces all of the binding whose tag is match.
func (c *Client) SetRoleBinding(ctx context.Context, name, match string, want model.RoleBindingSpec) (
	model.RoleBinding, error,
) {
	req := client.NewSetRoleBindingRequest(name, nil, client.RoleBindingSpec{})
	return replace[model.RoleBinding](ctx, c, with(req, want), match)
}

// DeleteRoleBinding takes a role away.
func (c *Client) DeleteRoleBinding(ctx context.Context, name string) (model.Removed, error) {
	return get[model.Removed](ctx, c, client.NewDeleteRoleBindingRequest(name, nil))
}

// WhoAmI says who the caller is, and what they may do.
func (c *Client) WhoAmI(ctx context.Context) (model.WhoAmI, error) {
	return get[model.WhoAmI](ctx, c, client.NewWhoAmIRequest())
}

// AccessQuestion is what somebody wants to do, and where.
type AccessQuestion struct {
	Verb, Resource, Cluster, Namespace, Catalog string

	Anywhere bool
}

func (q AccessQuestion) query() url.Values {
	v := url.Values{"verb": {q.Verb}, "resource": {q.Resource}}
	for name, value := range map[string]string{
		"cluster": q.Cluster, "namespace": q.Namespace, "catalog": q.Catalog,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Anywhere {
		v.Set("anywhere", strconv.FormatBool(true))
	}
	return v
}

// CanI says whether the caller may do something.
func (c *Client) CanI(ctx context.Context, q AccessQuestion) (model.CanI, error) {
	return get[model.CanI](ctx, c, where(client.NewCanIRequest(nil), q.query()))
}

// WhoCan lists who may do something.
func (c *Client) WhoCan(ctx context.Context, q AccessQuestion) ([]model.Holder, error) {
	return all[model.Holder](ctx, c, where(client.NewWhoCanRequest(nil), q.query()))
}
