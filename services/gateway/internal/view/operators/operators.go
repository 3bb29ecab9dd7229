// Package operators is the read model of installed operators, and of what uninstalled ones left.
package operators

import (
	"context"
	"maps"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Name is the name of the projection.
const Name = "gateway.operators"

// historyKept is how many transitions of a CSV are shown (R-CSV-5); the log has them all.
const historyKept = 20

// Projection folds the events of ClusterServiceVersions.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 4, []string{"operators"},
		readmodel.On(phaseChanged), readmodel.On(flapping), readmodel.On(removed),
		readmodel.On(drifted), readmodel.On(driftEnded),
		readmodel.On(removalRequested), readmodel.On(removalDirected), readmodel.On(removalStarted),
		readmodel.On(removalBlocked),
		readmodel.On(removalRefused), readmodel.On(overridden), readmodel.On(overridesRemoved))
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

// drifted counts the objects that are not as they were written; since is when the first of them was found.
func drifted(ctx context.Context, f readmodel.Fold, p events.CSVDrifted) error {
	return update(ctx, f, `drifted = $7, drift_policy = $8, drift_since = coalesce(drift_since, $5)`, p.Objects, p.Policy)
}

func driftEnded(ctx context.Context, f readmodel.Fold, _ events.CSVDriftEnded) error {
	return update(ctx, f, `drifted = 0, drift_policy = '', drift_since = null`)
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

func removalDirected(ctx context.Context, f readmodel.Fold, p events.CSVRemovalDirected) error {
	return removal(ctx, f, map[string]any{
		"id": p.Removal, "crds": p.CRDs, "plan": "", "by": "fleet subscription " + p.FleetSubscription,
		"phase": model.RemovalAsked,
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

func overridden(ctx context.Context, f readmodel.Fold, p events.OperatorConditionOverridden) error {
	return update(ctx, f, `overrides = $7`, model.OverridesOf(p.Overrides, f.Actor, f.Time))
}

func overridesRemoved(ctx context.Context, f readmodel.Fold, _ events.OperatorConditionOverridesRemoved) error {
	return update(ctx, f, `overrides = null`)
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
	o.flapping, o.drifted, o.drift_policy, o.drift_since, o.removal, o.overrides, o.history::text as history, o.installed, o.updated, o.stream,
	o.version from operators o`

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
	Overrides  *model.Overrides
	History    history
	Installed  time.Time
	Updated    time.Time
	Stream     string
	Version    int64
	drift
}

// drift is what of an operator is not as it was written.
type drift struct {
	Drifted     int
	DriftPolicy string
	DriftSince  *time.Time
}

func (d drift) answer() *model.OperatorDrift {
	if d.Drifted == 0 || d.DriftSince == nil {
		return nil
	}
	return &model.OperatorDrift{Objects: d.Drifted, Policy: d.DriftPolicy, Since: *d.DriftSince}
}

func (r row) answer() model.Operator {
	return model.Operator{
		Cluster: r.Cluster, Namespace: r.Namespace, Name: r.Name, Package: r.Package, Version: r.CSVVersion,
		Phase: r.Phase, Reason: r.Reason, Content: r.Content, Plan: r.Plan, Flapping: r.Flapping,
		Drift: r.drift.answer(), Removal: r.Removal, Overrides: r.Overrides,
		History: r.History, OperatorRecord: model.OperatorRecord{
			InstalledAt: r.Installed, UpdatedAt: r.Updated, Stream: r.Stream, StreamVersion: r.Version,
		},
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

// addMessages adds what clusters say about operators in words.
func addMessages(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	if err := addRemovalMessages(ctx, q, tenant, items); err != nil {
		return err
	}
	return readmodel.AddMessages(ctx, q, tenant, readmodel.MessageCSV, items,
		func(o *model.Operator) (string, *string) {
			return o.Cluster + "/" + o.Namespace + "/" + o.Name, &o.Message
		})
}

// servedBy chooses operators by a namespace that they serve: the one group of their own namespace has it among its
// targets, or serves all. It is what OLM's users read off copied ClusterServiceVersions (R-OG-25).
const servedBy = `exists (select from operatorgroups g where g.tenant = o.tenant and g.cluster = o.cluster
	and g.namespace = o.namespace
	and (g.targets @> to_jsonb(?::text) or g.targets @> '[""]')
	and not exists (select from operatorgroups x where x.tenant = g.tenant and x.cluster = g.cluster
	and x.namespace = g.namespace and x.name <> g.name))`

// addState chooses operators by a state: a phase, or what is so beside the phase.
func addState(w *readmodel.Where, state string) {
	switch state {
	case model.OperatorDrifted:
		w.Add("o.drifted > 0")
	case model.OperatorFlapping:
		w.Add("o.flapping")
	case model.OperatorUninstalling:
		w.Add("o.removal is not null and o.removal ->> 'phase' <> ?", model.RemovalRefused)
	default:
		w.Equal("o.phase", state)
	}
}

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
	addState(&w, f.State)
	if f.Serves != "" {
		w.Add(servedBy, f.Serves)
	}
	if err := listing.Narrow(&w, who, f.Choice, f.After); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantRead(ctx, who.Tenant, func(q pg.Querier) error {
		if err := AddVersions(ctx, q, &w, "o.csv_version = any (?)", who.Tenant, f.Version); err != nil {
			return err
		}
		rows, more, err := readmodel.Page[row](ctx, q, columns, w, listing.OrderBy(f.Sort), f.Limit)
		if err != nil {
			return err
		}
		for _, x := range rows {
			items = append(items, x.answer())
		}
		if more {
			next = listing.Next(f.Sort, rows[len(rows)-1])
		}
		return r.addReported(ctx, q, who.Tenant, items, f.Details)
	})
	return items, next, err
}

// addReported adds what clusters say of operators: messages and conditions, and details where they are wanted.
func (r *Reader) addReported(
	ctx context.Context, q pg.Querier, tenant string, items []model.Operator, withDetails bool,
) error {
	if err := addMessages(ctx, q, tenant, items); err != nil {
		return err
	}
	if withDetails {
		return addDetails(ctx, q, tenant, items)
	}
	return addConditions(ctx, q, tenant, items)
}

// Get returns one installed operator.
func (r *Reader) Get(
	ctx context.Context, who model.Caller, cluster, namespace, name string,
) (o model.Operator, err error) {
	w := readmodel.Tenant("o.tenant", who.Tenant)
	w.Add("o.cluster = ? and o.namespace = ? and o.name = ?", cluster, namespace, name)
	err = r.Pool.TenantRead(ctx, who.Tenant, func(q pg.Querier) error {
		x, err := readmodel.One[row](ctx, q, columns, w,
			errs.New(errs.NotFound, "no operator %q is installed in namespace %q of cluster %q", name, namespace,
				cluster))
		if err != nil {
			return err
		}
		items := []model.Operator{x.answer()}
		err = r.addReported(ctx, q, who.Tenant, items, true)
		o = items[0]
		return err
	})
	return o, err
}

// Overrides returns what counts of an operator in the place of its own conditions. One of which nothing counts so has
// none.
func (r *Reader) Overrides(
	ctx context.Context, who model.Caller, cluster, namespace, name string,
) (model.OperatorOverrides, error) {
	o, err := r.Get(ctx, who, cluster, namespace, name)
	if err != nil {
		return model.OperatorOverrides{}, err
	}
	if o.Overrides == nil {
		return model.OperatorOverrides{}, errs.New(errs.NotFound,
			"no condition of operator %q in namespace %q of cluster %q is overridden", name, namespace, cluster)
	}
	return model.OperatorOverrides{
		Cluster: o.Cluster, Namespace: o.Namespace, Name: o.Name, Overrides: *o.Overrides, Stream: o.Stream,
		Version: o.StreamVersion,
	}, nil
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
	err = r.Pool.TenantRead(ctx, who.Tenant, func(q pg.Querier) error {
		rows, more, err := readmodel.Page[leftoverRow](ctx, q, `select l.cluster, l.namespace, l.csv, l.package,
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
