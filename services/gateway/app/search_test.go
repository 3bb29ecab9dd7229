package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// described is a package of one version whose CSV says these things.
func described(name, displayName, provider, description string, annotations map[string]string,
	modes ...string,
) libcatalog.Package {
	type mode struct {
		Type      string `json:"type"`
		Supported bool   `json:"supported"`
	}
	var installModes []mode
	for _, m := range modes {
		installModes = append(installModes, mode{m, true})
	}
	metadata, err := json.Marshal(map[string]any{
		"displayName": displayName, "provider": map[string]string{"name": provider, "url": pageOf(name)},
		"description": description, "annotations": annotations, "installModes": installModes,
		"keywords": []string{"shore", "gauge"}, "labels": map[string]string{
			"operatorframework.io/arch.arm64": "supported",
		},
	})
	if err != nil {
		panic(err)
	}
	return libcatalog.Package{
		Name: name, DefaultChannel: "stable", Channels: []libcatalog.Channel{
			{Name: "stable", Entries: []libcatalog.Entry{{Name: name + ".v1.0.0"}}},
		},
		Bundles: []libcatalog.Bundle{{Name: name + ".v1.0.0", Version: "1.0.0", Metadata: metadata}},
	}
}

// pageOf is the home page of a provider, which one package alone names.
func pageOf(name string) string {
	if name == "tide-gauge" {
		return "https://dock.example.test"
	}
	return ""
}

type found struct {
	Items  []model.FoundPackage
	Next   string
	Total  int
	Facets model.Facets
}

func (f found) names() string {
	var names []string
	for _, i := range f.Items {
		names = append(names, i.Catalog.Name+"/"+i.Name)
	}
	return strings.Join(names, " ")
}

func (b *bench) search(query string) found {
	b.t.Helper()
	return must[found](b, 200, b.do("GET", "/api/v1/packages?"+query, nil))
}

// shelves are two catalogs of the hub and one of a namespace.
func shelves(t *testing.T) *bench {
	t.Helper()
	b := setup(t)
	b.cluster("spoke")
	add := func(in model.AddCatalog, packages ...libcatalog.Package) {
		t.Helper()
		in.Source = model.CatalogSource{Type: source.Directory, Path: "/catalogs/" + in.Name}
		c := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", in))
		subject := in.Name
		if in.Cluster != "" {
			subject = in.Cluster + "/" + in.Namespace + "/" + in.Name
		}
		b.published(subject, c.Stream, "sha256:"+in.Name, packages...)
	}
	feature := "operators.openshift.io/infrastructure-features"
	add(model.AddCatalog{Name: "certified", Display: &model.CatalogDisplay{Name: "Certified", Publisher: "Dock"}},
		described("tide-gauge", "Tide Gauge", "Dock Ltd", "Watches a database of tides", map[string]string{
			"capabilities": "deep insights", "categories": "Monitoring, Database", feature: `["Disconnected", "fips"]`,
			"description": "Measures tides",
		}, "AllNamespaces", "OwnNamespace"),
		described("tidelock", "Tidelock", "Other Ltd", "Locks things to a gauge", map[string]string{
			"capabilities": "Basic Install", "categories": "Security",
			"features.operators.openshift.io/disconnected": "false", feature: `["disconnected"]`,
		}, "OwnNamespace"))
	add(model.AddCatalog{Name: "community"}, described("buoys", "Buoys", "Dock Ltd", "Many small databases",
		map[string]string{
			"capabilities": "Auto Pilot", "categories": "Database",
			"features.operators.openshift.io/disconnected": "true",
		}, "AllNamespaces"))
	add(model.AddCatalog{Name: "own", Cluster: "spoke", Namespace: "olm", Visibility: "namespace"},
		described("private", "Private", "", "for one namespace", nil, "OwnNamespace"))
	return b
}

