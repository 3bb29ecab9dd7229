package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// upgrade reads what the gateway sees of an upgrade of a package, nil where it is not compared.
func (b *bench) upgrade(stream, pkg, from, to string) *compare.Difference {
	b.t.Helper()
	var d digest.Digest
	b.must(b.gateway.QueryRow(b.t.Context(),
		`select r.digest from catalog_api.catalogs c join catalog_api.revision_packages r using (tenant, revision)
		where c.stream = $1 and r.package = $2`, stream, pkg).Scan(&d))
	p, err := b.store.Documents.Package(b.t.Context(), events.DefaultTenant, d)
	b.must(err)
	old, _ := p.Bundle(from)
	now, _ := p.Bundle(to)
	var packed []byte
	rows, err := b.gateway.Query(b.t.Context(),
		`select difference from catalog_api.upgrades where from_content = $1 and to_content = $2`, old.Content,
		now.Content)
	b.must(err)
	defer rows.Close()
	if !rows.Next() {
		return nil
	}
	b.must(rows.Scan(&packed))
	dec, err := zstd.NewReader(nil)
	b.must(err)
	defer dec.Close()
	raw, err := dec.DecodeAll(packed, nil)
	b.must(err)
	var out compare.Difference
	b.must(json.Unmarshal(raw, &out))
	return &out
}

func (b *bench) count(table string) (n int) {
	b.t.Helper()
	b.must(b.Pool.QueryRow(b.t.Context(), `select count(*) from `+table).Scan(&n))
	return n
}

// TestUpgradesAreCompared: along the edges of what is served it is known what an upgrade changes (R-CRD-2,
// R-CRD-8); a second run has nothing to do, and a new revision costs the new edges alone.
func TestUpgradesAreCompared(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := examples(t)
	// The newest buoy loses a field and gains a right.
	crd := find(t, dir, "buoy/0.9.1/manifests/buoys.sea.example.com.crd.yaml")
	csv := find(t, dir, "buoy/0.9.1/manifests/buoy.clusterserviceversion.yaml")
	before := edit(t, csv, "          rules:\n            - apiGroups",
		"          rules:\n            - {apiGroups: [''], resources: [secrets], verbs: [list]}\n            - "+
			"apiGroups")
	edit(t, crd, "scope: Namespaced", "scope: Cluster")
	stream := b.add("examples", dir)
	b.must(b.pollOnce(stream))
	b.must(b.comparer.compareAll(t.Context()))

	d := b.upgrade(stream, "buoy", "buoy.v0.9.0", "buoy.v0.9.1")
	if d == nil {
		t.Fatal("the upgrade of buoy is not compared")
	}
	if len(d.CRDs) != 1 || d.CRDs[0].Scope == nil || !d.Breaking() {
		t.Errorf("definitions: %+v", d.CRDs)
	}
	if len(d.Gained) != 1 || d.Gained[0].Sensitive != compare.ReadsSecrets {
		t.Errorf("rights gained: %+v", d.Gained)
	}
	compared := b.count("catalog.upgrades")
	if left, err := b.store.Upgrades.Uncompared(t.Context(), store.PackageRef{}, 1); err != nil || len(left) != 0 ||
		compared < 2 {
		t.Errorf("%d compared, left: %v (%v)", compared, left, err)
	}

	// One bundle of one package changes back: only edges of its new content come.
	b.must(os.WriteFile(csv, []byte(before), 0o600))
	b.must(b.pollOnce(stream))
	left, err := b.store.Upgrades.Uncompared(t.Context(), store.PackageRef{}, 10)
	if err != nil || len(left) != 1 || left[0].Package != "buoy" {
		t.Errorf("to compare after a change of buoy: %v (%v)", left, err)
	}
	b.must(b.comparer.compareAll(t.Context()))
	if d := b.upgrade(stream, "buoy", "buoy.v0.9.0", "buoy.v0.9.1"); d == nil || len(d.Gained) != 0 || !d.Breaking() {
		t.Errorf("after the change: %+v", d)
	}
}

