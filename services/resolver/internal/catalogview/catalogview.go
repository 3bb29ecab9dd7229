// Package catalogview answers the resolution's questions about catalogs from the indexer's views: which
// package documents a revision is made of, and which of them provide an API. Everything that it reads is
// immutable and addressed by digest, so that it is cached for as long as there is room, and read
// outside of any transaction.
package catalogview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Bounds of memory. A service at rest shall take 60 MB in all (DESIGN §7).
const (
	// packageBytes bounds package documents made ready, by the weight that they tell of themselves.
	packageBytes = 16 << 20
	// revisionBytes bounds revisions' lists of packages and APIs.
	revisionBytes = 8 << 20
)

// Views makes views of catalogs. It is safe for concurrent use.
type Views struct {
	pool      *pg.Pool
	packages  *cache[key, *resolve.Package]
	revisions *cache[key, *revision]
	contents  *cache[key, bundle.Content]
	reader    *content.Reader
}

type key struct{ tenant, digest string }

// revision is what a catalog revision is made of.
type revision struct {
	digests   map[string]string // package → digest
	names     []string          // sorted
	providers map[string][]string
	weight    int
}

// New returns views on a pool of the resolver's role.
func New(pool *pg.Pool) *Views {
	return &Views{
		pool:      pool,
		packages:  newCache[key](packageBytes, func(p *resolve.Package) int { return p.Weight() }),
		revisions: newCache[key](revisionBytes, func(r *revision) int { return r.weight }),
		contents:  newCache[key](contentBytes, contentWeight),
		reader:    content.NewReader(),
	}
}

// Catalog is one that a scope sees.
type Catalog struct {
	Key      resolve.CatalogKey
	Subject  string // of its stream
	Priority int32
	Revision string // "" before the first
	Health   resolve.Health
}

// View answers for one resolution. After it Err must be asked: an answer may have been left out because
// the database was away.
type View struct {
	views    *Views
	ctx      context.Context //nolint:containedctx // the View lives for one call, and resolve.View knows no context
	tenant   string
	catalogs map[resolve.CatalogKey]Catalog
	err      error
}

var _ resolve.View = (*View)(nil)

// View returns the view of a scope that sees these catalogs.
func (v *Views) View(ctx context.Context, tenant string, catalogs []Catalog) *View {
	w := &View{views: v, ctx: ctx, tenant: tenant, catalogs: map[resolve.CatalogKey]Catalog{}}
	for _, c := range catalogs {
		w.catalogs[c.Key] = c
	}
	return w
}

// Err is the first failure to read; the answers given are then worth nothing.
func (w *View) Err() error { return w.err }

// Catalogs implements resolve.View.
func (w *View) Catalogs() []resolve.Catalog {
	out := make([]resolve.Catalog, 0, len(w.catalogs))
	for _, c := range w.catalogs {
		out = append(out, resolve.Catalog{Key: c.Key, Priority: c.Priority, Ready: c.Revision != "", Revision: c.Revision})
	}
	return out
}

// Package implements resolve.View.
func (w *View) Package(c resolve.CatalogKey, name string) *resolve.Package {
	r := w.revision(c)
	if r == nil || r.digests[name] == "" {
		return nil
	}
	p, err := w.views.Package(w.ctx, w.tenant, r.digests[name])
	w.note(err)
	return p
}

// Providers implements resolve.View.
func (w *View) Providers(c resolve.CatalogKey, api catalog.GVK) []string {
	r := w.revision(c)
	if r == nil {
		return nil
	}
	return r.providers[resolve.APIName(api)]
}

// Packages implements resolve.View.
func (w *View) Packages(c resolve.CatalogKey) []string {
	r := w.revision(c)
	if r == nil {
		return nil
	}
	return r.names
}

// Health implements resolve.View.
func (w *View) Health(c resolve.CatalogKey) resolve.Health { return w.catalogs[c].Health }

// Image implements resolve.View. What the log tells of images is mutable, and is not cached: a decision that
// was made upon an older answer is refused when it is written (the clock of catalogs).
func (w *View) Image(c resolve.CatalogKey, b resolve.BundleImage) resolve.Fetched {
	var f resolve.Fetched
	if w.err != nil {
		return f
	}
	err := w.views.pool.QueryRow(w.ctx, `select content, reason from resolver.bundle_images 
		where tenant = $1 and subject = $2 and image = $3 and package = $4 and bundle = $5`,
		w.tenant, w.catalogs[c].Subject, b.Image, b.Package, b.Bundle).Scan(&f.Content, &f.Reason)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		w.note(fmt.Errorf("read what became of bundle image %s: %w", b.Image, pg.Err(err)))
	}
	return f
}