// TestSearch proves R-UI-1, R-CAT-105, R-CAT-107 and R-DIS-3: words, facets, who sees what.
func TestSearch(t *testing.T) {
	t.Parallel()
	b := shelves(t)
	b.search("minPosition=" + b.position)
	for _, c := range []struct{ query, want string }{
		{"", "community/buoys own/private certified/tide-gauge certified/tidelock"},
		{"search=tide", "certified/tide-gauge certified/tidelock"},
		{"search=tide+gauge", "certified/tide-gauge certified/tidelock"}, // the name before the description
		{"search=tide-gauge", "certified/tide-gauge certified/tidelock"},
		{"search=gaug", "certified/tide-gauge community/buoys own/private certified/tidelock"},
		// stems; a category counts more than a description
		{"search=databases", "community/buoys certified/tide-gauge"},
		{"search=the+database", "community/buoys certified/tide-gauge"},
		{"search=nothing", ""},
		{"search=%26%7C!", ""},
		{"category=database", "community/buoys certified/tide-gauge"},
		{"category=Security&category=Monitoring", "certified/tide-gauge certified/tidelock"},
		{"providerURL=https://DOCK.example.test/", "certified/tide-gauge"},
		{"providerURL=https://other.example.test&providerURL=https://dock.example.test", "certified/tide-gauge"},
		{"provider=Dock+Ltd", "community/buoys certified/tide-gauge"},
		{"capability=Auto+Pilot", "community/buoys"},
		{"infrastructureFeature=disconnected", "community/buoys certified/tide-gauge"},
		{"infrastructureFeature=fips-compliant", "certified/tide-gauge"},
		{"installMode=AllNamespaces&catalog=certified", "certified/tide-gauge"},
		{"catalog=spoke/olm/own", "own/private"},
		{"catalogNamespace=olm", "own/private"},
		{"cluster=spoke&namespace=olm&search=private", "own/private"},
		{"cluster=spoke&namespace=other&search=private", ""},
		{"cluster=spoke", "community/buoys certified/tide-gauge certified/tidelock"},
		{"cluster=spoke&catalog=spoke/olm/own", "own/private"},
		{"cluster=elsewhere", "community/buoys certified/tide-gauge certified/tidelock"},
		{"label=operatorframework.io/arch.arm64%3Dsupported&search=buoys", "community/buoys"},
		{"label=operatorframework.io/arch.s390x", ""},
	} {
		if got := b.search(c.query).names(); got != c.want {
			t.Errorf("%q: got %s, want %s", c.query, got, c.want)
		}
	}
	all := b.search("category=Database")
	if all.Total != 2 || fmt.Sprint(all.Facets.Categories) != "[{Database 2} {Monitoring 1} {Security 1}]" ||
		fmt.Sprint(all.Facets.Providers) != "[{Dock Ltd 2}]" {
		t.Errorf("facets %+v", all.Facets)
	}
	tile := all.Items[1]
	if tile.DisplayName != "Tide Gauge" || tile.Description != "Measures tides" || tile.Capability != "Deep Insights" ||
		tile.Catalog.Publisher != "Dock" || tile.Version != "1.0.0" {
		t.Errorf("tile %+v", tile)
	}
	must[problem](b, 400, b.do("GET", "/api/v1/packages?cursor="+strings.Repeat("a", 8), nil))
}

// TestSearchByPages: the pages together are the list.
func TestSearchByPages(t *testing.T) {
	t.Parallel()
	b := shelves(t)
	b.search("minPosition=" + b.position)
	for _, query := range []string{"", "search=gauge"} {
		want := b.search(query).names()
		var got []string
		for cursor := ""; ; {
			page := b.search(query + "&limit=1&cursor=" + url.QueryEscape(cursor))
			got = append(got, page.names())
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", query, got, want)
		}
	}
}

