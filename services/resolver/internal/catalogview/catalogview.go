// Package catalogview answers the resolution's questions about catalogs from the indexer's views: which
// package documents a revision is made of, and which of them provide an API. Everything that it reads is
// immutable and addressed by digest, so that it is cached for as long as there is room, and read
// outside of any transaction. What is not asked for is not read: neither time nor memory of a resolution
// grows with a catalog.
package catalogview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Bounds of memory. A service at rest shall take 60 MB in all (DESIGN §7).
const (
	// packageBytes bounds packages made ready, by their own estimate. All 174 of four
	// published catalogs together have 5 MB.
	packageBytes = 16 << 20
	// answerBytes bounds what is remembered of revisions. An answer has some 200 bytes.
	answerBytes = 4 << 20
)

// Views makes views of catalogs. It is safe for concurrent use; all that asks shares what was read.
type Views struct {
	pool     *pg.Pool
	packages *cache[key, *offer.Package]
	answers  *cache[question, answer]
	contents *cache[key, bundle.Content]
	reader   *content.Reader
}

type key struct{ tenant, digest string }

// New returns views on a pool of the resolver's role.
func New(pool *pg.Pool) *Views {
	return &Views{
		pool:     pool,
		packages: newCache[key](packageBytes, func(_ key, p *offer.Package) int { return p.Weight() }),
		answers:  newCache(answerBytes, answerWeight),
		contents: newCache(contentBytes, contentWeight),
		reader:   content.NewReader(),
	}
}

// Catalog is one that a scope sees.
type Catalog struct {
	Key      resolution.CatalogKey
	Subject  string // of its stream
	Priority int32
	Revision string // "" before the first
	Health   resolution.Health
	// Pinned are the digests of documents of packages that a rollout takes, whatever the revision says of them by now.
	Pinned map[string]string
}

// View answers for one resolution. After it Err must be asked: an answer may have been left out because
// the database was away.
type View struct {
	views    *Views
	ctx      context.Context //nolint:containedctx // the View lives for one call, and resolution.View knows no context
	tenant   string
	catalogs map[resolution.CatalogKey]Catalog
	err      error
}

var _ resolution.View = (*View)(nil)

// View returns the view of a scope that sees these catalogs.
func (v *Views) View(ctx context.Context, tenant string, catalogs []Catalog) *View {
	w := &View{views: v, ctx: ctx, tenant: tenant, catalogs: map[resolution.CatalogKey]Catalog{}}
	for _, c := range catalogs {
		w.catalogs[c.Key] = c
	}
	return w
}

// Err is the first failure to read; the answers given are then worth nothing.
func (w *View) Err() error { return w.err }

// Catalogs implements resolution.View. They are in the order of their keys: a loop over them gives the same each time.
func (w *View) Catalogs() []resolution.Catalog {
	out := make([]resolution.Catalog, 0, len(w.catalogs))
	for _, c := range w.catalogs {
		out = append(out, resolution.Catalog{
			Key: c.Key, Priority: c.Priority, Ready: c.Revision != "",
			Revision: c.Revision,
		})
	}
	slices.SortFunc(out, func(a, b resolution.Catalog) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	return out
}

// Package implements resolution.View.
func (w *View) Package(c resolution.CatalogKey, name string) *offer.Package {
	d, pinned := w.catalogs[c].Pinned[name]
	if !pinned {
		d = w.ask(c, askPackage, name).digest
	}
	if d == "" {
		return nil
	}
	p, err := w.views.Package(w.ctx, w.tenant, d)
	w.note(err)
	return p
}

// Providers implements resolution.View.
func (w *View) Providers(c resolution.CatalogKey, api catalog.GVK) []string {
	return w.ask(c, askProviders, resolution.APIName(api)).packages
}

// Packages implements resolution.View.
func (w *View) Packages(c resolution.CatalogKey) []string { return w.ask(c, askNames, "").packages }

// Health implements resolution.View.
func (w *View) Health(c resolution.CatalogKey) resolution.Health { return w.catalogs[c].Health }

// Image implements resolution.View. What the log says of images changes, and is not cached: a decision that
// was made upon an older answer is refused when it is written (the clock of catalogs).
func (w *View) Image(c resolution.CatalogKey, b resolution.BundleImage) resolution.Fetched {
	var f resolution.Fetched
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

// ask answers a question about the revision that a catalog serves.
func (w *View) ask(c resolution.CatalogKey, kind asked, name string) answer {
	id := w.catalogs[c].Revision
	if id == "" || w.err != nil {
		return answer{}
	}
	a, err := w.views.answer(w.ctx, question{tenant: w.tenant, revision: id, kind: kind, name: name})
	w.note(err)
	return a
}