func (w *View) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *View) revision(c resolve.CatalogKey) *revision {
	id := w.catalogs[c].Revision
	if id == "" || w.err != nil {
		return nil
	}
	r, err := w.views.revisions.get(key{w.tenant, id}, func() (*revision, error) { return w.views.readRevision(w.ctx, w.tenant, id) })
	w.note(err)
	return r
}

// Package returns a package document made ready, by its digest.
func (v *Views) Package(ctx context.Context, tenant, d string) (*resolve.Package, error) {
	return v.packages.get(key{tenant, d}, func() (*resolve.Package, error) {
		p, err := readPackage(ctx, v.pool, v.reader, tenant, d)
		if err != nil {
			return nil, err
		}
		return resolve.Index(p, digest.Digest(d)), nil
	})
}

// readRevision lists a revision's packages with the APIs that they provide, finding out those that are
// not known yet.
func (v *Views) readRevision(ctx context.Context, tenant, id string) (*revision, error) {
	r := &revision{digests: map[string]string{}, providers: map[string][]string{}}
	err := v.pool.Tx(ctx, func(tx pgx.Tx) error {
		digests, err := r.readPackages(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		apis, err := v.apis(ctx, tx, tenant, digests)
		if err != nil {
			return err
		}
		r.fill(apis)
		return nil
	})
	return r, errs.Wrap(errs.KindOf(err), err, "read catalog revision %s", id)
}

func (r *revision) readPackages(ctx context.Context, tx pgx.Tx, tenant, id string) ([]string, error) {
	rows, err := tx.Query(ctx, `select package, digest from catalog_api.revision_packages where tenant = $1 and revision = $2`, tenant, id)
	if err != nil {
		return nil, pg.Err(err)
	}
	var name, d string
	var digests []string
	_, err = pgx.ForEachRow(rows, []any{&name, &d}, func() error {
		r.digests[name] = d
		r.names = append(r.names, name)
		digests = append(digests, d)
		return nil
	})
	if err != nil {
		return nil, pg.Err(err)
	}
	slices.Sort(r.names)
	if len(digests) == 0 {
		err = stored(ctx, tx, tenant, id)
	}
	return digests, err
}

// stored makes sure that a revision without packages is an empty one, and not one that was collected: who folds the
// log late meets revisions of long ago, and the one that took their place is on its way.
func stored(ctx context.Context, tx pgx.Tx, tenant, id string) error {
	var there bool
	err := tx.QueryRow(ctx, `select exists (select from catalog_api.revisions where tenant = $1 and revision = $2)`, tenant, id).Scan(&there)
	if err == nil && !there {
		return errs.New(errs.Conflict, "catalog revision %s is not stored any more; another one has taken its place", id)
	}
	return pg.Err(err)
}

func (r *revision) fill(apis map[string][]string) {
	for _, name := range r.names {
		r.weight += len(name) + len(r.digests[name])
		for _, api := range apis[r.digests[name]] {
			r.providers[api] = append(r.providers[api], name)
			r.weight += len(api) + len(name)
		}
	}
}

// Of returns the APIs of package documents, sorted, each once.
func (v *Views) Of(ctx context.Context, tx pgx.Tx, tenant string, digests []string) ([]string, error) {
	byDigest, err := v.apis(ctx, tx, tenant, digests)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, list := range byDigest {
		out = append(out, list...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// apis returns the APIs by document; what had to be found out is kept.
func (v *Views) apis(ctx context.Context, tx pgx.Tx, tenant string, digests []string) (map[string][]string, error) {
	rows, err := tx.Query(ctx, `select digest, apis from resolver.package_apis where tenant = $1 and digest = any ($2)`, tenant, digests)
	if err != nil {
		return nil, pg.Err(err)
	}
	out := map[string][]string{}
	var d string
	var apis []string
	if _, err := pgx.ForEachRow(rows, []any{&d, &apis}, func() error { out[d] = slices.Clone(apis); return nil }); err != nil {
		return nil, pg.Err(err)
	}
	for _, d := range digests {
		if _, known := out[d]; known {
			continue
		}
		if out[d], err = v.learn(ctx, tx, tenant, d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// learn reads a document for the APIs that it provides.
func (v *Views) learn(ctx context.Context, tx pgx.Tx, tenant, d string) ([]string, error) {
	p, err := readPackage(ctx, tx, v.reader, tenant, d)
	if err != nil {
		return nil, err
	}
	apis := []string{}
	for _, api := range resolve.Index(p, digest.Digest(d)).APIs() {
		apis = append(apis, strings.ReplaceAll(resolve.APIName(api), "\x00", "\ufffd")) // PostgreSQL takes no NUL in text
	}
	_, err = tx.Exec(ctx, `insert into resolver.package_apis (tenant, digest, apis) values ($1, $2, $3) on conflict do nothing`, tenant, d, apis)
	if err != nil {
		return nil, fmt.Errorf("keep the APIs of package document %s: %w", d, pg.Err(err))
	}
	return apis, nil
}

func readPackage(ctx context.Context, q pg.Querier, reader *content.Reader, tenant, d string) (catalog.Package, error) {
	var p catalog.Package
	var s content.Stored
	err := q.QueryRow(ctx, `select document, recipe, packs from catalog_api.packages where tenant = $1 and digest = $2`, tenant, d).
		Scan(&s.Whole, &s.Recipe, &s.Packs)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, errs.New(errs.NotFound, "package document %s is not stored", d)
	}
	if err != nil {
		return p, fmt.Errorf("read package document %s: %w", d, pg.Err(err))
	}
	raw, err := reader.Document(catalog.PackageType, digest.Digest(d), s)
	if err != nil {
		return p, fmt.Errorf("unpack package document %s: %w", d, err)
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, errs.Wrap(errs.Internal, err, "read package document %s", d)
	}
	return p, nil
}

// Replay answers from the reads of a recorded input, so that a decision can be made again (DESIGN D5). What
// was not asked then has no answer.
type Replay struct {
	views  *Views
	ctx    context.Context //nolint:containedctx // lives for one call, as View
	tenant string
	record resolve.Record
	err    error
}

var _ resolve.View = (*Replay)(nil)

// Replay returns the view of a recorded input.
func (v *Views) Replay(ctx context.Context, tenant string, r resolve.Record) *Replay {
	return &Replay{views: v, ctx: ctx, tenant: tenant, record: r}
}

// Err is the first failure to read.
func (r *Replay) Err() error { return r.err }

// Catalogs implements resolve.View.
func (r *Replay) Catalogs() []resolve.Catalog { return r.record.Catalogs }

func (r *Replay) answer(kind resolve.ReadKind, c resolve.CatalogKey, name string) string {
	i, ok := slices.BinarySearchFunc(r.record.Reads, resolve.Read{Kind: kind, Catalog: c, Name: name}, func(a, b resolve.Read) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Catalog.Namespace, b.Catalog.Namespace),
			cmp.Compare(a.Catalog.Name, b.Catalog.Name), cmp.Compare(a.Name, b.Name))
	})
	if !ok {
		return ""
	}
	return r.record.Reads[i].Answer
}

// Package implements resolve.View.
func (r *Replay) Package(c resolve.CatalogKey, name string) *resolve.Package {
	d := r.answer(resolve.ReadPackage, c, name)
	if d == "" || r.err != nil {
		return nil
	}
	p, err := r.views.Package(r.ctx, r.tenant, d)
	r.err = err
	return p
}

// Providers implements resolve.View.
func (r *Replay) Providers(c resolve.CatalogKey, api catalog.GVK) []string {
	a := r.answer(resolve.ReadAPI, c, resolve.APIName(api))
	if a == "" {
		return nil
	}
	return strings.Split(a, ",")
}

// Image implements resolve.View.
func (r *Replay) Image(c resolve.CatalogKey, b resolve.BundleImage) resolve.Fetched {
	return resolve.ParseFetched(r.answer(resolve.ReadImage, c, b.ReadName()))
}

// Health implements resolve.View.
func (r *Replay) Health(c resolve.CatalogKey) resolve.Health {
	return resolve.Health(r.answer(resolve.ReadHealth, c, ""))
}

// Packages implements resolve.View.
func (r *Replay) Packages(c resolve.CatalogKey) []string {
	a := r.answer(resolve.ReadNames, c, "")
	if a == "" {
		return nil
	}
	return strings.Split(a, ",")
}
