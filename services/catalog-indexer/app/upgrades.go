package app

import (
	"context"
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

// compareUpgrades computes what upgrades change, for approvals and installation. It works behind the
// publication of a revision, so that nobody waits for it: what is not compared yet is not shown. The
// tables say what is left to do, so that it may end and begin anywhere.
func (a *App) compareUpgrades(ctx context.Context) error {
	tick := time.NewTicker(compareEvery)
	defer tick.Stop()
	for {
		if err := a.compareAll(ctx); err != nil && ctx.Err() == nil {
			a.tel.Log.WarnContext(ctx, "cannot compare upgrades; trying again at the next turn", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-a.published:
		}
	}
}

// compareAll compares until nothing is left.
func (a *App) compareAll(ctx context.Context) error {
	for {
		left, err := a.store.Uncompared(ctx, comparePackages)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, r := range left {
			if err := a.comparePackage(ctx, r); err != nil {
				return err
			}
		}
	}
}

// comparePackage compares along every edge of one package.
func (a *App) comparePackage(ctx context.Context, r store.PackageRef) error {
	p, err := a.store.Package(ctx, r.Tenant, r.Digest)
	if err != nil {
		return err
	}
	contents, err := a.contentsOf(ctx, r.Tenant, p)
	if err != nil {
		return err
	}
	pairs := pairsOf(p, contents)
	done, err := a.store.Compared(ctx, r.Tenant, pairs)
	if err != nil {
		return err
	}
	parts := &partCache{read: func(d digest.Digest) (compare.Part, error) { return a.part(ctx, r.Tenant, d) }}
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
			if err := a.store.PutUpgrades(ctx, r.Tenant, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if err := a.store.PutUpgrades(ctx, r.Tenant, batch); err != nil {
		return err
	}
	return a.store.PutCompared(ctx, r)
}

// contentsOf returns the content of each bundle that is at hand: of the package, or fetched by image.
func (a *App) contentsOf(ctx context.Context, tenant string, p catalog.Package) (map[string]digest.Digest, error) {
	contents := map[string]digest.Digest{}
	var images []string
	for _, b := range p.Bundles {
		contents[b.Name] = b.Content
		if b.Content == "" && b.Image != "" {
			images = append(images, b.Image)
		}
	}
	if len(images) == 0 {
		return contents, nil
	}
	fetched, err := a.store.ImageContents(ctx, tenant, images)
	for _, b := range p.Bundles {
		if b.Content == "" {
			contents[b.Name] = fetched[b.Image]
		}
	}
	return contents, err
}

// pairsOf returns the edges of a package whose ends both have content, each pair once.
func pairsOf(p catalog.Package, contents map[string]digest.Digest) []store.ContentPair {
	var out []store.ContentPair
	seen := map[store.ContentPair]bool{}
	for _, e := range compare.Edges(p) {
		pair := store.ContentPair{From: contents[e.From], To: contents[e.To]}
		if pair.From == "" || pair.To == "" || pair.From == pair.To || seen[pair] {
			continue
		}
		seen[pair] = true
		out = append(out, pair)
	}
	return out
}

// part reads a bundle for comparison.
func (a *App) part(ctx context.Context, tenant string, d digest.Digest) (compare.Part, error) {
	canonical, err := a.store.Content(ctx, tenant, d)
	if err != nil {
		return compare.Part{}, err
	}
	c, _, err := bundle.FromCanonical(canonical)
	if err != nil {
		return compare.Part{}, err
	}
	return compare.Read(c)
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
