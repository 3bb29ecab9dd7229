package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Scopes reads the state of one scope as a decision needs it.
type Scopes struct{ pool *pg.Pool }

// Loaded is the state of a scope at one moment, with what Write needs to see whether it still holds.
type Loaded struct {
	decide.State
	// Marked is the newest cause that the snapshot knows of: what it decides upon came with that, though an
	// earlier one woke the worker. It has no event where the scope is not dirty.
	Marked Cause
	// Dirty says that the scope is to be resolved, or is being resolved.
	Dirty bool
	clock int64 // of the tenant's catalogs
	// changes counts those of what is known of the cluster beside its catalogs.
	changes int64
	reads   map[resolution.Read]bool
}

// Load reads a scope in one snapshot and one round trip.
func (s *Scopes) Load(ctx context.Context, tenant string, scope resolution.Scope) (Loaded, error) {
	l := Loaded{State: decide.State{Tenant: tenant, Scope: scope}}
	err := s.pool.Snapshot(ctx, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		for _, part := range []func(*pgx.Batch, *Loaded){
			loadScope, loadCatalogs, loadPrivate, loadSubscriptions, loadGroups, loadStandings, loadInstalled,
			loadPlans, loadReads, loadPolicies,
		} {
			part(b, &l)
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("load %s/%s: %w", scope.Cluster, scope.Namespace, pg.Err(err))
		}
		return nil
	})
	return l, err
}

// Asked says whether these reads are the ones that the scope's last resolution is known by.
func (l Loaded) Asked(reads []resolution.Read) bool {
	return sameReads(l.reads, storedReads(l.Scope.Cluster, reads))
}

// Clock counts the changes of the tenant's catalogs, bundle images included, that the state was read at.
func (l Loaded) Clock() int64 { return l.clock }

// list queues a query of the scope whose rows become a list.
func list[T any](b *pgx.Batch, l *Loaded, into *[]T, scan pgx.RowToFunc[T], sql string) {
	b.Queue(sql, l.Tenant, l.Scope.Cluster, l.Scope.Namespace).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, scan)
		return err
	})
}

func loadScope(b *pgx.Batch, l *Loaded) {
	b.Queue(`select d.tenant is not null, coalesce(d.cause, ''), coalesce(d.traceparent, ''), coalesce(s.decisions, 0),
		coalesce(t.changes, $4), coalesce(c.removed, false),
		  coalesce(c.kubernetes, ''), coalesce(c.cordoned, false), coalesce(c.changes, 0)
		from (values (1)) as one left join `+DirtyTable+` d on d.tenant = $1 and d.cluster = $2 and d.namespace = $3
		left join resolver.scopes s on s.tenant = $1 and s.cluster = $2 and s.namespace = $3
		left join resolver.catalog_clock t on t.tenant = $1 left join resolver.clusters c on c.tenant = $1 and c.name = $2`,
		l.Tenant, l.Scope.Cluster, l.Scope.Namespace, noClock).QueryRow(func(row pgx.Row) error {
		return row.Scan(&l.Dirty, &l.Marked.Event, &l.Marked.TraceParent, &l.Decisions, &l.clock, &l.Removed,
			&l.Cluster.Kubernetes, &l.Cluster.Cordoned, &l.changes)
	})
}

// catalogsSeen are the catalogs that a scope sees; of a templated one, what its cluster's version of Kubernetes
// gets (R-CAT-92).
const catalogsSeen = `select c.subject, c.priority, coalesce(r.revision, ''), coalesce(r.failed, false),
	coalesce(r.reason, ''), ` + strictly + `
	from resolver.catalogs c left join resolver.clusters k on k.tenant = c.tenant and k.name = $2
	left join resolver.catalog_revisions r on r.tenant = c.tenant and r.subject = c.subject
	  and r.variant = case when c.templated then coalesce(k.minor, '') else '' end
	where c.tenant = $1 and c.visibility_cluster in ('', $2) and c.visibility_namespace in ('', $3)`

func scanCatalog(r pgx.CollectableRow) (c decide.Catalog, err error) {
	err = r.Scan(&c.Subject, &c.Priority, &c.Revision, &c.Failed, &c.Reason, &c.Strict)
	c.Key = catalogKey(c.Subject)
	return c, err
}