// TestOnlyWhatIsOffered proves R-CAT-108 and R-CFG-10: nothing of an old revision, of a disabled or of a
// removed catalog is found, nor a version that carries olm.deprecated.
func TestOnlyWhatIsOffered(t *testing.T) {
	t.Parallel()
	b := shelves(t)
	b.search("minPosition=" + b.position)
	c := must[model.Catalog](b, 200, b.do("GET", "/api/v1/catalogs/certified", nil))
	old := described("tide-gauge", "Tide Gauge", "Dock Ltd", "", nil, "AllNamespaces")
	old.Bundles = append(old.Bundles, libcatalog.Bundle{Name: "tide-gauge.v0.9.0", Version: "0.9.0"},
		libcatalog.Bundle{
			Name: "tide-gauge.v1.2.0", Version: "1.2.0",
			Properties: []libcatalog.Property{{Type: "olm.deprecated", Value: json.RawMessage(`{}`)}},
		})
	old.Channels[0].Entries = append([]libcatalog.Entry{{Name: "tide-gauge.v0.9.0"}}, old.Channels[0].Entries...)
	old.Channels[0].Entries = append(old.Channels[0].Entries, libcatalog.Entry{Name: "tide-gauge.v1.2.0"})
	old.Channels = append(old.Channels, libcatalog.Channel{
		Name: "gone", Entries: []libcatalog.Entry{{Name: "tide-gauge.v1.2.0"}},
	})
	b.published("certified", c.Stream, "sha256:second", old)
	if got := b.search("search=tide&minPosition=" + b.position).names(); got != "certified/tide-gauge" {
		t.Errorf("of the revision before: %s", got)
	}
	p := must[model.PackageDetail](b, 200, b.do("GET", "/api/v1/catalogs/certified/packages/tide-gauge", nil))
	if len(p.ChannelList) != 1 || fmt.Sprint(
		p.ChannelList[0].EntryList) != "[{tide-gauge.v1.0.0 1.0.0 } {tide-gauge.v0.9.0 0.9.0 }]" {
		t.Errorf("channels %+v", p.ChannelList)
	}
	if ch := p.ChannelList[0]; ch.CurrentCSV != "tide-gauge.v1.0.0" || ch.Current.DisplayName != "Tide Gauge" ||
		ch.Current.Provider.Name != "Dock Ltd" || len(ch.Current.InstallModes) != 1 {
		t.Errorf("head %+v", ch)
	}
	if l := must[struct{ Items []model.BundleSummary }](
		b, 200, b.do("GET", "/api/v1/catalogs/certified/bundles", nil)); len(l.Items) != 2 {
		t.Errorf("bundles %+v", l.Items)
	}

	off := must[model.Catalog](b, 200, b.do("PATCH", "/api/v1/catalogs/certified", `{"disabled": true}`))
	// as the indexer does on the event
	b.exec("catalog-indexer", `update catalog.catalogs set disabled = true where subject = 'certified'`)
	if got := b.search("minPosition=" + off.Position).names(); got != "community/buoys own/private" {
		t.Errorf("of a disabled catalog: %s", got)
	}
	if l := must[struct{ Items []model.PackageSummary }](
		b, 200, b.do("GET", "/api/v1/catalogs/certified/packages", nil)); len(l.Items) != 0 {
		t.Errorf("packages of a disabled catalog: %+v", l.Items)
	}
	gone := must[model.Removed](b, 200, b.do("DELETE", "/api/v1/catalogs/community", nil))
	if got := b.search("minPosition=" + gone.Position).names(); got != "own/private" {
		t.Errorf("of a removed catalog: %s", got)
	}
}

// TestIcons proves R-CAT-108: a picture has an address of its own with an ETag, and there is always one.
func TestIcons(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "a", Source: model.CatalogSource{Type: "directory", Path: "/a"}}))
	drawn, odd := tidegauge(), buoy()
	drawn.Icon = &libcatalog.Icon{Data: []byte("\x89PNG"), MediaType: "image/png"}
	odd.Icon = &libcatalog.Icon{Data: []byte("<html>"), MediaType: "text/html"}
	b.published("a", c.Stream, "sha256:a", drawn, odd, described("plain", "Plain", "", "", nil))
	for name, want := range map[string]string{
		"tidegauge": "image/png", "buoy": "application/octet-stream",
		"plain": "image/svg+xml",
	} {
		a := b.do("GET", "/api/v1/catalogs/a/packages/"+name+"/icon", nil)
		if a.status != 200 || a.header.Get("Content-Type") != want || len(a.body) == 0 ||
			!strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %d %v %s", name, a.status, a.header, a.body)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/api/v1/catalogs/a/packages/"+name+
			"/icon", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("If-None-Match", a.header.Get("ETag"))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusNotModified {
			t.Errorf("%s: %d for a known picture", name, res.StatusCode)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	list := b.do("GET", "/api/v1/catalogs/a/packages", nil)
	if strings.Contains(string(list.body), "base64data") || !strings.Contains(string(list.body), `"hasIcon":true`) {
		t.Errorf("list %s", list.body)
	}
	must[problem](b, 404, b.do("GET", "/api/v1/catalogs/a/packages/none/icon", nil))
}
