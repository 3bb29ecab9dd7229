// Package operatorgroups is the read model of operator groups.
package operatorgroups

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
)

// Name is the name of the projection.
const Name = "gateway.operatorgroups"

// Projection folds the events of operator groups.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 3, []string{"operatorgroups"},
		readmodel.On(created), readmodel.On(changed), readmodel.On(metadataChanged), readmodel.On(observed),
		readmodel.On(deleted))
}

func created(ctx context.Context, f readmodel.Fold, p events.OperatorGroupCreated) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	return f.Exec(ctx, `insert into `+f.Table("operatorgroups")+` (tenant, cluster, namespace, name, spec, targets,
		provided, event_id, created, updated, stream, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11)
		on conflict (tenant, cluster, namespace, name) do update set spec = excluded.spec, targets = excluded.targets,
		provided = excluded.provided,
			labels = '{}', annotations = '',
			event_id = excluded.event_id, created = excluded.created, updated = excluded.updated,
			stream = excluded.stream, version = excluded.version`,
		f.Tenant, cluster, namespace, name, p.Spec, operatorgroup.DeclaredTargets(p.Spec), list(p.Spec.ProvidedAPIs),
		f.ID, f.Time, f.Stream, f.Version)
}

func changed(ctx context.Context, f readmodel.Fold, p events.OperatorGroupChanged) error {
	// Until the cluster has reported what a selector chooses, what it chose before stands.
	selects := len(p.Spec.TargetNamespaces) == 0 && !p.Spec.Global()
	return update(ctx, f, `spec = $5, targets = case when $6 then targets else $7 end, event_id = $8, updated = $9,
		version = $10`,
		p.Spec, selects, operatorgroup.DeclaredTargets(p.Spec), f.ID, f.Time, f.Version)
}

func metadataChanged(ctx context.Context, f readmodel.Fold, p events.OperatorGroupMetadataChanged) error {
	return update(ctx, f, `labels = $5, annotations = $6, updated = $7, version = $8`,
		readmodel.Labels(p.Metadata), p.Metadata.Annotations, f.Time, f.Version)
}

func observed(ctx context.Context, f readmodel.Fold, p events.OperatorGroupObserved) error {
	return update(ctx, f, `targets = $5, provided = $6, observed_since = case when conditions = $7 then observed_since
		else $9 end,
			observed_event = case when conditions = $7 then observed_event else $8 end, conditions = $7, version = $10`,
		list(p.Targets), list(p.ProvidedAPIs), list(p.Conditions), f.ID, f.Time, f.Version)
}

func deleted(ctx context.Context, f readmodel.Fold, _ events.OperatorGroupDeleted) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	return f.Exec(ctx, `delete from `+f.Table("operatorgroups")+
		` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		f.Tenant, cluster, namespace, name)
}

// update changes the group of the event's subject; arguments count from $5.
func update(ctx context.Context, f readmodel.Fold, set string, args ...any) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	return f.Exec(ctx, `update `+f.Table("operatorgroups")+` set `+set+
		` where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		append([]any{f.Tenant, cluster, namespace, name}, args...)...)
}

// list is a slice that JSON writes as a list, empty or not.
func list(s []string) []string { return append([]string{}, s...) }

// The newest sibling is what makes a namespace have several groups (R-OG-2).
const columns = `select g.cluster, g.namespace, g.name, g.spec, g.targets, g.provided, g.conditions, g.observed_event,
	g.observed_since,
	g.labels, g.annotations, g.created, g.updated, g.stream, g.version, coalesce(s.event_id, '') as sibling,
	s.created as sibling_since
	from gateway.operatorgroups g left join lateral (
		select o.event_id, o.created from gateway.operatorgroups o
		where o.tenant = g.tenant and o.cluster = g.cluster and o.namespace = g.namespace and o.name <> g.name
		order by o.created desc, o.name limit 1) s on true`

type row struct {
	Cluster       string
	Namespace     string
	Name          string
	Spec          events.OperatorGroupSpec
	Targets       []string
	Provided      []string
	Conditions    []string // types
	ObservedEvent string
	ObservedSince *time.Time
	Labels        map[string]string
	Annotations   string // commitment
	Created       time.Time
	Updated       time.Time
	Stream        string
	Version       int64
	Sibling       string // event of another group in the namespace
	SiblingSince  *time.Time
}