// loadCatalogs reads the catalogs that the scope sees. Disabled ones are not offered.
func loadCatalogs(b *pgx.Batch, l *Loaded) {
	list(b, l, &l.Catalogs, scanCatalog, catalogsSeen+` and not c.disabled order by c.subject`)
}

// loadPrivate reads the catalogs of the cluster that other namespaces alone see (R-CAT-85).
func loadPrivate(b *pgx.Batch, l *Loaded) {
	list(b, l, &l.Private, pgx.RowTo[string], `select subject from resolver.catalogs
		where tenant = $1 and visibility_cluster = $2 and visibility_namespace not in ('', $3) and not disabled
		order by subject`)
}

// DisabledCatalogs reads the disabled catalogs among these subjects, as a scope would see them if they were not.
func (s *Scopes) DisabledCatalogs(ctx context.Context, tenant string, scope resolution.Scope, subjects []string) (
	[]decide.Catalog, error,
) {
	if len(subjects) == 0 {
		return nil, nil
	}
	rows, err := s.pool.Query(ctx, catalogsSeen+` and c.disabled and c.subject = any ($4) order by c.subject`, tenant,
		scope.Cluster, scope.Namespace, subjects)
	if err != nil {
		return nil, fmt.Errorf("read disabled catalogs: %w", pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, scanCatalog)
	if err != nil {
		return nil, fmt.Errorf("read disabled catalogs: %w", pg.Err(err))
	}
	return list, nil
}

// loadSubscriptions reads the subscriptions of the scope with why those that failed did. Each explanation is found by
// its key: for a join the planner, who takes a namespace for one that has a single subscription, compares all with all.
func loadSubscriptions(b *pgx.Batch, l *Loaded) {
	list(b, l, &l.Subscriptions, func(r pgx.CollectableRow) (sub decide.Subscription, err error) {
		var spec, outcome, explained, target json.RawMessage
		if err := r.Scan(&sub.Name, &sub.Incarnation, &sub.Version, &spec, &sub.Created, &sub.Correlation,
			&sub.InstalledCSV, &outcome, &explained,
			&sub.Rollback.From, &sub.Rollback.To, &sub.Owner, &target); err != nil {
			return sub, err
		}
		err = errors.Join(json.Unmarshal(spec, &sub.Spec), json.Unmarshal(outcome, &sub.Outcome),
			json.Unmarshal(target, &sub.Target))
		if explained != nil {
			sub.Explained = new(resolution.Explanation)
			err = errors.Join(err, json.Unmarshal(explained, sub.Explained))
		}
		return sub, err
	}, `select s.name, s.incarnation, s.version, s.spec, s.created, s.correlation, s.installed_csv, s.outcome,
		(select e.document from resolver.explanations e where e.tenant = $1 and e.digest = s.explanation),
		s.rollback_from, s.rollback_to, s.owner, s.target
		from resolver.subscriptions s
		where s.tenant = $1 and s.cluster = $2 and s.namespace = $3 order by s.name`)
}

func loadGroups(b *pgx.Batch, l *Loaded) {
	list(b, l, &l.Groups, func(r pgx.CollectableRow) (g decide.Group, err error) {
		var spec json.RawMessage
		if err := r.Scan(&g.Name, &spec, &g.Observed); err != nil {
			return g, err
		}
		err = json.Unmarshal(spec, &g.Spec)
		return g, err
	}, `select name, spec, targets from resolver.operator_groups where tenant = $1 and cluster = $2 and namespace = $3
		order by name`)
}

// loadStandings reads the groups of other namespaces of the cluster that provide something: what they provide cannot
// be provided by who intersects with them (R-OG §7.7). Most groups provide nothing or do not intersect; there is one
// in a namespace.
func loadStandings(b *pgx.Batch, l *Loaded) {
	list(b, l, &l.Cluster.Groups, func(r pgx.CollectableRow) (g operatorgroup.Standing, err error) {
		var spec json.RawMessage
		if err := r.Scan(&g.Namespace, &g.Name, &spec, &g.Targets, &g.Provided); err != nil {
			return g, err
		}
		err = json.Unmarshal(spec, &g.Spec)
		if named, ok := operatorgroup.Named(g.Spec); ok {
			g.Targets = named
		}
		if g.Spec.StaticProvidedAPIs {
			g.Provided = g.Spec.ProvidedAPIs
		}
		return g, err
	}, `select namespace, name, spec, targets, provided from resolver.operator_groups
		where tenant = $1 and cluster = $2 and namespace <> $3 and (provided <> '{}'
		or (spec ->> 'staticProvidedAPIs')::boolean) order by namespace, name`)
}

func loadInstalled(b *pgx.Batch, l *Loaded) {
	list(b, l, &l.Installed, func(r pgx.CollectableRow) (i decide.Installed, err error) {
		var properties json.RawMessage
		if err := r.Scan(&i.Name, &i.Package, &i.Version, &i.Content, &i.Plan, &i.Phase, &i.Replaces,
			&properties); err != nil {
			return i, err
		}
		err = json.Unmarshal(properties, &i.Properties)
		return i, err
	}, `select name, package, version, content, plan, phase, replaces, properties from resolver.installed
		where tenant = $1 and cluster = $2 and namespace = $3 order by name`)
}

// loadPlans reads what a decision reads of the past: all plans that Sweep keeps.
func loadPlans(b *pgx.Batch, l *Loaded) {
	b.Queue(`with all_plans as (select tenant, plan, generation, version, live, phase, settled, state
		from resolver.plans where tenant = $1 and cluster = $2 and namespace = $3),
		newest as (select coalesce(max(generation), 0) as n from all_plans)
		select p.plan, p.version, p.settled, p.state, coalesce(d.effect, ''), newest.n from newest
		left join all_plans p on true
		left join resolver.plan_documents d on d.tenant = $1 and d.plan = p.plan order by p.generation desc`,
		l.Tenant, l.Scope.Cluster, l.Scope.Namespace).Query(func(rows pgx.Rows) error {
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
	})
}

// loadPolicies reads the tenant's policies and the labels of the scope's cluster.
func loadPolicies(b *pgx.Batch, l *Loaded) {
	b.Queue(`select labels from resolver.clusters where tenant = $1 and name = $2`, l.Tenant, l.Scope.Cluster).Query(
		func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&l.Labels}, func() error { return nil })
			return err
		})
	b.Queue(`select name, spec from resolver.approval_policies where tenant = $1 order by name`, l.Tenant).Query(
		func(rows pgx.Rows) (err error) {
			l.Policies, err = pgx.CollectRows(rows, scanPolicy)
			return err
		})
}

