package view

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func clustersProjection() projection.Projection {
	return projection.Projection{
		Name: Clusters, Version: 4, Schema: schema, Tables: []string{"clusters"},
		Types: typesOf(events.ClusterRegistered{}, events.ClusterCredentialReplaced{}, events.ClusterConfigured{}, events.ClusterLabelsChanged{},
			events.ClusterRemoved{}, events.ClusterObserved{}),
		Apply: applyCluster,
	}
}

func applyCluster(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
	table := t.Name("clusters")
	switch p := e.Payload.(type) {
	case events.ClusterRegistered:
		labels := p.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		return exec(ctx, tx, `insert into `+table+` (tenant, name, labels, state, reason, kubernetes_version, holder_epoch, registered, updated, stream, version)
			values ($1, $2, $3, $4, '', '', 0, $5, $5, $6, $7)
			on conflict (tenant, name) do update set labels = excluded.labels, state = excluded.state, reason = '', kubernetes_version = '',
				holder_epoch = 0, token_auth = '', settings = '{}', registered = excluded.registered, updated = excluded.updated, stream = excluded.stream, version = excluded.version`,
			e.Tenant, e.Subject, labels, model.ClusterRegistered, e.Time, e.Stream, e.Version)
	case events.ClusterCredentialReplaced:
		return exec(ctx, tx, `update `+table+` set updated = $3, version = $4 where tenant = $1 and name = $2`,
			e.Tenant, e.Subject, e.Time, e.Version)
	case events.ClusterConfigured:
		return exec(ctx, tx, `update `+table+` set settings = $3, updated = $4, version = $5 where tenant = $1 and name = $2`,
			e.Tenant, e.Subject, p.Settings, e.Time, e.Version)
	case events.ClusterLabelsChanged:
		return exec(ctx, tx, `update `+table+` set labels = coalesce($3, '{}'::jsonb), updated = $4, version = $5 where tenant = $1 and name = $2`,
			e.Tenant, e.Subject, p.Labels, e.Time, e.Version)
	case events.ClusterObserved:
		return exec(ctx, tx, `update `+table+` set state = $3, reason = $4,
				kubernetes_version = coalesce(nullif($5, ''), kubernetes_version), holder_epoch = greatest($6, holder_epoch),
				updated = $7, version = $8, token_auth = $9
			where tenant = $1 and name = $2`,
			e.Tenant, e.Subject, p.State, p.Reason, p.KubernetesVersion, p.HolderEpoch, e.Time, e.Version, p.TokenAuth)
	case events.ClusterRemoved:
		return exec(ctx, tx, `delete from `+table+` where tenant = $1 and name = $2`, e.Tenant, e.Subject)
	default:
		return unknown(e)
	}
}

const clusterColumns = `select c.name, c.labels, c.state, c.reason, c.kubernetes_version, c.holder_epoch,
	c.token_auth, c.settings, c.registered, c.updated, c.stream, c.version from gateway.clusters c`

func scanCluster(row pgx.Row) (model.Cluster, error) {
	var c model.Cluster
	var settings events.ClusterSettings
	err := row.Scan(&c.Name, &c.Labels, &c.State, &c.Reason, &c.KubernetesVersion, &c.HolderEpoch,
		&c.TokenAuth, &settings, &c.RegisteredAt, &c.UpdatedAt, &c.Stream, &c.Version)
	c.Settings = model.ClusterSettings(settings.WithDefaults())
	return c, err
}

// sayClusters adds the sentences to clusters in trouble; one of an earlier trouble would mislead.
func sayClusters(ctx context.Context, q pg.Querier, tenant string, items []model.Cluster) error {
	return say(ctx, q, tenant, messageCluster, items, func(c *model.Cluster) (string, *string) {
		if c.Reason == "" {
			return "", nil
		}
		return c.Name, &c.Message
	})
}

// Clusters lists registered clusters by name.
func (r *Reader) Clusters(ctx context.Context, who model.Caller, f model.ClusterFilter) (items []model.Cluster, next []string, err error) {
	var w where
	w.add("c.tenant = ?", who.Tenant)
	w.equal("c.state", f.State)
	if err := w.label("c.labels", f.Label); err != nil {
		return nil, nil, err
	}
	if err := w.after(f.After, "c.name"); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		items, more, err = page(ctx, tx, clusterColumns+w.String()+" order by c.name", w.args, f.Limit, scanCluster)
		if more {
			next = []string{items[len(items)-1].Name}
		}
		if err != nil {
			return err
		}
		return sayClusters(ctx, tx, who.Tenant, items)
	})
	return items, next, err
}

