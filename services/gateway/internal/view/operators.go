package view

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// historyKept is how many transitions of a CSV are shown (R-CSV-5); the log has them all.
const historyKept = 20

func operatorsProjection() projection.Projection {
	return projection.Projection{
		Name: Operators, Version: 1, Schema: schema, Tables: []string{"operators"},
		Types: typesOf(events.CSVPhaseChanged{}, events.CSVRemoved{}, events.CSVFlapping{}),
		Apply: applyOperator,
	}
}

func applyOperator(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
	cluster, namespace, name, err := scope(e)
	if err != nil {
		return err
	}
	table := t.Name("operators")
	switch p := e.Payload.(type) {
	case events.CSVPhaseChanged:
		entry := []model.Phase{{Phase: p.Phase, Reason: p.Reason, Time: e.Time, Event: e.ID}}
		return exec(ctx, tx, `insert into `+table+` as o (tenant, cluster, namespace, name, package, csv_version, phase, reason, content, plan,
				flapping, history, installed, updated, stream, version)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, false, $11, $12, $12, $13, $14)
			on conflict (tenant, cluster, namespace, name) do update set package = excluded.package, csv_version = excluded.csv_version,
				phase = excluded.phase, reason = excluded.reason, content = excluded.content, plan = excluded.plan, flapping = false,
				history = case when jsonb_array_length(o.history) >= $15 then o.history - 0 else o.history end || excluded.history,
				updated = excluded.updated, stream = excluded.stream, version = excluded.version`,
			e.Tenant, cluster, namespace, name, p.Package, p.Version, p.Phase, p.Reason, p.Content, p.Plan,
			entry, e.Time, e.Stream, e.Version, historyKept)
	case events.CSVFlapping:
		return exec(ctx, tx, `update `+table+` set flapping = true, updated = $5, version = $6
			where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
			e.Tenant, cluster, namespace, name, e.Time, e.Version)
	case events.CSVRemoved:
		return exec(ctx, tx, `delete from `+table+` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
			e.Tenant, cluster, namespace, name)
	default:
		return unknown(e)
	}
}

const operatorColumns = `select o.cluster, o.namespace, o.name, o.package, o.csv_version, o.phase, o.reason, o.content, o.plan,
	o.flapping, o.history, o.installed, o.updated, o.stream, o.version from gateway.operators o`

func scanOperator(row pgx.Row) (model.Operator, error) {
	var o model.Operator
	err := row.Scan(&o.Cluster, &o.Namespace, &o.Name, &o.Package, &o.Version, &o.Phase, &o.Reason, &o.Content, &o.Plan,
		&o.Flapping, &o.History, &o.InstalledAt, &o.UpdatedAt, &o.Stream, &o.StreamVersion)
	return o, err
}

func sayOperators(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	return say(ctx, q, tenant, messageCSV, items, func(o *model.Operator) (string, *string) {
		return o.Cluster + "/" + o.Namespace + "/" + o.Name, &o.Message
	})
}

// Operators lists installed operators by cluster, namespace and name.
func (r *Reader) Operators(ctx context.Context, who model.Caller, f model.OperatorFilter) (items []model.Operator, next []string, err error) {
	var w where
	w.add("o.tenant = ?", who.Tenant)
	w.equal("o.cluster", f.Cluster)
	w.equal("o.namespace", f.Namespace)
	w.equal("o.package", f.Package)
	w.equal("o.phase", f.Phase)
	if err := w.after(f.After, "o.cluster", "o.namespace", "o.name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		items, more, err = page(ctx, tx, operatorColumns+w.String()+" order by o.cluster, o.namespace, o.name", w.args, f.Limit, scanOperator)
		if more {
			last := items[len(items)-1]
			next = []string{last.Cluster, last.Namespace, last.Name}
		}
		if err != nil {
			return err
		}
		return sayOperators(ctx, tx, who.Tenant, items)
	})
	return items, next, err
}

// Operator returns one installed operator.
func (r *Reader) Operator(ctx context.Context, who model.Caller, cluster, namespace, name string) (o model.Operator, err error) {
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		o, err = one(ctx, tx, operatorColumns+` where o.tenant = $1 and o.cluster = $2 and o.namespace = $3 and o.name = $4`,
			[]any{who.Tenant, cluster, namespace, name},
			errs.New(errs.NotFound, "no operator %q is installed in namespace %q of cluster %q", name, namespace, cluster), scanOperator)
		if err != nil {
			return err
		}
		items := []model.Operator{o}
		err = sayOperators(ctx, tx, who.Tenant, items)
		o = items[0]
		return err
	})
	return o, err
}

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
