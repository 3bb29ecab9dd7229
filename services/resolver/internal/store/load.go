package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// oldPlans is how many plans that do not live any more a decision looks back at: it needs the newest of each
// component, and a namespace has far fewer components.
const oldPlans = 64

// Loaded is the state of a scope at one moment, with what Write needs to see whether it still holds.
type Loaded struct {
	decide.State
	// Marked is the newest cause that the snapshot knows of: what it decides upon came with that, though an
	// earlier one woke the worker. It has no event where the scope is not dirty.
	Marked Cause
	clock  int64 // of the tenant's catalogs
	reads  map[resolve.Read]bool
}

// Load reads a scope in one snapshot.
func (s *Store) Load(ctx context.Context, tenant string, scope resolve.Scope) (Loaded, error) {
	l := Loaded{State: decide.State{Tenant: tenant, Scope: scope}}
	err := s.pool.Snapshot(ctx, func(tx pgx.Tx) error {
		for _, part := range []func(context.Context, pgx.Tx, *Loaded) error{
			loadScope, loadCatalogs, loadSubscriptions, loadGroups, loadInstalled, loadPlans, loadReads,
		} {
			if err := part(ctx, tx, &l); err != nil {
				return fmt.Errorf("load %s/%s: %w", scope.Cluster, scope.Namespace, pg.Err(err))
			}
		}
		return nil
	})
	return l, err
}

func loadScope(ctx context.Context, tx pgx.Tx, l *Loaded) error {
	err := tx.QueryRow(ctx, `select cause, traceparent from `+DirtyTable+` where tenant = $1 and cluster = $2 and namespace = $3`,
		l.Tenant, l.Scope.Cluster, l.Scope.Namespace).Scan(&l.Marked.Event, &l.Marked.TraceParent)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	return tx.QueryRow(ctx, `select
		coalesce((select decisions from resolver.scopes where tenant = $1 and cluster = $2 and namespace = $3), 0),
		coalesce((select changes from resolver.catalog_clock where tenant = $1), 0),
		coalesce((select removed from resolver.clusters where tenant = $1 and name = $2), false)`,
		l.Tenant, l.Scope.Cluster, l.Scope.Namespace).Scan(&l.Decisions, &l.clock, &l.Removed)
}

// loadCatalogs reads the catalogs that the scope sees; of a templated one, what its cluster's version of
// Kubernetes gets (R-CAT-92). Disabled ones are not offered.
func loadCatalogs(ctx context.Context, tx pgx.Tx, l *Loaded) error {
	rows, err := tx.Query(ctx, `select c.subject, c.priority, coalesce(r.revision, ''), coalesce(r.failed, false), coalesce(r.reason, ''), `+strictly+`
		from resolver.catalogs c left join resolver.clusters k on k.tenant = c.tenant and k.name = $2
		left join resolver.catalog_revisions r on r.tenant = c.tenant and r.subject = c.subject
		  and r.variant = case when c.templated then coalesce(k.minor, '') else '' end
		where c.tenant = $1 and not c.disabled and c.visibility_cluster in ('', $2) and c.visibility_namespace in ('', $3) order by c.subject`,
		l.Tenant, l.Scope.Cluster, l.Scope.Namespace)
	if err != nil {
		return err
	}
	l.Catalogs, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (c decide.Catalog, err error) {
		err = r.Scan(&c.Subject, &c.Priority, &c.Revision, &c.Failed, &c.Reason, &c.Strict)
		c.Key = catalogKey(c.Subject)
		return c, err
	})
	return err
}

func loadSubscriptions(ctx context.Context, tx pgx.Tx, l *Loaded) error {
	rows, err := tx.Query(ctx, `select name, incarnation, version, spec, created, correlation, installed_csv, outcome from resolver.subscriptions
		where tenant = $1 and cluster = $2 and namespace = $3 order by name`, l.Tenant, l.Scope.Cluster, l.Scope.Namespace)
	if err != nil {
		return err
	}
	l.Subscriptions, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (sub decide.Subscription, err error) {
		var spec, outcome json.RawMessage
		if err := r.Scan(&sub.Name, &sub.Incarnation, &sub.Version, &spec, &sub.Created, &sub.Correlation, &sub.InstalledCSV, &outcome); err != nil {
			return sub, err
		}
		err = errors.Join(json.Unmarshal(spec, &sub.Spec), json.Unmarshal(outcome, &sub.Outcome))
		return sub, err
	})
	return err
}

