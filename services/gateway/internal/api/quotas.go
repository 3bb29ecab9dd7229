package api

import (
	"context"
	"net/http"
	"time"

	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagQuotas = "Quotas"

// TenantPath is a tenant in a path.
type TenantPath struct {
	Tenant string `path:"tenant" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Name of the tenant"`
}

// quotaHandlers are the operations on quotas of tenants.
type quotaHandlers struct{ Deps }

func (h quotaHandlers) register(a *API) {
	register(a, fleetWide(access.List, access.Quotas), operation(http.MethodGet, "/quotas", "list-quotas", tagQuotas,
		"List the quotas of tenants, with what they have: all of them for the tenant of the installation; else one's own"),
		h.list)
	register(a, fleetWide(access.Get, access.Quotas),
		operation(http.MethodGet, "/quotas/{tenant}", "get-quota", tagQuotas, "Get the quota of a tenant, with what it has"),
		h.get)
	set := operation(http.MethodPut, "/quotas/{tenant}", "set-quota", tagQuotas,
		"Set what a tenant may have and ask for at most; for administrators of the installation")
	set.Description = "All bounds are replaced. What stands above a lowered bound stays; nothing more is made until " +
		"there is room. Making more subscriptions or catalogs than allowed is answered 403 with the rule quota; more " +
		"requests or streams 429."
	register(a, fleetWide(access.Update, access.Quotas), set, h.set)
}

func (h quotaHandlers) list(ctx context.Context, who model.Caller, _ *struct{}) (*listOutput[model.Quota], error) {
	items, err := h.Quotas.List(ctx, who)
	return listed(items, nil, err)
}

func (h quotaHandlers) get(ctx context.Context, who model.Caller, in *TenantPath) (*output[model.Quota], error) {
	return read(h.Quotas.Get(ctx, who, in.Tenant))
}

type setQuotaInput struct {
	TenantPath
	Body model.SetQuota
}

func (h quotaHandlers) set(ctx context.Context, who model.Caller, in *setQuotaInput) (*written[model.Quota], error) {
	q, err := h.Quotas.Set(ctx, who, in.Tenant, in.Body.Hard)
	return wrote(q, q.Position, "", err)
}

// ofTenant counts a request for the tenant as well, and returns what is left of the tighter limit. The break-glass
// token is not held to it: whoever uses up the requests of a tenant must not keep out who is to end that.
func (a *API) ofTenant(who model.Caller, c limit.Class, left httpserver.Quota) (httpserver.Quota, bool) {
	all, bounded, ok := a.tenants.Take(who.Tenant, c)
	if !bounded || who.BreakGlass {
		return left, true
	}
	if !ok || all.Remaining < left.Remaining {
		left = all
	}
	return left, ok
}

// countsOf counts for tenants. Where only the document is wanted, nobody is bounded.
func countsOf(d Deps) *limit.Tenants {
	if d.Tenants == nil {
		return NewTenants(time.Now)
	}
	return d.Tenants
}

// NewTenants counts for tenants as requests of one identity are counted.
func NewTenants(now func() time.Time) *limit.Tenants { return limit.NewTenants(requestBurst, now) }
