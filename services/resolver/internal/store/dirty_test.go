package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// step is one event, and whom it wakes.
type step struct {
	name, subject string
	event         events.Payload
	want          []string
}

func (b *bench) steps(t *testing.T, steps []step) {
	t.Helper()
	for i, s := range steps {
		if diff := cmp.Diff(s.want, b.apply(t, s.subject, int64(100+i), s.event)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.name, diff)
		}
	}
}

// TestVariantsWakeTheirClusters: what happens to a variant concerns clusters of its version alone, its first revision
// and its failure included (R-CAT-92, DESIGN D4).
func TestVariantsWakeTheirClusters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fleet := resolution.CatalogKey{Name: "fleet"}
	for i, c := range []string{"harbour", "reef", "unheard"} {
		b.apply(t, c, 1, events.ClusterRegistered{Name: c})
		if c != "unheard" {
			b.apply(t, c, 2, events.ClusterObserved{KubernetesVersion: []string{"v1.33.1", "v1.34.0"}[i]})
		}
		for _, r := range []resolution.Read{
			{Kind: resolution.ReadCatalog, Catalog: fleet},
			{Kind: resolution.ReadVisible},
			{Kind: resolution.ReadPackage, Catalog: fleet, Name: "buoy"},
		} {
			b.readsOf(t, resolution.Scope{Cluster: c, Namespace: c + "-" + string(r.Kind)}, r)
		}
	}
	b.apply(t, "fleet", 1, events.CatalogAdded{Name: "fleet", Templated: true})
	published := func(variant, previous, revision string) events.Payload {
		return events.CatalogRevisionPublished{
			Variant: variant, Previous: previous, Revision: revision,
			Changes: []events.PackageChange{{Package: "buoy", Change: "changed", Digest: "d"}},
		}
	}
	failed := func(variant string) events.Payload {
		return events.CatalogLoadFailed{Variant: variant, Reason: "InvalidCatalog"}
	}
	b.steps(t, []step{
		{
			"first revision", "fleet", published("1.33", "", "r1"),
			[]string{"harbour-catalog", "harbour-package", "harbour-visible"},
		},
		{"the next one", "fleet", published("1.33", "r1", "r2"), []string{"harbour-package"}},
		{"a failed look", "fleet", failed("1.33"), nil},
		{"a failed first look", "fleet", failed("1.34"), []string{"reef-catalog"}},
		{
			"the fallback", "fleet", published("", "", "r1"),
			[]string{"unheard-catalog", "unheard-package", "unheard-visible"},
		},
		{"it is templated no more", "fleet", events.CatalogChanged{}, []string{
			"harbour-catalog", "harbour-visible", "reef-catalog", "reef-visible", "unheard-catalog", "unheard-visible",
		}},
		{"late news of a variant", "fleet", published("1.33", "r2", "r3"), nil},
	})
}

// TestHealthWakesThoseWhoWereToldOfIt: where a catalog namespace is strict, a catalog's health is a question like
// others: it wakes who asked, also who does not see the catalog any more (R-CAT-99, DESIGN D4).
func TestHealthWakesThoseWhoWereToldOfIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, "fleet", 1, events.CatalogAdded{Name: "fleet"})
	b.apply(t, "other", 1, events.CatalogAdded{
		Name:       "other",
		Visibility: events.CatalogVisibility{Cluster: "harbour", Namespace: "elsewhere"},
	})
	b.apply(t, "fleet", 2, events.CatalogRevisionPublished{Revision: "r"})
	b.apply(t, "catalog-health", 1, events.CatalogHealthSet{Mode: "Strict"})
	b.reads(t, "blocked", resolution.Read{
		Kind: resolution.ReadHealth, Catalog: resolution.CatalogKey{Name: "fleet"},
		Answer: "Unhealthy:x",
	})
	b.reads(t, "settled", resolution.Read{
		Kind: resolution.ReadPackage, Catalog: resolution.CatalogKey{Name: "fleet"},
		Name: "buoy", Answer: "d",
	})
	failed := func(reason string) events.Payload { return events.CatalogLoadFailed{Reason: reason} }
	blocked := []string{"blocked"}
	b.steps(t, []step{
		{"sick", "fleet", failed("InvalidCatalog"), blocked},
		{"as sick as before", "fleet", failed("InvalidCatalog"), nil},
		{"sick of something else", "fleet", failed("TooLarge"), blocked},
		{"only its priority", "fleet", events.CatalogChanged{Priority: 7}, nil},
	})
	if c := b.load(t, "blocked").Catalogs; len(c) != 1 || !c[0].Failed || c[0].Reason != "TooLarge" {
		t.Errorf("a change of priority made it %+v", c)
	}
	b.steps(t, []step{
		{"well", "fleet", events.CatalogRevisionPublished{Revision: "r", Previous: "r"}, blocked},
		{"as well as before", "fleet", events.CatalogRevisionPublished{Revision: "r", Previous: "r"}, nil},
		{"another one comes into sight", "other", events.CatalogChanged{}, blocked},
		{"not strict any more", "catalog-health", events.CatalogHealthSet{Mode: "Independent"}, blocked},
		{
			"nor is it in sight", "other",
			events.CatalogChanged{Visibility: events.CatalogVisibility{Cluster: "reef"}},
			nil,
		},
		{"strict elsewhere", "catalog-health/reef/olm", events.CatalogHealthSet{
			Cluster: "reef", Namespace: "olm",
			Mode: "Strict",
		}, nil},
		{"out of sight", "fleet", events.CatalogChanged{
			Priority:   7,
			Visibility: events.CatalogVisibility{Cluster: "reef"},
		}, blocked},
		{"removed", "fleet", events.CatalogRemoved{}, nil},
	})
}

// TestWishesEndWithTheLastWhoAsks: a bundle image is wanted for as long as some scope asks for it.
func TestWishesEndWithTheLastWhoAsks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, "fleet", 1, events.CatalogAdded{Name: "fleet"})
	fleet := resolution.CatalogKey{Name: "fleet"}
	image := resolution.BundleImage{Image: "registry.test/buoy:1", Package: "buoy \x00", Bundle: "buoy.v1"}
	write := func(namespace string, asks bool) {
		t.Helper()
		var d decide.Decisions
		var reads []resolution.Read
		if asks {
			d.Wanted = []decide.Wanted{{
				Catalog: fleet, Image: image.Image, Package: image.Package,
				Bundle: image.Bundle,
			}}
			reads = []resolution.Read{{Kind: resolution.ReadImage, Catalog: fleet, Name: image.ReadName()}}
		}
		if err := b.store.Decisions.Write(t.Context(), b.load(t, namespace), d, reads,
			store.Cause{Command: uuid.New()}); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		namespace string
		asks      bool
		want      int
	}{{"one", true, 1}, {"one", true, 1}, {"two", true, 1}, {"one", false, 1}, {"two", false, 0}, {"one", true, 1}} {
		write(step.namespace, step.asks)
		var n int
		if err := b.pool.QueryRow(t.Context(), `select count(*) from resolver.wanted_images where tenant = $1`,
			tenant).Scan(&n); err != nil || n != step.want {
			t.Errorf("step %d: %d wishes, want %d, %v", i, n, step.want, err)
		}
	}
}
