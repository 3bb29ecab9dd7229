package app

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/service/platform"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// bench is an indexer over a database of its own, driven step by step.
type bench struct {
	*App
	t         testing.TB
	gateway   *pg.Pool
	log       *eventlog.Log // as the gateway appends
	consumers []*bus.Consumer
	db        *pgtest.Database
}

func setup(t testing.TB) *bench {
	t.Helper()
	d := pgtest.DB(t)
	pool := d.Pool(t, "catalog-indexer")
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "catalog-indexer"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := assemble(Config{Cache: t.TempDir(), Bodies: bodiestest.Secrets()}, on(tel, pool))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{App: a, t: t, gateway: d.Pool(t, "gateway"), db: d}
	b.log = eventlog.New(b.gateway)
	b.consumers = []*bus.Consumer{b.intents(), b.clusters()}
	seq := eventlog.NewSequencer(b.App.Log, eventlog.Options{ID: "test"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- seq.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("sequencer: %v", err)
		}
	})
	return b
}

// on is a platform without NATS.
func on(tel *telemetry.Telemetry, pool *pg.Pool) *platform.Platform {
	return &platform.Platform{Telemetry: tel, Pool: pool, Log: eventlog.New(pool)}
}

// intent appends an event of the gateway and lets the indexer take it.
func (b *bench) intent(name string, p events.Payload) string {
	b.t.Helper()
	stream := b.append(name, p)
	b.catchUp()
	return stream
}

// append appends an event as the gateway does, and returns its stream.
func (b *bench) append(name string, p events.Payload) string {
	b.t.Helper()
	var stream string
	err := b.gateway.Tx(b.t.Context(), func(tx pgx.Tx) error {
		head, err := b.log.Latest(b.t.Context(), tx, events.DefaultTenant, events.KindCatalog, name)
		if err != nil {
			return err
		}
		id, version := head.ID, head.Version
		if _, create := p.(events.CatalogAdded); create {
			id, version = head.Create(), 0
		}
		stream = id.String()
		m := events.Meta{Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now()}
		_, err = b.log.Append(b.t.Context(), tx, m, id, name, version, p)
		return err
	})
	b.must(err)
	return stream
}

func (b *bench) catchUp() {
	b.t.Helper()
	b.positioned()
	for _, c := range b.consumers {
		b.must(c.CatchUp(b.t.Context()))
	}
}

// positioned waits until every event has a position.
func (b *bench) positioned() {
	b.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var waiting int
		if err := b.Pool.QueryRow(b.t.Context(), `select count(*) from eventlog.appended`).Scan(&waiting); err != nil {
			b.t.Fatal(err)
		}
		if waiting == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-b.t.Context().Done():
			b.t.Fatal("the sequencer does not move")
		}
	}
}

// add gives the indexer a catalog directory.
func (b *bench) add(name, dir string) string {
	b.t.Helper()
	return b.intent(name, events.CatalogAdded{Name: name, SourceType: "directory", Spec: b.body(dir)})
}

// body stores the settings of a directory as the gateway does.
func (b *bench) body(dir string) string {
	b.t.Helper()
	return b.settings(source.Settings{Path: dir})
}

func (b *bench) settings(s source.Settings) string {
	b.t.Helper()
	raw, err := json.Marshal(s)
	b.must(err)
	return bodiestest.Put(b.t, b.gateway, events.DefaultTenant, bodies.Source, string(raw))
}

func key(stream string) store.Key { return store.Key{Tenant: events.DefaultTenant, Stream: stream} }

// pollOnce polls a catalog once.
func (b *bench) pollOnce(stream string) error {
	b.t.Helper()
	return b.pollVariant(stream, "", 0)
}

func (b *bench) pollVariant(stream, variant string, attempts int) error {
	b.t.Helper()
	err := b.poller.pollScope(b.t.Context(), bus.Scope{
		Tenant: events.DefaultTenant, Cluster: stream, Namespace: variant,
		Attempts: attempts,
	})
	b.positioned()
	return err
}

