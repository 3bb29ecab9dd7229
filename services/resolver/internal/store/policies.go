package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// policySubject is the beginning of the subject of approval policies; the name follows.
const policySubject = "approval/"

// foldPolicy folds an event of an approval policy, and makes dirty exactly the scopes that it chooses now or chose
// before.
func (s *Store) foldPolicy(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	name := strings.TrimPrefix(e.Subject, policySubject)
	before, err := readPolicy(ctx, tx, e.Tenant, name)
	if err != nil {
		return err
	}
	var chosen []events.PolicySelector
	after := decide.EvolvePolicy(before, eventOf(e))
	switch {
	case after != nil:
		raw, err := encode(after.Spec)
		if err != nil {
			return err
		}
		err = exec(ctx, tx, `insert into resolver.approval_policies (tenant, name, spec) values ($1, $2, $3)
			on conflict (tenant, name) do update set spec = excluded.spec`, e.Tenant, name, raw)
		if err != nil {
			return err
		}
		chosen = append(chosen, after.Spec.Selector)
	case before == nil:
		return nil
	default:
		if err := exec(ctx, tx, `delete from resolver.approval_policies where tenant = $1 and name = $2`, e.Tenant,
			name); err != nil {
			return err
		}
	}
	if before != nil {
		chosen = append(chosen, before.Spec.Selector)
	}
	return s.markChosen(ctx, tx, e, chosen)
}

// readPolicy reads the row of a policy; nil without one.
func readPolicy(ctx context.Context, tx pgx.Tx, tenant, name string) (*decide.Policy, error) {
	p := decide.Policy{Name: name}
	err := tx.QueryRow(ctx, `select spec from resolver.approval_policies where tenant = $1 and name = $2`, tenant,
		name).Scan(&p.Spec)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read approval policy %s: %w", name, pg.Err(err))
	}
	return &p, nil
}

// urgentMarks bounds how many scopes one policy may put before the work that people wait for: some seconds of it.
const urgentMarks = 1000

// markChosen makes dirty the scopes that any of the selectors chooses. Those with a plan that has not begun come first,
// as if a person had asked, so that it does not begin under the policy before while a fan-out is worked off: plans that
// may begin before those that may be approved, up to urgentMarks. The rest is one change that touches many places. A
// decision that is being made upon the policies before is made again.
func (s *Store) markChosen(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
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
	return errors.Join(s.marks.Mark(ctx, tx, bus.Interactive, urgent...), s.marks.Mark(ctx, tx, bus.FanOut, rest...))
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

func scanPolicy(r pgx.CollectableRow) (p decide.Policy, err error) {
	return p, r.Scan(&p.Name, &p.Spec)
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

// Gains reads how many rights upgrades gain, of those that the indexer has compared by the rules of today. What it
// could not compare is not in the answer, as what it has not compared yet.
func (s *Store) Gains(ctx context.Context, tenant string, upgrades []decide.Upgrade) (decide.PermissionGrowth, error) {
	froms, tos := make([]string, len(upgrades)), make([]string, len(upgrades))
	for i, u := range upgrades {
		froms[i], tos[i] = u.From, u.To
	}
	out := decide.PermissionGrowth{}
	rows, err := s.pool.Query(ctx, `select u.from_content, u.to_content, u.gained, u.difference
		from catalog_api.upgrades u
		join unnest($2::text[], $3::text[]) as w(f, t) on w.f = u.from_content and w.t = u.to_content
		where u.tenant = $1 and u.semantics = $4`, tenant, froms, tos, compare.Semantics)
	if err != nil {
		return nil, fmt.Errorf("read what upgrades gain: %w", pg.Err(err))
	}
	var u decide.Upgrade
	var gained int
	var packed []byte
	_, err = pgx.ForEachRow(rows, []any{&u.From, &u.To, &gained, &packed}, func() error {
		known, err := comparedFully(packed, gained)
		if known {
			out[u] = gained
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what upgrades gain: %w", pg.Err(err))
	}
	return out, nil
}

// comparedFully says whether a difference is known: where a bundle cannot be read it says why instead.
func comparedFully(packed []byte, gained int) (bool, error) {
	if gained > 0 {
		return true, nil
	}
	raw, err := unpack(packed)
	if err != nil {
		return false, err
	}
	var d compare.Difference
	err = json.Unmarshal(raw, &d)
	return d.Problem == "", errs.Wrap(errs.Internal, err, "read a difference")
}
