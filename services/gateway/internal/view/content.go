package view

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// maxPackageBytes bounds a package document when unpacked: the largest known has some 10 MB, with
	// every version's icon and description.
	maxPackageBytes = 128 << 20
	// keptPackages bounds the documents kept in memory: a page of a browsing user and a little more.
	keptPackages = 16
	// keptSummaries bounds the lines kept for lists: all packages of several large catalogs.
	keptSummaries = 4096
)

// Content reads packages of catalogs by digest. Documents never change, so what was read stays good;
// the zero value is not usable.
type Content struct {
	decoder   *zstd.Decoder
	packages  *memory[*libcatalog.Package]
	summaries *memory[model.PackageSummary]
}

// NewContent returns a reader of catalog content.
func NewContent() (*Content, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPackageBytes), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make a zstd decoder")
	}
	return &Content{decoder: d, packages: newMemory[*libcatalog.Package](keptPackages), summaries: newMemory[model.PackageSummary](keptSummaries)}, nil
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
func (c *Content) document(ctx context.Context, q pg.Querier, tenant, digest string) (*libcatalog.Package, error) {
	if p, ok := c.packages.get(digest); ok {
		return p, nil
	}
	var packed []byte
	if err := q.QueryRow(ctx, `select document from catalog_api.packages where tenant = $1 and digest = $2`, tenant, digest).Scan(&packed); err != nil {
		return nil, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read package document %s", digest)
	}
	raw, err := c.decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "unpack package document %s", digest)
	}
	p := new(libcatalog.Package)
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "read package document %s", digest)
	}
	c.packages.put(digest, p)
	return p, nil
}

// summary is one line of a list of packages.
func (c *Content) summary(ctx context.Context, q pg.Querier, tenant, digest string) (model.PackageSummary, error) {
	if s, ok := c.summaries.get(digest); ok {
		return s, nil
	}
	p, err := c.document(ctx, q, tenant, digest)
	if err != nil {
		return model.PackageSummary{}, err
	}
	s := summarize(p, digest)
	c.summaries.put(digest, s)
	return s, nil
}

func summarize(p *libcatalog.Package, digest string) model.PackageSummary {
	return model.PackageSummary{
		Name: p.Name, Digest: digest, DefaultChannel: p.DefaultChannel, Description: p.Description,
		Channels: len(p.Channels), Bundles: len(p.Bundles), Deprecated: deprecation(p, "olm.package", ""),
	}
}

// deprecation is the message for an element of a package, "" where it is not deprecated (R-CAT-13).
func deprecation(p *libcatalog.Package, schema, name string) string {
	for _, d := range p.Deprecations {
		if d.Schema == schema && (d.Name == name || schema == "olm.package") {
			return d.Message
		}
	}
	return ""
}

// Offer says what a catalog has of a package, for the checks of a new subscription.
func (c *Content) Offer(ctx context.Context, q pg.Querier, tenant, subject, pkg string) (catalog.Offer, error) {
	var revision, state string
	err := pg.Err(q.QueryRow(ctx, `select revision, state from catalog_api.catalogs where tenant = $1 and name = $2`, tenant, subject).Scan(&revision, &state))
	if errs.Is(err, errs.NotFound) || err == nil && (revision == "" || state != model.CatalogReady) {
		return catalog.Offer{}, nil
	}
	if err != nil {
		return catalog.Offer{}, err
	}
	digest, err := packageDigest(ctx, q, tenant, revision, pkg)
	if err != nil {
		return catalog.Offer{}, err
	}
	if digest == "" {
		names, err := packageNames(ctx, q, tenant, revision)
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

// channelsOf describes the channels of a package.
func channelsOf(p *libcatalog.Package) []model.ChannelSummary {
	out := make([]model.ChannelSummary, 0, len(p.Channels))
	for _, ch := range p.Channels {
		out = append(out, model.ChannelSummary{
			Name: ch.Name, Heads: libcatalog.Heads(ch), Entries: len(ch.Entries), Deprecated: deprecation(p, "olm.channel", ch.Name),
		})
	}
	return out
}

// bundlesOf describes the bundles of a package, of one channel if it is given.
func bundlesOf(p *libcatalog.Package, channel string) []model.BundleSummary {
	in := map[string][]string{}
	for _, ch := range p.Channels {
		for _, e := range ch.Entries {
			in[e.Name] = append(in[e.Name], ch.Name)
		}
	}
	out := make([]model.BundleSummary, 0, len(p.Bundles))
	for _, b := range p.Bundles {
		if channel != "" && !slices.Contains(in[b.Name], channel) {
			continue
		}
		out = append(out, model.BundleSummary{
			Name: b.Name, Package: p.Name, Version: b.Version, Release: b.Release, Image: b.Image, Content: string(b.Content),
			Channels: append([]string{}, in[b.Name]...), Deprecated: deprecation(p, "olm.bundle", b.Name), Metadata: b.Metadata,
		})
	}
	return out
}
