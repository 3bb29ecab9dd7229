package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// TestCollectBesidePublications proves that the exclusion alone, without any grace, never lets a revision
// be served with a hole: everything that is stored and not published is taken at once, in the middle of
// loads and publications, which then poll again (DESIGN D3).
func TestCollectBesidePublications(t *testing.T) {
	t.Parallel()
	w := setup(t)
	list := slices.Concat(versions("buoy", 12, 30_000), versions("lighthouse", 12, 30_000))
	r := rand.New(rand.NewPCG(5, 5))
	turns, done := make(chan struct{}, 1), make(chan error, 1)
	go func() { done <- w.collectGreedily(turns) }()
	maybe := func() {
		if r.IntN(2) == 0 {
			select {
			case turns <- struct{}{}:
			default:
			}
		}
	}
	w.exec(`insert into catalog.catalogs (tenant, stream, subject, source_type, spec, priority)
		values ($1, 's', 's', 'directory', '', 0)`, tenant)
	again := 0
	for n := range 12 {
		some := list[r.IntN(len(list)/2):][:6+r.IntN(6)]
		for {
			err := w.indexAll(n, some, maybe)
			if err == nil {
				break
			}
			if !errs.Is(err, errs.Conflict) {
				t.Fatal(err)
			}
			again++
			if again > 200 {
				t.Fatal("no revision comes through")
			}
		}
		w.readable(some)
	}
	close(turns)
	w.must(<-done)
	t.Logf("%d polls were repeated", again)
}

// collectGreedily takes everything that nothing refers to, however fresh, at each turn. A turn that gave up
// because somebody was storing too long is none.
func (w *bench) collectGreedily(turns <-chan struct{}) error {
	var failed error
	for range turns {
		if err := w.collectFresh(); err != nil && !errs.Is(err, errs.Unavailable) {
			failed = err
		}
	}
	return failed
}

func (w *bench) collectFresh() error {
	for _, sql := range []string{ // rows that a load is just writing are left to the next turn
		`update catalog.contents set touched = '-infinity' where digest in (select digest
			from catalog.contents for update skip locked)`,
		`update catalog.packages set touched = '-infinity' where digest in (select digest
			from catalog.packages for update skip locked)`,
		`update catalog.revisions set created = created - interval '1 year'`,
	} {
		if _, err := w.pool.Exec(w.t.Context(), sql); err != nil {
			return pg.Err(err)
		}
	}
	_, err := w.Collector.Collect(w.t.Context(), MinRetention)
	return err
}

// indexAll does what a poll does: contents, documents, and the revision with the pointer to it.
func (w *bench) indexAll(n int, list []load.Content, between func()) error {
	ctx := w.t.Context()
	p := catalog.Package{Name: "buoy", Description: fmt.Sprint(n)}
	for _, c := range list {
		p.Bundles = append(p.Bundles, catalog.Bundle{Name: c.Bundle, Content: c.Digest})
	}
	d, err := p.Digest()
	if err != nil {
		return err
	}
	between()
	if _, err := w.load(ctx, list); err != nil {
		return err
	}
	between()
	digests := map[string]digest.Digest{p.Name: d}
	if err := w.Documents.PutPackages(ctx, tenant, []catalog.Package{p}, digests); err != nil {
		return err
	}
	between()
	return w.pool.Tx(ctx, func(tx pgx.Tx) error {
		return serve(ctx, tx, n, &Published{Revision: d, Packages: digests},
			between)
	})
}

func serve(ctx context.Context, tx pgx.Tx, n int, p *Published, between func()) error {
	if err := insertRevision(ctx, tx, tenant, p); err != nil {
		return err
	}
	between()
	if _, err := tx.Exec(ctx, `insert into catalog.revisions (tenant, catalog, version, revision, previous, packages,
		bundles, created)
		values ($1, 's', $2, $3, '', 1, 0, now())`, tenant, n+1, p.Revision); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update catalog.catalogs set revision = $2 where tenant = $1`, tenant, p.Revision)
	return err
}
