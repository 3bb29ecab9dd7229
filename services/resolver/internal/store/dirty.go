package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// dirtyScopes makes scopes dirty, in the transaction of the event that touches them.
type dirtyScopes struct{ marks Marker }

// markOwn marks the scope that an event is about: somebody waits for it.
func (d *dirtyScopes) markOwn(ctx context.Context, tx pgx.Tx, scope bus.Scope) error {
	return d.marks.Mark(ctx, tx, bus.Interactive, scope)
}

// markFound makes dirty what a query gives as cluster and namespace: one change that touches many places.
func (d *dirtyScopes) markFound(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("find scopes made dirty by %s: %w", e.Type, pg.Err(err))
	}
	scopes, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (bus.Scope, error) {
		var cluster, namespace string
		err := r.Scan(&cluster, &namespace)
		return scopeOf(e, cluster, namespace), err
	})
	if err != nil {
		return fmt.Errorf("find scopes made dirty by %s: %w", e.Type, pg.Err(err))
	}
	return d.marks.Mark(ctx, tx, bus.FanOut, scopes...)
}

func (d *dirtyScopes) markCluster(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, name string) error {
	return d.markFound(ctx, tx, e, `select distinct cluster, namespace from resolver.subscriptions
		where tenant = $1 and cluster = $2`, e.Tenant, name)
}

// clusterChanged makes dirty the scopes of a cluster whose last decision rests on what is known of it. The count goes
// first: a decision that is being written holds its row, so that it is either found here or finds the count moved on.
func (d *dirtyScopes) clusterChanged(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, cluster string) error {
	if err := exec(ctx, tx, `update resolver.clusters set changes = changes + 1 where tenant = $1 and name = $2`,
		e.Tenant, cluster); err != nil {
		return err
	}
	return d.markFound(ctx, tx, e, `select distinct cluster, namespace from resolver.reads where tenant = $1 and kind = $2
		and cluster = $3`,
		e.Tenant, string(decide.ReadCluster), cluster)
}

// touchedReads says which read sets a change of a catalog touches.
type touchedReads struct {
	named   bool // a subscription names a catalog of this name
	visible bool // every visible catalog was asked
	health  bool // its health was asked for
	healths bool // that of any catalog was, and this one's namespace is strict, too
	anyhow  bool // it was asked for anything that is in a revision
	// packages and apis, by name, were asked for; anyAPI is all of them.
	packages, apis []string
	anyAPI         bool
	names          bool // its list of packages was asked for
}

// arms are the conditions on read sets, each with the kind first, as their index has it.
func (a *touchedReads) arms() []string {
	var out []string
	add := func(is bool, arm string) {
		if is {
			out = append(out, arm)
		}
	}
	add(a.named, `r.kind = 'catalog' and r.catalog = '' and r.name = @name`)
	add(a.visible, `r.kind = 'visible'`)
	add(a.health && !a.healths, `r.kind = 'health' and r.catalog = @subject`)
	add(a.healths,
		`r.kind = 'health' and (r.catalog = @subject or exists (select from resolver.catalogs c where c.tenant = @tenant and c.subject = @subject and `+strictly+`))`)
	if a.anyhow {
		return append(out, `r.kind in ('package', 'api', 'names') and r.catalog = @subject`)
	}
	add(len(a.packages) > 0, `r.kind = 'package' and r.catalog = @subject and r.name = any (@packages)`)
	add(a.anyAPI, `r.kind = 'api' and r.catalog = @subject`)
	add(!a.anyAPI && len(a.apis) > 0, `r.kind = 'api' and r.catalog = @subject and r.name = any (@apis)`)
	add(a.names, `r.kind = 'names' and r.catalog = @subject`)
	return out
}

// visibility is the scopes that a change of a catalog concerns: those that see it; with before, only those that see it
// now and did not, or the other way round. A variant concerns clusters of its Kubernetes version alone (R-CAT-92).
type visibility struct {
	before  *decide.CatalogIntent
	either  bool // with before: also those that saw it and still do
	now     decide.CatalogIntent
	variant *string
}

// markReaders makes dirty the scopes whose read set is touched. Each kind of question is looked up by itself, so that
// the cost grows with what is found.
func (d *dirtyScopes) markReaders(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, what touchedReads,
	who visibility,
) error {
	arms := what.arms()
	if len(arms) == 0 {
		return nil
	}
	for i, arm := range arms {
		arms[i] = `select r.cluster, r.namespace from resolver.reads r where r.tenant = @tenant and ` + arm
	}
	before := who.now
	seen := `now`
	switch {
	case who.before != nil && who.either:
		before, seen = *who.before, `(before or now)`
	case who.before != nil:
		before, seen = *who.before, `before <> now`
	}
	if who.variant != nil {
		seen += ` and case when @templated then coalesce((select k.minor from resolver.clusters k
			where k.tenant = @tenant and k.name = a.cluster), '') else '' end = @variant`
	}
	sql := `select distinct a.cluster, a.namespace from (` + strings.Join(arms, ` union all `) + `) a,
		lateral (select not @disabledBefore and @clusterBefore in ('', a.cluster) and @namespaceBefore in ('', a.namespace) as before,
		  not @disabled and @cluster in ('', a.cluster) and @namespace in ('', a.namespace) as now) seen where ` + seen
	args := pgx.NamedArgs{
		"tenant": e.Tenant, "subject": e.Subject, "name": catalogKey(e.Subject).Name, "packages": what.packages,
		"apis": what.apis, "disabledBefore": before.Disabled, "clusterBefore": before.Visibility.Cluster,
		"namespaceBefore": before.Visibility.Namespace, "disabled": who.now.Disabled,
		"cluster": who.now.Visibility.Cluster, "namespace": who.now.Visibility.Namespace,
		"templated": who.now.Templated,
	}
	if who.variant != nil {
		args["variant"] = *who.variant
	}
	return d.markFound(ctx, tx, e, sql, args)
}