// reasons are the reasons of the conditions that the cluster reports by their type alone (R-OG §7.1).
var reasons = map[string]string{
	protocol.GroupServiceAccount: "ServiceAccountNotFound",
	protocol.GroupTargetsMissing: "NamespaceNotFound",
	protocol.GroupForbidden:      "Forbidden",
	protocol.GroupUnattended:     "TriedAgain",
}

func (r row) answer() model.OperatorGroup {
	g := model.OperatorGroup{
		Cluster: r.Cluster, Namespace: r.Namespace, Name: r.Name, Metadata: model.Metadata{Labels: r.Labels},
		Spec: model.OperatorGroupSpec(r.Spec), Targets: r.Targets, ProvidedAPIs: r.Provided,
		Conditions: []model.Condition{}, CreatedAt: r.Created, UpdatedAt: r.Updated, Stream: r.Stream,
		Version: r.Version,
	}
	if r.Sibling != "" && r.SiblingSince != nil {
		since := *r.SiblingSince
		if since.Before(r.Created) {
			since = r.Created
		}
		g.Conditions = append(g.Conditions, model.Condition{
			Type: "MultipleOperatorGroup", Status: "True", Reason: "MultipleOperatorGroupsFound",
			Message: "the namespace has more than one operator group: its plans wait until one is left",
			Since:   since, Event: r.Sibling,
		})
	}
	for _, c := range r.Conditions {
		if r.ObservedSince != nil {
			g.Conditions = append(g.Conditions, model.Condition{
				Type: c, Status: "True", Reason: reasons[c], Since: *r.ObservedSince, Event: r.ObservedEvent,
			})
		}
	}
	return g
}

// addMessages adds what the cluster says to each condition that it reported.
func addMessages(ctx context.Context, q pg.Querier, tenant string, items []model.OperatorGroup) error {
	type place struct {
		subject   string
		condition *model.Condition
	}
	var all []place
	for _, g := range items {
		for i := range g.Conditions {
			if c := &g.Conditions[i]; c.Message == "" {
				all = append(all, place{g.Cluster + "/" + g.Namespace + "/" + g.Name + "/" + c.Type, c})
			}
		}
	}
	return readmodel.AddMessages(ctx, q, tenant, readmodel.MessageGroup, all,
		func(p *place) (string, *string) { return p.subject, &p.condition.Message })
}

// Reader answers queries about operator groups.
type Reader struct{ Pool *pg.Pool }

// List returns operator groups by cluster, namespace and name.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.GroupFilter,
) (items []model.OperatorGroup, next []string, err error) {
	w := readmodel.Tenant("g.tenant", who.Tenant)
	w.Equal("g.cluster", f.Cluster)
	w.Equal("g.namespace", f.Namespace)
	if err := w.Label("g.labels", f.Label); err != nil {
		return nil, nil, err
	}
	if err := w.After(f.After, "g.cluster", "g.namespace", "g.name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[row](ctx, tx, columns, w, "g.cluster, g.namespace, g.name", f.Limit)
		if err != nil {
			return err
		}
		for _, x := range rows {
			items = append(items, x.answer())
		}
		if more {
			last := rows[len(rows)-1]
			next = []string{last.Cluster, last.Namespace, last.Name}
		}
		return addMessages(ctx, tx, who.Tenant, items)
	})
	return items, next, err
}

// Get returns one operator group.
func (r *Reader) Get(
	ctx context.Context, who model.Caller, cluster, namespace, name string,
) (g model.OperatorGroup, err error) {
	w := readmodel.Tenant("g.tenant", who.Tenant)
	w.Add("g.cluster = ? and g.namespace = ? and g.name = ?", cluster, namespace, name)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		x, err := readmodel.One[row](ctx, tx, columns, w,
			errs.New(errs.NotFound, "no operator group %q exists in namespace %q of cluster %q", name, namespace,
				cluster))
		if err != nil {
			return err
		}
		items := []model.OperatorGroup{x.answer()}
		if err := addMessages(ctx, tx, who.Tenant, items); err != nil {
			return err
		}
		g = items[0]
		return readmodel.Annotations(ctx, tx, who.Tenant, x.Annotations, &g.Metadata)
	})
	return g, err
}
