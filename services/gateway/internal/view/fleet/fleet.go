package fleet

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/fleetsubscription"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

const columns = `select s.name, s.spec, s.created, s.updated, s.stream, s.version, coalesce(w.waits, '') as waits,
	h.held from fleet_subscriptions s
	left join resolver_api.fleet_waits w on w.tenant = s.tenant and w.name = s.name
	left join resolver_api.fleet_held h on h.tenant = s.tenant and h.name = s.name`

type row struct {
	Name    string
	Spec    events.FleetSubscriptionSpec
	Created time.Time
	Updated time.Time
	Stream  string
	Version int64
	Waits   string
	Held    *fleetmodel.FleetHeld
}

func (r row) answer() fleetmodel.FleetSubscription {
	if r.Held != nil {
		r.Held.FleetSubscription, r.Held.Reason = r.Name, fleetmodel.ReasonBudget
	}
	return fleetmodel.FleetSubscription{
		Name: r.Name, Spec: fleetmodel.FleetSpec(r.Spec),
		Status:    fleetmodel.FleetStatus{WaitsFor: r.Waits, HeldBack: r.Held},
		CreatedAt: r.Created, UpdatedAt: r.Updated, Stream: r.Stream, Version: r.Version,
	}
}

// Reader answers queries about fleet subscriptions and rollouts.
type Reader struct {
	Pool   *pg.Pool
	Bodies *readmodel.Bodies // for configurations, and why clusters were skipped
}

// List returns fleet subscriptions by name, each with its newest rollout.
func (r *Reader) List(
	ctx context.Context, who model.Caller, page model.Page,
) (items []fleetmodel.FleetSubscription, next []string, err error) {
	w := readmodel.Tenant("s.tenant", who.Tenant)
	if err := w.After(page.After, "s.name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[row](ctx, tx, columns, w, "s.name", page.Limit)
		if err != nil {
			return err
		}
		names := make([]string, len(rows))
		for i, x := range rows {
			items, names[i] = append(items, x.answer()), x.Name
		}
		if more {
			next = []string{names[len(names)-1]}
		}
		return addNewest(ctx, tx, who.Tenant, names, items)
	})
	return items, next, err
}

// Get returns one fleet subscription with its configuration and its newest rollout.
func (r *Reader) Get(ctx context.Context, who model.Caller, name string) (s fleetmodel.FleetSubscription, err error) {
	w := readmodel.Tenant("s.tenant", who.Tenant)
	w.Add("s.name = ?", name)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		x, err := readmodel.One[row](ctx, tx, columns, w, fleetsubscription.NotFound(name))
		if err != nil {
			return err
		}
		one := []fleetmodel.FleetSubscription{x.answer()}
		if err := addNewest(ctx, tx, who.Tenant, []string{name}, one); err != nil {
			return err
		}
		s = one[0]
		return r.addConfigs(ctx, tx, who, x.Spec, &s)
	})
	return s, err
}

// addConfigs adds the configuration of a fleet subscription and those of its overrides.
func (r *Reader) addConfigs(
	ctx context.Context, tx pgx.Tx, who model.Caller, e events.FleetSubscriptionSpec, s *fleetmodel.FleetSubscription,
) error {
	commitments := []string{e.Config}
	for _, o := range e.Overrides {
		commitments = append(commitments, o.Config)
	}
	opened, err := r.Bodies.Read(ctx, tx, who.Tenant, commitments...)
	if err != nil {
		return err
	}
	hides := !who.May(access.Update, access.FleetSubscriptions, access.Target{})
	read := func(commitment string) json.RawMessage {
		config := json.RawMessage(opened.Text(commitment, model.PartConfig, &s.Unreadable))
		if hides {
			return subscription.HideValues(config)
		}
		return config
	}
	s.Spec.Config = read(e.Config)
	for i, o := range e.Overrides {
		s.Spec.Overrides[i].Config = read(o.Config)
	}
	return nil
}

// addNewest adds the newest rollout of each.
func addNewest(
	ctx context.Context, tx pgx.Tx, tenant string, names []string, items []fleetmodel.FleetSubscription,
) error {
	w := readmodel.Tenant("r.tenant", tenant)
	w.Add(`r.fleet = any (?) and not exists (select from rollouts n where n.tenant = r.tenant and n.fleet = r.fleet
		and n.number > r.number)`, names)
	newest, _, err := rolloutPage(ctx, tx, tenant, w, len(names))
	if err != nil {
		return err
	}
	for i := range newest {
		for j := range items {
			if items[j].Name == newest[i].FleetSubscription {
				items[j].Status.Rollout = &newest[i]
			}
		}
	}
	return nil
}