// urgentMarks bounds how many scopes one policy may put before the work that people wait for: some seconds of it.
const urgentMarks = 1000

// markChosen makes dirty the scopes that any of the selectors chooses. Those with a plan that has not begun come first,
// as if a person had asked, so that it does not begin under the policy before while a fan-out is worked off: plans that
// may begin before those that may be approved, up to urgentMarks. The rest is one change that touches many places. A
// decision that is being made upon the policies before is made again.
func (d *dirtyScopes) markChosen(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	selectors []events.PolicySelector,
) error {
	if err := countCatalogChange(ctx, tx, e.Tenant); err != nil {
		return err
	}
	arms := make([]string, len(selectors))
	args := pgx.NamedArgs{"tenant": e.Tenant}
	for i, sel := range selectors {
		sql, more, err := chosenBy(sel, fmt.Sprintf("_%d", i))
		if err != nil {
			return err
		}
		arms[i] = sql
		maps.Copy(args, more)
	}
	sql := `select c.cluster, c.namespace, coalesce((select max(case p.phase when 'Installing' then 2 else 1 end)
		from resolver.plans p
		where p.tenant = @tenant and p.cluster = c.cluster and p.namespace = c.namespace and p.live
		and not (p.state ->> 'Begun')::boolean), 0) as urgency
		from (` + strings.Join(arms, ` union `) + `) c order by urgency desc, c.cluster, c.namespace`
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return fmt.Errorf("find scopes made dirty by %s: %w", e.Type, pg.Err(err))
	}
	var urgent, rest []bus.Scope
	var cluster, namespace string
	var urgency int
	_, err = pgx.ForEachRow(rows, []any{&cluster, &namespace, &urgency}, func() error {
		if scope := scopeOf(e, cluster, namespace); urgency > 0 && len(urgent) < urgentMarks {
			urgent = append(urgent, scope)
		} else {
			rest = append(rest, scope)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("find scopes made dirty by %s: %w", e.Type, pg.Err(err))
	}
	return errors.Join(d.marks.Mark(ctx, tx, bus.Interactive, urgent...), d.marks.Mark(ctx, tx, bus.FanOut, rest...))
}

// chosenBy is the query for the scopes that a selector chooses, as cluster and namespace, with its arguments beside
// @tenant; suffix keeps the names of several apart. Where packages or catalogs are given, it is those that have
// asked for such a package of such a catalog, by a subscription or in their last resolution: whatever a resolution
// may choose, it has asked for.
func chosenBy(sel events.PolicySelector, suffix string) (sql string, args pgx.NamedArgs, err error) {
	labels := sel.ClusterLabels
	if labels == nil {
		labels = map[string]string{}
	}
	raw, err := encode(labels)
	if err != nil {
		return "", nil, err
	}
	args = pgx.NamedArgs{
		"clusters" + suffix: likes(sel.Clusters), "namespaces" + suffix: likes(sel.Namespaces), "labels" + suffix: raw,
		"packages" + suffix: likes(sel.Packages), "catalogs" + suffix: likes(sel.Catalogs),
	}
	// A catalog is named as the scope names it: name, or namespace/name of one of its cluster.
	asked := `select s.cluster, s.namespace, s.spec ->> 'package' as package,
		  case when coalesce(s.spec ->> 'catalogNamespace', '') = '' then '' else (s.spec ->> 'catalogNamespace') || '/'
		  end || (s.spec ->> 'catalog') as catalog
		from resolver.subscriptions s where s.tenant = @tenant`
	if len(sel.Packages)+len(sel.Catalogs) > 0 {
		asked += ` union all select r.cluster, r.namespace, r.name, regexp_replace(r.catalog, '^[^/]+/([^/]+/[^/]+)$', '\1')
		from resolver.reads r where r.tenant = @tenant and r.kind = 'package'`
	}
	sql = `select a.cluster, a.namespace from (` + asked + `) a
		join resolver.clusters k on k.tenant = @tenant and k.name = a.cluster and k.labels @> @labels::jsonb
		where (@clusters::text[] is null or a.cluster like any (@clusters)) and (@namespaces::text[] is null or a.namespace like any (@namespaces))
		  and (@packages::text[] is null or a.package like any (@packages)) and (@catalogs::text[] is null or a.catalog like any (@catalogs))`
	for _, name := range []string{"clusters", "namespaces", "labels", "packages", "catalogs"} {
		sql = strings.ReplaceAll(sql, "@"+name, "@"+name+suffix)
	}
	return sql, args, nil
}

// likes are the patterns of a selector in SQL's words; nil for none.
func likes(patterns []string) []string {
	var out []string
	for _, p := range patterns {
		prefix, open := strings.CutSuffix(p, "*")
		p = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(storable(prefix))
		if open {
			p += "%"
		}
		out = append(out, p)
	}
	return out
}
