// Package content reads the packages of catalogs, which the indexer keeps by digest.
package content

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/bundle"
	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	packs "github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// maxDifferenceBytes bounds what two bundles differ in when unpacked: never more than both of them.
	maxDifferenceBytes = 128 << 20
	// keptPackages bounds the documents kept in memory: a page of a browsing user and a little more.
	keptPackages = 16
	// keptCards bounds the tiles kept for lists and search: all packages of dozens of large catalogs, each of
	// some hundred bytes.
	keptCards = 16384
	// keptRevisions bounds the revisions whose packages are known: all that are in service, and some before.
	keptRevisions = 128
)

// Ref is a package of a revision.
type Ref struct {
	Name   string `db:"package"`
	Digest string // of its document
}

// Reader reads packages of catalogs by digest. Documents never change, so what was read stays good;
// the zero value is not usable.
type Reader struct {
	decoder   *zstd.Decoder // of differences
	reader    *packs.Reader
	packages  *memory[*libcatalog.Package]
	cards     *memory[*display.Card]
	revisions *memory[[]Ref]
	displays  *memory[*model.CatalogDisplay] // by commitment of the settings that hold it
}

// New returns a reader of catalog content.
func New() (*Reader, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxDifferenceBytes), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make a zstd decoder")
	}
	return &Reader{
		decoder: d, reader: packs.NewReader(), packages: newMemory[*libcatalog.Package](keptPackages),
		cards: newMemory[*display.Card](keptCards), revisions: newMemory[[]Ref](keptRevisions),
		displays: newMemory[*model.CatalogDisplay](keptRevisions),
	}, nil
}

// memory keeps a bounded number of values by digest; when it is full the one that was put in first goes.
type memory[T any] struct {
	mu    sync.Mutex
	limit int
	items map[string]T
	order []string
}

func newMemory[T any](limit int) *memory[T] { return &memory[T]{limit: limit, items: map[string]T{}} }

func (m *memory[T]) get(digest string) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.items[digest]
	return v, ok
}

func (m *memory[T]) put(digest string, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.items[digest]; ok {
		return
	}
	if len(m.order) == m.limit {
		delete(m.items, m.order[0])
		m.order = m.order[1:]
	}
	m.items[digest] = v
	m.order = append(m.order, digest)
}

// Package reads one package.
func (c *Reader) Package(ctx context.Context, q pg.Querier, tenant, d string) (*libcatalog.Package, error) {
	if p, ok := c.packages.get(d); ok {
		return p, nil
	}
	var stored packs.Stored
	if err := q.QueryRow(ctx, `select document, recipe, packs from catalog_api.packages
		where tenant = $1 and digest = $2`, tenant, d).
		Scan(&stored.Whole, &stored.Recipe, &stored.Packs); err != nil {
		return nil, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read package document %s", d)
	}
	raw, err := c.reader.Document(libcatalog.PackageType, digest.Digest(d), stored)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "unpack package document %s", d)
	}
	p := new(libcatalog.Package)
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "read package document %s", d)
	}
	c.packages.put(d, p)
	return p, nil
}

// StoredBundle is a bundle as the database has it.
type StoredBundle struct {
	digest string
	row    packs.Stored
}

// StoredBundle reads the manifests of a bundle; errs.NotFound where they are not kept. Unpack makes them of it: large
// ones take a while, which is no time to hold a connection.
func (c *Reader) StoredBundle(ctx context.Context, q pg.Querier, tenant, d string) (StoredBundle, error) {
	out := StoredBundle{digest: d}
	err := pg.Err(q.QueryRow(ctx, `select pack, recipe, packs from catalog_api.contents
		where tenant = $1 and digest = $2`, tenant, d).Scan(&out.row.Whole, &out.row.Recipe, &out.row.Packs))
	if errs.Is(err, errs.NotFound) {
		return out, errs.New(errs.NotFound, "the manifests of bundle %s are not kept", d)
	}
	return out, errs.Wrap(errs.KindOf(err), err, "read bundle %s", d)
}

// Unpack returns the manifests of a bundle.
func (c *Reader) Unpack(b StoredBundle) (bundle.Content, error) {
	raw, err := c.reader.Bundle(digest.Digest(b.digest), b.row)
	if err != nil {
		return bundle.Content{}, errs.Wrap(errs.Internal, err, "unpack bundle %s", b.digest)
	}
	out, _, err := bundle.FromCanonical(raw)
	return out, errs.Wrap(errs.Internal, err, "read bundle %s", b.digest)
}

// Offer says what a catalog has of a package for a cluster, for the checks of a new subscription there.
func (c *Reader) Offer(ctx context.Context, q pg.Querier, tenant, subject, cluster, pkg string) (catalog.Offer, error) {
	s, err := catalogs.ServedTo(ctx, q, tenant, subject, model.CatalogView{Cluster: cluster})
	if err != nil || s.Revision == "" || s.State != model.CatalogReady || s.Disabled {
		return catalog.Offer{}, err
	}
	found, err := Digest(ctx, q, tenant, s.Revision, pkg)
	if err != nil {
		return catalog.Offer{}, err
	}
	if found == "" {
		names, err := packageNames(ctx, q, tenant, s.Revision)
		return catalog.Offer{Ready: true, Packages: names}, err
	}
	p, err := c.Package(ctx, q, tenant, found)
	return catalog.Offer{Ready: true, Package: p}, err
}

