// Package browse answers questions about the content of catalogs (R-CAT-105): packages, channels, bundles, icons,
// upgrades, and search over all catalogs. It asks the indexer's tables for the revision in service, so that an answer
// is of one revision.
package browse

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Reader answers questions about the content of catalogs.
type Reader struct {
	Pool    *pg.Pool
	Content *content.Reader
	Bodies  *readmodel.Bodies // for sources of catalogs
}

// served is the revision of a catalog that is in service for whom view names; without one there is nothing to
// browse.
func served(
	ctx context.Context, q pg.Querier, tenant string, name catalog.Name, view model.CatalogView,
) (revision string, err error) {
	s, err := catalogs.ServedTo(ctx, q, tenant, name.Subject(), view)
	if err != nil {
		return "", err
	}
	if view.Variant != "" && s.Known && !s.HasVariant {
		return "", errs.New(errs.NotFound, "catalog %q has no variant %q", name.Subject(), view.Variant)
	}
	if s.Revision != "" && !s.Disabled {
		return s.Revision, nil
	}
	var known bool
	err = pg.Err(q.QueryRow(ctx, `select exists (select from catalogs where tenant = $1 and subject = $2)`,
		tenant, name.Subject()).Scan(&known))
	if err == nil && !known {
		err = catalogs.NotKnown(name)
	}
	return "", err
}

// Packages lists the packages of a catalog by name. A catalog without a revision has none.
func (r *Reader) Packages(
	ctx context.Context, who model.Caller, name catalog.Name, view model.CatalogView, p model.Page,
) (items []model.PackageSummary, next []string, err error) {
	items = []model.PackageSummary{}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		refs, more, err := packageRefs(ctx, tx, who.Tenant, name, view, p)
		if err != nil {
			return err
		}
		cards, err := r.Content.Cards(ctx, tx, who.Tenant, refs)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			items = append(items, summaryOf(cards[ref.Digest], ref.Digest))
		}
		if more {
			next = []string{refs[len(refs)-1].Name}
		}
		return nil
	})
	return items, next, err
}

func packageRefs(
	ctx context.Context, tx pgx.Tx, tenant string, name catalog.Name, view model.CatalogView, p model.Page,
) ([]content.Ref, bool, error) {
	revision, err := served(ctx, tx, tenant, name, view)
	if err != nil || revision == "" {
		return nil, false, err
	}
	w := readmodel.Tenant("tenant", tenant)
	w.Add("revision = ?", revision)
	if err := w.After(p.After, "package"); err != nil {
		return nil, false, err
	}
	return readmodel.Page[content.Ref](ctx, tx, selectRefs, w, "package", p.Limit)
}

// onPackage reads one package of the revision in service.
func (r *Reader) onPackage(ctx context.Context, who model.Caller, name catalog.Name, view model.CatalogView,
	pkg string) (
	p *libcatalog.Package, digest, revision string, err error,
) {
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
		if revision, err = served(ctx, tx, who.Tenant, name, view); err != nil {
			return err
		}
		if revision != "" {
			if digest, err = content.Digest(ctx, tx, who.Tenant, revision, pkg); err != nil {
				return err
			}
		}
		if digest == "" {
			return errs.New(errs.NotFound, "catalog %q has no package %q", name.Subject(), pkg)
		}
		p, err = r.Content.Package(ctx, tx, who.Tenant, digest)
		return err
	})
	return p, digest, revision, err
}

