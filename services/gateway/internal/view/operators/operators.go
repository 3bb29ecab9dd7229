// Package operators is the read model of installed operators, and of what uninstalled ones left.
package operators

import (
	"context"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Name is the name of the projection.
const Name = "gateway.operators"

// historyKept is how many transitions of a CSV are shown (R-CSV-5); the log has them all.
const historyKept = 20

// Projection folds the events of ClusterServiceVersions.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 2, []string{"operators"},
		readmodel.On(phaseChanged), readmodel.On(flapping), readmodel.On(removed),
		readmodel.On(removalRequested), readmodel.On(removalStarted), readmodel.On(removalBlocked),
		readmodel.On(removalRefused))
}

func phaseChanged(ctx context.Context, f readmodel.Fold, p events.CSVPhaseChanged) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	entry := []model.Phase{{Phase: p.Phase, Reason: p.Reason, Time: f.Time, Event: f.ID}}
	return f.Exec(ctx, `insert into `+f.Table("operators")+
		` as o (tenant, cluster, namespace, name, package, csv_version, phase, reason, content, plan,
			flapping, history, installed, updated, stream, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, false, $11, $12, $12, $13, $14)
		on conflict (tenant, cluster, namespace,
			name) do update set package = excluded.package, csv_version = excluded.csv_version,
			phase = excluded.phase, reason = excluded.reason, content = excluded.content, plan = excluded.plan, flapping = false,
			history = case when jsonb_array_length(o.history) >= $15 then o.history - 0 else o.history end || excluded.history,
			updated = excluded.updated, stream = excluded.stream, version = excluded.version`,
		f.Tenant, cluster, namespace, name, p.Package, p.Version, p.Phase, p.Reason, p.Content, p.Plan,
		entry, f.Time, f.Stream, f.Version, historyKept)
}

func flapping(ctx context.Context, f readmodel.Fold, _ events.CSVFlapping) error {
	return update(ctx, f, `flapping = true`)
}

func removed(ctx context.Context, f readmodel.Fold, _ events.CSVRemoved) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	return f.Exec(ctx, `delete from `+f.Table("operators")+
		` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		f.Tenant, cluster, namespace, name)
}

func removalRequested(ctx context.Context, f readmodel.Fold, p events.CSVRemovalRequested) error {
	return removal(ctx, f, map[string]any{
		"id": p.Removal, "crds": p.CRDs, "plan": p.Plan, "by": f.Actor, "phase": model.RemovalAsked,
	})
}

func removalStarted(ctx context.Context, f readmodel.Fold, _ events.CSVRemovalStarted) error {
	return removal(ctx, f, map[string]any{"phase": model.RemovalStarted})
}

func removalBlocked(ctx context.Context, f readmodel.Fold, p events.CSVRemovalBlocked) error {
	return removal(ctx, f, map[string]any{"phase": model.RemovalBlocked, "class": p.Class, "reason": p.Reason})
}

func removalRefused(ctx context.Context, f readmodel.Fold, p events.CSVRemovalRefused) error {
	return removal(ctx, f, map[string]any{"phase": model.RemovalRefused, "reason": p.Reason})
}

// removal changes the request to uninstall that was made last. A block stands until the operator is gone: what follows
// it in the cluster is no event.
func removal(ctx context.Context, f readmodel.Fold, change map[string]any) error {
	all := map[string]any{"since": f.Time, "class": "", "reason": ""}
	maps.Copy(all, change)
	return update(ctx, f, `removal = coalesce(removal, '{}') || $7`, all)
}

// update changes the operator of the event's subject; arguments count from $7.
func update(ctx context.Context, f readmodel.Fold, set string, args ...any) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	return f.Exec(ctx, `update `+f.Table("operators")+` set updated = $5, version = $6, `+set+`
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		append([]any{f.Tenant, cluster, namespace, name, f.Time, f.Version}, args...)...)
}

const columns = `select o.cluster, o.namespace, o.name, o.package, o.csv_version, o.phase, o.reason, o.content, o.plan,
	o.flapping, o.removal, o.history, o.installed, o.updated, o.stream, o.version from operators o`

type row struct {
	Cluster    string
	Namespace  string
	Name       string
	Package    string
	CSVVersion string
	Phase      string
	Reason     string
	Content    string
	Plan       string
	Flapping   bool
	Removal    *model.Removal
	History    []model.Phase
	Installed  time.Time
	Updated    time.Time
	Stream     string
	Version    int64
}

