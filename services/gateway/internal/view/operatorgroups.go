package view

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func operatorGroupsProjection() projection.Projection {
	return projection.Projection{
		Name: OperatorGroups, Version: 1, Schema: schema, Tables: []string{"operatorgroups"},
		Types: typesOf(events.OperatorGroupCreated{}, events.OperatorGroupChanged{}, events.OperatorGroupDeleted{}),
		Apply: applyOperatorGroup,
	}
}

func applyOperatorGroup(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
	cluster, namespace, name, err := scope(e)
	if err != nil {
		return err
	}
	table := t.Name("operatorgroups")
	switch p := e.Payload.(type) {
	case events.OperatorGroupCreated:
		return exec(ctx, tx, `insert into `+table+` (tenant, cluster, namespace, name, spec, event_id, created, updated, stream, version)
			values ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9)
			on conflict (tenant, cluster, namespace, name) do update set spec = excluded.spec, event_id = excluded.event_id,
				created = excluded.created, updated = excluded.updated, stream = excluded.stream, version = excluded.version`,
			e.Tenant, cluster, namespace, name, p.Spec, e.ID, e.Time, e.Stream, e.Version)
	case events.OperatorGroupChanged:
		return exec(ctx, tx, `update `+table+` set spec = $5, event_id = $6, updated = $7, version = $8
			where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
			e.Tenant, cluster, namespace, name, p.Spec, e.ID, e.Time, e.Version)
	case events.OperatorGroupDeleted:
		return exec(ctx, tx, `delete from `+table+` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
			e.Tenant, cluster, namespace, name)
	default:
		return unknown(e)
	}
}

// The newest sibling is what makes a namespace have several groups (R-OG-2).
const groupColumns = `select g.cluster, g.namespace, g.name, g.spec, g.created, g.updated, g.stream, g.version,
	coalesce(s.event_id, ''), s.created
	from gateway.operatorgroups g left join lateral (
		select o.event_id, o.created from gateway.operatorgroups o
		where o.tenant = g.tenant and o.cluster = g.cluster and o.namespace = g.namespace and o.name <> g.name
		order by o.created desc, o.name limit 1) s on true`

func scanGroup(row pgx.Row) (model.OperatorGroup, error) {
	g := model.OperatorGroup{Conditions: []model.Condition{}}
	var spec events.OperatorGroupSpec
	var sibling string
	var since *time.Time
	err := row.Scan(&g.Cluster, &g.Namespace, &g.Name, &spec, &g.CreatedAt, &g.UpdatedAt, &g.Stream, &g.Version, &sibling, &since)
	g.Spec = model.OperatorGroupSpec(spec)
	if sibling != "" && since != nil {
		g.Conditions = append(g.Conditions, model.Condition{
			Type: "MultipleOperatorGroup", Status: "True", Reason: "MultipleOperatorGroupsFound",
			Message: "the namespace has more than one operator group: its plans wait until one is left",
			Since:   later(*since, g.CreatedAt), Event: sibling,
		})
	}
	return g, err
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// OperatorGroups lists operator groups by cluster, namespace and name.
func (r *Reader) OperatorGroups(ctx context.Context, who model.Caller, f model.ScopeFilter) (items []model.OperatorGroup, next []string, err error) {
	var w where
	w.add("g.tenant = ?", who.Tenant)
	w.equal("g.cluster", f.Cluster)
	w.equal("g.namespace", f.Namespace)
	if err := w.after(f.After, "g.cluster", "g.namespace", "g.name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		items, more, err = page(ctx, tx, groupColumns+w.String()+" order by g.cluster, g.namespace, g.name", w.args, f.Limit, scanGroup)
		if more {
			last := items[len(items)-1]
			next = []string{last.Cluster, last.Namespace, last.Name}
		}
		return err
	})
	return items, next, err
}

// OperatorGroup returns one operator group.
func (r *Reader) OperatorGroup(ctx context.Context, who model.Caller, cluster, namespace, name string) (g model.OperatorGroup, err error) {
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		g, err = one(ctx, tx, groupColumns+` where g.tenant = $1 and g.cluster = $2 and g.namespace = $3 and g.name = $4`,
			[]any{who.Tenant, cluster, namespace, name},
			errs.New(errs.NotFound, "no operator group %q exists in namespace %q of cluster %q", name, namespace, cluster), scanGroup)
		return err
	})
	return g, err
}
