// Package clusters is the read model of clusters.
package clusters

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Name is the name of the projection.
const Name = "gateway.clusters"

// Projection folds the events of clusters.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 11, []string{"clusters"},
		readmodel.On(registered), readmodel.On(credentialReplaced), readmodel.On(credentialRotated),
		readmodel.On(configured), readmodel.On(labelsChanged), readmodel.On(taintsChanged),
		readmodel.On(cordoned), readmodel.On(uncordoned), readmodel.On(observed), readmodel.On(factsObserved),
		readmodel.On(removed))
}

func registered(ctx context.Context, f readmodel.Fold, p events.ClusterRegistered) error {
	labels := p.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	err := f.Exec(ctx, `insert into `+f.Table("clusters")+` (tenant, name, labels, state, connection, reason, since,
		kubernetes_version, holder_epoch, registered, updated, stream, version, waived, credential_ends, access)
		values ($1, $2, $3, '', $4, $5, $6, '', 0, $6, $6, $7, $8, coalesce($9::text[], '{}'), $10, $11)
		on conflict (tenant, name) do update set labels = excluded.labels, connection = excluded.connection,
			reason = excluded.reason, since = excluded.since, kubernetes_version = '',
			facts = null, holder_epoch = 0, token_auth = '', settings = '{}', taints = '{}', cordoned = null,
			registered = excluded.registered,
			updated = excluded.updated,
			stream = excluded.stream, version = excluded.version, waived = excluded.waived, credential_ends = excluded.credential_ends,
			access = excluded.access`,
		f.Tenant, f.Subject, labels, model.ClusterRegistered, model.ClusterNoReport, f.Time, f.Stream, f.Version,
		p.Waived, ends(p.Ends), cmp.Or(p.Access, events.AccessHosted))
	return restate(ctx, f, err)
}

// restate stores the state that follows from what was folded, if that was without an error.
func restate(ctx context.Context, f readmodel.Fold, err error) error {
	if err != nil {
		return err
	}
	var s cluster.Seen
	err = f.Tx.QueryRow(ctx, `select connection, reason, since, cordoned from `+f.Table("clusters")+`
		where tenant = $1 and name = $2`, f.Tenant, f.Subject).Scan(&s.Connection, &s.Reason, &s.Since, &s.Cordoned)
	if errors.Is(err, pgx.ErrNoRows) { // removed
		return nil
	}
	if err != nil {
		return err
	}
	return f.Exec(ctx, `update `+f.Table("clusters")+` set state = $3 where tenant = $1 and name = $2 and state <> $3`,
		f.Tenant, f.Subject, cluster.Conditions(s)[0].Type)
}

func credentialReplaced(ctx context.Context, f readmodel.Fold, p events.ClusterCredentialReplaced) error {
	return f.Exec(ctx, `update `+f.Table("clusters")+` set updated = $3, version = $4,
		waived = coalesce($5::text[], '{}'), credential_ends = $6 where tenant = $1 and name = $2`,
		f.Tenant, f.Subject, f.Time, f.Version, p.Waived, ends(p.Ends))
}