func (r row) answer() model.Operator {
	return model.Operator{
		Cluster: r.Cluster, Namespace: r.Namespace, Name: r.Name, Package: r.Package, Version: r.CSVVersion,
		Phase: r.Phase, Reason: r.Reason, Content: r.Content, Plan: r.Plan, Flapping: r.Flapping, Removal: r.Removal,
		History: r.History, InstalledAt: r.Installed, UpdatedAt: r.Updated, Stream: r.Stream, StreamVersion: r.Version,
	}
}

// addRemovalMessages adds what clusters say about removals.
func addRemovalMessages(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	return readmodel.AddMessages(ctx, q, tenant, readmodel.MessageRemoval, items,
		func(o *model.Operator) (string, *string) {
			if o.Removal == nil {
				return "", nil
			}
			return o.Cluster + "/" + o.Namespace + "/" + o.Name, &o.Removal.Message
		})
}

// addMessages adds conditions and what clusters say about operators.
func addMessages(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	if err := addRemovalMessages(ctx, q, tenant, items); err != nil {
		return err
	}
	if err := addConditions(ctx, q, tenant, items); err != nil {
		return err
	}
	return readmodel.AddMessages(ctx, q, tenant, readmodel.MessageCSV, items,
		func(o *model.Operator) (string, *string) {
			return o.Cluster + "/" + o.Namespace + "/" + o.Name, &o.Message
		})
}

// addConditions adds what clusters report of operators whatever their phase. Most have none.
func addConditions(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	at := map[string]*model.Operator{}
	var clusters, namespaces, names []string
	for i := range items {
		o := &items[i]
		o.Conditions = []model.Condition{}
		at[o.Cluster+"/"+o.Namespace+"/"+o.Name] = o
		clusters, namespaces, names = append(clusters, o.Cluster), append(namespaces, o.Namespace), append(names,
			o.Name)
	}
	if len(items) == 0 {
		return nil
	}
	rows, err := q.Query(ctx, `select cluster || '/' || namespace || '/' || name, conditions::text
		from installer_api.operator_details
		where tenant = $1 and cluster = any ($2) and namespace = any ($3) and name = any ($4)
		and conditions::text <> '[]'`, tenant, clusters, namespaces, names)
	if err != nil {
		return pg.Err(err)
	}
	var key, raw string
	_, err = pgx.ForEachRow(rows, []any{&key, &raw}, func() error {
		o := at[key]
		if o == nil {
			return nil // another one of these clusters, namespaces and names
		}
		return readmodel.Unpack("operator "+key, readmodel.Detail{Text: &raw, Into: &o.Conditions})
	})
	return pg.Err(err)
}

// servedBy chooses operators by a namespace that they serve: the one group of their own namespace has it among its
// targets, or serves all. It is what OLM's users read off copied ClusterServiceVersions (R-OG-25).
const servedBy = `exists (select from operatorgroups g where g.tenant = o.tenant and g.cluster = o.cluster
	and g.namespace = o.namespace
	and (g.targets @> to_jsonb(?::text) or g.targets @> '[""]')
	and not exists (select from operatorgroups x where x.tenant = g.tenant and x.cluster = g.cluster
	and x.namespace = g.namespace and x.name <> g.name))`

// Reader answers queries about installed operators.
type Reader struct{ Pool *pg.Pool }

// List returns installed operators by cluster, namespace and name.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.OperatorFilter,
) (items []model.Operator, next []string, err error) {
	w := readmodel.Tenant("o.tenant", who.Tenant)
	w.Within(who, access.List, access.Operators, readmodel.Places{Cluster: "o.cluster", Namespace: "o.namespace"})
	w.Equal("o.cluster", f.Cluster)
	w.Equal("o.namespace", f.Namespace)
	w.Equal("o.package", f.Package)
	w.Equal("o.phase", f.Phase)
	if f.Serves != "" {
		w.Add(servedBy, f.Serves)
	}
	if err := w.After(f.After, "o.cluster", "o.namespace", "o.name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[row](ctx, tx, columns, w, "o.cluster, o.namespace, o.name", f.Limit)
		if err != nil {
			return err
		}
		for _, x := range rows {
			items = append(items, x.answer())
		}
		if more {
			last := items[len(items)-1]
			next = []string{last.Cluster, last.Namespace, last.Name}
		}
		return addMessages(ctx, tx, who.Tenant, items)
	})
	return items, next, err
}

