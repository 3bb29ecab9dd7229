package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// published is a catalog in service, as the indexer leaves it: content, then the event.
func (b *bench) published(subject, stream, revision string, packages ...libcatalog.Package) {
	b.t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	bundles := 0
	for _, p := range packages {
		raw, err := digest.Canonical(p)
		if err != nil {
			b.t.Fatal(err)
		}
		d, err := p.Digest()
		if err != nil {
			b.t.Fatal(err)
		}
		bundles += len(p.Bundles)
		b.exec("catalog-indexer",
			`insert into catalog.packages (tenant, digest, package, document) values ('default', $1, $2, $3) on conflict do nothing`,
			string(d), p.Name, enc.EncodeAll(raw, nil))
		b.findable(&p, string(d))
		b.exec("catalog-indexer",
			`insert into catalog.revision_packages (tenant, revision, package, digest) values ('default', $1, $2, $3)`,
			revision, p.Name, string(d))
	}
	b.exec("catalog-indexer",
		`insert into catalog.catalogs (tenant, stream, subject, source_type, spec, priority, revision, state)
		values ('default', $1, $2, 'directory', '', 0, $3, 'Ready')
		on conflict (tenant, stream) do update set revision = excluded.revision, state = 'Ready'`, stream, subject, revision)
	b.exec("catalog-indexer",
		`insert into catalog.revisions (tenant, catalog, version, revision, previous, packages, bundles, created)
		values ('default', $1, (select 1 + count(*) from catalog.revisions where catalog = $1), $2, '', $3, $4, now())`, stream, revision, len(packages), bundles)
	b.fact(events.Indexer, events.KindCatalog, subject, subject,
		events.CatalogRevisionPublished{Revision: revision, Packages: len(packages), Bundles: bundles})
}

// findable writes the search row of a package, with what store.PutSearch of the indexer takes of its CSV.
func (b *bench) findable(p *libcatalog.Package, digest string) {
	b.t.Helper()
	card, m := display.Of(p)
	raw, err := json.Marshal(card)
	if err != nil {
		b.t.Fatal(err)
	}
	names := strings.NewReplacer("-", " ").Replace(p.Name) + " " + p.Name + " " + card.DisplayName
	b.exec("catalog-indexer", insertSearch+" on conflict do nothing", digest, p.Name, raw, names,
		strings.Join(append(append([]string{card.Provider}, card.Keywords...), card.Categories...), " "), card.Summary,
		m.Description)
}

// insertSearch writes one search row as store.PutSearch of the indexer does.
const insertSearch = `with names as (select setweight(to_tsvector('simple', $4), 'A') || setweight(to_tsvector('english', $4), 'A') ||
		setweight(to_tsvector('english', $5), 'B') || setweight(to_tsvector('english', $6), 'C') as v)
	insert into catalog.search (tenant, digest, package, card, names, words)
	select 'default', $1, $2, $3, v, v || setweight(to_tsvector('english', $7), 'D') from names`

// broken is a catalog whose source cannot be taken, as the indexer leaves it.
func (b *bench) broken(subject string, f events.CatalogLoadFailed) {
	b.t.Helper()
	b.exec("catalog-indexer", `update catalog.catalogs set state = 'Failed', reason = $2 where subject = $1`, subject,
		f.Reason)
	b.fact(events.Indexer, events.KindCatalog, subject, subject, f)
}

func tidegauge() libcatalog.Package {
	return libcatalog.Package{
		Name: "tidegauge", DefaultChannel: "stable",
		Channels: []libcatalog.Channel{
			{Name: "fast", Entries: []libcatalog.Entry{{Name: "tidegauge.v2.0.0"}}},
			{Name: "stable", Entries: []libcatalog.Entry{
				{Name: "tidegauge.v1.0.0"},
				{Name: "tidegauge.v1.1.0", Replaces: "tidegauge.v1.0.0"},
			}},
		},
		Bundles: []libcatalog.Bundle{
			{Name: "tidegauge.v1.0.0", Version: "1.0.0"},
			{Name: "tidegauge.v1.1.0", Version: "1.1.0"},
			{Name: "tidegauge.v2.0.0", Version: "2.0.0"},
		},
		Deprecations: []libcatalog.Deprecation{{Schema: "olm.channel", Name: "fast", Message: "fast is over"}},
	}
}