func loadGroups(ctx context.Context, tx pgx.Tx, l *Loaded) error {
	rows, err := tx.Query(ctx, `select name, spec from resolver.operator_groups
		where tenant = $1 and cluster = $2 and namespace = $3 order by name`, l.Tenant, l.Scope.Cluster, l.Scope.Namespace)
	if err != nil {
		return err
	}
	l.Groups, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (g decide.Group, err error) {
		var spec json.RawMessage
		if err := r.Scan(&g.Name, &spec); err != nil {
			return g, err
		}
		err = json.Unmarshal(spec, &g.Spec)
		return g, err
	})
	return err
}

func loadInstalled(ctx context.Context, tx pgx.Tx, l *Loaded) error {
	rows, err := tx.Query(ctx, `select name, package, version, content, plan, phase, replaces, properties from resolver.installed
		where tenant = $1 and cluster = $2 and namespace = $3 order by name`, l.Tenant, l.Scope.Cluster, l.Scope.Namespace)
	if err != nil {
		return err
	}
	l.Installed, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (i decide.Installed, err error) {
		var properties json.RawMessage
		if err := r.Scan(&i.Name, &i.Package, &i.Version, &i.Content, &i.Plan, &i.Phase, &i.Replaces, &properties); err != nil {
			return i, err
		}
		err = json.Unmarshal(properties, &i.Properties)
		return i, err
	})
	return err
}

func loadPlans(ctx context.Context, tx pgx.Tx, l *Loaded) error {
	rows, err := tx.Query(ctx, `with all_plans as (select tenant, plan, generation, version, live, phase, settled, state from resolver.plans where tenant = $1 and cluster = $2 and namespace = $3),
		newest as (select coalesce(max(generation), 0) as n from all_plans)
		select p.plan, p.version, p.settled, p.state, coalesce(d.effect, ''), newest.n from newest
		left join all_plans p on p.live or not p.settled and p.phase = 'Complete' or p.generation > newest.n - $4
		left join resolver.plan_documents d on d.tenant = $1 and d.plan = p.plan order by p.generation desc`,
		l.Tenant, l.Scope.Cluster, l.Scope.Namespace, oldPlans)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id *string
		var version *int64
		var settled *bool
		var state json.RawMessage
		p := decide.Plan{}
		if err := rows.Scan(&id, &version, &settled, &state, &p.Effect, &l.Generation); err != nil {
			return err
		}
		if id == nil { // no plan at all
			continue
		}
		p.ID, p.Version, p.Settled = *id, *version, *settled
		if err := json.Unmarshal(state, &p.State); err != nil {
			return errs.Wrap(errs.Internal, err, "read plan %s", p.ID)
		}
		l.Plans = append(l.Plans, p)
	}
	return rows.Err()
}

func loadReads(ctx context.Context, tx pgx.Tx, l *Loaded) error {
	rows, err := tx.Query(ctx, `select kind, catalog, name from resolver.reads
		where tenant = $1 and cluster = $2 and namespace = $3`, l.Tenant, l.Scope.Cluster, l.Scope.Namespace)
	if err != nil {
		return err
	}
	l.reads = map[resolve.Read]bool{}
	var kind, subject, name string
	_, err = pgx.ForEachRow(rows, []any{&kind, &subject, &name}, func() error {
		l.reads[resolve.Read{Kind: resolve.ReadKind(kind), Catalog: resolve.CatalogKey{Name: subject}, Name: name}] = true
		return nil
	})
	return err
}

// storedReads are the reads of a result as the table holds them, without answers and with the catalog's
// subject as its name.
func storedReads(cluster string, reads []resolve.Read) map[resolve.Read]bool {
	out := map[resolve.Read]bool{}
	for _, r := range reads {
		switch r.Kind {
		case resolve.ReadVisible:
			out[resolve.Read{Kind: r.Kind}] = true
		case resolve.ReadCatalog:
			out[resolve.Read{Kind: r.Kind, Name: storable(r.Catalog.Name)}] = true
		default:
			out[resolve.Read{Kind: r.Kind, Catalog: resolve.CatalogKey{Name: catalogSubject(cluster, r.Catalog)}, Name: storable(r.Name)}] = true
		}
	}
	return out
}
