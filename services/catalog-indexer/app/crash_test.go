package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/source/fetch"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// begin does what a poll does up to opening the source.
func (b *bench) begin(stream string) (*polling, *fetch.Tree) {
	b.t.Helper()
	c, err := b.store.Catalogs.Get(b.t.Context(), key(stream))
	b.must(err)
	l := &polling{catalog: c, from: b.poller.open(c.Tenant), began: time.Now()}
	l.out = store.Outcome{Catalog: c, Wanted: c.Wanted, Meta: events.Meta{
		Tenant: c.Tenant, Source: events.Indexer,
		Time: l.began,
	}}
	if found, err := b.poller.prepare(b.t.Context(), l); err != nil || !found {
		b.t.Fatalf("nothing to poll (%v)", err)
	}
	tree, err := l.from.Open(b.t.Context(), c.SourceType, l.settings)
	b.must(err)
	l.out.Fingerprint = tree.Fingerprint
	return l, tree
}

// TestEndedAnywhere proves that a poll which ends between any two writes leaves nothing that is recorded
// or served, and that the next poll comes to the same end as one that was never interrupted.
func TestEndedAnywhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := b.add("examples", examples(t))
	out, tree := b.begin(stream)

	// Ended before anything: the content writer is given a context that has ended.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	early := *out
	if err := b.poller.loader.load(ended, &early, tree.FS); err == nil {
		t.Error("a load went on though its context has ended")
	}
	b.nothingRecorded(stream)
	// Ended behind the content and the documents, before the outcome.
	b.must(b.poller.loader.load(t.Context(), out, tree.FS))
	b.nothingRecorded(stream)
	before := b.rows()
	// Ended inside the last transaction: it rolls back as a whole.
	failing := errors.New("power is gone")
	err := b.Pool.Tx(t.Context(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `update catalog.catalogs set revision = 'half' where stream = $1`,
			stream); err != nil {
			return err
		}
		return failing
	})
	if !errors.Is(err, failing) {
		t.Fatal(err)
	}
	b.nothingRecorded(stream)
	b.must(tree.Close())

	b.must(b.pollOnce(stream))
	facts := b.facts(stream)
	if len(facts) != 1 || facts[0].(events.CatalogRevisionPublished).Revision != string(out.out.Published.Revision) {
		t.Errorf("facts: %v, want the revision %s", facts, out.out.Published.Revision)
	}
	if after := b.rows(); after.contents != before.contents || after.packages != before.packages ||
		after.contents == 0 {
		t.Errorf("content was stored twice: %+v, then %+v", before, after)
	}
	// The outcome of the poll that was interrupted comes late: it finds another state and writes nothing.
	written, err := b.store.Outcomes.Finish(t.Context(), out.out)
	if err != nil || written || len(b.facts(stream)) != 1 {
		t.Errorf("a late outcome was written (%v, %v)", written, err)
	}
}

// TestIntentBetween proves that an intent which comes while a source is polled makes the poll begin
// again where it matters, and is no obstacle where it does not.
func TestIntentBetween(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	write(t, dir, "catalog.yaml", good)
	stream := b.add("harbour", dir)
	l, tree := b.begin(stream)
	defer func() { b.must(tree.Close()) }()
	b.must(b.poller.loader.load(t.Context(), l, tree.FS))

	b.intent("harbour", events.CatalogRefreshRequested{})
	b.must(b.poller.finish(t.Context(), l.out))
	b.positioned()
	now, err := b.store.Catalogs.Get(t.Context(), key(stream))
	b.must(err)
	if now.Revision == "" || now.Polled >= now.Wanted {
		t.Errorf("the refresh that came in between is lost: %+v", now)
	}

	l.out.Catalog = now
	b.intent("harbour", events.CatalogChanged{SourceType: "directory", Spec: b.body(t.TempDir())})
	if err := b.poller.finish(t.Context(), l.out); !errs.Is(err, errs.Conflict) {
		t.Errorf("the outcome of another source was taken: %v", err)
	}
	b.must(b.pollOnce(stream))
	facts := b.facts(stream)
	if f, failed := facts[len(facts)-1].(events.CatalogLoadFailed); !failed || f.Rule != "R-CAT-1" {
		t.Errorf("facts: %v", facts)
	}
}