func buoy() libcatalog.Package {
	return libcatalog.Package{
		Name: "buoy", DefaultChannel: "stable",
		Channels: []libcatalog.Channel{{Name: "stable", Entries: []libcatalog.Entry{{Name: "buoy.v1.0.0"}}}},
		Bundles:  []libcatalog.Bundle{{Name: "buoy.v1.0.0", Version: "1.0.0"}},
	}
}

// catalog adds a hub catalog with two packages in service.
func (b *bench) catalog(name string) model.Catalog {
	b.t.Helper()
	c := must[model.Catalog](b, http.StatusCreated, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: name, Source: model.CatalogSource{Type: "directory", Path: "/catalogs/" + name}}))
	b.published(name, c.Stream, "sha256:"+strings.Repeat("1", 64), tidegauge(), buoy())
	return c
}

func TestCatalogFromAddToRemove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	added := model.AddCatalog{
		Name: "fleet", Priority: 3,
		Source: model.CatalogSource{Type: "directory", Path: "/catalogs/fleet"},
	}
	c := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", added))
	if c.State != "Loading" {
		t.Errorf("got %+v", c)
	}
	must[problem](b, 409, b.do("POST", "/api/v1/catalogs", added))
	packages := must[struct{ Items []model.PackageSummary }](
		b, 200, b.do("GET", "/api/v1/catalogs/fleet/packages?minPosition="+c.Position, nil))
	if len(packages.Items) != 0 {
		t.Errorf("a catalog without a revision has packages: %+v", packages)
	}

	b.broken("fleet", events.CatalogLoadFailed{
		Reason: "InvalidCatalog", Rule: "R-CAT-35", Findings: 2,
		Document: "sha256:f",
	})
	b.exec("catalog-indexer",
		`insert into catalog.findings (tenant, document, catalog, findings) values ('default', 'sha256:f', $1, '[{"rule": "R-CAT-35"}]')`, c.Stream)
	failed := must[model.Catalog](b, 200, b.do("GET", b.seen("/api/v1/catalogs/fleet"), nil))
	if failed.State != "Failed" || failed.Rule != "R-CAT-35" || !strings.Contains(string(failed.Details), "R-CAT-35") ||
		failed.Source.Path != "/catalogs/fleet" || failed.Event == "" {
		t.Errorf("got %+v", failed)
	}

	b.published("fleet", c.Stream, "sha256:r1", tidegauge(), buoy())
	ready := must[struct{ Items []model.Catalog }](b, 200, b.do("GET", b.seen("/api/v1/catalogs"), nil)).Items[0]
	if ready.State != "Ready" || ready.Revision != "sha256:r1" || ready.Packages != 2 || ready.Bundles != 4 ||
		ready.Reason != "" {
		t.Errorf("got %+v", ready)
	}

	// The source breaks, and is fixed to what it was.
	b.broken("fleet", events.CatalogLoadFailed{Reason: "SourceUnreadable"})
	if c := must[model.Catalog](b, 200, b.do("GET", b.seen("/api/v1/catalogs/fleet"), nil)); c.State != "Failed" ||
		c.Revision != "sha256:r1" {
		t.Errorf("got %+v", c)
	}
	b.fact(events.Indexer, events.KindCatalog, "fleet", "fleet",
		events.CatalogRevisionPublished{Revision: "sha256:r1", Previous: "sha256:r1", Packages: 2, Bundles: 4})
	if c := must[model.Catalog](b, 200, b.do("GET", b.seen("/api/v1/catalogs/fleet"), nil)); c.State != "Ready" ||
		c.Reason != "" {
		t.Errorf("got %+v", c)
	}

	change := model.ChangeCatalog{Priority: 9, Source: added.Source}
	changed := must[model.Catalog](b, 200, b.do("PUT", "/api/v1/catalogs/fleet", change))
	same := must[model.Catalog](b, 200, b.do("PUT", "/api/v1/catalogs/fleet", change))
	if changed.Version != same.Version { // positions may be written in two ways while the first one is new
		t.Errorf("the same change twice is no event: versions %d and %d", changed.Version, same.Version)
	}
	must[model.Removed](b, 200, b.do("POST", "/api/v1/catalogs/fleet/refresh", nil))
	removed := must[model.Removed](b, 200, b.do("DELETE", "/api/v1/catalogs/fleet", nil))
	must[problem](b, 404, b.do("GET", "/api/v1/catalogs/fleet?minPosition="+removed.Position, nil))
}

