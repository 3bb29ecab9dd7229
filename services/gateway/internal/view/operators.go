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
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// historyKept is how many transitions of a CSV are shown (R-CSV-5); the log has them all.
const historyKept = 20

func operatorsProjection() projection.Projection {
	return projection.Projection{
		Name: Operators, Version: 2, Schema: schema, Tables: []string{"operators"},
		Types: append(typesOf(events.CSVPhaseChanged{}, events.CSVRemoved{}, events.CSVFlapping{}), removalTypes()...),
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
		return applyRemoval(ctx, tx, t, e)
	}
}

// removalTypes are the events about requests to uninstall; csv.removed.v1 ends them, too.
func removalTypes() []events.Type {
	return typesOf(events.CSVRemovalRequested{}, events.CSVRemovalStarted{}, events.CSVRemovalBlocked{}, events.CSVRemovalRefused{})
}

// applyRemoval keeps the request that was made last. A block stands until the operator is gone: what follows it in the
// cluster is no event.
func applyRemoval(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
	cluster, namespace, name, err := scope(e)
	if err != nil {
		return err
	}
	change := map[string]any{"since": e.Time, "class": "", "reason": ""}
	switch p := e.Payload.(type) {
	case events.CSVRemovalRequested:
		change["id"], change["crds"], change["plan"], change["by"], change["phase"] = p.Removal, p.CRDs, p.Plan, e.Actor, model.RemovalAsked
	case events.CSVRemovalStarted:
		change["phase"] = model.RemovalStarted
	case events.CSVRemovalBlocked:
		change["phase"], change["class"], change["reason"] = model.RemovalBlocked, p.Class, p.Reason
	case events.CSVRemovalRefused:
		change["phase"], change["reason"] = model.RemovalRefused, p.Reason
	default:
		return unknown(e)
	}
	return exec(ctx, tx, `update `+t.Name("operators")+` set removal = coalesce(removal, '{}') || $5, updated = $6, version = $7
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`, e.Tenant, cluster, namespace, name, change, e.Time, e.Version)
}

const operatorColumns = `select o.cluster, o.namespace, o.name, o.package, o.csv_version, o.phase, o.reason, o.content, o.plan,
	o.flapping, o.removal, o.history, o.installed, o.updated, o.stream, o.version from gateway.operators o`

func scanOperator(row pgx.Row) (model.Operator, error) {
	var o model.Operator
	err := row.Scan(&o.Cluster, &o.Namespace, &o.Name, &o.Package, &o.Version, &o.Phase, &o.Reason, &o.Content, &o.Plan,
		&o.Flapping, &o.Removal, &o.History, &o.InstalledAt, &o.UpdatedAt, &o.Stream, &o.StreamVersion)
	return o, err
}

func sayRemovals(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	return say(ctx, q, tenant, messageRemoval, items, func(o *model.Operator) (string, *string) {
		if o.Removal == nil {
			return "", nil
		}
		return o.Cluster + "/" + o.Namespace + "/" + o.Name, &o.Removal.Message
	})
}

func sayOperators(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	if err := sayRemovals(ctx, q, tenant, items); err != nil {
		return err
	}
	if err := operatorConditions(ctx, q, tenant, items); err != nil {
		return err
	}
	return say(ctx, q, tenant, messageCSV, items, func(o *model.Operator) (string, *string) {
		return o.Cluster + "/" + o.Namespace + "/" + o.Name, &o.Message
	})
}

// operatorConditions adds what clusters tell of operators whatever their phase. Most have none.
func operatorConditions(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	at := map[string]*model.Operator{}
	var clusters, namespaces, names []string
	for i := range items {
		o := &items[i]
		o.Conditions = []model.Condition{}
		at[o.Cluster+"/"+o.Namespace+"/"+o.Name] = o
		clusters, namespaces, names = append(clusters, o.Cluster), append(namespaces, o.Namespace), append(names, o.Name)
	}
	if len(items) == 0 {
		return nil
	}
	rows, err := q.Query(ctx, `select cluster || '/' || namespace || '/' || name, conditions::text from installer_api.operator_details
		where tenant = $1 and cluster = any ($2) and namespace = any ($3) and name = any ($4) and conditions::text <> '[]'`, tenant, clusters, namespaces, names)
	if err != nil {
		return pg.Err(err)
	}
	var key, raw string
	_, err = pgx.ForEachRow(rows, []any{&key, &raw}, func() error {
		o := at[key]
		if o == nil {
			return nil // another one of these clusters, namespaces and names
		}
		return unpack("operator "+key, detail{&raw, &o.Conditions})
	})
	return pg.Err(err)
}

