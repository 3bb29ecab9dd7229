// Package matrix answers what runs where: packages against clusters, with the versions that run, how far they are
// apart, and what the channels offer that are followed. It asks the read models of operators and subscriptions, and
// catalogs.
package matrix

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// Reader answers questions about the matrix.
type Reader struct {
	Pool    *pg.Pool
	Content *content.Reader
}

// asking is one question, in one transaction.
type asking struct {
	tx      pgx.Tx
	content *content.Reader
	who     model.Caller
	f       fleetmodel.MatrixFilter
	offers  map[offerKey]*offer
}

// List returns rows by package or by cluster, in the order of their names, of what the caller may list.
func (r *Reader) List(ctx context.Context, who model.Caller, f fleetmodel.MatrixFilter) (
	items []fleetmodel.MatrixRow, next []string, err error,
) {
	if len(f.After) > 1 {
		return nil, nil, readmodel.ForeignCursor()
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		// What is asked of few rows makes the statements look dear; to compile them takes longer than to run them.
		if _, err := tx.Exec(ctx, "set local jit = off"); err != nil {
			return pg.Err(err)
		}
		a := asking{tx: tx, content: r.Content, who: who, f: f, offers: map[offerKey]*offer{}}
		names, more, err := a.names(ctx)
		if err != nil || len(names) == 0 {
			return err
		}
		if more {
			next = names[len(names)-1:]
		}
		if f.By == fleetmodel.MatrixByCluster {
			items, err = a.clusters(ctx, names)
		} else {
			items, err = a.packages(ctx, names)
		}
		return err
	})
	return items, next, err
}

// operators are those that are asked for, as o.
func (a *asking) operators() (readmodel.Where, error) {
	w := readmodel.Tenant("o.tenant", a.who.Tenant)
	w.Within(a.who, access.List, access.Operators, readmodel.Places{Cluster: "o.cluster", Namespace: "o.namespace"})
	w.Add("o.package <> ''")
	w.Equal("o.package", a.f.Package)
	w.Equal("o.cluster", a.f.Cluster)
	err := w.Clusters("o.cluster", a.f.ClusterSelector, a.who)
	return w, err
}

// waiting are the subscriptions that are asked for and of which nothing is installed, as s.
func (a *asking) waiting() (readmodel.Where, error) {
	w := readmodel.Tenant("s.tenant", a.who.Tenant)
	w.Within(a.who, access.List, access.Subscriptions, subscriptions.Places)
	w.Add(`not exists (select from operators o where o.tenant = s.tenant and o.cluster = s.cluster
		and o.namespace = s.namespace and o.name = s.installed_csv)`)
	w.Equal("s.package", a.f.Package)
	w.Equal("s.cluster", a.f.Cluster)
	err := w.Clusters("s.cluster", a.f.ClusterSelector, a.who)
	return w, err
}

// column is by what rows are named.
func (a *asking) column() string {
	if a.f.By == fleetmodel.MatrixByCluster {
		return "cluster"
	}
	return "package"
}

type named struct{ Name string }

