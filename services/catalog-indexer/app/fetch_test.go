package app

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/oci"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

const (
	tagged   = "registry.test/lighthouse:1.2.0"
	digested = "registry.test/lighthouse@sha256:1111111111111111111111111111111111111111111111111111111111111111"
)

// byImage is a catalog that names one bundle by image alone.
func byImage(image string) string {
	return `
schema: olm.package
name: lighthouse
defaultChannel: steady
---
schema: olm.channel
package: lighthouse
name: steady
entries: [{name: lighthouse.v1.2.0}]
---
schema: olm.bundle
package: lighthouse
name: lighthouse.v1.2.0
image: ` + image + `
properties:
- {type: olm.package, value: {packageName: lighthouse, version: 1.2.0}}
`
}

// exampleBundle is a bundle directory of the catalog that ships with the project.
func exampleBundle(t testing.TB, path string) fs.FS {
	t.Helper()
	return os.DirFS("../../../examples/catalog/" + path)
}

// wants does as the resolver does for a subscription that waits for an image.
func (b *bench) wants(catalog, image string) {
	b.t.Helper()
	_, err := b.db.Pool(b.t, "resolver").Exec(b.t.Context(), `insert into resolver.wanted_images (tenant, subject,
		image, package, bundle)
		values ($1, $2, $3, 'lighthouse', 'lighthouse.v1.2.0') on conflict do nothing`, events.DefaultTenant, catalog, image)
	b.must(err)
	b.must(b.scheduler.markDue(b.t.Context()))
}

// clock is the time by which pauses are measured.
func (b *bench) clock() time.Time {
	b.t.Helper()
	now, err := b.store.Images.Now(b.t.Context())
	b.must(err)
	return now
}

// fetchAll works on every catalog that has something to be fetched.
func (b *bench) fetchAll() error {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), `delete from catalog.fetches returning cluster`)
	b.must(err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	b.must(err)
	for _, stream := range list {
		if err := b.fetcher.fetch(b.t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: stream}); err != nil {
			return err
		}
	}
	b.positioned()
	return nil
}

// fetched are the facts of a stream about bundle images.
func (b *bench) fetched(stream string) (out []events.FetchedBundle) {
	b.t.Helper()
	for _, f := range b.facts(stream) {
		if p, is := f.(events.CatalogBundlesFetched); is {
			out = append(out, p.Bundles...)
		}
	}
	return out
}

// imageRow is a row of catalog_api.bundle_images.
type imageRow struct {
	Content, Resolved, Reason, Message string
	Mutable                            bool
	Attempts                           int
	NextTry                            *time.Time
}

func (b *bench) imageOf(stream, image string) (r imageRow) {
	b.t.Helper()
	b.must(b.gateway.QueryRow(b.t.Context(), `select content, resolved, reason, message, mutable, attempts, next_try
		from catalog_api.bundle_images
		where catalog = $1 and image = $2`, stream, image).Scan(&r.Content, &r.Resolved, &r.Reason, &r.Message, &r.Mutable, &r.Attempts, &r.NextTry))
	return r
}

// TestBundleImageIsFetchedWhenNeeded proves that an image is fetched once somebody waits for it, that its content is
// stored and recorded, and that it is asked for once (R-CAT-60).
func TestBundleImageIsFetchedWhenNeeded(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	fakes.set(digested, "sha256:image", exampleBundle(t, "lighthouse/1.2.0"))
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	b.must(b.pollOnce(stream))
	b.must(b.scheduler.markDue(t.Context()))
	b.must(b.fetchAll())
	if n := fakes.count("bundle " + digested); n != 0 {
		t.Errorf("fetched %d times though nobody waits", n)
	}
	for range 2 {
		b.wants("harbour", digested)
		b.must(b.fetchAll())
	}
	if n := fakes.count("bundle " + digested); n != 1 {
		t.Errorf("fetched %d times, want once", n)
	}
	recorded := b.fetched(stream)
	row := b.imageOf(stream, digested)
	if len(recorded) != 1 || recorded[0].Content == "" || recorded[0].Reason != "" ||
		recorded[0].Bundle != "lighthouse.v1.2.0" || row.Content != recorded[0].Content || row.Mutable ||
		row.Resolved == "" {
		t.Errorf("recorded %+v, row %+v", recorded, row)
	}
	var stored bool
	b.must(b.gateway.QueryRow(t.Context(), `select exists (select from catalog_api.contents where digest = $1)`,
		row.Content).Scan(&stored))
	if !stored {
		t.Error("the content is not stored")
	}

	// Another catalog that names the same digest gets it without asking the registry.
	fakes.put("registry.test/other:1", "p1", byImage(digested))
	other := b.image("other", source.Settings{Image: "registry.test/other:1"})
	b.must(b.pollOnce(other))
	b.wants("other", digested)
	b.must(b.fetchAll())
	if recorded := b.fetched(other); len(recorded) != 1 || recorded[0].Content != row.Content ||
		fakes.count("bundle "+digested) != 1 {
		t.Errorf("recorded %+v after %d fetches", recorded, fakes.count("bundle "+digested))
	}
}

