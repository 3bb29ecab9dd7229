package browse

import (
	"context"

	"github.com/jackc/pgx/v5"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Upgrades lists what the upgrades of a package change, along the edges of its update graph in order of
// name. The cursor is the pair of names.
func (r *Reader) Upgrades(
	ctx context.Context, who model.Caller, name catalog.Name, pkg string, f model.UpgradeFilter,
) ([]model.Upgrade, []string, error) {
	p, _, _, err := r.onPackage(ctx, who, name, f.View, pkg)
	if err != nil {
		return nil, nil, err
	}
	after, err := afterEdge(f.After)
	if err != nil {
		return nil, nil, err
	}
	items := []model.Upgrade{}
	var next []string
	for _, e := range compare.Edges(*p) {
		if f.From != "" && e.From != f.From || f.To != "" && e.To != f.To || e.From < after.From ||
			e.From == after.From && e.To <= after.To {
			continue
		}
		if len(items) == f.Limit {
			last := items[len(items)-1]
			next = []string{last.From, last.To}
			break
		}
		items = append(items, model.Upgrade{
			From: e.From, To: e.To, FromContent: contentOf(p, e.From), ToContent: contentOf(p, e.To),
		})
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		if err := fetchedContents(ctx, tx, who.Tenant, name, p, items); err != nil {
			return err
		}
		for i := range items {
			if err := r.Content.Compare(ctx, tx, who.Tenant, &items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return items, next, err
}

func afterEdge(after []string) (compare.Edge, error) {
	switch len(after) {
	case 0:
		return compare.Edge{}, nil
	case 2:
		return compare.Edge{From: after[0], To: after[1]}, nil
	default:
		return compare.Edge{}, readmodel.ForeignCursor()
	}
}

func contentOf(p *libcatalog.Package, bundle string) string {
	b, _ := p.Bundle(bundle)
	return string(b.Content)
}

// fetchedContents fills in the contents of bundles that the catalog names by image alone, as far as they were
// fetched.
func fetchedContents(
	ctx context.Context, q pg.Querier, tenant string, name catalog.Name, p *libcatalog.Package, items []model.Upgrade,
) error {
	type bundle struct{ name, image string }
	wanted := map[bundle][]*string{}
	var images []string
	want := func(of string, content *string) {
		if b, ok := p.Bundle(of); ok && b.Content == "" && b.Image != "" {
			key := bundle{b.Name, b.Image}
			if wanted[key] == nil {
				images = append(images, b.Image)
			}
			wanted[key] = append(wanted[key], content)
		}
	}
	for i := range items {
		want(items[i].From, &items[i].FromContent)
		want(items[i].To, &items[i].ToContent)
	}
	if len(images) == 0 {
		return nil
	}
	rows, err := q.Query(ctx, `select bundle, image, content from catalog_api.bundle_images
		where tenant = $1 and package = $3 and image = any ($4)
		and content <> '' and catalog = (select stream from catalog_api.catalogs where tenant = $1 and name = $2)`, tenant, name.Subject(), p.Name, images)
	if err != nil {
		return err
	}
	var found bundle
	var content string
	_, err = pgx.ForEachRow(rows, []any{&found.name, &found.image, &content}, func() error {
		for _, place := range wanted[found] {
			*place = content
		}
		return nil
	})
	return err
}