// ends is the end of a credential, or nil where it does not say.
func ends(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func credentialRotated(ctx context.Context, f readmodel.Fold, p events.ClusterCredentialRotated) error {
	return f.Exec(ctx, `update `+f.Table("clusters")+` set updated = $3, version = $4, credential_ends = $5
		where tenant = $1 and name = $2`,
		f.Tenant, f.Subject, f.Time, f.Version, ends(p.Expires))
}

func configured(ctx context.Context, f readmodel.Fold, p events.ClusterConfigured) error {
	return f.Exec(ctx, `update `+f.Table("clusters")+` set settings = $3, updated = $4, version = $5
		where tenant = $1 and name = $2`,
		f.Tenant, f.Subject, p.Settings, f.Time, f.Version)
}

func labelsChanged(ctx context.Context, f readmodel.Fold, p events.ClusterLabelsChanged) error {
	return f.Exec(ctx, `update `+f.Table("clusters")+` set labels = coalesce($3, '{}'::jsonb), updated = $4,
		version = $5 where tenant = $1 and name = $2`,
		f.Tenant, f.Subject, p.Labels, f.Time, f.Version)
}

func taintsChanged(ctx context.Context, f readmodel.Fold, p events.ClusterTaintsChanged) error {
	return f.Exec(ctx, `update `+f.Table("clusters")+` set taints = coalesce($3, '{}'::jsonb), updated = $4,
		version = $5 where tenant = $1 and name = $2`,
		f.Tenant, f.Subject, p.Taints, f.Time, f.Version)
}

func cordoned(ctx context.Context, f readmodel.Fold, _ events.ClusterCordoned) error {
	return setCordoned(ctx, f, &f.Time)
}

func uncordoned(ctx context.Context, f readmodel.Fold, _ events.ClusterUncordoned) error {
	return setCordoned(ctx, f, nil)
}

func setCordoned(ctx context.Context, f readmodel.Fold, since *time.Time) error {
	return restate(ctx, f, f.Exec(ctx, `update `+f.Table("clusters")+` set cordoned = $3, updated = $4, version = $5
		where tenant = $1 and name = $2`, f.Tenant, f.Subject, since, f.Time, f.Version))
}

func observed(ctx context.Context, f readmodel.Fold, p events.ClusterObserved) error {
	return restate(ctx, f, f.Exec(ctx, `update `+f.Table("clusters")+` set connection = $3, reason = $4,
			since = case when connection = $3 and reason = $4 then since else $7 end,
			kubernetes_version = coalesce(nullif($5, ''), kubernetes_version), holder_epoch = greatest($6, holder_epoch),
			updated = $7, version = $8, token_auth = $9
		where tenant = $1 and name = $2`,
		f.Tenant, f.Subject, p.State, p.Reason, p.KubernetesVersion, p.HolderEpoch, f.Time, f.Version, p.TokenAuth))
}

func factsObserved(ctx context.Context, f readmodel.Fold, p events.ClusterFactsObserved) error {
	return f.Exec(ctx, `update `+f.Table("clusters")+` set facts = $3, updated = $4, version = $5
		where tenant = $1 and name = $2`, f.Tenant, f.Subject, p.Facts, f.Time, f.Version)
}

func removed(ctx context.Context, f readmodel.Fold, _ events.ClusterRemoved) error {
	return f.Exec(ctx, `delete from `+f.Table("clusters")+` where tenant = $1 and name = $2`, f.Tenant, f.Subject)
}

const columns = `select name, labels, state, connection, reason, since, kubernetes_version, holder_epoch, token_auth, settings, registered,
	updated, stream, version, waived, credential_ends, cordoned, taints, facts, access
	from clusters`

type row struct {
	Name              string
	Labels            map[string]string
	State             string
	Connection        string
	Reason            string
	Since             time.Time
	KubernetesVersion string
	HolderEpoch       int64
	TokenAuth         string
	Settings          events.ClusterSettings
	Registered        time.Time
	Updated           time.Time
	Stream            string
	Version           int64
	Waived            []string
	CredentialEnds    *time.Time
	Cordoned          *time.Time
	Taints            map[string]string
	Facts             *events.ClusterFacts
	Access            string
}

func (r row) answer() model.Cluster {
	now := cluster.Conditions(cluster.Seen{
		Connection: r.Connection, Reason: r.Reason, Since: r.Since, Cordoned: r.Cordoned,
	})
	return model.Cluster{
		Name: r.Name, Labels: r.Labels, ClusterState: model.ClusterState{
			State: now[0].Type, StateSince: now[0].Since, Reason: now[0].Reason, Conditions: now,
			Connection: r.Connection,
		}, KubernetesVersion: r.KubernetesVersion,
		HolderEpoch: r.HolderEpoch, TokenAuth: r.TokenAuth, Settings: model.ClusterSettings(r.Settings.WithDefaults()),
		RegisteredAt: r.Registered, UpdatedAt: r.Updated, Stream: r.Stream, Version: r.Version,
		Waived: r.Waived, CredentialEndsAt: r.CredentialEnds, CordonedSince: r.Cordoned, Taints: r.Taints,
		Facts:  (*model.ClusterFacts)(r.Facts),
		Access: r.Access,
	}
}

// Reader answers queries about clusters.
type Reader struct{ Pool *pg.Pool }

// List returns registered clusters by name.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.ClusterFilter,
) (items []model.Cluster, next []string, err error) {
	w := readmodel.Tenant("tenant", who.Tenant)
	w.Within(who, access.List, access.Clusters, readmodel.Places{Cluster: "name"})
	w.Equal("name", f.Name)
	w.Equal("state", f.State)
	if err := w.Label("labels", f.Label); err != nil {
		return nil, nil, err
	}
	if err := listing.Narrow(&w, who, f.Choice, f.After); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[row](ctx, tx, columns, w, listing.OrderBy(f.Sort), f.Limit)
		if err != nil {
			return err
		}
		for _, x := range rows {
			items = append(items, x.answer())
		}
		if more {
			next = listing.Next(f.Sort, rows[len(rows)-1])
		}
		return addMessages(ctx, tx, who.Tenant, items)
	})
	return items, next, err
}

