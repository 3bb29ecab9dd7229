package app

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/oci"
)

// as is byImage for a bundle of another package.
func as(pkg, image string) string {
	return strings.ReplaceAll(strings.ReplaceAll(byImage("IMAGE"), "lighthouse", pkg), "IMAGE", image)
}

// ahead fetches all that catalogs want fetched.
func (b *bench) ahead() {
	b.t.Helper()
	b.must(b.scheduler.markDue(b.t.Context()))
	b.must(b.fetchAll())
}

// TestForeignName proves that an image which is known already is checked as one that is fetched: a catalog that names
// it for another bundle does not get its content, nor does another bundle of the same catalog.
func TestForeignName(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.set(digested, "p", exampleBundle(t, "lighthouse/1.2.0"))
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	first := b.image("harbour", source.Settings{Image: "registry.test/c:1", Prefetch: true})
	b.must(b.pollOnce(first))
	b.ahead()
	if row := b.imageOf(first, digested); row.Content == "" {
		t.Fatalf("row %+v", row)
	}
	fakes.put("registry.test/other:1", "p1", as("trawler", digested))
	other := b.image("other", source.Settings{Image: "registry.test/other:1", Prefetch: true})
	b.must(b.pollOnce(other))
	b.ahead()
	if row := b.imageOf(other, digested); row.Reason != "InvalidBundle" || row.Content != "" {
		t.Errorf("another catalog: %+v", row)
	}
	fakes.put("registry.test/c:1", "p2", byImage(digested)+"---"+as("trawler", digested))
	b.must(b.pollOnce(first))
	b.ahead()
	recorded := b.fetched(first)
	if len(recorded) != 2 || recorded[0].Package != "lighthouse" || recorded[0].Content == "" ||
		recorded[1].Package != "trawler" || recorded[1].Content != "" || recorded[1].Reason != "InvalidBundle" {
		t.Errorf("recorded %+v", recorded)
	}
}

// TestNamedAgain proves that an image which a catalog ceases to name is not asked for, that it is asked for when it is
// named again, and that what a digest makes final is not.
func TestNamedAgain(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.fail(tagged, errAway)
	fakes.put("registry.test/c:1", "p1", byImage(tagged))
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1", Prefetch: true})
	b.must(b.pollOnce(stream))
	b.ahead()
	fakes.put("registry.test/c:1", "p2", byImage(digested))
	fakes.set(digested, "p", exampleBundle(t, "tidegauge/1.1.0"))
	b.must(b.pollOnce(stream))
	if row := b.imageOf(stream, tagged); row.NextTry != nil {
		t.Errorf("tried again though nobody names it: %+v", row)
	}
	b.ahead()
	if row := b.imageOf(stream, digested); row.Reason != "InvalidBundle" || row.NextTry != nil {
		t.Errorf("row %+v", row)
	}
	fakes.set(tagged, "p", exampleBundle(t, "lighthouse/1.2.0"))
	fakes.put("registry.test/c:1", "p3", byImage(tagged))
	b.must(b.pollOnce(stream))
	b.ahead()
	if row := b.imageOf(stream, tagged); row.Content == "" {
		t.Errorf("named again, and not fetched: %+v", row)
	}
	fakes.put("registry.test/c:1", "p4", byImage(digested))
	b.must(b.pollOnce(stream))
	b.ahead()
	if n := fakes.count("bundle " + digested); n != 1 {
		t.Errorf("what a digest makes final was fetched %d times", n)
	}
}

// TestDisabledFetchesNothing proves that a catalog which is disabled asks no registry, and goes on when it is enabled.
func TestDisabledFetchesNothing(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	fakes.set(digested, "p", exampleBundle(t, "lighthouse/1.2.0"))
	settings := b.settings(source.Settings{Image: "registry.test/c:1", Prefetch: true})
	stream := b.intent("harbour", events.CatalogAdded{Name: "harbour", SourceType: "image", Spec: settings})
	b.must(b.pollOnce(stream))
	b.intent("harbour", events.CatalogChanged{SourceType: "image", Spec: settings, Disabled: true})
	b.wants("harbour", tagged)
	if n := b.count("catalog.fetches"); n != 0 {
		t.Errorf("%d catalogs are to fetch something", n)
	}
	b.ahead()
	b.must(b.fetcher.fetch(t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: stream}))
	c, err := b.store.Catalogs.Get(t.Context(), key(stream))
	b.must(err)
	list, err := b.store.Images.Unfetched(t.Context(), c, b.clock(), fetchBatch)
	if err != nil || len(list) != 0 || b.count("catalog.bundle_images") != 1 || fakes.count("bundle "+digested)+
		fakes.count("bundle "+tagged) != 0 {
		t.Errorf("due %v (%v), %d rows, asked for %d and %d times", list, err, b.count("catalog.bundle_images"),
			fakes.count("bundle "+digested), fakes.count("bundle "+tagged))
	}
	b.intent("harbour", events.CatalogChanged{SourceType: "image", Spec: settings})
	b.ahead()
	if row := b.imageOf(stream, digested); row.Content == "" || fakes.count("bundle "+tagged) != 1 {
		t.Errorf("enabled again: %+v, asked for the other %d times", row, fakes.count("bundle "+tagged))
	}
}

// TestUnsigned: a catalog image that no key of the policy has signed shows the reason Unsigned and its message to
// people, and an unsigned bundle image does so in its fact; what the hub checks a signed one again by is kept, and
// goes with the content (ADR 0034).
func TestUnsigned(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	refused := errs.Wrap(errs.Forbidden, oci.ErrUnsigned, "image sha256:x is refused")
	fakes.fail("registry.test/c:1", refused)
	stream := b.image("harbour", source.Settings{
		Image: "registry.test/c:1", Prefetch: true, Signatures: &source.SignaturePolicy{Keys: []string{"k"}},
	})
	b.must(b.pollOnce(stream))
	if s := b.status(stream, ""); s.Reason != "Unsigned" && s.ErrorReason != "Unsigned" ||
		!strings.Contains(s.Message+s.Error, oci.ErrUnsigned.Error()) {
		t.Errorf("people see %+v", s)
	}
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	fakes.fail(digested, refused)
	b.must(b.pollOnce(stream))
	b.ahead()
	if f := b.fetched(stream); len(f) != 1 || f[0].Reason != "Unsigned" || f[0].Content != "" {
		t.Errorf("recorded %+v", f)
	}
	kept := func() (content, evidence string) {
		t.Helper()
		b.must(b.gateway.QueryRow(t.Context(), `select coalesce(max(content), ''),
			coalesce(max(convert_from(evidence, 'UTF8')), '') from catalog_api.signed_images where catalog = 'harbour'`).
			Scan(&content, &evidence))
		return content, evidence
	}
	if _, evidence := kept(); evidence != "" {
		t.Errorf("of an unsigned image %q is kept", evidence)
	}
	fakes.set(digested, "sha256:image", exampleBundle(t, "lighthouse/1.2.0"))
	if _, err := b.Pool.Exec(t.Context(), `update catalog.bundle_images set next_try = now()`); err != nil {
		t.Fatal(err)
	}
	b.ahead()
	content, evidence := kept()
	if row := b.imageOf(stream, digested); content == "" || content != row.Content ||
		evidence != "what was signed of "+digested {
		t.Errorf("kept is %q of %s, fetched %+v", evidence, content, row)
	}
	if _, err := b.Pool.Exec(t.Context(), `delete from catalog.contents where digest = $1`, content); err != nil {
		t.Fatal(err)
	}
	if _, evidence := kept(); evidence != "" {
		t.Error("it stays without its content")
	}
}
