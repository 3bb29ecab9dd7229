package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/libs/telemetry/telemetrytest"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// TestMetrics is R-MET-1 and R-MET-2 for catalogs: those of one namespace have its name as a label, and the series of a
// removed catalog disappear.
func TestMetrics(t *testing.T) {
	t.Parallel()
	pool := pgtest.DB(t).Pool(t, "catalog-indexer")
	var polls telemetry.Tally
	check := func(when string, want ...string) {
		t.Helper()
		list, err := store.MetricSamples(t.Context(), pool, &polls)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, telemetrytest.Lines(t, store.Metrics(), list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into catalog.catalogs (tenant, stream, subject, source_type, spec, priority, connection) values
		('default', 's1', 'community', 'directory', '', 0, 'READY'), ('default', 's2', 'east/coast/own', 'image', '', 0,
		'TRANSIENT_FAILURE')`)
	for _, stream := range []string{"s1", "s2", "s2"} {
		polls.Add(store.TallyKey("default", stream))
	}
	check("with two",
		`catalogsource_ready["default" "" "" "community"]1`, `catalogsource_ready["default" "east" "coast" "own"]0`,
		`catalog_source_snapshots_total["default" "" "" "community"]1`,
		`catalog_source_snapshots_total["default" "east" "coast" "own"]2`, `catalog_source_count[]2`)
	exec(`update catalog.catalogs set removed = true where stream = 's2'`)
	check("after one is removed",
		`catalogsource_ready["default" "" "" "community"]1`,
		`catalog_source_snapshots_total["default" "" "" "community"]1`, `catalog_source_count[]1`)
}