// facts returns what the indexer recorded in a stream.
func (b *bench) facts(stream string) []events.Payload {
	b.t.Helper()
	id, err := events.ParseStreamID(stream)
	if err != nil {
		b.t.Fatal(err)
	}
	recs, err := b.log.ReadStream(b.t.Context(), b.gateway, events.DefaultTenant, id, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []events.Payload
	for _, r := range recs {
		switch r.Payload.(type) {
		case events.CatalogRevisionPublished, events.CatalogLoadFailed, events.CatalogBundlesFetched:
			out = append(out, r.Payload)
		}
	}
	return out
}

func (b *bench) state(stream string) (state, reason, message string) {
	b.t.Helper()
	err := b.gateway.QueryRow(b.t.Context(),
		`select state, reason, message from catalog_api.catalogs where stream = $1`, stream).Scan(
		&state, &reason, &message)
	if err != nil {
		b.t.Fatal(err)
	}
	return state, reason, message
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// servedIs checks the live pointer and that the revision's documents can be read through the views.
func (b *bench) servedIs(stream, revision string) {
	b.t.Helper()
	var now string
	b.must(b.gateway.QueryRow(b.t.Context(), `select revision from catalog_api.catalogs where stream = $1`,
		stream).Scan(&now))
	if now != revision {
		b.t.Errorf("served is %s, want %s", now, revision)
	}
	var d digest.Digest
	b.must(b.gateway.QueryRow(b.t.Context(), `select p.digest from catalog_api.revision_packages r
		join catalog_api.packages p using (tenant, digest) where r.revision = $1`, revision).Scan(&d))
	p, err := b.store.Documents.Package(b.t.Context(), events.DefaultTenant, d)
	b.must(err)
	if got, err := p.Digest(); err != nil || got != d {
		b.t.Errorf("package document %s has the digest %s (%v)", d, got, err)
	}
}

func (b *bench) findingsAre(document, rule string) {
	b.t.Helper()
	var f catalog.Findings
	b.must(b.gateway.QueryRow(b.t.Context(), `select findings from catalog_api.findings where document = $1`,
		document).Scan(&f))
	if len(f) == 0 || f[0].Rule != rule || f[0].File != "buoy/catalog.yaml" || f[0].Line == 0 {
		b.t.Errorf("findings: %v", f)
	}
}

// await waits until a fact of the stream satisfies ok, and returns it.
func (b *bench) await(stream string, ok func(events.CatalogRevisionPublished) bool) events.CatalogRevisionPublished {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, f := range b.facts(stream) {
			if p, published := f.(events.CatalogRevisionPublished); published && ok(p) {
				return p
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.t.Fatalf("the revision does not come; facts: %v", b.facts(stream))
		}
	}
}

// rows counts what is stored by digest.
type rows struct{ contents, packages int }

func (b *bench) rows() rows {
	b.t.Helper()
	var r rows
	b.must(b.Pool.QueryRow(b.t.Context(), `select (select count(*) from catalog.contents), (select count(*)
		from catalog.packages)`).Scan(&r.contents, &r.packages))
	return r
}

func (b *bench) nothingRecorded(stream string) {
	b.t.Helper()
	var revision string
	b.must(b.Pool.QueryRow(b.t.Context(), `select revision from catalog.catalogs where stream = $1`, stream).Scan(
		&revision))
	if revision != "" || len(b.facts(stream)) != 0 {
		b.t.Errorf("served %q, recorded %v", revision, b.facts(stream))
	}
}

// examples copies the catalog that ships with the project.
func examples(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalog")
	if err := os.CopyFS(dir, os.DirFS("../../../examples/catalog")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// overlay writes the files of one directory over those of another.
func overlay(t testing.TB, from, to string) {
	t.Helper()
	fsys := os.DirFS(from)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		if err == nil {
			write(t, to, name, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// find returns the first file of a tree whose path ends so.
func find(tb testing.TB, dir, end string) string {
	tb.Helper()
	found := ""
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, end) {
			found = path
			return fs.SkipAll
		}
		return err
	})
	if err != nil || found == "" {
		tb.Fatalf("no file %s below %s (%v)", end, dir, err)
	}
	return found
}
