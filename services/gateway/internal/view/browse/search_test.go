package browse

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func offers() []offered {
	fleet, own := &liveCatalog{Catalog: catalogs.Catalog{Subject: "fleet"}},
		&liveCatalog{Catalog: catalogs.Catalog{Subject: "harbour/ops/own"}}
	of := func(c *liveCatalog, card display.Card) offered {
		return offered{ref: content.Ref{Name: card.Package, Digest: "sha256:" + card.Package}, card: &card, catalog: c}
	}
	return []offered{
		of(fleet, display.Card{
			Package: "etcd", Provider: "CoreOS", Categories: []string{"Database"},
			Labels: map[string]string{"tier": "1"}, ProviderURL: "https://coreos.example",
		}),
		of(fleet, display.Card{Package: "vault", Provider: "HashiCorp", Categories: []string{"Security"}}),
		of(own, display.Card{Package: "etcd", Provider: "Own", Categories: []string{"Database", "Storage"}}),
	}
}

func named(list []offered) (names []string) {
	for _, o := range list {
		names = append(names, o.catalog.Subject+":"+o.ref.Name)
	}
	return names
}

// TestChoose: values of one field are alternatives, fields narrow each other (R-CAT-107).
func TestChoose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		filter model.PackageFilter
		want   []string
	}{
		{"everything", model.PackageFilter{}, []string{"fleet:etcd", "fleet:vault", "harbour/ops/own:etcd"}},
		{
			"a category, whatever its case",
			model.PackageFilter{Categories: []string{"database"}},
			[]string{"fleet:etcd", "harbour/ops/own:etcd"},
		},
		{
			"one of two categories",
			model.PackageFilter{Categories: []string{"Storage", "Security"}},
			[]string{"fleet:vault", "harbour/ops/own:etcd"},
		},
		{
			"two fields",
			model.PackageFilter{Categories: []string{"Database"}, Providers: []string{"Own"}},
			[]string{"harbour/ops/own:etcd"},
		},
		{"a catalog", model.PackageFilter{Catalogs: []string{"fleet"}}, []string{"fleet:etcd", "fleet:vault"}},
		{"a label with its value", model.PackageFilter{Labels: []string{"tier=1"}}, []string{"fleet:etcd"}},
		{"a label with another value", model.PackageFilter{Labels: []string{"tier=2"}}, nil},
		{
			"a provider's page, with a slash",
			model.PackageFilter{ProviderURLs: []string{"https://coreos.example/"}},
			[]string{"fleet:etcd"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found, _ := choose(offers(), c.filter)
			if diff := cmp.Diff(c.want, named(found)); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFacetsLeaveOutTheirOwnFilter: the counts of a field say what choosing another of its values would find.
func TestFacetsLeaveOutTheirOwnFilter(t *testing.T) {
	t.Parallel()
	_, facets := choose(offers(), model.PackageFilter{Providers: []string{"CoreOS"}})
	if want := []model.FacetValue{
		{Value: "CoreOS", Count: 1},
		{Value: "HashiCorp", Count: 1},
		{Value: "Own", Count: 1},
	}; !slices.Equal(facets.Providers, want) {
		t.Errorf("providers %v, want %v", facets.Providers, want)
	}
	if want := []model.FacetValue{{Value: "Database", Count: 1}}; !slices.Equal(facets.Categories, want) {
		t.Errorf("categories %v, want %v", facets.Categories, want)
	}
}

// TestSearchPages: pages follow each other without gap or repetition, by rank, package and catalog.
func TestSearchPages(t *testing.T) {
	t.Parallel()
	all := offers()
	all[1].rank = 2
	slices.SortFunc(all, byRank)
	var got []string
	p := model.Page{Limit: 1}
	for range all {
		found, err := pageOf(all, model.Facets{}, p)
		if err != nil || len(found.Items) != 1 || found.Total != len(all) {
			t.Fatalf("a page is %+v, %v", found, err)
		}
		got, p.After = append(got, found.Items[0].Name+"/"+found.Items[0].Catalog.Name), found.Next
	}
	if want := []string{"vault/", "etcd/", "etcd/"}; !slices.Equal(got, want) || p.After != nil {
		t.Errorf("pages %q, then %q; want %q and no more", got, p.After, want)
	}
	if _, err := pageOf(all, model.Facets{}, model.Page{Limit: 1, After: []string{"etcd"}}); err == nil {
		t.Error("the cursor of another list was taken")
	}
}

// TestCloseness: who types a name gets what is called so before what begins so, and that before the rest.
func TestCloseness(t *testing.T) {
	t.Parallel()
	exact := closeness(&display.Card{Package: "etcd"}, "ETCD")
	begins := closeness(&display.Card{Package: "etcd-operator"}, "etcd")
	other := closeness(&display.Card{Package: "my-etcd"}, "etcd")
	if exact <= begins || begins <= other {
		t.Errorf("closeness %v, %v, %v: want it to fall", exact, begins, other)
	}
}

// TestWordsOf: what people type is split as the index splits what it keeps.
func TestWordsOf(t *testing.T) {
	t.Parallel()
	if got, want := wordsOf("Red-Hat  OpenShift_4!"), []string{"red", "hat", "openshift", "4"}; !slices.Equal(got,
		want) {
		t.Errorf("words %q, want %q", got, want)
	}
	if got := wordsOf("--- !"); len(got) != 0 {
		t.Errorf("words %q of signs alone", got)
	}
}
