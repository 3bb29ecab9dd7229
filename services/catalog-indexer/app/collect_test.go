package app

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// TestCollectTurn proves that a turn of the collector leaves what is served as it is, and frees what only
// revisions beyond the retention had (DESIGN D3).
func TestCollectTurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := examples(t)
	stream := b.add("examples", dir)
	b.must(b.pollOnce(stream))
	before := b.rows()
	overlay(t, "../../../examples/catalog-next", dir)
	b.intent("examples", events.CatalogRefreshRequested{})
	b.must(b.pollOnce(stream))
	facts := b.facts(stream)
	served := facts[len(facts)-1].(events.CatalogRevisionPublished).Revision
	b.collector.retention = service.Retention{Keep: store.MinRetention}
	count, err := newCollected()
	b.must(err)
	both := b.rows()
	b.must(b.collector.collectOnce(t.Context(), count))
	if now := b.rows(); now != both || both.packages <= before.packages {
		t.Errorf("a turn within the retention: %+v, before %+v", now, both)
	}
	for _, sql := range []string{
		`update catalog.revisions set created = created - interval '1 year'`,
		`update catalog.contents set touched = touched - interval '1 year'`,
		`update catalog.packages set touched = touched - interval '1 year'`,
	} {
		if _, err := b.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	b.must(b.collector.collectOnce(t.Context(), count))
	b.servedIs(stream, served)
	if now := b.rows(); now.packages != before.packages || now.contents > both.contents {
		t.Errorf("a turn a year later: %+v, want %d packages", now, before.packages)
	}
	b.must(b.pollOnce(stream))
}
