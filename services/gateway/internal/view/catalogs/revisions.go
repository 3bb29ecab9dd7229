package catalogs

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Revisions lists what a catalog has served, newest first.
func (r *Reader) Revisions(
	ctx context.Context, who model.Caller, name catalog.Name, p model.Page,
) (items []model.Revision, next []string, err error) {
	w := readmodel.Tenant("v.tenant", who.Tenant)
	if len(p.After) > 0 {
		before, err := time.Parse(time.RFC3339Nano, p.After[0])
		if err != nil || len(p.After) != 2 {
			return nil, nil, readmodel.ForeignCursor()
		}
		w.Add("(v.created, v.revision) < (?, ?)", before, p.After[1])
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		c, err := One(ctx, tx, who.Tenant, name)
		if err != nil {
			return err
		}
		w.Add("v.catalog = ?", c.Stream)
		rows, more, err := readmodel.Page[revisionRow](ctx, tx, `select v.revision, v.previous, v.packages, v.bundles,
			v.version, v.created, v.variant
			from catalog_api.revisions v`, w, "v.created desc, v.revision desc", p.Limit)
		if err != nil {
			return err
		}
		for _, r := range rows {
			items = append(items, model.Revision{
				Revision: r.Revision, Previous: r.Previous, Packages: r.Packages, Bundles: r.Bundles,
				Version: r.Version, Created: r.Created, Variant: r.Variant,
			})
		}
		if more {
			last := items[len(items)-1]
			next = []string{last.Created.Format(time.RFC3339Nano), last.Revision}
		}
		return revisionChanges(ctx, tx, r.Log, who.Tenant, c.Stream, items)
	})
	return items, next, err
}

// revisionChanges adds to revisions what their events say. An event that the log has no more leaves none.
func revisionChanges(
	ctx context.Context, q pg.Querier, log *eventlog.Log, tenant, stream string, items []model.Revision,
) error {
	at := map[int64]*model.Revision{}
	first := int64(math.MaxInt64)
	for i := range items {
		items[i].Changes = []model.RevisionChange{}
		at[items[i].Version] = &items[i]
		first = min(first, items[i].Version)
	}
	if len(items) == 0 {
		return nil
	}
	id, err := events.ParseStreamID(stream)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "read the stream of a catalog")
	}
	recorded, err := log.ReadStream(ctx, q, tenant, id, first-1)
	if err != nil {
		return err
	}
	for _, r := range recorded {
		p, published := r.Payload.(events.CatalogRevisionPublished)
		if v := at[r.Version]; published && v != nil {
			for _, c := range p.Changes {
				v.Changes = append(v.Changes, changeOf(c))
			}
		}
	}
	return nil
}

func changeOf(c events.PackageChange) model.RevisionChange {
	out := model.RevisionChange{
		Package: c.Package, Change: c.Change, Digest: c.Digest, BundlesAdded: c.BundlesAdded,
		BundlesRemoved: c.BundlesRemoved, BundlesMutated: c.BundlesMutated, DefaultChannelFrom: c.DefaultChannelFrom,
		DefaultChannelTo: c.DefaultChannelTo, Deprecated: c.Deprecated, Undeprecated: c.Undeprecated,
	}
	for _, h := range c.Heads {
		out.Heads = append(out.Heads, model.ChannelMove(h))
	}
	return out
}

type revisionRow struct {
	Revision string
	Previous string
	Packages int
	Bundles  int
	Version  int64
	Created  time.Time
	Variant  string
}