// TestRun proves the whole service: an intent appended by the gateway ends in a published revision, a
// change of the files in another one, without a word in between.
func TestRun(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	nats := bustest.Start(t)
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "catalog-indexer"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Config: service.Config{
		DatabaseURL: d.URL("catalog-indexer"), NATS: nats.Access("catalog-indexer"),
		OpsListen: "127.0.0.1:0", Drain: 5 * time.Second,
	}, Cache: t.TempDir(), Bodies: bodiestest.Secrets(), Poll: 20 * time.Millisecond}
	a, err := New(t.Context(), cfg, tel)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	reader, err := assemble(cfg, on(tel, d.Pool(t, "catalog-indexer")))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{App: reader, t: t, gateway: d.Pool(t, "gateway")}
	b.log = eventlog.New(b.gateway)
	dir := examples(t)
	stream := b.append("examples", events.CatalogAdded{Name: "examples", SourceType: "directory", Spec: b.body(dir)})
	first := b.await(stream, func(events.CatalogRevisionPublished) bool { return true })
	if first.Packages != 6 || first.Bundles != 15 {
		t.Errorf("first revision: %d packages, %d bundles", first.Packages, first.Bundles)
	}
	overlay(t, "../../../examples/catalog-next", dir)
	second := b.await(stream, func(p events.CatalogRevisionPublished) bool { return p.Bundles == 17 })
	heads := map[string]string{}
	for _, c := range second.Changes {
		for _, h := range c.Heads {
			heads[c.Package+"/"+h.Channel] = h.To
		}
	}
	if second.Previous == "" || heads["lighthouse/steady"] != "lighthouse.v1.3.0" && len(heads) != 3 {
		t.Errorf("second revision: %+v", second)
	}
}

// TestRealCatalog indexes packages of a published catalog (the benchmark takes all of them), and proves
// that another poll decodes nothing and that one changed package touches no other.
func TestRealCatalog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	few := func(path string) bool {
		for _, p := range []string{
			"hulft", "stackable-hbase-operator", "kubecost-operator", "ako-operator",
			"hspc-operator",
		} {
			if strings.Contains(path, p+"/") {
				return true
			}
		}
		return false
	}
	dir := catalogtest.Unpack(t, catalogtest.CertifiedFBC414, few)
	stream := b.add("certified", dir)
	began := time.Now()
	b.must(b.pollOnce(stream))
	took := time.Since(began)
	r := b.facts(stream)[0].(events.CatalogRevisionPublished)
	if r.Packages != 5 || len(r.Changes) != 5 {
		t.Errorf("%d packages, %d changes", r.Packages, len(r.Changes))
	}
	stored := b.rows()
	if stored.contents != r.Bundles {
		t.Errorf("%d bundles, %d contents", r.Bundles, stored.contents)
	}
	var raw, packed, documents int64
	b.must(b.Pool.QueryRow(t.Context(), `select sum(size), (select sum(length(data))
		from catalog.packs), (select sum(length(coalesce(document, recipe))) from catalog.packages)
		from catalog.contents`).Scan(&raw, &packed, &documents))
	began = time.Now()
	b.intent("certified", events.CatalogRefreshRequested{})
	b.must(b.pollOnce(stream))
	t.Logf("indexed in %s, again in %s; %d MB of manifests are stored in %d KB, documents in %d KB",
		took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), raw>>20, packed>>10, documents>>10)
	if n := len(b.facts(stream)); n != 1 {
		t.Errorf("%d facts after a second poll", n)
	}
	var decoded int
	b.must(b.Pool.QueryRow(t.Context(), `select count(*) from catalog.decoded`).Scan(&decoded))
	if decoded < r.Bundles*9/10 { // small bundles are not worth remembering
		t.Errorf("%d of %d bundles are remembered", decoded, r.Bundles)
	}
	file := find(t, dir, "hulft/catalog.yaml")
	text, err := os.ReadFile(file)
	b.must(err)
	write(t, filepath.Dir(file), "catalog.yaml", string(text)+
		"---\nschema: olm.deprecations\npackage: hulft\nentries: [{reference: {schema: olm.package}, message: at its "+
		"end}]\n")
	b.must(b.pollOnce(stream))
	second := b.facts(stream)[1].(events.CatalogRevisionPublished)
	if len(second.Changes) != 1 || second.Changes[0].Package != "hulft" || len(second.Changes[0].Heads) != 0 ||
		b.rows() != (rows{stored.contents, stored.packages + 1}) {
		t.Errorf("second revision: %+v; rows %+v", second.Changes, b.rows())
	}
}