// TestTagIsPinned proves that an image by tag is taken as it was found first, and shown as such.
func TestTagIsPinned(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", byImage(tagged))
	fakes.set(tagged, "sha256:first", exampleBundle(t, "lighthouse/1.2.0"))
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	b.must(b.pollOnce(stream))
	b.wants("harbour", tagged)
	b.must(b.fetchAll())
	fakes.set(tagged, "sha256:second", exampleBundle(t, "lighthouse/1.2.0"))
	b.wants("harbour", tagged)
	b.must(b.fetchAll())
	if row := b.imageOf(stream, tagged); !row.Mutable || row.Resolved != tagged+"@sha256:first" ||
		len(b.fetched(stream)) != 1 {
		t.Errorf("row %+v, recorded %+v", row, b.fetched(stream))
	}
}

// TestImageThatCannotBeHad proves that a failure is recorded once with its reason, tried again with back-off, and
// recorded
// again when it is over or becomes another one.
func TestImageThatCannotBeHad(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	fakes.fail(digested, errAway)
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	b.must(b.pollOnce(stream))
	b.wants("harbour", digested)
	for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		before := b.clock()
		b.must(b.fetchAll())
		after := b.clock()
		row := b.imageOf(stream, digested)
		if row.Attempts != i+1 || row.NextTry.Before(before.Add(want)) || row.NextTry.After(after.Add(want)) {
			t.Errorf("attempt %d of %d between %v and %v is tried again at %v, want %s later", row.Attempts, i+1,
				before, after, row.NextTry, want)
		}
		b.again(stream)
	}
	for _, c := range []struct {
		err    error
		reason string
	}{
		{errs.Wrap(errs.Invalid, oci.ErrMismatch, "a blob"), "DigestMismatch"},
		{errs.New(errs.Forbidden, "no"), "Unauthorized"},
		{errs.New(errs.NotFound, "no"), "NotFound"},
		{errs.New(errs.TooLarge, "no"), "TooLarge"},
	} {
		fakes.fail(digested, c.err)
		b.again(stream)
		b.must(b.fetchAll())
		if row := b.imageOf(stream, digested); row.Reason != c.reason || row.Message != c.err.Error() ||
			(row.NextTry == nil) != (c.reason == "TooLarge") {
			t.Errorf("row %+v, want %s", row, c.reason)
		}
	}
	if row := b.imageOf(stream, digested); row.NextTry != nil {
		t.Errorf("what a digest makes final is tried again at %v", row.NextTry)
	}
	fakes.set(digested, "p", exampleBundle(t, "lighthouse/1.2.0"))
	b.again(stream)
	b.must(b.fetchAll())
	var reasons []string
	for _, f := range b.fetched(stream) {
		reasons = append(reasons, f.Reason)
	}
	if !slices.Equal(reasons, []string{"Unreachable", "DigestMismatch", "Unauthorized", "NotFound", "TooLarge", ""}) {
		t.Errorf("recorded %q", reasons)
	}
	if row := b.imageOf(stream, digested); row.Reason != "" || row.Message != "" || row.Content == "" {
		t.Errorf("row %+v", row)
	}
}

// TestPauseThatEndsMeanwhile proves that an image whose pause ends while its catalog is worked on is left to the next
// round: a machine that is slower than the pauses would ask for nothing else, and for it without end.
func TestPauseThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	fakes.fail(digested, errAway)
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	b.must(b.pollOnce(stream))
	b.wants("harbour", digested)
	began := b.clock()
	b.must(b.fetchAll())
	b.again(stream) // the pause is over
	c, err := b.store.Catalogs.Get(t.Context(), key(stream))
	b.must(err)
	due := func(since time.Time) []store.Image {
		t.Helper()
		list, err := b.store.Images.Unfetched(t.Context(), c, since, fetchBatch)
		b.must(err)
		return list
	}
	if list := due(began); len(list) != 0 {
		t.Errorf("the same round tries %+v again", list)
	}
	next := b.clock()
	if list := due(next); len(list) != 1 || list[0].Attempts != 1 {
		t.Errorf("the next round tries %+v", list)
	}
}

// TestClockBehind proves that pauses hold whatever the clock of the indexer says.
func TestClockBehind(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	b.fetcher.now = func() time.Time { return time.Now().Add(-time.Hour) }
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	fakes.fail(digested, errAway)
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	b.must(b.pollOnce(stream))
	b.wants("harbour", digested)
	before := b.clock()
	b.must(b.fetchAll())
	if row := b.imageOf(stream, digested); row.Attempts != 1 || row.NextTry.Before(before.Add(retryFirst)) {
		t.Errorf("after %d attempts it is tried again at %v, which is not %s after %v", row.Attempts, row.NextTry,
			retryFirst, before)
	}
}

// again does as if the pause of every image had passed.
func (b *bench) again(stream string) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), `update catalog.bundle_images set next_try = now() where catalog = $1`, stream)
	b.must(err)
	b.must(b.scheduler.markDue(b.t.Context()))
}

