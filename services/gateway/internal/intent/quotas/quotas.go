// Package quotas sets and shows what tenants may have and ask for, and tells the gateway what it has to hold them to.
// That no more subscriptions and catalogs are made is seen to in the transaction that makes them (package unit).
package quotas

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/quota"
)

// followEvery is how soon every gateway holds tenants to another bound of requests and streams.
const followEvery = 5 * time.Second

// Tenants count what tenants ask for in this gateway, and hold them to it.
type Tenants interface {
	// Set replaces all bounds, which so many gateways share.
	Set(bounds map[string]quota.Bounds, gateways int64)
	Gateways() int64
	// Used is what a tenant asked for here in the last whole second, and its open streams.
	Used(tenant string) (requests, streams int64)
}

// Service sets and shows quotas.
type Service struct {
	Units   *unit.Runner
	Tokens  *store.Tokens // names every tenant
	Tenants Tenants       // of this gateway
	Slog    *slog.Logger

	store store.Quotas
}

var aggregate = unit.Aggregate[quota.State, quota.Set]{
	Kind: events.KindAccess, Subject: func(quota.State) string { return quota.Stream }, Decide: quota.Decide,
	Evolve: unit.ByPayload(quota.Evolve),
}

// mayAsk refuses questions about other tenants, but of the tenant of the installation.
func mayAsk(who model.Caller, tenant string) error {
	if tenant == who.Tenant || who.Tenant == events.DefaultTenant {
		return nil
	}
	return errs.New(errs.NotFound, "there is no tenant %q that you may see", tenant).At("path.tenant", "")
}

// Get returns the quota of a tenant: the caller's own or, for the tenant of the installation, any.
func (s *Service) Get(ctx context.Context, who model.Caller, tenant string) (out model.Quota, err error) {
	if err := mayAsk(who, tenant); err != nil {
		return out, err
	}
	err = s.Units.Once(ctx, in(who, tenant), func(u *unit.Work) error {
		// Before the bounds: who replaces what was read is refused once too often rather than not at all.
		head, err := u.Latest(ctx, events.KindAccess, quota.Stream)
		if err != nil {
			return err
		}
		if head.Exists() {
			out.Stream, out.Version = head.ID.String(), head.Version
		}
		if out.Hard, out.UpdatedAt, err = s.store.Get(ctx, u.Tx, tenant); err != nil {
			return err
		}
		out.Used.Subscriptions, out.Used.Catalogs, err = s.store.Count(ctx, u.Tx, tenant)
		return err
	})
	return s.counted(out, tenant), err
}

// counted adds what this gateway counts of a tenant.
func (s *Service) counted(q model.Quota, tenant string) model.Quota {
	q.Tenant, q.Gateways = tenant, s.Tenants.Gateways()
	q.Used.RequestsPerSecond, q.Used.Streams = s.Tenants.Used(tenant)
	return q
}

// List returns the quotas that the caller may see, by tenant: of those that have a token, an identity or a quota.
func (s *Service) List(ctx context.Context, who model.Caller) ([]model.Quota, error) {
	tenants := []string{who.Tenant}
	if who.Tenant == events.DefaultTenant {
		known, err := s.Tokens.List(ctx)
		if err != nil {
			return nil, err
		}
		bounded, _, err := s.store.Hard(ctx, s.Units.Work)
		if err != nil {
			return nil, err
		}
		tenants = slices.Concat(tenants, known, slices.Collect(maps.Keys(bounded)))
		slices.Sort(tenants)
		tenants = slices.Compact(tenants)
	}
	var list []model.Quota
	for _, tenant := range tenants {
		q, err := s.Get(ctx, who, tenant)
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

// Set replaces the bounds of a tenant, which nobody of it needs to have signed in yet. Only an administrator of the
// tenant of the installation does. What stands above a lower bound stays. The event is in the log of the tenant, whose
// people may know who decided.
func (s *Service) Set(
	ctx context.Context, who model.Caller, tenant string, hard model.HardQuota,
) (out model.Quota, err error) {
	if who.Tenant != events.DefaultTenant {
		return out, errs.New(errs.Forbidden, "an administrator of the tenant %q, which is that of the installation, sets "+
			"quotas", events.DefaultTenant)
	}
	out, position, err := unit.Write(ctx, s.Units, in(who, tenant), "intent quota",
		func(ctx context.Context, u *unit.Work) (model.Quota, error) { return s.setIn(ctx, u, hard) })
	if err != nil {
		return out, err
	}
	if err := s.load(ctx); err != nil { // it is set, and holds here a little later
		s.Slog.WarnContext(ctx, "quotas cannot be read; trying again", "error", err)
	}
	if tenant == who.Tenant {
		out.Position = position // one of another tenant's log is of no use here
	}
	return s.counted(out, tenant), nil
}

// setIn is Set in a unit of work. What it answers is what was decided, whatever others set in the next moment.
func (s *Service) setIn(ctx context.Context, u *unit.Work, hard model.HardQuota) (model.Quota, error) {
	out, tenant := model.Quota{Hard: hard}, u.Caller.Tenant
	d, err := unit.Change(ctx, u, aggregate, quota.Stream, quota.State{},
		func(quota.State) (quota.Set, error) { return quota.Set{Hard: hard.Event()}, nil })
	if err != nil {
		return out, err
	}
	if d.Version > 0 { // no bounds where there were none are no event
		out.Stream, out.Version = d.Stream.String(), d.Version
	}
	now, set, err := s.store.Get(ctx, u.Tx, tenant)
	if err != nil {
		return out, err
	}
	if set == nil || !quota.Same(now.Event(), hard.Event()) {
		set = &d.Time
		err = s.store.Set(ctx, u.Tx, tenant, hard, d.Time)
	}
	if err != nil {
		return out, err
	}
	out.UpdatedAt = set
	out.Used.Subscriptions, out.Used.Catalogs, err = s.store.Count(ctx, u.Tx, tenant)
	return out, err
}

// Follow holds tenants to their bounds of requests and streams, until ctx ends. It returns nil. While the database is
// away, those that were read last hold.
func (s *Service) Follow(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if err := s.load(ctx); err != nil && ctx.Err() == nil && !errs.Is(err, errs.Unavailable) {
			s.Slog.WarnContext(ctx, "quotas cannot be read; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) load(ctx context.Context) error {
	hard, gateways, err := s.store.Hard(ctx, s.Units.Work)
	if err != nil {
		return err
	}
	bounds := map[string]quota.Bounds{}
	for tenant, h := range hard {
		bounds[tenant] = quota.Bounds{Requests: h.RequestsPerSecond, Streams: h.Streams}
	}
	s.Tenants.Set(bounds, gateways)
	return nil
}

// in is the caller, at work in a tenant.
func in(who model.Caller, tenant string) model.Caller {
	who.Tenant = tenant
	return who
}
