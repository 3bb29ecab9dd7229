package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Roles lists roles, the built-in ones among them.
func (c *Client) Roles(ctx context.Context) ([]model.AccessRole, error) {
	return list[model.AccessRole](ctx, c, "/roles", nil)
}

// Role returns one role.
func (c *Client) Role(ctx context.Context, name string) (model.AccessRole, error) {
	return ask[model.AccessRole](ctx, c, http.MethodGet, join("roles", name), nil, nil)
}

// SetRole defines a role, or replaces all of it.
func (c *Client) SetRole(ctx context.Context, name string, want model.RoleSpec) (model.AccessRole, error) {
	return ask[model.AccessRole](ctx, c, http.MethodPut, join("roles", name), nil, want)
}

// DeleteRole ends a role.
func (c *Client) DeleteRole(ctx context.Context, name string) (model.Removed, error) {
	return ask[model.Removed](ctx, c, http.MethodDelete, join("roles", name), nil, nil)
}

// RoleBindings lists role bindings.
func (c *Client) RoleBindings(ctx context.Context) ([]model.RoleBinding, error) {
	return list[model.RoleBinding](ctx, c, "/rolebindings", nil)
}

// RoleBinding returns one role binding.
func (c *Client) RoleBinding(ctx context.Context, name string) (model.RoleBinding, error) {
	return ask[model.RoleBinding](ctx, c, http.MethodGet, join("rolebindings", name), nil, nil)
}

// SetRoleBinding gives a role, or replaces all of a binding.
func (c *Client) SetRoleBinding(ctx context.Context, name string, want model.RoleBindingSpec) (
	model.RoleBinding, error,
) {
	return ask[model.RoleBinding](ctx, c, http.MethodPut, join("rolebindings", name), nil, want)
}

// DeleteRoleBinding takes a role away.
func (c *Client) DeleteRoleBinding(ctx context.Context, name string) (model.Removed, error) {
	return ask[model.Removed](ctx, c, http.MethodDelete, join("rolebindings", name), nil, nil)
}

// WhoAmI says who the caller is, and what they may do.
func (c *Client) WhoAmI(ctx context.Context) (model.WhoAmI, error) {
	return ask[model.WhoAmI](ctx, c, http.MethodGet, "/whoami", nil, nil)
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
	return ask[model.CanI](ctx, c, http.MethodGet, "/access/can-i", q.query(), nil)
}

// WhoCan lists who may do something.
func (c *Client) WhoCan(ctx context.Context, q AccessQuestion) ([]model.Holder, error) {
	return list[model.Holder](ctx, c, "/access/who-can", q.query())
}
