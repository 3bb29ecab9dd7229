package catalog_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
)

// TestVisibilityOf proves the table of R-CAT-85.
func TestVisibilityOf(t *testing.T) {
	t.Parallel()
	globals := []string{"olm"}
	hub := catalog.Name{Name: "fleet"}
	global := catalog.Name{Cluster: "harbour", Namespace: "olm", Name: "own"}
	other := catalog.Name{Cluster: "harbour", Namespace: "ops", Name: "own"}
	for _, c := range []struct {
		name   string
		of     catalog.Name
		wanted string
		want   events.CatalogVisibility
	}{
		{"hub", hub, "", events.CatalogVisibility{}},
		{"hub, whatever is wanted", hub, catalog.VisibleInNamespace, events.CatalogVisibility{}},
		{"global namespace", global, "", events.CatalogVisibility{Cluster: "harbour"}},
		{
			"global namespace, for itself", global, catalog.VisibleInNamespace,
			events.CatalogVisibility{Cluster: "harbour", Namespace: "olm"},
		},
		{"other namespace", other, "", events.CatalogVisibility{Cluster: "harbour", Namespace: "ops"}},
		{
			"other namespace, for the cluster", other, catalog.VisibleInCluster,
			events.CatalogVisibility{Cluster: "harbour"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := catalog.VisibilityOf(c.of, c.wanted, globals); got != c.want {
				t.Errorf("seen by %+v, want %+v", got, c.want)
			}
		})
	}
}
