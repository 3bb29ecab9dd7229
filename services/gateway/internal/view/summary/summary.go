// Package summary counts what the read models of operators and subscriptions hold, by cluster, namespace, package or
// catalog. It keeps nothing of its own (ADR 0049).
package summary

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// catalogPlaces are where the catalog lies that a subscription s names.
var catalogPlaces = readmodel.Places{
	Cluster: "case when s.catalog_namespace = '' then '' else s.cluster end", Namespace: "s.catalog_namespace",
	Catalog: subscriptions.Places.Catalog, OpenToAll: true,
}

// catalogOf is the catalog that a subscription s names, "" where the caller may not list it.
func catalogOf(w *readmodel.Where, who model.Caller) string {
	return w.Told(subscriptions.CatalogName, who, access.List, access.Catalogs, catalogPlaces)
}

// followed is the catalog of the subscription that has an operator o installed, "" where there is none, or where the
// caller may not list the subscription or the catalog.
func followed(w *readmodel.Where, who model.Caller) string {
	name := w.Told(catalogOf(w, who), who, access.List, access.Subscriptions, subscriptions.Places)
	return `coalesce((select ` + name + ` from subscriptions s where s.tenant = o.tenant
		and s.cluster = o.cluster and s.namespace = o.namespace and s.installed_csv = o.name order by s.name limit 1), '')`
}

// groupings are two expressions each, over a table t, but for the catalog.
var groupings = map[string]string{
	model.ByCluster: "t.cluster, ''", model.ByNamespace: "t.cluster, t.namespace", model.ByPackage: "t.package, ''",
}

// grouped is what a summary is made by; catalog is asked only where that is needed.
func grouped(by, table string, catalog func() string) string {
	if by == model.ByCatalog {
		return catalog() + ", ''"
	}
	return strings.ReplaceAll(groupings[by], "t.", table+".")
}

// key is a part of the fleet: what the two expressions of a grouping give.
type key [2]string

// Reader answers queries about parts of the fleet.
type Reader struct{ Pool *pg.Pool }

// List returns the parts of the fleet in the order of their names, of which the caller sees what lists show.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.SummaryFilter,
) (total model.SummaryCounts, items []model.Summary, next []string, err error) {
	if len(f.After) != 0 && len(f.After) != len(key{}) {
		return total, nil, nil, readmodel.ForeignCursor()
	}
	parts := map[key]*model.SummaryCounts{}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		// What is asked of few rows makes the statements look dear; to compile them takes longer than to run them.
		if _, err := tx.Exec(ctx, "set local jit = off"); err != nil {
			return pg.Err(err)
		}
		if err := countOperators(ctx, tx, who, f, parts); err != nil {
			return err
		}
		return countSubscriptions(ctx, tx, who, f, parts)
	})
	if err != nil {
		return total, nil, nil, err
	}
	total.Add(model.SummaryCounts{}) // none of it is absent where nothing is there
	for _, k := range slices.SortedFunc(maps.Keys(parts), func(a, b key) int { return slices.Compare(a[:], b[:]) }) {
		total.Add(*parts[k])
		switch {
		case len(f.After) > 0 && slices.Compare(k[:], f.After) <= 0:
		case len(items) < f.Limit:
			items = append(items, summary(f.By, k, *parts[k]))
		case next == nil:
			next = last(f.By, items)
		}
	}
	return total, items, next, nil
}

// last is the cursor behind the last item of a page.
func last(by string, items []model.Summary) []string {
	s := items[len(items)-1]
	switch by {
	case model.ByPackage:
		return []string{s.Package, ""}
	case model.ByCatalog:
		return []string{s.Catalog, ""}
	default:
		return []string{s.Cluster, s.Namespace}
	}
}

func summary(by string, k key, c model.SummaryCounts) model.Summary {
	s := model.Summary{SummaryCounts: c}
	switch by {
	case model.ByPackage:
		s.Package = k[0]
	case model.ByCatalog:
		s.Catalog = k[0]
	default:
		s.Cluster, s.Namespace = k[0], k[1]
	}
	return s
}

func countOperators(
	ctx context.Context, tx pgx.Tx, who model.Caller, f model.SummaryFilter, parts map[key]*model.SummaryCounts,
) error {
	w := readmodel.Tenant("o.tenant", who.Tenant)
	w.Within(who, access.List, access.Operators, readmodel.Places{Cluster: "o.cluster", Namespace: "o.namespace"})
	w.Equal("o.cluster", f.Cluster)
	w.Equal("o.namespace", f.Namespace)
	w.Equal("o.package", f.Package)
	catalog := sync.OnceValue(func() string { return followed(&w, who) })
	if f.Catalog != "" {
		w.Equal(catalog(), f.Catalog)
	}
	if err := w.Clusters("o.cluster", f.ClusterSelector, who); err != nil {
		return err
	}
	by := grouped(f.By, "o", catalog)
	rows, err := w.Query(ctx, tx, `select `+by+`, o.phase, count(*),
		count(*) filter (where o.drifted > 0) from operators o`, "group by 1, 2, 3")
	if err != nil {
		return err
	}
	var k key
	var phase string
	var n, drifted int
	_, err = pgx.ForEachRow(rows, []any{&k[0], &k[1], &phase, &n, &drifted}, func() error {
		c := model.SummaryCounts{Operators: n, Drifted: drifted, Phases: map[string]int{phase: n}}
		if phase == failed {
			c.Failing = n
		}
		add(parts, k, c)
		return nil
	})
	return pg.Err(err)
}

// failed is the phase of an operator that does not work.
const failed = "Failed"

func countSubscriptions(
	ctx context.Context, tx pgx.Tx, who model.Caller, f model.SummaryFilter, parts map[key]*model.SummaryCounts,
) error {
	w := readmodel.Tenant("s.tenant", who.Tenant)
	w.Within(who, access.List, access.Subscriptions, subscriptions.Places)
	w.Equal("s.cluster", f.Cluster)
	w.Equal("s.namespace", f.Namespace)
	w.Equal("s.package", f.Package)
	catalog := sync.OnceValue(func() string { return catalogOf(&w, who) })
	if f.Catalog != "" {
		w.Equal(catalog(), f.Catalog)
	}
	if err := w.Clusters("s.cluster", f.ClusterSelector, who); err != nil {
		return err
	}
	by := grouped(f.By, "s", catalog)
	// Operators that failed are counted as such.
	rows, err := w.Query(ctx, tx, `select `+by+`, count(*),
		count(*) filter (where `+subscriptions.RequiresApproval+`),
		count(*) filter (where `+subscriptions.DoesNotGoOn+` and not exists (select from operators o
			where o.tenant = s.tenant and o.cluster = s.cluster and o.namespace = s.namespace
			and o.name = s.installed_csv and o.phase = '`+failed+`')),
		count(*) filter (where `+subscriptions.UpgradeAvailable+`),
		count(*) filter (where `+subscriptions.Deprecated+`)
		from subscriptions s left join clusters k on k.tenant = s.tenant and k.name = s.cluster`, "group by 1, 2")
	if err != nil {
		return err
	}
	var k key
	var c model.SummaryCounts
	_, err = pgx.ForEachRow(rows, []any{
		&k[0], &k[1], &c.Subscriptions, &c.RequiresApproval, &c.Failing, &c.UpgradeAvailable, &c.Deprecated,
	}, func() error {
		add(parts, k, c)
		return nil
	})
	return pg.Err(err)
}

func add(parts map[key]*model.SummaryCounts, k key, c model.SummaryCounts) {
	if parts[k] == nil {
		parts[k] = &model.SummaryCounts{}
	}
	parts[k].Add(c)
}