// Digest is the digest of a package in a revision, "" where the revision has none of that name.
func Digest(ctx context.Context, q pg.Querier, tenant, revision, pkg string) (digest string, err error) {
	err = pg.Err(q.QueryRow(ctx, `select digest from catalog_api.revision_packages where tenant = $1 and revision = $2
		and package = $3`,
		tenant, revision, pkg).Scan(&digest))
	if errs.Is(err, errs.NotFound) {
		return "", nil
	}
	return digest, err
}

func packageNames(ctx context.Context, q pg.Querier, tenant, revision string) ([]string, error) {
	rows, err := q.Query(ctx, `select package from catalog_api.revision_packages where tenant = $1 and revision = $2
		order by package`, tenant, revision)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Cards returns the tiles of packages, by digest. What is not in memory is read in one query; a package
// that was stored before tiles were is read whole.
func (c *Reader) Cards(ctx context.Context, q pg.Querier, tenant string, refs []Ref) (map[string]*display.Card, error) {
	out := make(map[string]*display.Card, len(refs))
	var missing []string
	for _, ref := range refs {
		if _, ok := out[ref.Digest]; ok {
			continue
		}
		card, ok := c.cards.get(ref.Digest)
		if !ok {
			missing = append(missing, ref.Digest)
		}
		out[ref.Digest] = card
	}
	if len(missing) == 0 {
		return out, nil
	}
	rows, err := q.Query(ctx, `select digest, card from catalog_api.package_cards
		where tenant = $1 and digest = any ($2)`, tenant, missing)
	if err != nil {
		return nil, err
	}
	var digest string
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&digest, &raw}, func() error {
		card := new(display.Card)
		if err := json.Unmarshal(raw, card); err != nil {
			return errs.Wrap(errs.Internal, err, "read the tile of package document %s", digest)
		}
		out[digest] = card
		c.cards.put(digest, card)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, digest := range missing {
		if out[digest] != nil {
			continue
		}
		p, err := c.Package(ctx, q, tenant, digest)
		if err != nil {
			return nil, err
		}
		card, _ := display.Of(p)
		out[digest] = &card
		c.cards.put(digest, &card)
	}
	return out, nil
}

// PackagesOf are the packages of a revision by name. A revision never changes.
func (c *Reader) PackagesOf(ctx context.Context, q pg.Querier, tenant, revision string) ([]Ref, error) {
	// Revisions are addressed by content, but what a tenant may see is asked for once with its own rights.
	key := tenant + "/" + revision
	if refs, ok := c.revisions.get(key); ok {
		return refs, nil
	}
	rows, err := q.Query(ctx, `select package, digest from catalog_api.revision_packages
		where tenant = $1 and revision = $2 order by package`, tenant, revision)
	if err != nil {
		return nil, err
	}
	refs, err := pgx.CollectRows(rows, pgx.RowToStructByName[Ref])
	if err == nil && len(refs) > 0 {
		c.revisions.put(key, refs)
	}
	return refs, err
}

// Compare fills in what the indexer knows of an upgrade.
func (c *Reader) Compare(ctx context.Context, q pg.Querier, tenant string, u *model.Upgrade) error {
	switch {
	case u.FromContent == "" || u.ToContent == "":
		u.State = model.UpgradeUnknown
		return nil
	case u.FromContent == u.ToContent:
		u.State, u.Semantics = model.UpgradeCompared, compare.Semantics
		return nil
	}
	u.State = model.UpgradePending
	var packed []byte
	err := q.QueryRow(ctx, `select semantics, difference from catalog_api.upgrades
		where tenant = $1 and from_content = $2 and to_content = $3
		order by semantics = $4 desc, semantics desc limit 1`,
		tenant, u.FromContent, u.ToContent, compare.Semantics).Scan(&u.Semantics, &packed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return pg.Err(err)
	}
	raw, err := c.decoder.DecodeAll(packed, nil)
	if err == nil {
		err = json.Unmarshal(raw, &u.Difference)
	}
	if err != nil {
		return errs.Wrap(errs.Internal, err, "read the difference of %s and %s", u.From, u.To)
	}
	u.State, u.Breaking = model.UpgradeCompared, u.Difference.Breaking()
	return nil
}

// Displays returns what people see of catalogs, by the commitment of the settings that hold it; missing are the
// commitments that were not read yet. A commitment never stands for another body, so that what was read stays good.
func (c *Reader) Displays(commitments []string) (known map[string]*model.CatalogDisplay, missing []string) {
	known = map[string]*model.CatalogDisplay{}
	for _, s := range commitments {
		if d, ok := c.displays.get(s); ok {
			known[s] = d
		} else {
			missing = append(missing, s)
		}
	}
	return known, missing
}

// KeepDisplay keeps what people see of a catalog.
func (c *Reader) KeepDisplay(commitment string, d *model.CatalogDisplay) {
	c.displays.put(commitment, d)
}