// TestWrongBundle proves that an image which holds another bundle than its catalog says is not taken for it.
func TestWrongBundle(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	fakes.set(digested, "p", exampleBundle(t, "tidegauge/1.1.0"))
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	b.must(b.pollOnce(stream))
	b.wants("harbour", digested)
	b.must(b.fetchAll())
	row := b.imageOf(stream, digested)
	if row.Reason != "InvalidBundle" || row.Content != "" ||
		!strings.Contains(row.Message,
			"tidegauge.v1.1.0 of package tidegauge; the catalog names it for lighthouse.v1.2.0") {
		t.Errorf("row %+v", row)
	}
}

// TestFetchEndedAnywhere proves that a fetch which ends between any two writes leaves nothing that is recorded, and
// that
// the next one comes to the same end.
func TestFetchEndedAnywhere(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	fakes.set(digested, "p", exampleBundle(t, "lighthouse/1.2.0"))
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	b.must(b.pollOnce(stream))
	// Ended after the request was written: it is in the resolver's table until its outcome is recorded.
	b.wants("harbour", digested)
	_, err := b.Pool.Exec(t.Context(), `delete from catalog.fetches`)
	b.must(err)
	b.must(b.scheduler.markDue(t.Context())) // as after a start
	// Ended behind the content: the outcome is not written.
	c, err := b.store.Catalogs.Get(t.Context(), key(stream))
	b.must(err)
	list, err := b.store.Images.Unfetched(t.Context(), c, b.clock(), fetchBatch)
	b.must(err)
	contents, err := b.store.Contents.Writer(t.Context(), c.Tenant)
	b.must(err)
	settings, err := b.store.Catalogs.Settings(t.Context(), c)
	b.must(err)
	f, err := b.fetcher.fetchOne(t.Context(), c, settings, list[0], contents)
	b.must(err)
	b.must(contents.Flush())
	if f.Content == "" || len(b.fetched(stream)) != 0 || b.imageOf(stream, digested).Content != "" {
		t.Fatalf("recorded before it was written: %+v", f)
	}
	before := b.rows()
	b.must(b.fetchAll())
	if facts := b.fetched(stream); len(facts) != 1 || facts[0].Content != string(f.Content) || b.rows() != before {
		t.Errorf("recorded %+v, rows %+v before %+v", facts, b.rows(), before)
	}
}

// TestPrefetch proves that a catalog may have all its images fetched ahead, those that somebody waits for first, and
// that an image that is stuck holds up no other.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	text := strings.ReplaceAll(byImage(digested), "\nname: steady\nentries: [{name: lighthouse.v1.2.0}]",
		"\nname: steady\nentries: [{name: lighthouse.v1.3.0, replaces: lighthouse.v1.2.0}, {name: lighthouse.v1.2.0}]")
	text += "---\nschema: olm.bundle\npackage: lighthouse\nname: lighthouse.v1.3.0\nimage: " +
		"registry.test/lighthouse:1.3.0\nproperties:\n- {type: olm.package, value: {packageName: lighthouse, " +
		"version: 1.3.0}}\n"
	fakes.put("registry.test/c:1", "p1", text)
	fakes.set(digested, "p", exampleBundle(t, "lighthouse/1.2.0"))
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1", Prefetch: true})
	b.must(b.pollOnce(stream))
	b.must(b.scheduler.markDue(t.Context()))
	b.must(b.fetchAll())
	if recorded := b.fetched(stream); len(recorded) != 2 {
		t.Errorf("recorded %+v", recorded)
	}
	if done, stuck := b.imageOf(stream, digested), b.imageOf(
		stream, "registry.test/lighthouse:1.3.0"); done.Content == "" || stuck.Reason != "NotFound" {
		t.Errorf("rows %+v and %+v", done, stuck)
	}
	b.again(stream)
	b.wants("harbour", "registry.test/z:9")
	c, err := b.store.Catalogs.Get(t.Context(), key(stream))
	b.must(err)
	list, err := b.store.Images.Unfetched(t.Context(), c, b.clock(), 1)
	if err != nil || len(list) != 1 || list[0].Image != "registry.test/z:9" {
		t.Errorf("first to be fetched: %+v (%v)", list, err)
	}
}

// TestOwnTroubleIsNoOutcome proves that a database that is away is not recorded as a fault of an image.
func TestOwnTroubleIsNoOutcome(t *testing.T) {
	t.Parallel()
	if got := fetchReason(errors.New("anything")); got != "Unreachable" {
		t.Errorf("an unknown error is %s", got)
	}
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	fakes.set(digested, "p", exampleBundle(t, "lighthouse/1.2.0"))
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	b.must(b.pollOnce(stream))
	b.wants("harbour", digested)
	_, err := b.db.Pool(t, "admin").Exec(t.Context(), `alter table catalog.contents rename to away`)
	b.must(err)
	if err := b.fetchAll(); err == nil {
		t.Error("no error though content cannot be stored")
	}
	if row := b.imageOf(stream, digested); row.Attempts != 0 || len(b.fetched(stream)) != 0 {
		t.Errorf("row %+v, recorded %+v", row, b.fetched(stream))
	}
}