// names are the rows of a page.
func (a *asking) names(ctx context.Context) (names []string, more bool, err error) {
	for _, from := range []struct {
		table string
		where func() (readmodel.Where, error)
	}{{"operators o", a.operators}, {"subscriptions s", a.waiting}} {
		w, err := from.where()
		if err != nil {
			return nil, false, err
		}
		name := from.table[len(from.table)-1:] + "." + a.column()
		if err := w.After(a.f.After, name); err != nil {
			return nil, false, err
		}
		list, some, err := readmodel.Page[named](ctx, a.tx, "select distinct "+name+" as name from "+from.table, w, "1",
			a.f.Limit)
		if err != nil {
			return nil, false, err
		}
		for _, n := range list {
			names = append(names, n.Name)
		}
		more = more || some
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > a.f.Limit {
		return names[:a.f.Limit], true, nil
	}
	return names, more, nil
}

// asked joins to an operator o, of cluster k, the first subscription f that has it installed and that the caller may
// list. Of a catalog that the caller may not list it follows nothing.
func (a *asking) asked(w *readmodel.Where) string {
	seen := w.Told("'y'", a.who, access.List, access.Subscriptions, subscriptions.Places)
	return `left join clusters k on k.tenant = o.tenant and k.name = o.cluster
		left join lateral (select s.name, s.owner, s.generated, ` + a.follows(w) + ` from subscriptions s
			where s.tenant = o.tenant and s.cluster = o.cluster and s.namespace = o.namespace and s.installed_csv = o.name
			and ` + seen + ` = 'y' order by s.name limit 1) f on true`
}

// follows are the columns of what a subscription s follows, but for the variant.
func (a *asking) follows(w *readmodel.Where) string {
	offered := w.Told("'y'", a.who, access.List, access.Catalogs, subscriptions.CatalogPlaces)
	return `case when ` + offered + ` = 'y' then s.catalog else '' end as catalog, s.catalog_namespace,
		case when s.catalog_namespace = '' then '' else s.cluster end as own, s.channel`
}

// some bounds the clusters that are named of a version.
const some = "5"

// packages are rows by package.
func (a *asking) packages(ctx context.Context, names []string) ([]fleetmodel.MatrixRow, error) {
	rows := make([]packageRow, len(names))
	at := map[string]*packageRow{}
	for i, name := range names {
		rows[i].Package, at[name] = name, &rows[i]
	}
	if err := a.countOperators(ctx, names, at); err != nil {
		return nil, err
	}
	if err := a.countWaiting(ctx, names, at); err != nil {
		return nil, err
	}
	out := make([]fleetmodel.MatrixRow, len(rows))
	for i := range rows {
		out[i] = rows[i].done()
	}
	return out, nil
}

// counted is a part of the operators of a package: all, those of a version, or those of a version that follow the same.
type counted struct {
	Package string
	Version string
	followed
	Level     int // which of these it is
	Example   string
	Operators int
	Clusters  int
	Succeeded int
	Failed    int
	Some      []string
}

// Levels of counted, as PostgreSQL numbers them: a bit for each column that is not looked at.
const (
	levelFollowed = 0
	levelVersion  = 1
	levelPackage  = 3
)

func (a *asking) countOperators(ctx context.Context, names []string, at map[string]*packageRow) error {
	w, err := a.operators()
	if err != nil {
		return err
	}
	join := a.asked(&w)
	w.Add("o.package = any (?)", names)
	const key = "c.package, c.version, c.catalog, c.catalog_namespace, c.own, c.channel, c.variant"
	rows, err := w.Query(ctx, a.tx, `select c.package, coalesce(c.version, '') as version, coalesce(c.catalog, '') as catalog,
		coalesce(c.catalog_namespace, '') as catalog_namespace, coalesce(c.own, '') as own,
		coalesce(c.channel, '') as channel, coalesce(c.variant, '') as variant,
		grouping(c.version, c.channel) as level, min(c.cluster) as example, count(*) as operators,
		count(distinct c.cluster) as clusters, count(*) filter (where c.phase = 'Succeeded') as succeeded,
		count(*) filter (where c.phase = 'Failed') as failed, (array_agg(distinct c.cluster))[1:`+some+`] as some
		from (select o.package, o.csv_version as version, o.cluster, o.phase, coalesce(f.catalog, '') as catalog,
			coalesce(f.catalog_namespace, '') as catalog_namespace, coalesce(f.own, '') as own,
			coalesce(f.channel, '') as channel, `+subscriptions.ClusterVariant+` as variant
			from operators o `+join, `) c
		group by grouping sets ((c.package), (c.package, c.version), (`+key+`)) order by level desc`)
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[counted])
	if err != nil {
		return pg.Err(err)
	}
	for _, c := range list {
		var found *offer
		if c.Level == levelFollowed {
			if found, err = a.offer(ctx, c.Package, c.followed, c.Example); err != nil {
				return err
			}
		}
		at[c.Package].add(c, found)
	}
	return nil
}

func (a *asking) countWaiting(ctx context.Context, names []string, at map[string]*packageRow) error {
	w, err := a.waiting()
	if err != nil {
		return err
	}
	w.Add("s.package = any (?)", names)
	rows, err := w.Query(ctx, a.tx, "select s.package, count(*) from subscriptions s", "group by 1")
	if err != nil {
		return err
	}
	var name string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		at[name].NotInstalled = n
		return nil
	})
	return pg.Err(err)
}

// packageRow is a row by package while it is counted.
type packageRow struct {
	fleetmodel.MatrixRow

	offered []string // versions of the catalogs that are followed
}

// add takes in a part: all operators first, then those of a version, then those that follow the same.
func (r *packageRow) add(c counted, found *offer) {
	switch c.Level {
	case levelPackage:
		r.Operators, r.Clusters, r.Succeeded, r.Failed = c.Operators, c.Clusters, c.Succeeded, c.Failed
	case levelVersion:
		r.Versions = append(r.Versions, fleetmodel.MatrixVersion{
			Version: c.Version, Operators: c.Operators, Clusters: c.Clusters, Succeeded: c.Succeeded, Failed: c.Failed,
			Some: c.Some,
		})
	default:
		if found == nil {
			return
		}
		r.offered = append(r.offered, found.all...)
		n := behind(c.Version, found.versions)
		if n != nil && *n > 0 {
			r.Behind += c.Operators
		}
		for i := range r.Versions {
			if r.Versions[i].Version == c.Version {
				r.Versions[i].Behind = most(r.Versions[i].Behind, n)
			}
		}
		r.follow(found, c.Operators)
	}
}

// follow counts operators that follow a channel.
func (r *packageRow) follow(found *offer, operators int) {
	one := fleetmodel.MatrixChannel{
		Catalog: found.catalog, Variant: found.variant, Channel: found.channel, Version: found.head.Version,
		CSV: found.head.Name, Operators: operators,
	}
	for i := range r.Channels {
		c := &r.Channels[i]
		if c.Catalog == one.Catalog && c.Variant == one.Variant && c.Channel == one.Channel {
			c.Operators += operators
			return
		}
	}
	r.Channels = append(r.Channels, one)
}

func (r *packageRow) done() fleetmodel.MatrixRow {
	slices.SortFunc(r.Versions, func(a, b fleetmodel.MatrixVersion) int { return newestFirst(a.Version, b.Version) })
	slices.SortFunc(r.Channels, func(a, b fleetmodel.MatrixChannel) int {
		return compareAll(a.Catalog, b.Catalog, a.Channel, b.Channel, a.Variant, b.Variant)
	})
	running := make([]string, len(r.Versions))
	for i, v := range r.Versions {
		running[i] = v.Version
	}
	r.Skew = skew(running, r.offered)
	if len(running) > 0 {
		r.Newest = running[0]
	}
	return r.MatrixRow
}
