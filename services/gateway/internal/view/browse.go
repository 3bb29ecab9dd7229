package view

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

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

// served is the revision of a catalog that is in service for whom view names; without one there is nothing to
// browse.
func served(ctx context.Context, q pg.Querier, tenant string, name catalog.Name, view model.CatalogView) (revision string, err error) {
	s, err := servedTo(ctx, q, tenant, name.Subject(), view)
	if err != nil {
		return "", err
	}
	if view.Variant != "" && s.known && !s.there {
		return "", errs.New(errs.NotFound, "catalog %q has no variant %q", name.Subject(), view.Variant)
	}
	if s.revision != "" && !s.disabled {
		return s.revision, nil
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
func (b *Browser) Packages(ctx context.Context, who model.Caller, name catalog.Name, view model.CatalogView, p model.Page) (items []model.PackageSummary, next []string, err error) {
	items = []model.PackageSummary{}
	err = b.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		refs, more, err := packageRefs(ctx, tx, who.Tenant, name, view, p)
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

func packageRefs(ctx context.Context, tx pgx.Tx, tenant string, name catalog.Name, view model.CatalogView, p model.Page) ([]packageRef, bool, error) {
	revision, err := served(ctx, tx, tenant, name, view)
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
func (b *Browser) onPackage(ctx context.Context, who model.Caller, name catalog.Name, view model.CatalogView, pkg string) (
	p *libcatalog.Package, digest, revision string, err error,
) {
	err = b.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
		if revision, err = served(ctx, tx, who.Tenant, name, view); err != nil {
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
func (b *Browser) Package(ctx context.Context, who model.Caller, name catalog.Name, view model.CatalogView, pkg string) (model.PackageDetail, error) {
	p, digest, revision, err := b.onPackage(ctx, who, name, view, pkg)
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
func (b *Browser) Channels(ctx context.Context, who model.Caller, name catalog.Name, view model.CatalogView, pkg string) ([]model.ChannelDetail, error) {
	p, _, _, err := b.onPackage(ctx, who, name, view, pkg)
	if err != nil {
		return nil, err
	}
	return channelsOf(p), nil
}

// Icon returns the picture of a package, the default one where it has none (R-CAT-108).
func (b *Browser) Icon(ctx context.Context, who model.Caller, name catalog.Name, view model.CatalogView, pkg string) (model.PackageIcon, error) {
	p, _, _, err := b.onPackage(ctx, who, name, view, pkg)
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
		if items, next, err = b.bundlesOn(ctx, tx, who.Tenant, refs, f, after); err != nil {
			return err
		}
		return addFetched(ctx, tx, who.Tenant, name, items)
	})
	return items, next, err
}

// addFetched adds what became of bundle images: their manifests are not in the catalog.
func addFetched(ctx context.Context, tx pgx.Tx, tenant string, name catalog.Name, items []model.BundleSummary) error {
	type key struct{ image, pkg, bundle string } // what an image holds is checked for each bundle that it is named for
	at := map[key]int{}
	var images []string
	for i, b := range items {
		if b.Content == "" && b.Image != "" {
			at[key{b.Image, b.Package, b.Name}] = i
			images = append(images, b.Image)
		}
	}
	if len(images) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `select image, package, bundle, content, message from catalog_api.bundle_images where tenant = $1 and image = any ($3)
		and catalog = (select stream from catalog_api.catalogs where tenant = $1 and name = $2)`, tenant, name.Subject(), images)
	if err != nil {
		return err
	}
	var k key
	var content, message string
	_, err = pgx.ForEachRow(rows, []any{&k.image, &k.pkg, &k.bundle, &content, &message}, func() error {
		if i, is := at[k]; is {
			items[i].Content, items[i].FetchError = content, message
		}
		return nil
	})
	return err
}

// bundlesOn are the bundles of one page, and the cursor of the next.
func (b *Browser) bundlesOn(ctx context.Context, tx pgx.Tx, tenant string, refs []packageRef, f model.BundleFilter, after [2]string) (
	items []model.BundleSummary, next []string, err error,
) {
	items = []model.BundleSummary{}
	for _, ref := range refs {
		p, err := b.Content.document(ctx, tx, tenant, ref.digest)
		if err != nil {
			return nil, nil, err
		}
		for _, bundle := range bundlesOf(p, f.Channel) {
			if ref.name == after[0] && bundle.Name <= after[1] {
				continue
			}
			if len(items) == f.Limit {
				last := items[len(items)-1]
				return items, []string{last.Package, last.Name}, nil
			}
			items = append(items, bundle)
		}
	}
	return items, nil, nil
}

// bundlePackages names the packages whose bundles may stand on a page: from the one of the cursor on.
// Every package has a bundle (R-CAT-33), so that one more than the limit is enough without a channel.
func (b *Browser) bundlePackages(ctx context.Context, tx pgx.Tx, tenant string, name catalog.Name, f model.BundleFilter, from string) ([]packageRef, error) {
	revision, err := served(ctx, tx, tenant, name, f.View)
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

// maxBlobsPage bounds the bytes of the blobs on one page; one blob alone may be larger, as a document of a catalog is.
const maxBlobsPage = 8 << 20

// Blobs lists documents of schemas that Chandler does not know, as they stand in the revision in service (R-CAT-8).
func (b *Browser) Blobs(ctx context.Context, who model.Caller, name catalog.Name, f model.BlobFilter) (items []model.Blob, next []string, err error) {
	items = []model.Blob{}
	err = b.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		revision, err := served(ctx, tx, who.Tenant, name, f.View)
		if err != nil || revision == "" {
			return err
		}
		var w where
		w.add("b.tenant = ?", who.Tenant)
		w.add("b.revision = ?", revision)
		w.equal("b.schema", f.Schema)
		w.equal("b.package", f.Package)
		w.equal("b.name", f.Name)
		if err := w.after(f.After, "b.schema", "b.package", "b.name", "b.digest"); err != nil {
			return err
		}
		const columns = `select b.schema, b.package, b.name, b.digest, octet_length(d.body) from catalog_api.revision_blobs b
			join catalog_api.documents d on d.tenant = b.tenant and d.digest = b.digest`
		total := 0
		all, more, err := page(ctx, tx, columns+w.String()+` order by b.schema, b.package, b.name, b.digest`, w.args, f.Limit, func(row pgx.Row) (x model.Blob, err error) {
			size := 0
			if err = row.Scan(&x.Schema, &x.Package, &x.Name, &x.Digest, &size); err == nil && (total == 0 || total+size <= maxBlobsPage) {
				items = append(items, x)
			}
			total += size
			return x, err
		})
		if err != nil {
			return err
		}
		if n := len(items); more || n < len(all) {
			items = items[:min(n, len(all))]
			last := items[len(items)-1]
			next = []string{last.Schema, last.Package, last.Name, last.Digest}
		}
		return blobBodies(ctx, tx, who.Tenant, items)
	})
	return items, next, err
}

// blobBodies adds the bytes, those that several blobs share once.
func blobBodies(ctx context.Context, tx pgx.Tx, tenant string, items []model.Blob) error {
	digests := make([]string, len(items))
	for i := range items {
		digests[i] = items[i].Digest
	}
	rows, err := tx.Query(ctx, `select digest, body from catalog_api.documents where tenant = $1 and digest = any ($2)`, tenant, digests)
	if err != nil {
		return err
	}
	bodies := map[string][]byte{}
	var digest string
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&digest, &body}, func() error {
		bodies[digest] = bytes.Clone(body)
		return nil
	})
	for i := range items {
		items[i].Body = bodies[items[i].Digest]
	}
	return err
}

// defaultIcon is shown for packages that have none: a box.
const defaultIcon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><path fill="#6a6e73" d="M32 4 6 18v28l26 14 26-14V18zm0 6.8L49.6 20 32 29.4 14.4 20zM11 24.6l18.5 10v18L11 42.700zm24.500 28v-18L53 24.600v18.100z"/></svg>`

// iconTypes are the forms that pictures may have. Whatever else an author writes is given out as bytes that
// no browser shows.
var iconTypes = []string{"image/svg+xml", "image/png", "image/jpeg", "image/gif", "image/webp"}

func iconOf(p *libcatalog.Package) model.PackageIcon {
	icon := model.PackageIcon{Data: []byte(defaultIcon), MediaType: "image/svg+xml"}
	if p.Icon != nil && len(p.Icon.Data) > 0 {
		icon.Data, icon.MediaType = p.Icon.Data, p.Icon.MediaType
		if !slices.Contains(iconTypes, icon.MediaType) {
			icon.MediaType = "application/octet-stream"
		}
	}
	sum := sha256.Sum256(append([]byte(icon.MediaType+"\x00"), icon.Data...))
	icon.ETag = `"` + hex.EncodeToString(sum[:16]) + `"`
	return icon
}
