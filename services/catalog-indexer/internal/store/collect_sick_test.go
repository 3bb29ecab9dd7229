package store

import (
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// TestUnreadableDocument proves that a document of the release before which cannot be read is logged and ends nothing:
// others are examined, garbage goes, and what the document may refer to stays (DESIGN D3).
func TestUnreadableDocument(t *testing.T) {
	t.Parallel()
	w := setup(t)
	list := versions("buoy", 4, 20_000)
	_, err := w.load(t.Context(), list[:3])
	w.must(err)
	put := func(name string, c load.Content) digest.Digest {
		p := catalog.Package{Name: name, Bundles: []catalog.Bundle{{Name: "a", Content: c.Digest}}}
		d, err := p.Digest()
		w.must(err)
		w.must(w.Documents.PutPackages(t.Context(), tenant, []catalog.Package{p}, map[string]digest.Digest{name: d}))
		w.exec(`update catalog.packages set contents = null, touched = 'infinity' where digest = $1`, d)
		return d
	}
	sick, sound := put("sick", list[0]), put("sound", list[1])
	w.exec(`update catalog.packages set recipe = 'damaged' where digest = $1`, sick)
	garbage := catalog.Package{Name: "garbage"}
	d, err := garbage.Digest()
	w.must(err)
	w.must(w.Documents.PutPackages(t.Context(), tenant, []catalog.Package{garbage},
		map[string]digest.Digest{"garbage": d}))
	_, err = w.load(t.Context(), list[3:]) // nothing that was there before can refer to it
	w.must(err)
	w.exec(`update catalog.packages set touched = now() - interval '2 days' where digest = $1`, d)
	w.exec(`update catalog.contents set touched = now() - interval '2 days'`)

	c, err := w.Collector.Collect(t.Context(), MinRetention)
	if err != nil || len(c.PassedOver) != 1 || !strings.Contains(c.PassedOver[0].Error(), string(sick)) {
		t.Fatalf("passed over %v, %v", c.PassedOver, err)
	}
	if n := w.count(`select count(*) from catalog.packages where digest = $1 and contents is not null`, sound); n != 1 {
		t.Error("the sound document was not examined")
	}
	if c.Rows["packages"] != 1 || c.Rows["contents"] != 1 {
		t.Errorf("collected %v, want the unused document and the content that came later", c.Rows)
	}
	w.readable(list[:3])
}

// TestImagesOfRemovedCatalogs proves that what a catalog knew of bundle images goes with it, after the retention.
func TestImagesOfRemovedCatalogs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for stream, removed := range map[string]bool{"there": false, "gone": true} {
		w.exec(
			`insert into catalog.catalogs (tenant, stream, subject, source_type, spec, priority, removed, updated) values ($1, $2, $2, 'image', '', 0, $3, $4)`,
			tenant, stream, removed, time.Now().Add(-3*MinRetention))
	}
	for _, stream := range []string{"there", "gone", "never"} {
		w.exec(
			`insert into catalog.bundle_images (tenant, catalog, image, package, bundle) values ($1, $2, 'i', 'p', 'b')`, tenant, stream)
	}
	_, err := w.Collector.Collect(t.Context(), 4*MinRetention)
	w.must(err)
	if n := w.count(`select count(*) from catalog.bundle_images where catalog <> 'never'`); n != 2 {
		t.Errorf("%d rows within the retention", n)
	}
	_, err = w.Collector.Collect(t.Context(), 2*MinRetention)
	w.must(err)
	if n := w.count(`select count(*) from catalog.bundle_images where catalog = 'there'`); n != 1 ||
		w.count(`select count(*) from catalog.bundle_images`) != 1 {
		t.Errorf("the catalog that is there has %d rows, all have %d", n,
			w.count(`select count(*) from catalog.bundle_images`))
	}
}
