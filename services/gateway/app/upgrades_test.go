package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// compared stores what differs between two contents, as the indexer does.
func (b *bench) compared(from, to string, d compare.Difference) {
	b.t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		b.t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.exec("catalog-indexer",
		`insert into catalog.upgrades (tenant, from_content, to_content, semantics, breaking, gained, difference)
		values ('default', $1, $2, '1', false, 1, $3)`, from, to, enc.EncodeAll(raw, nil))
}

// TestUpgrades: what an upgrade changes is told along the edges of the update graph, and to who approves a plan;
// bundles that a catalog names by image alone are known by what was fetched.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "fleet", Source: model.CatalogSource{Type: "directory", Path: "/a"}}))
	p := tidegauge()
	p.Channels[0].Entries[0].Replaces = "tidegauge.v1.1.0"
	p.Bundles[0].Content = "sha256:1.0.0"
	p.Bundles[1].Image, p.Bundles[2].Image = "registry.example.test/tidegauge:1.1.0",
		"registry.example.test/tidegauge:2.0.0"
	b.published("fleet", c.Stream, "sha256:a", p)
	for _, x := range [][]string{ // other catalogs' and other packages' images are others
		{c.Stream, p.Bundles[1].Image, "tidegauge", "tidegauge.v1.1.0", "sha256:1.1.0"},
		{c.Stream, p.Bundles[2].Image, "tidegauge", "tidegauge.v2.0.0", ""},
		{"other", p.Bundles[2].Image, "tidegauge", "tidegauge.v2.0.0", "sha256:wrong"},
	} {
		b.exec("catalog-indexer",
			`insert into catalog.bundle_images (tenant, catalog, image, package, bundle, content) values ('default', $1, $2, $3, $4, $5)`,
			x[0], x[1], x[2], x[3], x[4])
	}
	right := compare.Right{}
	b.compared("sha256:1.0.0", "sha256:1.1.0", compare.Difference{Gained: []compare.Right{right}})
	list := must[struct{ Items []model.Upgrade }](b, 200,
		b.do("GET", b.seen("/api/v1/catalogs/fleet/packages/tidegauge/upgrades"), nil)).Items
	var got []string
	for _, u := range list {
		got = append(got, fmt.Sprintf("%s>%s %s %s %d", u.From, u.To, u.State, u.ToContent, len(u.Gained)))
	}
	if text := strings.Join(
		got,
		"\n"); text != "tidegauge.v1.0.0>tidegauge.v1.1.0 Compared sha256:1.1.0 1\ntidegauge.v1.1.0>tidegauge.v2.0.0 "+
		"Unknown  0" {
		t.Errorf("got %s", text)
	}
	if l := must[struct{ Items []model.Upgrade }](b, 200,
		b.do("GET", "/api/v1/catalogs/fleet/packages/tidegauge/upgrades?from=tidegauge.v1.1.0", nil)).Items; len(
		l) != 1 {
		t.Errorf("got %+v", l)
	}

	// A plan replaces what another has installed.
	for i, version := range []string{"1.0.0", "1.1.0"} {
		id, name := uuid.NewString(), "install-aaaa"+fmt.Sprint(i)
		plan := proposed(id, name, "tidegauge.v"+version, "tidegauge")
		plan.Bundles[0].Content = "sha256:" + version
		if i == 1 {
			plan.Bundles[0].Replaces = "tidegauge.v1.0.0"
		}
		subject := "spoke/ops/" + name
		b.fact(events.Resolver, events.KindInstallPlan, id, subject, plan)
		if i == 0 {
			b.fact(events.Installer, events.KindInstallPlan, id, subject, events.InstallPlanStarted{},
				events.InstallPlanFinished{})
			continue
		}
		v := must[model.InstallPlan](b, 200, b.do("GET", b.seen("/api/v1/installplans/"+id), nil))
		if len(v.Changes) != 1 || v.Changes[0].State != model.UpgradeCompared ||
			v.Changes[0].FromContent != "sha256:1.0.0" || len(v.Changes[0].Gained) != 1 {
			t.Errorf("got %+v", v.Changes)
		}
	}
}