// Get returns one installed operator.
func (r *Reader) Get(
	ctx context.Context, who model.Caller, cluster, namespace, name string,
) (o model.Operator, err error) {
	w := readmodel.Tenant("o.tenant", who.Tenant)
	w.Add("o.cluster = ? and o.namespace = ? and o.name = ?", cluster, namespace, name)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		x, err := readmodel.One[row](ctx, tx, columns, w,
			errs.New(errs.NotFound, "no operator %q is installed in namespace %q of cluster %q", name, namespace,
				cluster))
		if err != nil {
			return err
		}
		items := []model.Operator{x.answer()}
		if err := addMessages(ctx, tx, who.Tenant, items); err != nil {
			return err
		}
		o = items[0]
		o.Details, err = details(ctx, tx, who.Tenant, o)
		return err
	})
	return o, err
}

// details are nil until the executor has reported them.
func details(ctx context.Context, tx pgx.Tx, tenant string, o model.Operator) (*model.OperatorDetails, error) {
	d := model.OperatorDetails{Requirements: []model.Requirement{}}
	var requirements, condition, cut *string
	var drift, components, notReady string
	err := pg.Err(tx.QueryRow(ctx, `select requirements::text, condition::text, drift::text, components::text,
		cut::text, updated, not_ready::text from installer_api.operator_details
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`, tenant, o.Cluster, o.Namespace, o.Name).
		Scan(&requirements, &condition, &drift, &components, &cut, &d.UpdatedAt, &notReady))
	if errs.Is(err, errs.NotFound) {
		return nil, nil //nolint:nilnil // nothing was reported yet
	}
	if err != nil {
		return nil, err
	}
	err = readmodel.Unpack("operator "+o.Cluster+"/"+o.Namespace+"/"+o.Name,
		readmodel.Detail{Text: requirements, Into: &d.Requirements},
		readmodel.Detail{Text: condition, Into: &d.Condition}, readmodel.Detail{Text: &drift, Into: &d.Drift},
		readmodel.Detail{Text: &components, Into: &d.Components}, readmodel.Detail{Text: cut, Into: &d.LeftOut},
		readmodel.Detail{Text: &notReady, Into: &d.NotReady})
	if err != nil {
		return nil, err
	}
	d.RemovedAPIs, err = removedOf(ctx, tx, tenant, o, d)
	return &d, err
}

// removedOf is what one operator uses and the next version of its cluster no longer serves.
func removedOf(
	ctx context.Context, q pg.Querier, tenant string, o model.Operator, d model.OperatorDetails,
) ([]model.RemovedAPI, error) {
	c, err := clusters.Observed(ctx, q, tenant, o.Cluster)
	if err != nil {
		return nil, err
	}
	return cluster.RemovedAPIs(c.KubernetesVersion,
		[]cluster.Installed{{
			Namespace: o.Namespace, CSV: o.Name, Components: d.Components,
			Requirements: d.Requirements,
		}}), nil
}

// Leftovers lists what uninstalled operators left (R-UNI-7), by cluster, namespace and name.
func (r *Reader) Leftovers(
	ctx context.Context, who model.Caller, f model.LeftoverFilter,
) (items []model.Leftovers, next []string, err error) {
	w := readmodel.Tenant("l.tenant", who.Tenant)
	w.Within(who, access.List, access.Operators, readmodel.Places{Cluster: "l.cluster", Namespace: "l.namespace"})
	w.Equal("l.cluster", f.Cluster)
	w.Equal("l.namespace", f.Namespace)
	w.Equal("l.package", f.Package)
	if err := w.After(f.After, "l.cluster", "l.namespace", "l.csv"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[leftoverRow](ctx, tx, `select l.cluster, l.namespace, l.csv, l.package,
			l.removal, l.removed, l.objects, l.more
			from installer_api.leftovers l`, w, "l.cluster, l.namespace, l.csv", f.Limit)
		for _, l := range rows {
			items = append(items, model.Leftovers{
				Cluster: l.Cluster, Namespace: l.Namespace, Name: l.CSV, Package: l.Package, Removal: l.Removal,
				RemovedAt: l.Removed, Objects: l.Objects, More: l.More,
			})
		}
		if more {
			last := items[len(items)-1]
			next = []string{last.Cluster, last.Namespace, last.Name}
		}
		return err
	})
	return items, next, err
}

type leftoverRow struct {
	Cluster, Namespace, CSV, Package, Removal string

	Removed time.Time
	Objects []model.Leftover
	More    int
}