// TestBrowse proves R-CAT-105 as far as a REST interface has namespaces: what a catalog in service offers.
func TestBrowse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.catalog("fleet")
	first := must[struct {
		Items []model.PackageSummary
		Next  string
	}](b, 200, b.do("GET", b.seen("/api/v1/catalogs/fleet/packages")+"&limit=1", nil))
	second := must[struct {
		Items []model.PackageSummary
		Next  string
	}](b, 200, b.do("GET", "/api/v1/catalogs/fleet/packages?limit=1&cursor="+first.Next, nil))
	if len(first.Items) != 1 || first.Items[0].Name != "buoy" || len(second.Items) != 1 ||
		second.Items[0].Name != "tidegauge" || second.Next != "" {
		t.Errorf("got %+v then %+v", first, second)
	}
	p := must[model.PackageDetail](b, 200, b.do("GET", "/api/v1/catalogs/fleet/packages/tidegauge", nil))
	if p.DefaultChannel != "stable" || len(p.ChannelList) != 2 || p.ChannelList[0].Deprecated != "fast is over" ||
		p.ChannelList[1].Heads[0] != "tidegauge.v1.1.0" {
		t.Errorf("got %+v", p)
	}
	channels := must[struct{ Items []model.ChannelSummary }](
		b, 200, b.do("GET", "/api/v1/catalogs/fleet/packages/tidegauge/channels", nil))
	if len(channels.Items) != 2 {
		t.Errorf("got %+v", channels)
	}
	var names []string
	for next := "&"; next != ""; {
		page := must[struct {
			Items []model.BundleSummary
			Next  string
		}](b, 200, b.do("GET", "/api/v1/catalogs/fleet/bundles?limit=3"+next, nil))
		for _, x := range page.Items {
			names = append(names, x.Name)
		}
		if next = ""; page.Next != "" {
			next = "&cursor=" + page.Next
		}
	}
	if got := strings.Join(names, " "); got != "buoy.v1.0.0 tidegauge.v1.0.0 tidegauge.v1.1.0 tidegauge.v2.0.0" {
		t.Errorf("got %s", got)
	}
	fast := must[struct{ Items []model.BundleSummary }](
		b, 200, b.do("GET", "/api/v1/catalogs/fleet/bundles?package=tidegauge&channel=fast", nil))
	if len(fast.Items) != 1 || fast.Items[0].Name != "tidegauge.v2.0.0" {
		t.Errorf("got %+v", fast)
	}
	revisions := must[struct{ Items []model.Revision }](b, 200, b.do("GET", "/api/v1/catalogs/fleet/revisions", nil))
	if len(revisions.Items) != 1 || revisions.Items[0].Packages != 2 {
		t.Errorf("got %+v", revisions)
	}
	must[problem](b, 404, b.do("GET", "/api/v1/catalogs/fleet/packages/none", nil))
	must[problem](b, 404, b.do("GET", "/api/v1/catalogs/none/packages", nil))
	must[problem](b, 404, b.do("GET", "/api/v1/catalogs/fleet/bundles?package=none", nil))
}

// TestBundleImages: a bundle image has content once it is fetched, and a reason until then.
func TestBundleImages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "fleet", Source: model.CatalogSource{Type: "directory", Path: "/a"}}))
	p := tidegauge()
	for i := range p.Bundles {
		p.Bundles[i].Image = "registry.example.test/" + p.Bundles[i].Name
	}
	b.published("fleet", c.Stream, "sha256:a", p)
	b.exec("catalog-indexer",
		`insert into catalog.bundle_images (tenant, catalog, image, package, bundle, content, message)
		select 'default', $1, 'registry.example.test/tidegauge.' || n, 'tidegauge', 'tidegauge.' || n, c, m from (values ('v1.1.0', 'sha256:c', ''), ('v2.0.0', '', 'not found')) as v (n, c, m)`, c.Stream)
	images := must[struct{ Items []model.BundleSummary }](
		b, 200, b.do("GET", b.seen("/api/v1/catalogs/fleet/bundles"), nil)).Items
	if len(images) != 3 || images[0].Content+images[0].FetchError != "" || images[1].Content != "sha256:c" ||
		images[2].FetchError != "not found" {
		t.Errorf("got %+v", images)
	}
}

