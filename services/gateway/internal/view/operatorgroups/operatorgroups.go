// Package operatorgroups is the read model of operator groups.
package operatorgroups

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
)

// Name is the name of the projection.
const Name = "gateway.operatorgroups"

// Projection folds every event of operator groups.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 3, []string{"operatorgroups"},
		readmodel.OnAll(events.KindOperatorGroup, apply)...)
}

func apply(ctx context.Context, f readmodel.Fold) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	key := []any{f.Tenant, cluster, namespace, name}
	before, err := read(ctx, f, key)
	if err != nil {
		return err
	}
	after, err := before.Evolve(f.Payload, operatorgroup.Moment{Event: f.ID, Time: f.Time})
	switch {
	case err != nil:
		return err
	case !after.Created:
		return f.Exec(ctx, `delete from `+f.Table("operatorgroups")+` where `+isKey, key...)
	case !before.Created:
		return f.Exec(ctx, `insert into `+f.Table("operatorgroups")+` (tenant, cluster, namespace, name, spec, targets,
			provided, event_id, created, updated, stream, version)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11)`,
			append(key, after.Spec, after.Targets, after.ProvidedAPIs, after.Event, f.Time, f.Stream, f.Version)...)
	}
	var since *time.Time
	if !after.Observed.Time.IsZero() {
		since = &after.Observed.Time
	}
	_, observed := f.Payload.(events.OperatorGroupObserved)
	return f.Exec(ctx, `update `+f.Table("operatorgroups")+` set spec = $5, targets = $6, provided = $7,
		conditions = $8, observed_event = $9, observed_since = $10, labels = $11, annotations = $12, version = $13,
		event_id = $14, updated = case when $15 then updated else $16 end where `+isKey,
		append(key, after.Spec, after.Targets, after.ProvidedAPIs, after.Conditions, after.Observed.Event, since,
			readmodel.Labels(after.Metadata), after.Metadata.Annotations, f.Version, after.Event, observed,
			f.Time)...)
}

const isKey = `tenant = $1 and cluster = $2 and namespace = $3 and name = $4`

// read reads the row of a group; the zero value without one.
func read(ctx context.Context, f readmodel.Fold, key []any) (operatorgroup.Status, error) {
	var s operatorgroup.Status
	var since *time.Time
	err := f.Tx.QueryRow(ctx, `select spec, targets, provided, conditions, observed_event, observed_since, labels,
		annotations, event_id from `+f.Table("operatorgroups")+` where `+isKey, key...).
		Scan(&s.Spec, &s.Targets, &s.ProvidedAPIs, &s.Conditions, &s.Observed.Event, &since, &s.Metadata.Labels,
			&s.Metadata.Annotations, &s.Event)
	if errors.Is(err, pgx.ErrNoRows) {
		return operatorgroup.Status{}, nil
	}
	if since != nil {
		s.Observed.Time = *since
	}
	s.Created = true
	return s, err
}

// The newest sibling is what makes a namespace have several groups (R-OG-2).
const columns = `select g.cluster, g.namespace, g.name, g.spec, g.targets, g.provided, g.conditions, g.observed_event,
	g.observed_since,
	g.labels, g.annotations, g.created, g.updated, g.stream, g.version, coalesce(s.event_id, '') as sibling,
	s.created as sibling_since
	from operatorgroups g left join lateral (
		select o.event_id, o.created from operatorgroups o
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
type Reader struct {
	Pool   *pg.Pool
	Bodies *readmodel.Bodies // for annotations
}

// List returns operator groups by cluster, namespace and name.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.GroupFilter,
) (items []model.OperatorGroup, next []string, err error) {
	w := readmodel.Tenant("g.tenant", who.Tenant)
	w.Within(who, access.List, access.OperatorGroups, readmodel.Places{Cluster: "g.cluster", Namespace: "g.namespace"})
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
		return r.Bodies.Annotations(ctx, tx, who.Tenant, x.Annotations, &g.Metadata, &g.Unreadable)
	})
	return g, err
}