func edit(t *testing.T, file, from, to string) (before string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	after := strings.Replace(string(raw), from, to, 1)
	if after == string(raw) {
		t.Fatalf("%s does not hold %q", file, from)
	}
	if err := os.WriteFile(file, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestComparingGoesOn: ended anywhere, the next run does what is left and comes to the same.
func TestComparingGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := b.add("examples", examples(t))
	b.must(b.pollOnce(stream))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.comparer.compareAll(ended); !errors.Is(err, context.Canceled) {
		t.Fatalf("ended at once: %v", err)
	}
	left, err := b.store.Upgrades.Uncompared(t.Context(), store.PackageRef{}, 100)
	b.must(err)
	// A process that is killed between the differences and the note that all are there.
	for _, r := range left {
		b.must(b.comparer.comparePackage(t.Context(), r))
		_, err := b.Pool.Exec(t.Context(), `delete from catalog.compared where digest = $1`, r.Digest)
		b.must(err)
	}
	was := b.count("catalog.upgrades")
	b.must(b.comparer.compareAll(t.Context()))
	if now := b.count("catalog.upgrades"); now != was || was == 0 {
		t.Errorf("%d differences, after doing it again %d", was, now)
	}
	if left, err := b.store.Upgrades.Uncompared(t.Context(), store.PackageRef{}, 1); err != nil || len(left) != 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

// TestFaultyBundleIsNoEnd: a bundle that cannot be compared is recorded as such, and the others go on.
func TestFaultyBundleIsNoEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := examples(t)
	edit(t, find(t, dir, "buoy/0.9.1/manifests/buoys.sea.example.com.crd.yaml"), "scope: Namespaced", "scope: 3")
	stream := b.add("examples", dir)
	b.must(b.pollOnce(stream))
	b.must(b.comparer.compareAll(t.Context()))
	d := b.upgrade(stream, "buoy", "buoy.v0.9.0", "buoy.v0.9.1")
	if d == nil || !strings.Contains(d.Problem, "buoys.sea.example.com") {
		t.Errorf("the difference must name the definition that cannot be read: %+v", d)
	}
	if d := b.upgrade(stream, "tidegauge", "tidegauge.v1.0.0", "tidegauge.v1.1.0"); d == nil || d.Problem != "" {
		t.Errorf("another package: %+v", d)
	}
}

// buoyImages is a catalog that names two versions of buoy by image alone.
const buoyImages = `
schema: olm.package
name: buoy
defaultChannel: steady
---
schema: olm.channel
package: buoy
name: steady
entries: [{name: buoy.v0.9.1, replaces: buoy.v0.9.0}, {name: buoy.v0.9.0}]
---
schema: olm.bundle
package: buoy
name: buoy.v0.9.0
image: registry.test/buoy:0.9.0
properties: [{type: olm.package, value: {packageName: buoy, version: 0.9.0}}]
---
schema: olm.bundle
package: buoy
name: buoy.v0.9.1
image: registry.test/buoy:0.9.1
properties: [{type: olm.package, value: {packageName: buoy, version: 0.9.1}}]
`

// buoys is an indexer with a catalog that names bundles by image, of which the first version is fetched.
func buoys(t *testing.T) (*bench, *fakeSources, string) {
	t.Helper()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", buoyImages)
	fakes.set("registry.test/buoy:0.9.0", "p", exampleBundle(t, "buoy/0.9.0"))
	fakes.fail("registry.test/buoy:0.9.1", errAway)
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1", Prefetch: true})
	b.must(b.pollOnce(stream))
	b.ahead()
	b.must(b.comparer.compareAll(t.Context()))
	if left, err := b.store.Upgrades.Uncompared(t.Context(), store.PackageRef{}, 1); err != nil || len(left) != 0 ||
		b.count("catalog.upgrades") != 0 {
		t.Fatalf("left: %v (%v), %d differences of bundles without content", left, err, b.count("catalog.upgrades"))
	}
	for range cap(b.comparer.news) {
		<-b.comparer.news
	}
	return b, fakes, stream
}

// TestImagesAreComparedOnceFetched: a bundle whose content comes later is compared then, and nobody has to wait
// for the next turn.
func TestImagesAreComparedOnceFetched(t *testing.T) {
	t.Parallel()
	b, fakes, stream := buoys(t)
	fakes.set("registry.test/buoy:0.9.1", "p", exampleBundle(t, "buoy/0.9.1"))
	b.again(stream)
	b.must(b.fetchAll())
	select {
	case <-b.comparer.news:
	default:
		t.Error("nothing wakes the comparer")
	}
	b.must(b.comparer.compareAll(t.Context()))
	if n := b.count("catalog.upgrades"); n != 1 {
		t.Errorf("%d differences of the fetched bundles, want 1", n)
	}
}

// TestFetchedWhileCompared: content that comes while its package is compared is not overlooked.
func TestFetchedWhileCompared(t *testing.T) {
	t.Parallel()
	b, fakes, stream := buoys(t)
	_, err := b.Pool.Exec(t.Context(), `delete from catalog.compared`)
	b.must(err)
	left, err := b.store.Upgrades.Uncompared(t.Context(), store.PackageRef{}, 1)
	b.must(err)
	p, err := b.store.Documents.Package(t.Context(), left[0].Tenant, left[0].Digest)
	b.must(err)
	before, err := b.store.Upgrades.ImageContents(t.Context(), left[0], imagesOf(p))
	b.must(err)
	fakes.set("registry.test/buoy:0.9.1", "p", exampleBundle(t, "buoy/0.9.1"))
	b.again(stream)
	b.must(b.fetchAll())
	if noted, err := b.store.Upgrades.PutCompared(t.Context(), left[0], imagesOf(p), before); err != nil || noted ||
		len(before) != 1 {
		t.Errorf("noted as compared: %v (%v), with %v", noted, err, before)
	}
}

// TestForeignImagesAreNotCompared: rows of catalogs that are gone, content that was collected, and what a tag means to
// another catalog hold up nothing and are not taken; what a digest names is, from any catalog that is there.
func TestForeignImagesAreNotCompared(t *testing.T) {
	t.Parallel()
	b, fakes, _ := buoys(t)
	fakes.set("examples", "p", os.DirFS("../../../examples/catalog"))
	other := b.add("examples", "examples")
	b.must(b.pollOnce(other))
	gone := b.intent("gone", events.CatalogAdded{Name: "gone", SourceType: "directory", Spec: b.body(t.TempDir())})
	b.intent("gone", events.CatalogRemoved{})
	var content string
	b.must(b.Pool.QueryRow(t.Context(),
		`select digest from catalog.contents c where digest not in (select content from catalog.bundle_images) limit 1`).Scan(&content))
	row := func(catalog, content string, mutable bool) {
		_, err := b.Pool.Exec(t.Context(),
			`insert into catalog.bundle_images (tenant, catalog, image, package, bundle, content, mutable)
			values ($1, $2, 'registry.test/buoy:0.9.1', 'buoy', 'buoy.v0.9.1', $3, $4)
			on conflict (tenant, catalog, image, package, bundle) do update set content = excluded.content, mutable = excluded.mutable`, events.DefaultTenant, catalog, content, mutable)
		b.must(err)
		_, err = b.Pool.Exec(t.Context(), `delete from catalog.compared where package = 'buoy'`)
		b.must(err)
		b.must(b.comparer.compareAll(t.Context()))
		if left, err := b.store.Upgrades.Uncompared(t.Context(), store.PackageRef{}, 1); err != nil || len(left) != 0 {
			t.Errorf("left: %v (%v)", left, err)
		}
	}
	b.must(b.comparer.compareAll(t.Context()))
	before := b.count("catalog.upgrades")
	row("catalog:never", content, false)
	row(gone, content, false)
	row(other, "sha256:"+strings.Repeat("1", 64), false)
	row(other, content, true)
	if n := b.count("catalog.upgrades"); n != before || before == 0 {
		t.Errorf("%d differences, %d before", n, before)
	}
	row(other, content, false)
	if n := b.count("catalog.upgrades"); n != before+1 {
		t.Errorf("%d differences, want one more than %d: a digest names the same for all", n, before)
	}
}

// TestUnreadablePackageIsPassedOver: a package that cannot be compared holds up no other, and is tried again.
func TestUnreadablePackageIsPassedOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := b.add("examples", examples(t))
	b.must(b.pollOnce(stream))
	_, err := b.Pool.Exec(t.Context(), `update catalog.packages set recipe = 'damaged' where package = 'buoy'`)
	b.must(err)
	b.must(b.comparer.compareAll(t.Context()))
	left, err := b.store.Upgrades.Uncompared(t.Context(), store.PackageRef{}, 100)
	if err != nil || len(left) != 1 || left[0].Package != "buoy" || b.count("catalog.upgrades") == 0 {
		t.Errorf("left: %v (%v), %d differences", left, err, b.count("catalog.upgrades"))
	}
}
