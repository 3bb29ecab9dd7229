package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
)

// Each service reads the kinds of bodies that its work needs, and no other (DESIGN D10).
func TestBodiesByKind(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	pool := d.Pool(t, "gateway")
	var bodies store.Bodies
	for _, kind := range []string{
		store.KindSubscriptionConfig, store.KindCatalogSource, store.KindAnnotations, store.KindPlanReason,
	} {
		in(t, pool, tenant, func(tx pgx.Tx) error {
			_, err := bodies.Commit(t.Context(), tx, tenant, kind, []byte(`{}`), "")
			return err
		})
	}
	for role, want := range map[string][]string{
		"gateway":         {"annotations", "catalog-source", "plan-reason", "subscription-config"},
		"resolver":        {"subscription-config"},
		"installer":       {"annotations", "catalog-source", "subscription-config"},
		"catalog-indexer": {"catalog-source"},
	} {
		rows, err := d.Pool(t, role).Query(t.Context(), `select kind from gateway_api.bodies order by kind`)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
}
