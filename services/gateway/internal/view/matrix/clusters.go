package matrix

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// cell is an operator on a cluster, or a subscription that asks for one.
type cell struct {
	Cluster      string
	Namespace    string
	CSV          string `db:"csv"`
	Package      string
	Version      string
	State        string
	Subscription string
	Owner        string
	Generated    bool
	followed
}

// clusters are rows by cluster.
func (a *asking) clusters(ctx context.Context, names []string) ([]fleetmodel.MatrixRow, error) {
	w, err := a.operators()
	if err != nil {
		return nil, err
	}
	join := a.asked(&w)
	w.Add("o.cluster = any (?)", names)
	rows, err := w.Query(ctx, a.tx, `select o.cluster, o.namespace, o.name as csv, o.package, o.csv_version as version,
		o.phase as state, coalesce(f.name, '') as subscription, coalesce(f.owner, '') as owner,
		coalesce(f.generated, false) as generated, coalesce(f.catalog, '') as catalog,
		coalesce(f.catalog_namespace, '') as catalog_namespace, coalesce(f.own, '') as own,
		coalesce(f.channel, '') as channel, `+subscriptions.ClusterVariant+` as variant from operators o `+join, "")
	if err != nil {
		return nil, err
	}
	cells, err := pgx.CollectRows(rows, pgx.RowToStructByName[cell])
	if err != nil {
		return nil, pg.Err(err)
	}
	if w, err = a.waiting(); err != nil {
		return nil, err
	}
	follows := a.follows(&w)
	w.Add("s.cluster = any (?)", names)
	rows, err = w.Query(ctx, a.tx, `select s.cluster, s.namespace, '' as csv, s.package, '' as version, '`+
		fleetmodel.StateNotInstalled+`' as state, s.name as subscription, s.owner, s.generated, `+follows+`, `+
		subscriptions.ClusterVariant+` as variant from subscriptions s
		left join clusters k on k.tenant = s.tenant and k.name = s.cluster`, "")
	if err != nil {
		return nil, err
	}
	cells, err = pgx.AppendRows(cells, rows, pgx.RowToStructByName[cell])
	if err != nil {
		return nil, pg.Err(err)
	}
	slices.SortFunc(cells, func(x, y cell) int {
		return compareAll(x.Cluster, y.Cluster, x.Package, y.Package, x.Namespace, y.Namespace, x.CSV, y.CSV,
			x.Subscription, y.Subscription)
	})
	return a.clusterRows(ctx, names, cells)
}

// clusterRows puts cells, which are in order, into the rows of clusters.
func (a *asking) clusterRows(ctx context.Context, names []string, cells []cell) ([]fleetmodel.MatrixRow, error) {
	out := make([]fleetmodel.MatrixRow, len(names))
	for i, name := range names {
		out[i].Cluster = name
		for len(cells) > 0 && cells[0].Cluster == name {
			c := cells[0]
			cells = cells[1:]
			found, err := a.offer(ctx, c.Package, c.followed, c.Cluster)
			if err != nil {
				return nil, err
			}
			addCell(&out[i], c, found)
		}
	}
	return out, nil
}

func addCell(r *fleetmodel.MatrixRow, c cell, found *offer) {
	one := fleetmodel.MatrixCell{
		Package: c.Package, Namespace: c.Namespace, CSV: c.CSV, Version: c.Version, State: c.State,
		Subscription: c.Subscription, Owner: c.Owner, Generated: c.Generated, Channel: c.Channel,
	}
	if found != nil {
		one.Catalog, one.Channel, one.Offered = found.catalog, found.channel, found.head.Version
		one.Behind = behind(c.Version, found.versions)
	}
	r.Cells = append(r.Cells, one)
	if c.CSV == "" {
		r.NotInstalled++
		return
	}
	r.Operators++
	switch c.State {
	case "Succeeded":
		r.Succeeded++
	case "Failed":
		r.Failed++
	}
	if one.Behind != nil && *one.Behind > 0 {
		r.Behind++
	}
}

// compareAll orders by the first pair that differs.
func compareAll(pairs ...string) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		if c := cmp.Compare(pairs[i], pairs[i+1]); c != 0 {
			return c
		}
	}
	return 0
}
