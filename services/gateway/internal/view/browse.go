package view

import (
	"context"

	"github.com/jackc/pgx/v5"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Browser answers questions about the content of catalogs (R-CAT-105). It asks the indexer's tables
// for the revision in service, so that an answer is of one revision.
type Browser struct{ *Reader }

// served is the revision of a catalog that is in service; without one there is nothing to browse.
func served(ctx context.Context, q pg.Querier, tenant string, name catalog.Name) (revision string, err error) {
	var disabled bool
	err = pg.Err(q.QueryRow(ctx, `select revision, disabled from catalog_api.catalogs where tenant = $1 and name = $2`, tenant, name.Subject()).Scan(&revision, &disabled))
	if err == nil && revision != "" && !disabled {
		return revision, nil
	}
	if err != nil && !errs.Is(err, errs.NotFound) {
		return "", err
	}
	var known bool
	err = pg.Err(q.QueryRow(ctx, `select exists (select from gateway.catalogs where tenant = $1 and subject = $2)`, tenant, name.Subject()).Scan(&known))
	if err == nil && !known {
		err = noCatalog(name)
	}
	return "", err
}

type packageRef struct{ name, digest string }

func scanPackageRef(row pgx.Row) (packageRef, error) {
	var p packageRef
	err := row.Scan(&p.name, &p.digest)
	return p, err
}

// Packages lists the packages of a catalog by name. A catalog without a revision has none.
func (b *Browser) Packages(ctx context.Context, who model.Caller, name catalog.Name, p model.Page) (items []model.PackageSummary, next []string, err error) {
	items = []model.PackageSummary{}
	err = b.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		refs, more, err := packageRefs(ctx, tx, who.Tenant, name, p)
		if err != nil {
			return err
		}
		cards, err := b.Content.cardsOf(ctx, tx, who.Tenant, refs)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			items = append(items, summaryOf(cards[ref.digest], ref.digest))
		}
		if more {
			next = []string{refs[len(refs)-1].name}
		}
		return nil
	})
	return items, next, err
}

func packageRefs(ctx context.Context, tx pgx.Tx, tenant string, name catalog.Name, p model.Page) ([]packageRef, bool, error) {
	revision, err := served(ctx, tx, tenant, name)
	if err != nil || revision == "" {
		return nil, false, err
	}
	var w where
	w.add("tenant = ?", tenant)
	w.add("revision = ?", revision)
	if err := w.after(p.After, "package"); err != nil {
		return nil, false, err
	}
	return page(ctx, tx, `select package, digest from catalog_api.revision_packages`+w.String()+` order by package`, w.args, p.Limit, scanPackageRef)
}

// onPackage reads one package of the revision in service.
func (b *Browser) onPackage(ctx context.Context, who model.Caller, name catalog.Name, pkg string) (p *libcatalog.Package, digest, revision string, err error) {
	err = b.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
		if revision, err = served(ctx, tx, who.Tenant, name); err != nil {
			return err
		}
		if revision != "" {
			if digest, err = packageDigest(ctx, tx, who.Tenant, revision, pkg); err != nil {
				return err
			}
		}
		if digest == "" {
			return errs.New(errs.NotFound, "catalog %q has no package %q", name.Subject(), pkg)
		}
		p, err = b.Content.document(ctx, tx, who.Tenant, digest)
		return err
	})
	return p, digest, revision, err
}

// Package returns one package with its channels and their versions (R-CAT-106).
func (b *Browser) Package(ctx context.Context, who model.Caller, name catalog.Name, pkg string) (model.PackageDetail, error) {
	p, digest, revision, err := b.onPackage(ctx, who, name, pkg)
	if err != nil {
		return model.PackageDetail{}, err
	}
	card, _ := display.Of(p)
	d := model.PackageDetail{
		PackageSummary: summaryOf(&card, digest), Catalog: name.Subject(), Revision: revision, LongDescription: p.Description, ChannelList: channelsOf(p),
	}
	err = b.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
		c, err := one(ctx, tx, catalogColumns+` where c.tenant = $1 and c.subject = $2`, []any{who.Tenant, name.Subject()}, noCatalog(name), scanCatalog)
		if err != nil {
			return err
		}
		rows := []catalogRow{c}
		err = openSources(ctx, tx, who.Tenant, rows)
		d.CatalogName = nameOf(rows[0].Catalog)
		return err
	})
	return d, err
}

func nameOf(c model.Catalog) model.CatalogName {
	out := model.CatalogName{Name: c.Name, Cluster: c.Cluster, Namespace: c.Namespace, AddedAt: c.AddedAt}
	if c.Display != nil {
		out.DisplayName, out.Publisher = c.Display.Name, c.Display.Publisher
	}
	return out
}

// Channels lists the channels of a package with their versions.
func (b *Browser) Channels(ctx context.Context, who model.Caller, name catalog.Name, pkg string) ([]model.ChannelDetail, error) {
	p, _, _, err := b.onPackage(ctx, who, name, pkg)
	if err != nil {
		return nil, err
	}
	return channelsOf(p), nil
}

// Icon returns the picture of a package, the default one where it has none (R-CAT-108).
func (b *Browser) Icon(ctx context.Context, who model.Caller, name catalog.Name, pkg string) (model.PackageIcon, error) {
	p, _, _, err := b.onPackage(ctx, who, name, pkg)
	if err != nil {
		return model.PackageIcon{}, err
	}
	return iconOf(p), nil
}

// Bundles lists bundles by package and name: of one package, or of all, package by package.
func (b *Browser) Bundles(ctx context.Context, who model.Caller, name catalog.Name, f model.BundleFilter) (items []model.BundleSummary, next []string, err error) {
	after := [2]string{}
	if len(f.After) > 0 && copy(after[:], f.After) != 2 {
		return nil, nil, errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
	}
	items = []model.BundleSummary{}
	err = b.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		refs, err := b.bundlePackages(ctx, tx, who.Tenant, name, f, after[0])
		if err != nil {
			return err
		}
		for _, ref := range refs {
			p, err := b.Content.document(ctx, tx, who.Tenant, ref.digest)
			if err != nil {
				return err
			}
			for _, bundle := range bundlesOf(p, f.Channel) {
				if ref.name == after[0] && bundle.Name <= after[1] {
					continue
				}
				if len(items) == f.Limit {
					last := items[len(items)-1]
					next = []string{last.Package, last.Name}
					return nil
				}
				items = append(items, bundle)
			}
		}
		return nil
	})
	return items, next, err
}

// bundlePackages names the packages whose bundles may stand on a page: from the one of the cursor on.
// Every package has a bundle (R-CAT-33), so that one more than the limit is enough without a channel.
func (b *Browser) bundlePackages(ctx context.Context, tx pgx.Tx, tenant string, name catalog.Name, f model.BundleFilter, from string) ([]packageRef, error) {
	revision, err := served(ctx, tx, tenant, name)
	if err != nil || revision == "" {
		return nil, err
	}
	var w where
	w.add("tenant = ?", tenant)
	w.add("revision = ?", revision)
	w.equal("package", f.Package)
	if from != "" {
		w.add("package >= ?", from)
	}
	refs, _, err := page(ctx, tx, `select package, digest from catalog_api.revision_packages`+w.String()+` order by package`, w.args, maxBundlePackages, scanPackageRef)
	if err == nil && f.Package != "" && len(refs) == 0 {
		err = errs.New(errs.NotFound, "catalog %q has no package %q", name.Subject(), f.Package)
	}
	return refs, err
}

// maxBundlePackages bounds the packages of a revision that one page may go through; the largest known
// catalog has about 400.
const maxBundlePackages = 5000