func loadReads(b *pgx.Batch, l *Loaded) {
	b.Queue(`select kind, catalog, name from resolver.reads where tenant = $1 and cluster = $2 and namespace = $3`,
		l.Tenant, l.Scope.Cluster, l.Scope.Namespace).Query(func(rows pgx.Rows) error {
		l.reads = map[resolution.Read]bool{}
		var kind, subject, name string
		_, err := pgx.ForEachRow(rows, []any{&kind, &subject, &name}, func() error {
			l.reads[resolution.Read{
				Kind: resolution.ReadKind(kind), Catalog: resolution.CatalogKey{Name: subject},
				Name: name,
			}] = true
			return nil
		})
		return err
	})
}

// storedReads are the reads of a result as the table holds them, without answers and with the catalog's
// subject as its name.
func storedReads(cluster string, reads []resolution.Read) map[resolution.Read]bool {
	out := map[resolution.Read]bool{}
	for _, r := range reads {
		switch r.Kind {
		case resolution.ReadVisible:
			out[resolution.Read{Kind: r.Kind}] = true
		case resolution.ReadCatalog:
			out[resolution.Read{Kind: r.Kind, Name: storable(r.Catalog.Name)}] = true
		case decide.ReadCluster:
			out[resolution.Read{Kind: r.Kind}] = true
		default:
			out[resolution.Read{
				Kind: r.Kind, Catalog: resolution.CatalogKey{Name: catalogSubject(cluster, r.Catalog)},
				Name: storable(r.Name),
			}] = true
		}
	}
	return out
}

func sameReads(a, b map[resolution.Read]bool) bool {
	if len(a) != len(b) {
		return false
	}
	for r := range a {
		if !b[r] {
			return false
		}
	}
	return true
}