// servedBy chooses operators by a namespace that they serve: the one group of their own namespace has it among its
// targets, or serves all. It is what OLM's users read off copied ClusterServiceVersions (R-OG-25).
const servedBy = `exists (select from gateway.operatorgroups g where g.tenant = o.tenant and g.cluster = o.cluster and g.namespace = o.namespace
	and (g.targets @> to_jsonb(?::text) or g.targets @> '[""]')
	and not exists (select from gateway.operatorgroups x where x.tenant = g.tenant and x.cluster = g.cluster and x.namespace = g.namespace and x.name <> g.name))`

// Operators lists installed operators by cluster, namespace and name.
func (r *Reader) Operators(ctx context.Context, who model.Caller, f model.OperatorFilter) (items []model.Operator, next []string, err error) {
	var w where
	w.add("o.tenant = ?", who.Tenant)
	w.equal("o.cluster", f.Cluster)
	w.equal("o.namespace", f.Namespace)
	w.equal("o.package", f.Package)
	w.equal("o.phase", f.Phase)
	if f.Serves != "" {
		w.add(servedBy, f.Serves)
	}
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
		if err := sayOperators(ctx, tx, who.Tenant, items); err != nil {
			return err
		}
		o = items[0]
		o.Details, err = operatorDetails(ctx, tx, who.Tenant, o)
		return err
	})
	return o, err
}

// operatorDetails are nil where the executor has told none.
func operatorDetails(ctx context.Context, tx pgx.Tx, tenant string, o model.Operator) (*model.OperatorDetails, error) {
	d := model.OperatorDetails{Requirements: []model.Requirement{}}
	var requirements, condition, cut *string
	var drift, components, unready string
	err := pg.Err(tx.QueryRow(ctx, `select requirements::text, condition::text, drift::text, components::text, cut::text, updated, not_ready::text from installer_api.operator_details
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`, tenant, o.Cluster, o.Namespace, o.Name).
		Scan(&requirements, &condition, &drift, &components, &cut, &d.UpdatedAt, &unready))
	if errs.Is(err, errs.NotFound) {
		return nil, nil //nolint:nilnil // nothing was told yet
	}
	if err != nil {
		return nil, err
	}
	err = unpack("operator "+o.Cluster+"/"+o.Namespace+"/"+o.Name,
		detail{requirements, &d.Requirements}, detail{condition, &d.Condition}, detail{&drift, &d.Drift}, detail{&components, &d.Components},
		detail{cut, &d.LeftOut}, detail{&unready, &d.NotReady})
	if err != nil {
		return nil, err
	}
	d.RemovedAPIs, err = removedOf(ctx, tx, tenant, o, d)
	return &d, err
}

// Leftovers lists what uninstalled operators left (R-UNI-7), by cluster, namespace and name.
func (r *Reader) Leftovers(ctx context.Context, who model.Caller, f model.LeftoverFilter) (items []model.Leftovers, next []string, err error) {
	var w where
	w.add("l.tenant = ?", who.Tenant)
	w.equal("l.cluster", f.Cluster)
	w.equal("l.namespace", f.Namespace)
	w.equal("l.package", f.Package)
	if err := w.after(f.After, "l.cluster", "l.namespace", "l.csv"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		items, more, err = page(ctx, tx, `select l.cluster, l.namespace, l.csv, l.package, l.removal, l.removed, l.objects, l.more from installer_api.leftovers l`+
			w.String()+" order by l.cluster, l.namespace, l.csv", w.args, f.Limit, func(row pgx.Row) (l model.Leftovers, err error) {
			return l, row.Scan(&l.Cluster, &l.Namespace, &l.Name, &l.Package, &l.Removal, &l.RemovedAt, &l.Objects, &l.More)
		})
		if more {
			last := items[len(items)-1]
			next = []string{last.Cluster, last.Namespace, last.Name}
		}
		return err
	})
	return items, next, err
}