// Cluster returns one cluster.
func (r *Reader) Cluster(ctx context.Context, who model.Caller, name string) (c model.Cluster, err error) {
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		c, err = one(ctx, tx, clusterColumns+` where c.tenant = $1 and c.name = $2`, []any{who.Tenant, name},
			errs.New(errs.NotFound, "no cluster %q is registered", name), scanCluster)
		if err != nil {
			return err
		}
		items := []model.Cluster{c}
		if err := sayClusters(ctx, tx, who.Tenant, items); err != nil {
			return err
		}
		c = items[0]
		rows, err := tx.Query(ctx, `select namespace, csv, value::text from resolver_api.platform_limits where tenant = $1 and cluster = $2
			order by namespace, csv, value::text`, who.Tenant, name)
		if err != nil {
			return pg.Err(err)
		}
		limits, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (l cluster.Limit, err error) {
			var value string
			err = r.Scan(&l.Namespace, &l.CSV, &value)
			l.Value = json.RawMessage(value)
			return l, err
		})
		if err != nil {
			return pg.Err(err)
		}
		removed, err := removedAPIs(ctx, tx, who.Tenant, c)
		c.PlatformUpgrade = cluster.PlatformUpgrade(limits, removed)
		return err
	})
	return c, err
}

// Observed is what was found last of a cluster, as far as it is shown; the zero value while nothing is known.
func (*Reader) Observed(ctx context.Context, q pg.Querier, tenant, name string) (events.ClusterObserved, error) {
	return observed(ctx, q, tenant, name)
}

func observed(ctx context.Context, q pg.Querier, tenant, name string) (o events.ClusterObserved, err error) {
	err = pg.Err(q.QueryRow(ctx, `select state, reason, kubernetes_version, holder_epoch, token_auth from gateway.clusters where tenant = $1 and name = $2`,
		tenant, name).Scan(&o.State, &o.Reason, &o.KubernetesVersion, &o.HolderEpoch, &o.TokenAuth))
	if errs.Is(err, errs.NotFound) { // just registered, or just gone
		return events.ClusterObserved{}, nil
	}
	return o, err
}

// removedAPIs are what the operators of a cluster use and its next version no longer serves, as far as the executor told of
// the operators.
func removedAPIs(ctx context.Context, tx pgx.Tx, tenant string, c model.Cluster) ([]model.RemovedAPI, error) {
	rows, err := tx.Query(ctx, `select namespace, name, requirements::text, components::text from installer_api.operator_details
		where tenant = $1 and cluster = $2 order by namespace, name`, tenant, c.Name)
	if err != nil {
		return nil, pg.Err(err)
	}
	installed, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (i cluster.Installed, err error) {
		var requirements *string
		var components string
		if err := r.Scan(&i.Namespace, &i.CSV, &requirements, &components); err != nil {
			return i, err
		}
		return i, unpack("operator "+c.Name+"/"+i.Namespace+"/"+i.CSV, detail{requirements, &i.Requirements}, detail{&components, &i.Components})
	})
	return cluster.RemovedAPIs(c.KubernetesVersion, installed), pg.Err(err)
}

// removedOf is what one operator uses and the next version of its cluster no longer serves.
func removedOf(ctx context.Context, q pg.Querier, tenant string, o model.Operator, d model.OperatorDetails) ([]model.RemovedAPI, error) {
	c, err := observed(ctx, q, tenant, o.Cluster)
	if err != nil {
		return nil, err
	}
	return cluster.RemovedAPIs(c.KubernetesVersion, []cluster.Installed{{Namespace: o.Namespace, CSV: o.Name, Components: d.Components, Requirements: d.Requirements}}), nil
}

// detail is a column of details, as text, and where it goes; nil where nothing was told.
type detail struct {
	text *string
	into any
}

func unpack(of string, details ...detail) error {
	for _, d := range details {
		if d.text == nil {
			continue
		}
		if err := json.Unmarshal([]byte(*d.text), d.into); err != nil {
			return errs.Wrap(errs.Internal, err, "details of %s", of)
		}
	}
	return nil
}
