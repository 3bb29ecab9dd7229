package app

import (
	"context"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/projection/projectiontest"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// TestRebuildBeside: what follows intents and clusters is made anew; what polls noted and serve stays as it is.
func TestRebuildBeside(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	write(t, dir, "catalog.yaml", good)
	first := b.add("harbour", dir)
	b.must(b.pollOnce(first))
	b.intent("harbour", events.CatalogChanged{SourceType: "directory", Spec: b.body(dir), Priority: 7})
	gone := b.add("gone", dir)
	b.must(b.pollOnce(gone))
	b.intent("gone", events.CatalogRemoved{})
	b.intent("harbour", events.CatalogRefreshRequested{})
	b.must(b.pollOnce(first))
	b.cluster("east", "v1.34.1")
	b.catchUp()

	makings := store.Makings(b.consumers[0], b.consumers[1])
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	rebuilder := &projection.Rebuilder{Pool: b.Pool, Log: b.Telemetry.Log, Makings: makings}
	go func() { done <- rebuilder.Run(ctx) }()
	defer func() { cancel(); b.must(<-done) }()
	admin := b.db.Pool(t, "admin")
	served := func() (s string) {
		t.Helper()
		b.must(admin.QueryRow(t.Context(), `select jsonb_build_array(
			(select jsonb_agg(c order by c.stream) from catalog.catalogs c),
			(select jsonb_agg(r order by r.catalog, r.version) from catalog.revisions r))::text`).Scan(&s))
		return s
	}
	before := served()
	projectiontest.RebuildEqualsLive(t, admin, makings[0], `update catalog.catalogs set priority = -1, removed = false,
		templated = true where subject = 'harbour' or removed`)
	projectiontest.RebuildEqualsLive(t, admin, makings[1], `delete from catalog.clusters`)
	if after := served(); after != before {
		t.Errorf("what is served: before %s, after %s", before, after)
	}
	b.intent("harbour", events.CatalogRefreshRequested{}) // the live consumer goes on where the rebuild has come to
	b.must(b.pollOnce(first))
}
