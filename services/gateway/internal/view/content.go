package view

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
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

// Content reads packages of catalogs by digest. Documents never change, so what was read stays good;
// the zero value is not usable.
type Content struct {
	decoder   *zstd.Decoder // of differences
	reader    *content.Reader
	packages  *memory[*libcatalog.Package]
	cards     *memory[*display.Card]
	revisions *memory[[]packageRef]
	displays  *memory[*model.CatalogDisplay] // by commitment of the settings that hold it
}

// NewContent returns a reader of catalog content.
func NewContent() (*Content, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxDifferenceBytes), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make a zstd decoder")
	}
	return &Content{
		decoder: d, reader: content.NewReader(), packages: newMemory[*libcatalog.Package](keptPackages),
		cards: newMemory[*display.Card](keptCards), revisions: newMemory[[]packageRef](keptRevisions),
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

// document reads one package.
func (c *Content) document(ctx context.Context, q pg.Querier, tenant, d string) (*libcatalog.Package, error) {
	if p, ok := c.packages.get(d); ok {
		return p, nil
	}
	var stored content.Stored
	if err := q.QueryRow(ctx, `select document, recipe, packs from catalog_api.packages where tenant = $1 and digest = $2`, tenant, d).
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

// Offer says what a catalog has of a package for a cluster, for the checks of a new subscription there.
func (c *Content) Offer(ctx context.Context, q pg.Querier, tenant, subject, cluster, pkg string) (catalog.Offer, error) {
	s, err := servedTo(ctx, q, tenant, subject, model.CatalogView{Cluster: cluster})
	if err != nil || s.revision == "" || s.state != model.CatalogReady || s.disabled {
		return catalog.Offer{}, err
	}
	digest, err := packageDigest(ctx, q, tenant, s.revision, pkg)
	if err != nil {
		return catalog.Offer{}, err
	}
	if digest == "" {
		names, err := packageNames(ctx, q, tenant, s.revision)
		return catalog.Offer{Ready: true, Packages: names}, err
	}
	p, err := c.document(ctx, q, tenant, digest)
	return catalog.Offer{Ready: true, Package: p}, err
}

// packageDigest is the digest of a package in a revision, "" where the revision has none of that name.
func packageDigest(ctx context.Context, q pg.Querier, tenant, revision, pkg string) (digest string, err error) {
	err = pg.Err(q.QueryRow(ctx, `select digest from catalog_api.revision_packages where tenant = $1 and revision = $2 and package = $3`,
		tenant, revision, pkg).Scan(&digest))
	if errs.Is(err, errs.NotFound) {
		return "", nil
	}
	return digest, err
}

func packageNames(ctx context.Context, q pg.Querier, tenant, revision string) ([]string, error) {
	rows, err := q.Query(ctx, `select package from catalog_api.revision_packages where tenant = $1 and revision = $2 order by package`, tenant, revision)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Kinds of messages in installer_api.messages.
const (
	messageCluster = "cluster"
	messagePlan    = "installplan"
	messageCSV     = "csv"
	messageRemoval = "removal"
	messageGroup   = "operatorgroup" // its subjects end in the type of a condition
)

// say adds the installer's sentences for people to items. place gives an item's subject and where its
// sentence goes; an empty subject asks for none. It is a query of its own rather than a join, since
// the planner does not reach into a security barrier with the keys of a join.
func say[T any](ctx context.Context, q pg.Querier, tenant, kind string, items []T, place func(*T) (subject string, message *string)) error {
	want := map[string]*string{}
	subjects := make([]string, 0, len(items))
	for i := range items {
		if subject, message := place(&items[i]); subject != "" {
			want[subject] = message
			subjects = append(subjects, subject)
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	rows, err := q.Query(ctx, `select subject, message from installer_api.messages where tenant = $1 and kind = $2 and subject = any ($3)`,
		tenant, kind, subjects)
	if err != nil {
		return err
	}
	var subject, message string
	_, err = pgx.ForEachRow(rows, []any{&subject, &message}, func() error {
		*want[subject] = message
		return nil
	})
	return err
}

// document reads one JSON document by a query with one text or bytea column, nil where there is none.
func document(ctx context.Context, q pg.Querier, sql string, args ...any) (json.RawMessage, error) {
	var raw []byte
	err := pg.Err(q.QueryRow(ctx, sql, args...).Scan(&raw))
	if errs.Is(err, errs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !json.Valid(raw) {
		return nil, errs.New(errs.Internal, "a stored document is not JSON")
	}
	return raw, nil
}