// TestCatalogOfOneCluster: one name, two catalogs; the cluster's own is seen there only.
func TestCatalogOfOneCluster(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	source := model.CatalogSource{Type: "directory", Path: "/catalogs/x"}
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", model.AddCatalog{Name: "fleet", Source: source}))
	a := b.do("POST", "/api/v1/catalogs", model.AddCatalog{
		Name: "fleet", Cluster: "spoke", Namespace: "olm",
		Visibility: "namespace", Source: source,
	})
	own := must[model.Catalog](b, 201, a)
	if own.Visibility != (model.CatalogVisibility{Cluster: "spoke", Namespace: "olm"}) {
		t.Errorf("got %+v", own)
	}
	got := must[model.Catalog](b, 200, b.do("GET", a.header.Get("Location")+"&minPosition="+own.Position, nil))
	if got.Cluster != "spoke" || got.Stream != own.Stream {
		t.Errorf("got %+v", got)
	}
	must[problem](b, 404, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "fleet", Cluster: "unknown", Namespace: "olm", Source: source}))
	must[problem](b, 400, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "other", Cluster: "spoke", Source: source}))
	// R-CAT-85: OLM's YAML says nothing of it; a namespace's catalog is seen there alone, but for the global catalog
	// namespaces.
	add := func(namespace, said string) model.Catalog {
		return must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
			model.AddCatalog{
				Name: "r" + namespace + said, Cluster: "spoke", Namespace: namespace, Visibility: said,
				Source: source,
			}))
	}
	for _, c := range []struct{ namespace, said, seen string }{
		{"team", "", "team"},
		{"team", "cluster", ""},
		{"team", "namespace", "team"},
		{"olm", "", ""},
		{"openshift-marketplace", "", ""},
		{"catalogs", "", ""},
		{"catalogs", "namespace", "catalogs"},
	} {
		got := add(c.namespace, c.said)
		if got.Visibility != (model.CatalogVisibility{Cluster: "spoke", Namespace: c.seen}) {
			t.Errorf("a catalog of %s, %q: %+v", c.namespace, c.said, got.Visibility)
		}
		patched := must[model.Catalog](b, 200, b.do("PATCH", "/api/v1/catalogs/"+got.Name+"?cluster=spoke&namespace="+
			c.namespace, map[string]any{"priority": 7}))
		if patched.Visibility != got.Visibility || patched.Priority != 7 {
			t.Errorf("a patch of something else made %+v of %+v", patched.Visibility, got.Visibility)
		}
	}
	// Who names a catalog that is not seen there is told so, as of one that there is not.
	private := func(namespace string) model.Subscription {
		return must[model.Subscription](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/"+namespace+
			"/subscriptions", map[string]any{
			"name": "tides", "package": "tidegauge", "channel": "stable", "catalog": "rteam",
			"catalogNamespace": "team",
		}))
	}
	if got := private("other").Warnings; len(got) != 1 ||
		!strings.Contains(got[0], `no catalog "spoke/team/rteam" is known`) {
		t.Errorf("in another namespace: %q", got)
	}
	if got := private("team").Warnings; len(got) != 1 ||
		!strings.Contains(got[0], `catalog "spoke/team/rteam" is not ready yet`) {
		t.Errorf("in its own namespace: %q", got)
	}
	elsewhere := must[struct{ Items []model.Catalog }](b, 200, b.do("GET", "/api/v1/catalogs?cluster=other", nil))
	if len(elsewhere.Items) != 1 {
		t.Errorf("another cluster sees %+v", elsewhere)
	}
	// The fleet's catalog of that name is not meant by who names a namespace's own.
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", model.AddCatalog{Name: "rteam", Source: source}))
	if got := private("third").Warnings; len(got) != 1 ||
		!strings.Contains(got[0], `no catalog "spoke/team/rteam" is known`) {
		t.Errorf("beside the fleet's of that name: %q", got)
	}
}