// TestRevisionsSayWhatChanged proves R-CAT-64 for people: what each revision changed, mutated bundles by name.
func TestRevisionsSayWhatChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "fleet", Source: model.CatalogSource{Type: "directory", Path: "/a"}}))
	for i, change := range []events.PackageChange{
		{Package: "buoy", Change: "added", BundlesAdded: []string{"buoy.v1.0.0"}},
		{
			Package: "buoy", Change: "changed", Heads: []events.HeadMove{
				{Channel: "stable", From: "buoy.v1.0.0", To: "buoy.v1.1.0"},
			}, BundlesAdded: []string{"buoy.v1.1.0"},
			BundlesMutated: []string{"buoy.v1.0.0"}, DefaultChannelFrom: "fast", DefaultChannelTo: "stable",
			Deprecated: []string{"olm.channel/fast"},
		},
	} {
		revision := fmt.Sprintf("sha256:%d", i)
		b.fact(events.Indexer, events.KindCatalog, "fleet", "fleet",
			events.CatalogRevisionPublished{Revision: revision, Packages: 1, Changes: []events.PackageChange{change}})
		b.exec("catalog-indexer",
			`insert into catalog.revisions (tenant, catalog, version, revision, previous, packages, bundles, created)
			values ('default', $1, $2, $3, '', 1, 1, now() + $4::float8 * interval '1 second')`, c.Stream, i+2, revision, i)
	}
	got := must[struct{ Items []model.Revision }](b, 200,
		b.do("GET", b.seen("/api/v1/catalogs/fleet/revisions"), nil)).Items
	if len(got) != 2 || len(got[0].Changes) != 1 || len(got[1].Changes) != 1 || got[1].Changes[0].Change != "added" {
		t.Fatalf("got %+v", got)
	}
	if x := got[0].Changes[0]; fmt.Sprintf("%v %v %v %v", x.BundlesMutated, x.Heads, x.DefaultChannelTo,
		x.Deprecated) != "[buoy.v1.0.0] [{stable buoy.v1.0.0 buoy.v1.1.0}] stable [olm.channel/fast]" {
		t.Errorf("got %+v", x)
	}
}

// TestBlobs proves R-CAT-8: documents of unknown schemas come back by schema, package and name, byte for byte.
func TestBlobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.catalog("fleet")
	for i, x := range [][]string{
		{"a.example.test", "buoy", "one", "{\"z\":1,  \"a\": \"\\u00e9\"}"},
		{"a.example.test", "tidegauge", "one", "b: 1 # kept\n"},
		{"b.example.test", "", "two", "x"},
	} {
		digest := fmt.Sprintf("sha256:blob%d", i)
		b.exec("catalog-indexer", `insert into catalog.documents (tenant, digest, body) values ('default', $1, $2)`,
			digest, []byte(x[3]))
		b.exec("catalog-indexer", `insert into catalog.revision_blobs (tenant, revision, package, schema, name, digest)
			select 'default', revision, $2, $3, $4, $5 from catalog.catalogs where stream = $1`, c.Stream, x[1], x[0], x[2], digest)
	}
	type page struct {
		Items []model.Blob
		Next  string
	}
	names := func(p page) string {
		var out []string
		for _, x := range p.Items {
			out = append(out, x.Schema+"/"+x.Package+"/"+x.Name+"="+string(x.Body))
		}
		return strings.Join(out, "|")
	}
	const path = "/api/v1/catalogs/fleet/blobs"
	for query, want := range map[string]string{
		"schema=a.example.test&package=buoy": "a.example.test/buoy/one={\"z\":1,  \"a\": \"\\u00e9\"}",
		"package=tidegauge&name=one":         "a.example.test/tidegauge/one=b: 1 # kept\n",
		"schema=b.example.test":              "b.example.test//two=x",
		"schema=none":                        "",
	} {
		if got := names(must[page](b, 200, b.do("GET", path+"?"+query, nil))); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	n := 0
	for cursor := ""; ; n++ {
		p := must[page](b, 200, b.do("GET", path+"?limit=1&cursor="+cursor, nil))
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d pages follow the first, want 2", n)
	}
}
