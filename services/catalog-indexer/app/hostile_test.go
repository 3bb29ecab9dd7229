package app

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// TestHostileTexts proves that no text which Postgres does not take ends the polls of a catalog in silence: each
// comes to an outcome, the first time.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const nul = `\u0000`
	long := strings.Repeat("long", 2000)
	// As long as names may be, and such that an index cannot compress them.
	var wide string
	for i := range 15 {
		wide += digest.Bytes([]byte{byte(i)}).Hex()
	}
	document := func(name string) string {
		return good + "---\nschema: harbour.notice\npackage: buoy\nname: \"" + name + "\"\n"
	}
	for name, text := range map[string]string{
		"a document with NUL in its name": document("a" + nul + "b"),
		"a document with a long name":     document(long),
		"wide names": good + "---\nschema: " + wide + "\npackage: " + wide + "\nname: " + wide +
			"\n",
		"a document of a long schema": good + "---\nschema: " + long + "\nname: " + long + "\n",
		"an image with NUL in its name": strings.ReplaceAll(
			good, "image: registry.example.com/harbour/buoy-bundle:1.0.0", `image: "registry.test/a`+nul+`:1"`),
		"an image with a long name":      strings.ReplaceAll(good, "harbour/buoy", "harbour/"+long),
		"a package with NUL in its name": strings.ReplaceAll(good, "buoy\n", `"bu`+nul+`oy"`+"\n"),
		"a package with a long name":     strings.ReplaceAll(good, "buoy\n", long+"\n"),
		"a finding that quotes NUL": "schema: olm.channel\npackage: \"a" + nul + "\"\nname: \"b" + nul +
			"\"\nentries: [{name: \"c" + nul + "\"}]\n",
		"a finding that quotes no UTF-8": "schema: olm.channel\npackage: \"a\xff\"\nname: b\nentries: []\n",
		"a finding about a very long name": "schema: olm.channel\npackage: " + long + "\nname: " + long +
			"\nentries: []\n",
		"a channel with NUL in its name": strings.ReplaceAll(good, "steady", `"st`+nul+`eady"`),
		"a deprecation of NUL in a message": good +
			"---\nschema: olm.deprecations\npackage: buoy\nentries: [{reference: {schema: olm.package}, message: \"a" +
			nul + "\"}]\n",
	} {
		for _, mode := range []string{source.Strict, source.Lenient} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				b, fakes := faked(t)
				fakes.put("registry.test/c:1", "p1", text)
				stream := b.image("harbour", source.Settings{Image: "registry.test/c:1", Prefetch: true, Mode: mode})
				b.must(b.pollOnce(stream))
				s := b.status(stream, "")
				if name == "wide names" && s.State != store.Ready {
					t.Errorf("status %+v", s)
				}
				if s.State != store.Ready && (s.State != store.Failed || s.Reason == "" || s.Message == "") ||
					len(b.facts(stream)) != 1 {
					t.Errorf("status %+v, facts %v", s, b.facts(stream))
				}
				b.must(b.scheduler.markDue(t.Context()))
				b.must(b.fetchAll())
				b.must(b.pollOnce(stream))
				if n := fakes.count("open registry.test/c:1"); n != 1 {
					t.Errorf("read %d times: the outcome was not recorded", n)
				}
			})
		}
	}
}

// TestHostileMessages proves that what a source answers may hold any bytes.
func TestHostileMessages(t *testing.T) {
	t.Parallel()
	for _, kind := range []errs.Kind{errs.Invalid, errs.Unavailable} {
		b, fakes := faked(t)
		fakes.fail("registry.test/c:1", errs.New(kind, "it says \x00 and \xff"))
		stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
		if err := b.pollOnce(stream); kind == errs.Invalid && err != nil {
			t.Error(err)
		}
		if s := b.status(stream, ""); s.State != store.Failed || s.Error != "it says \ufffd and \ufffd" {
			t.Errorf("%s: %+v", kind, s)
		}
	}
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", byImage(digested))
	fakes.fail(digested, errs.New(errs.NotFound, "it says \x00 and \xff"))
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1", Prefetch: true})
	b.must(b.pollOnce(stream))
	b.must(b.scheduler.markDue(t.Context()))
	b.must(b.fetchAll())
	if row := b.imageOf(stream, digested); row.Reason != "NotFound" || row.Message != "it says \ufffd and \ufffd" {
		t.Errorf("row %+v", row)
	}
}

// TestOutcomeThatCannotBeStored proves that a revision which the database refuses because of what is in it is a failure
// that is seen and recorded once, that the revision before stays, and that it is over with the next content.
func TestOutcomeThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for code, reason := range map[string]string{"54000": "InvalidCatalog", "22P05": "InvalidCatalog"} {
		b, fakes := faked(t)
		fakes.put("registry.test/c:1", "p1", good)
		stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
		b.must(b.pollOnce(stream))
		served := b.status(stream, "").Revision
		admin := b.db.Pool(t, "admin")
		_, err := admin.Exec(t.Context(),
			`create function catalog.refuse() returns trigger language plpgsql as $$ begin raise exception 'it is too much' using errcode = '`+code+`'; end $$;
			create trigger refuse before insert on catalog.revision_packages execute function catalog.refuse()`)
		b.must(err)
		fakes.put("registry.test/c:1", "p2", newer)
		for range 2 {
			b.must(b.pollOnce(stream))
		}
		if s := b.status(stream, ""); s.State != store.Failed || s.Reason != reason || s.Revision != served ||
			!strings.Contains(s.Message, "it is too much") || s.Errors != 1 {
			t.Errorf("%s: %+v", code, s)
		}
		if f, failed := b.facts(stream)[1].(events.CatalogLoadFailed); !failed || len(b.facts(stream)) != 2 ||
			f.Reason != reason || fakes.count("open registry.test/c:1") != 2 {
			t.Errorf("%s: facts %v after %d readings", code, b.facts(stream), fakes.count("open registry.test/c:1"))
		}
		_, err = admin.Exec(t.Context(), `drop trigger refuse on catalog.revision_packages`)
		b.must(err)
		fakes.put("registry.test/c:1", "p3", newer)
		b.must(b.pollOnce(stream))
		if s := b.status(stream, ""); s.State != store.Ready || s.Revision == served {
			t.Errorf("%s, when it is over: %+v", code, s)
		}
	}
}