// addMessages adds messages to clusters in trouble; one of an earlier trouble would mislead. What is wrong with the
// reports of a cluster is said also where it has no other trouble.
func addMessages(ctx context.Context, q pg.Querier, tenant string, items []model.Cluster) error {
	err := readmodel.AddMessages(ctx, q, tenant, readmodel.MessageCluster, items,
		func(c *model.Cluster) (string, *string) {
			if c.Reason == "" || c.Connection == model.ClusterRegistered {
				return "", nil
			}
			return c.Name, &c.Message
		})
	if err != nil {
		return err
	}
	return readmodel.AddMessages(ctx, q, tenant, readmodel.MessageReports, items,
		func(c *model.Cluster) (string, *string) {
			if c.Message != "" {
				return "", nil
			}
			return c.Name, &c.Message
		})
}

// Get returns one cluster.
func (r *Reader) Get(ctx context.Context, who model.Caller, name string) (c model.Cluster, err error) {
	w := readmodel.Tenant("tenant", who.Tenant)
	w.Add("name = ?", name)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		x, err := readmodel.One[row](ctx, tx, columns, w, errs.New(errs.NotFound, "no cluster %q is registered", name))
		if err != nil {
			return err
		}
		items := []model.Cluster{x.answer()}
		if err := addMessages(ctx, tx, who.Tenant, items); err != nil {
			return err
		}
		c = items[0]
		rows, err := tx.Query(ctx, `select namespace, csv, value::text from resolver_api.platform_limits
			where tenant = $1 and cluster = $2
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
		if c.APIs, err = apis(ctx, tx, who.Tenant, name); err != nil {
			return err
		}
		removed, err := removedAPIs(ctx, tx, who.Tenant, c)
		c.PlatformUpgrade = cluster.PlatformUpgrade(limits, removed)
		return err
	})
	return c, err
}

// apis are the API groups that a cluster serves; none while that is not known.
func apis(ctx context.Context, tx pgx.Tx, tenant, name string) (list []string, err error) {
	err = tx.QueryRow(ctx, `select apis from installer_api.cluster_apis where tenant = $1 and cluster = $2`, tenant,
		name).Scan(&list)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return list, pg.Err(err)
}

// removedAPIs are what the operators of a cluster use and its next version no longer serves, as far as the executor has
// reported the operators.
func removedAPIs(ctx context.Context, tx pgx.Tx, tenant string, c model.Cluster) ([]model.RemovedAPI, error) {
	rows, err := tx.Query(ctx, `select namespace, name, requirements::text, components::text
		from installer_api.operator_details
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
		return i, readmodel.Unpack("operator "+c.Name+"/"+i.Namespace+"/"+i.CSV,
			readmodel.Detail{Text: requirements, Into: &i.Requirements},
			readmodel.Detail{Text: &components, Into: &i.Components})
	})
	return cluster.RemovedAPIs(c.KubernetesVersion, installed), pg.Err(err)
}

// Observed is what was found last of a cluster, as far as it is shown; the zero value while nothing is known.
func (*Reader) Observed(ctx context.Context, q pg.Querier, tenant, name string) (events.ClusterObserved, error) {
	return Observed(ctx, q, tenant, name)
}

// Observed is what was found last of a cluster, as far as it is shown; the zero value while nothing is known.
func Observed(ctx context.Context, q pg.Querier, tenant, name string) (o events.ClusterObserved, err error) {
	err = pg.Err(q.QueryRow(ctx, `select connection, reason, kubernetes_version, holder_epoch, token_auth
		from clusters where tenant = $1 and name = $2`,
		tenant, name).Scan(&o.State, &o.Reason, &o.KubernetesVersion, &o.HolderEpoch, &o.TokenAuth))
	if errs.Is(err, errs.NotFound) { // just registered, or just gone
		return events.ClusterObserved{}, nil
	}
	return o, err
}
