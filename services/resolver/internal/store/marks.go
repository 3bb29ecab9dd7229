package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// touchedReads says which read sets a change of a catalog touches.
type touchedReads struct {
	named   bool // a subscription names a catalog of this name
	visible bool // every visible catalog was asked
	health  bool // its health was asked for
	healths bool // that of any catalog was, and this one's namespace is strict, too
	anyhow  bool // it was asked for anything that is in a revision
	// packages and apis, by name, were asked for; anyAPI stands for all of them.
	packages, apis []string
	anyAPI         bool
	names          bool // its list of packages was asked for
}

// visibility is the scopes that a change of a catalog concerns: those that see it; with before, only those that see it
// now and did not, or the other way round. A variant concerns clusters of its Kubernetes version alone (R-CAT-92).
type visibility struct {
	before  *decide.CatalogIntent
	either  bool // with before: also those that saw it and still do
	now     decide.CatalogIntent
	variant *string
}

// mark makes dirty the scopes whose read set is touched. Each kind of question is looked up by itself, so that
// the cost grows with what is found.
func (s *Store) mark(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, what touchedReads, who visibility) error {
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
	return s.markAll(ctx, tx, e, sql, args)
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