// Subscribers names the subscriptions that want an operator: it is what they have or are to have, or it is of their
// package.
func (r *Reader) Subscribers(ctx context.Context, q pg.Querier, tenant, cluster, namespace, csv, packageName string) ([]string, error) {
	rows, err := q.Query(ctx, `select name from gateway.subscriptions where tenant = $1 and cluster = $2 and namespace = $3
		and ($4 in (installed_csv, current_csv) or package = $5) order by name`, tenant, cluster, namespace, csv, packageName)
	if err != nil {
		return nil, pg.Err(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, pg.Err(err)
}

func operatorGroupsProjection() projection.Projection {
	return projection.Projection{
		Name: OperatorGroups, Version: 3, Schema: schema, Tables: []string{"operatorgroups"},
		Types: typesOf(events.OperatorGroupCreated{}, events.OperatorGroupChanged{}, events.OperatorGroupMetadataChanged{}, events.OperatorGroupObserved{}, events.OperatorGroupDeleted{}),
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
		return exec(ctx, tx, `insert into `+table+` (tenant, cluster, namespace, name, spec, targets, provided, event_id, created, updated, stream, version)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11)
			on conflict (tenant, cluster, namespace, name) do update set spec = excluded.spec, targets = excluded.targets, provided = excluded.provided,
				labels = '{}', annotations = '',
				event_id = excluded.event_id, created = excluded.created, updated = excluded.updated, stream = excluded.stream, version = excluded.version`,
			e.Tenant, cluster, namespace, name, p.Spec, declaredTargets(p.Spec), list(p.Spec.ProvidedAPIs), e.ID, e.Time, e.Stream, e.Version)
	case events.OperatorGroupChanged:
		// Until the cluster has told what a selector chooses, what it chose before stands.
		return exec(ctx, tx, `update `+table+` set spec = $5, targets = case when $6 then targets else $7 end, event_id = $8, updated = $9, version = $10
			where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
			e.Tenant, cluster, namespace, name, p.Spec, selects(p.Spec), declaredTargets(p.Spec), e.ID, e.Time, e.Version)
	case events.OperatorGroupMetadataChanged:
		return exec(ctx, tx, `update `+table+` set labels = $5, annotations = $6, updated = $7, version = $8
			where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
			e.Tenant, cluster, namespace, name, labelsOf(p.Metadata), p.Metadata.Annotations, e.Time, e.Version)
	case events.OperatorGroupObserved:
		return exec(ctx, tx, `update `+table+` set targets = $5, provided = $6, observed_since = case when conditions = $7 then observed_since else $9 end,
				observed_event = case when conditions = $7 then observed_event else $8 end, conditions = $7, version = $10
			where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
			e.Tenant, cluster, namespace, name, list(p.Targets), list(p.ProvidedAPIs), list(p.Conditions), e.ID, e.Time, e.Version)
	case events.OperatorGroupDeleted:
		return exec(ctx, tx, `delete from `+table+` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
			e.Tenant, cluster, namespace, name)
	default:
		return unknown(e)
	}
}

// list is a slice that JSON writes as a list, empty or not.
func list(s []string) []string { return append([]string{}, s...) }

// selects reports a group whose targets are known in the cluster alone.
func selects(s events.OperatorGroupSpec) bool { return len(s.TargetNamespaces) == 0 && !s.Global() }

// declaredTargets are the targets as far as the intent says them.
func declaredTargets(s events.OperatorGroupSpec) []string {
	if s.Global() {
		return []string{""}
	}
	return list(s.TargetNamespaces)
}

// groupReasons are the reasons of the conditions that the cluster tells by their type alone (R-OG §7.1).
var groupReasons = map[string]string{
	protocol.GroupServiceAccount: "ServiceAccountNotFound",
	protocol.GroupTargetsMissing: "NamespaceNotFound",
	protocol.GroupForbidden:      "Forbidden",
	protocol.GroupUnattended:     "TriedAgain",
}

// The newest sibling is what makes a namespace have several groups (R-OG-2).
const groupColumns = `select g.cluster, g.namespace, g.name, g.spec, g.targets, g.provided, g.conditions, g.observed_event, g.observed_since,
	g.labels, g.annotations, g.created, g.updated, g.stream, g.version, coalesce(s.event_id, ''), s.created
	from gateway.operatorgroups g left join lateral (
		select o.event_id, o.created from gateway.operatorgroups o
		where o.tenant = g.tenant and o.cluster = g.cluster and o.namespace = g.namespace and o.name <> g.name
		order by o.created desc, o.name limit 1) s on true`

// groupRow is an operator group with what its answer does not show.
type groupRow struct {
	model.OperatorGroup
	annotations string // commitment
}

func scanGroup(row pgx.Row) (groupRow, error) {
	g := groupRow{OperatorGroup: model.OperatorGroup{Conditions: []model.Condition{}}}
	var spec events.OperatorGroupSpec
	var sibling, event string
	var since, observed *time.Time
	var codes []string
	err := row.Scan(&g.Cluster, &g.Namespace, &g.Name, &spec, &g.Targets, &g.ProvidedAPIs, &codes, &event, &observed, &g.Labels, &g.annotations, &g.CreatedAt, &g.UpdatedAt, &g.Stream, &g.Version, &sibling, &since)
	g.Spec = model.OperatorGroupSpec(spec)
	if sibling != "" && since != nil {
		g.Conditions = append(g.Conditions, model.Condition{
			Type: "MultipleOperatorGroup", Status: "True", Reason: "MultipleOperatorGroupsFound",
			Message: "the namespace has more than one operator group: its plans wait until one is left",
			Since:   later(*since, g.CreatedAt), Event: sibling,
		})
	}
	for _, code := range codes {
		if observed != nil {
			g.Conditions = append(g.Conditions, model.Condition{Type: code, Status: "True", Reason: groupReasons[code], Since: *observed, Event: event})
		}
	}
	return g, err
}

// sayGroups adds what the cluster says to each condition that it told.
func sayGroups(ctx context.Context, q pg.Querier, tenant string, items []groupRow) error {
	type told struct {
		subject   string
		condition *model.Condition
	}
	var all []told
	for _, g := range items {
		for i := range g.Conditions {
			if c := &g.Conditions[i]; c.Message == "" {
				all = append(all, told{g.Cluster + "/" + g.Namespace + "/" + g.Name + "/" + c.Type, c})
			}
		}
	}
	return say(ctx, q, tenant, messageGroup, all, func(t *told) (string, *string) { return t.subject, &t.condition.Message })
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// OperatorGroups lists operator groups by cluster, namespace and name.
func (r *Reader) OperatorGroups(ctx context.Context, who model.Caller, f model.GroupFilter) (items []model.OperatorGroup, next []string, err error) {
	var w where
	w.add("g.tenant = ?", who.Tenant)
	w.equal("g.cluster", f.Cluster)
	w.equal("g.namespace", f.Namespace)
	if err := w.label("g.labels", f.Label); err != nil {
		return nil, nil, err
	}
	if err := w.after(f.After, "g.cluster", "g.namespace", "g.name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := page(ctx, tx, groupColumns+w.String()+" order by g.cluster, g.namespace, g.name", w.args, f.Limit, scanGroup)
		if err != nil {
			return err
		}
		if more {
			last := rows[len(rows)-1]
			next = []string{last.Cluster, last.Namespace, last.Name}
		}
		err = sayGroups(ctx, tx, who.Tenant, rows)
		for _, g := range rows {
			items = append(items, g.OperatorGroup)
		}
		return err
	})
	return items, next, err
}

// OperatorGroup returns one operator group.
func (r *Reader) OperatorGroup(ctx context.Context, who model.Caller, cluster, namespace, name string) (g model.OperatorGroup, err error) {
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		row, err := one(ctx, tx, groupColumns+` where g.tenant = $1 and g.cluster = $2 and g.namespace = $3 and g.name = $4`,
			[]any{who.Tenant, cluster, namespace, name},
			errs.New(errs.NotFound, "no operator group %q exists in namespace %q of cluster %q", name, namespace, cluster), scanGroup)
		if err != nil {
			return err
		}
		rows := []groupRow{row}
		if err := sayGroups(ctx, tx, who.Tenant, rows); err != nil {
			return err
		}
		g = rows[0].OperatorGroup
		return annotations(ctx, tx, who.Tenant, row.annotations, &g.Metadata)
	})
	return g, err
}
