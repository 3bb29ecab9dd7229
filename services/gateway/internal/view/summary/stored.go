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

// catalogOf is the catalog that a subscription s names, "" where the caller may not list it.
func catalogOf(w *readmodel.Where, who model.Caller) string {
	return w.Told(subscriptions.CatalogName, who, access.List, access.Catalogs, subscriptions.CatalogPlaces)
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

// countStored has PostgreSQL count: what a copy says is the same.
func countStored(ctx context.Context, tx pgx.Tx, who model.Caller, f model.SummaryFilter, t *tally) error {
	// What is asked of few rows makes the statements look dear; to compile them takes longer than to run them.
	if _, err := tx.Exec(ctx, "set local jit = off"); err != nil {
		return pg.Err(err)
	}
	parts := map[key]*model.SummaryCounts{}
	if err := countOperators(ctx, tx, who, f, parts); err != nil {
		return err
	}
	if err := countSubscriptions(ctx, tx, who, f, parts); err != nil {
		return err
	}
	for _, k := range slices.SortedFunc(maps.Keys(parts), key.compare) {
		t.add(k, *parts[k])
	}
	return nil
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

// doesNotGoOnOnly is a subscription that does not go on and whose operator has not failed, which is counted itself.
const doesNotGoOnOnly = `(` + subscriptions.DoesNotGoOn + ` and not exists (select from operators o
	where o.tenant = s.tenant and o.cluster = s.cluster and o.namespace = s.namespace
	and o.name = s.installed_csv and o.phase = '` + failed + `'))`

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
	rows, err := w.Query(ctx, tx, `select `+by+`, count(*),
		count(*) filter (where `+subscriptions.RequiresApproval+`),
		count(*) filter (where `+doesNotGoOnOnly+`),
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