// Package returns one package with its channels and their versions (R-CAT-106).
func (r *Reader) Package(
	ctx context.Context, who model.Caller, name catalog.Name, view model.CatalogView, pkg string,
) (model.PackageDetail, error) {
	p, digest, revision, err := r.onPackage(ctx, who, name, view, pkg)
	if err != nil {
		return model.PackageDetail{}, err
	}
	card, _ := display.Of(p)
	d := model.PackageDetail{
		PackageSummary: summaryOf(&card, digest), Catalog: name.Subject(), Revision: revision,
		LongDescription: p.Description, ChannelList: channelsOf(p),
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
		c, err := catalogs.One(ctx, tx, who.Tenant, name)
		if err != nil {
			return err
		}
		rows := []catalogs.Catalog{c}
		err = catalogs.AddSources(ctx, tx, r.Bodies, who.Tenant, rows)
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
func (r *Reader) Channels(
	ctx context.Context, who model.Caller, name catalog.Name, view model.CatalogView, pkg string,
) ([]model.ChannelDetail, error) {
	p, _, _, err := r.onPackage(ctx, who, name, view, pkg)
	if err != nil {
		return nil, err
	}
	return channelsOf(p), nil
}

// Icon returns the picture of a package, the default one where it has none (R-CAT-108).
func (r *Reader) Icon(
	ctx context.Context, who model.Caller, name catalog.Name, view model.CatalogView, pkg string,
) (model.PackageIcon, error) {
	p, _, _, err := r.onPackage(ctx, who, name, view, pkg)
	if err != nil {
		return model.PackageIcon{}, err
	}
	return iconOf(p), nil
}

// Bundles lists bundles by package and name: of one package, or of all, package by package.
func (r *Reader) Bundles(
	ctx context.Context, who model.Caller, name catalog.Name, f model.BundleFilter,
) (items []model.BundleSummary, next []string, err error) {
	after := [2]string{}
	if len(f.After) > 0 && copy(after[:], f.After) != 2 {
		return nil, nil, readmodel.ForeignCursor()
	}
	items = []model.BundleSummary{}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		refs, err := r.bundlePackages(ctx, tx, who.Tenant, name, f, after[0])
		if err != nil {
			return err
		}
		if items, next, err = r.bundlesOn(ctx, tx, who.Tenant, refs, f, after); err != nil {
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
	rows, err := tx.Query(ctx, `select image, package, bundle, content, message from catalog_api.bundle_images
		where tenant = $1 and image = any ($3)
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
func (r *Reader) bundlesOn(ctx context.Context, tx pgx.Tx, tenant string, refs []content.Ref, f model.BundleFilter,
	after [2]string) (
	items []model.BundleSummary, next []string, err error,
) {
	items = []model.BundleSummary{}
	for _, ref := range refs {
		p, err := r.Content.Package(ctx, tx, tenant, ref.Digest)
		if err != nil {
			return nil, nil, err
		}
		for _, bundle := range bundlesOf(p, f.Channel) {
			if ref.Name == after[0] && bundle.Name <= after[1] {
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

// selectRefs chooses the packages of revisions.
const selectRefs = `select package, digest from catalog_api.revision_packages`

// bundlePackages names the packages whose bundles may stand on a page: from the one of the cursor on.
// Every package has a bundle (R-CAT-33), so that one more than the limit is enough without a channel.
func (r *Reader) bundlePackages(
	ctx context.Context, tx pgx.Tx, tenant string, name catalog.Name, f model.BundleFilter, from string,
) ([]content.Ref, error) {
	revision, err := served(ctx, tx, tenant, name, f.View)
	if err != nil || revision == "" {
		return nil, err
	}
	w := readmodel.Tenant("tenant", tenant)
	w.Add("revision = ?", revision)
	w.Equal("package", f.Package)
	if from != "" {
		w.Add("package >= ?", from)
	}
	refs, _, err := readmodel.Page[content.Ref](ctx, tx, selectRefs, w, "package", maxBundlePackages)
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

// Blobs lists documents of schemas that Chandler does not know, as they are in the revision in service (R-CAT-8).
func (r *Reader) Blobs(
	ctx context.Context, who model.Caller, name catalog.Name, f model.BlobFilter,
) (items []model.Blob, next []string, err error) {
	items = []model.Blob{}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		revision, err := served(ctx, tx, who.Tenant, name, f.View)
		if err != nil || revision == "" {
			return err
		}
		w := readmodel.Tenant("b.tenant", who.Tenant)
		w.Add("b.revision = ?", revision)
		w.Equal("b.schema", f.Schema)
		w.Equal("b.package", f.Package)
		w.Equal("b.name", f.Name)
		if err := w.After(f.After, "b.schema", "b.package", "b.name", "b.digest"); err != nil {
			return err
		}
		all, more, err := readmodel.Page[blobRow](ctx, tx, selectBlobs, w, "b.schema, b.package, b.name, b.digest",
			f.Limit)
		if err != nil {
			return err
		}
		total := 0
		for _, x := range all {
			if total += x.Size; total > maxBlobsPage && len(items) > 0 {
				more = true
				break
			}
			items = append(items, model.Blob{Schema: x.Schema, Package: x.Package, Name: x.Name, Digest: x.Digest})
		}
		if more {
			last := items[len(items)-1]
			next = []string{last.Schema, last.Package, last.Name, last.Digest}
		}
		return blobBodies(ctx, tx, who.Tenant, items)
	})
	return items, next, err
}

const selectBlobs = `select b.schema, b.package, b.name, b.digest, octet_length(d.body) as size
	from catalog_api.revision_blobs b
	join catalog_api.documents d on d.tenant = b.tenant and d.digest = b.digest`

type blobRow struct {
	Schema, Package, Name, Digest string
	Size                          int
}

// blobBodies adds the bytes, those that several blobs share once.
func blobBodies(ctx context.Context, tx pgx.Tx, tenant string, items []model.Blob) error {
	digests := make([]string, len(items))
	for i := range items {
		digests[i] = items[i].Digest
	}
	rows, err := tx.Query(ctx, `select digest, body from catalog_api.documents where tenant = $1 and digest = any ($2)`,
		tenant, digests)
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
