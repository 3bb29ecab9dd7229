package app

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

const (
	// compareEvery is how often packages are looked for whose upgrades are not compared, beside the call
	// after every revision: it finds what a killed process left and what a newer version compares anew.
	compareEvery = time.Minute
	// comparePackages is how many packages are asked for at once.
	comparePackages = 100
	// compareBatch is how many differences are written in one transaction.
	compareBatch = 64
	// comparedParts bounds the bundles that are kept read: a chain of upgrades needs the last two, a
	// channel that skips to its head needs that one besides.
	comparedParts = 4
)

// comparer computes what upgrades change, behind the publication of a revision.
type comparer struct {
	store *store.Store
	log   *slog.Logger
	// news has an element when there may be upgrades to compare.
	news chan struct{}
}

func newComparer(s *store.Store, log *slog.Logger) *comparer {
	return &comparer{store: s, log: log, news: make(chan struct{}, 1)}
}

// run computes what upgrades change, for approvals and installation. It works behind the
// publication of a revision, so that nobody waits for it: what is not compared yet is not shown. The
// tables say what is left to do, so that it may end and begin anywhere.
func (c *comparer) run(ctx context.Context) error {
	tick := time.NewTicker(compareEvery)
	defer tick.Stop()
	for {
		if err := c.compareAll(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "cannot compare upgrades; trying again at the next turn", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-c.news:
		}
	}
}

// wake says that there may be upgrades to compare.
func (c *comparer) wake() {
	select {
	case c.news <- struct{}{}:
	default: // awake already
	}
}

// compareAll compares all that is left, once each: a package that fails is logged and passed over until the next
// turn, so that it holds up no other.
func (c *comparer) compareAll(ctx context.Context) error {
	var last store.PackageRef
	for {
		left, err := c.store.Upgrades.Uncompared(ctx, last, comparePackages)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, r := range left {
			if err := c.comparePackage(ctx, r); err != nil {
				if ctx.Err() != nil {
					return err
				}
				c.log.WarnContext(
					ctx, "cannot compare the upgrades of a package; trying again at the next turn",
					"tenant", r.Tenant, "package", r.Package, "document", r.Digest.Short(), "error", err)
			}
			last = r
		}
	}
}

// comparePackage compares along every edge of one package.
func (c *comparer) comparePackage(ctx context.Context, r store.PackageRef) error {
	p, err := c.store.Documents.Package(ctx, r.Tenant, r.Digest)
	if err != nil {
		return err
	}
	images := imagesOf(p)
	fetched, err := c.store.Upgrades.ImageContents(ctx, r, images)
	if err != nil {
		return err
	}
	if err := c.comparePairs(ctx, r.Tenant, pairsOf(p, fetched)); err != nil {
		return err
	}
	noted, err := c.store.Upgrades.PutCompared(ctx, r, images, fetched)
	if err == nil && !noted {
		c.wake() // an image was fetched meanwhile
	}
	return err
}

// comparePairs compares those pairs that are not compared yet.
func (c *comparer) comparePairs(ctx context.Context, tenant string, pairs []store.ContentPair) error {
	done, err := c.store.Upgrades.Compared(ctx, tenant, pairs)
	if err != nil {
		return err
	}
	parts := &partCache{read: func(d digest.Digest) (compare.Part, error) { return c.part(ctx, tenant, d) }}
	var batch []store.Upgrade
	for _, pair := range pairs {
		if done[pair] {
			continue
		}
		d, err := parts.difference(pair)
		if err != nil {
			return err
		}
		batch = append(batch, store.Upgrade{ContentPair: pair, Difference: d})
		if len(batch) == compareBatch {
			if err := c.store.Upgrades.Put(ctx, tenant, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return c.store.Upgrades.Put(ctx, tenant, batch)
}

// part reads a bundle for comparison.
func (c *comparer) part(ctx context.Context, tenant string, d digest.Digest) (compare.Part, error) {
	canonical, err := c.store.Contents.Read(ctx, tenant, d)
	if err != nil {
		return compare.Part{}, err
	}
	content, _, err := bundle.FromCanonical(canonical)
	if err != nil {
		return compare.Part{}, err
	}
	return compare.Read(content)
}

// imagesOf are the bundles of a package that have no content of their own.
func imagesOf(p catalog.Package) []store.Image {
	var out []store.Image
	for _, b := range p.Bundles {
		if b.Content == "" && b.Image != "" {
			out = append(out, store.Image{Image: b.Image, Package: p.Name, Bundle: b.Name})
		}
	}
	return out
}

// pairsOf returns the edges of a package whose ends both have content, of the package or fetched by image;
// each pair once.
func pairsOf(p catalog.Package, fetched map[string][]digest.Digest) []store.ContentPair {
	contents := maps.Clone(fetched)
	for _, b := range p.Bundles {
		if b.Content != "" {
			contents[b.Name] = []digest.Digest{b.Content}
		}
	}
	var out []store.ContentPair
	seen := map[store.ContentPair]bool{}
	for _, e := range compare.Edges(p) {
		for _, from := range contents[e.From] {
			for _, to := range contents[e.To] {
				if pair := (store.ContentPair{From: from, To: to}); from != to && !seen[pair] {
					seen[pair] = true
					out = append(out, pair)
				}
			}
		}
	}
	return out
}

// partCache keeps the bundles that were read last.
type partCache struct {
	read  func(digest.Digest) (compare.Part, error)
	order []digest.Digest
	parts map[digest.Digest]partOrError
}

type partOrError struct {
	part compare.Part
	err  error
}

func (c *partCache) get(d digest.Digest) (compare.Part, error) {
	if p, ok := c.parts[d]; ok {
		return p.part, p.err
	}
	part, err := c.read(d)
	if c.parts == nil {
		c.parts = map[digest.Digest]partOrError{}
	}
	if len(c.order) == comparedParts {
		delete(c.parts, c.order[0])
		c.order = c.order[1:]
	}
	c.order, c.parts[d] = append(c.order, d), partOrError{part, err}
	return part, err
}

// difference compares a pair. What is wrong with a bundle is part of the answer; only failures of our
// own are errors.
func (c *partCache) difference(pair store.ContentPair) (compare.Difference, error) {
	from, err := c.get(pair.From)
	if err == nil {
		var to compare.Part
		if to, err = c.get(pair.To); err == nil {
			var d compare.Difference
			if d, err = compare.Parts(from, to); err == nil {
				return d, nil
			}
		}
	}
	if errs.Is(err, errs.Invalid) {
		return compare.Difference{Problem: err.Error()}, nil
	}
	return compare.Difference{}, err
}
