package app

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// bench is an indexer over a database of its own, driven step by step.
type bench struct {
	*App
	t        *testing.T
	gateway  *pg.Pool
	log      *eventlog.Log // as the gateway appends
	consumer *bus.Consumer
}

func setup(t *testing.T) *bench {
	t.Helper()
	d := pgtest.DB(t)
	pool := d.Pool(t, "catalog-indexer")
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "catalog-indexer"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{App: assemble(Config{}, tel, pool, nil), t: t, gateway: d.Pool(t, "gateway")}
	b.log = eventlog.New(b.gateway)
	b.consumer = b.App.consumer()
	seq := eventlog.NewSequencer(b.App.log, eventlog.Options{ID: "test"})
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

// intent appends an event of the gateway and lets the indexer take it.
func (b *bench) intent(name string, p events.Payload) string {
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
		a, err := b.log.Append(b.t.Context(), tx, m, id, name, version, p)
		_ = a
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.catchUp()
	return stream
}

func (b *bench) catchUp() {
	b.t.Helper()
	b.positioned()
	if err := b.consumer.CatchUp(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// positioned waits until every event has a position.
func (b *bench) positioned() {
	b.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var waiting int
		if err := b.pool.QueryRow(b.t.Context(), `select count(*) from eventlog.appended`).Scan(&waiting); err != nil {
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

// body stores source settings as the gateway does.
func (b *bench) body(dir string) string {
	b.t.Helper()
	commitment := "c1:" + uuid.NewString()
	_, err := b.gateway.Exec(b.t.Context(), `insert into gateway.bodies (tenant, commitment, kind, salt, body) values ($1, $2, 'catalog-source', 'salt', $3)`,
		events.DefaultTenant, commitment, []byte(`{"path":"`+dir+`"}`))
	if err != nil {
		b.t.Fatal(err)
	}
	return commitment
}

// lookAt works on everything dirty once.
func (b *bench) lookAt(stream string) error {
	b.t.Helper()
	err := b.look(b.t.Context(), bus.Scope{Tenant: events.DefaultTenant, Cluster: stream})
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
		case events.CatalogRevisionPublished, events.CatalogLoadFailed:
			out = append(out, r.Payload)
		}
	}
	return out
}

func (b *bench) state(stream string) (state, reason, message string) {
	b.t.Helper()
	err := b.gateway.QueryRow(b.t.Context(), `select state, reason, message from catalog_api.catalogs where stream = $1`, stream).Scan(&state, &reason, &message)
	if err != nil {
		b.t.Fatal(err)
	}
	return state, reason, message
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const good = `
schema: olm.package
name: buoy
defaultChannel: steady
---
schema: olm.channel
package: buoy
name: steady
entries: [{name: buoy.v1.0.0}]
---
schema: olm.bundle
package: buoy
name: buoy.v1.0.0
image: registry.example.com/harbour/buoy-bundle:1.0.0
properties:
- {type: olm.package, value: {packageName: buoy, version: 1.0.0}}
`

const newer = `
schema: olm.package
name: buoy
defaultChannel: steady
---
schema: olm.channel
package: buoy
name: steady
entries: [{name: buoy.v1.0.0}, {name: buoy.v1.1.0, replaces: buoy.v1.0.0}]
---
schema: olm.bundle
package: buoy
name: buoy.v1.0.0
image: registry.example.com/harbour/buoy-bundle:1.0.0
properties:
- {type: olm.package, value: {packageName: buoy, version: 1.0.0}}
---
schema: olm.bundle
package: buoy
name: buoy.v1.1.0
image: registry.example.com/harbour/buoy-bundle:1.1.0
properties:
- {type: olm.package, value: {packageName: buoy, version: 1.1.0}}
`

// TestRevisions proves that a catalog is published once, that only a change publishes again, and that
// a broken source leaves the revision before in service and is told once (R-CAT-61, D3).
func TestRevisions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	write(t, dir, "buoy/catalog.yaml", good)
	stream := b.add("harbour", dir)

	b.must(b.lookAt(stream))
	first := b.facts(stream)
	if len(first) != 1 {
		t.Fatalf("facts after the first look: %v", first)
	}
	r1 := first[0].(events.CatalogRevisionPublished)
	if r1.Previous != "" || r1.Packages != 1 || r1.Bundles != 1 || r1.Changes[0].Change != "added" || r1.Changes[0].Heads[0].To != "buoy.v1.0.0" {
		t.Errorf("first revision: %+v", r1)
	}
	b.must(b.lookAt(stream))
	b.intent("harbour", events.CatalogRefreshRequested{})
	b.must(b.lookAt(stream))
	if n := len(b.facts(stream)); n != 1 {
		t.Errorf("a revision with the same digest was published again: %d facts", n)
	}

	write(t, dir, "buoy/catalog.yaml", newer)
	b.must(b.lookAt(stream))
	r2 := b.facts(stream)[1].(events.CatalogRevisionPublished)
	c := r2.Changes[0]
	if r2.Previous != r1.Revision || c.Change != "changed" || c.Heads[0] != (events.HeadMove{Channel: "steady", From: "buoy.v1.0.0", To: "buoy.v1.1.0"}) ||
		len(c.BundlesAdded) != 1 || c.BundlesAdded[0] != "buoy.v1.1.0" {
		t.Errorf("second revision: %+v", r2)
	}
	b.servedIs(stream, r2.Revision)

	write(t, dir, "buoy/catalog.yaml", good+"---\nschema: olm.channel\npackage: buoy\nname: fast\n")
	for range 2 {
		b.intent("harbour", events.CatalogRefreshRequested{})
		b.must(b.lookAt(stream))
	}
	facts := b.facts(stream)
	if len(facts) != 3 {
		t.Fatalf("the same failure must be told once: %v", facts)
	}
	f := facts[2].(events.CatalogLoadFailed)
	if f.Rule != "R-CAT-33" || f.Findings != 1 || f.Reason != "InvalidCatalog" {
		t.Errorf("failure: %+v", f)
	}
	if state, reason, message := b.state(stream); state != "Failed" || reason != "InvalidCatalog" || message == "" {
		t.Errorf("state %s, reason %s, message %q", state, reason, message)
	}
	b.servedIs(stream, r2.Revision)
	b.findingsAre(f.Document, "R-CAT-33")

	write(t, dir, "buoy/catalog.yaml", newer)
	b.must(b.lookAt(stream))
	if state, _, _ := b.state(stream); state != "Ready" || len(b.facts(stream)) != 3 {
		t.Errorf("the mended catalog is %s with facts %v", state, b.facts(stream))
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
	b.must(b.gateway.QueryRow(b.t.Context(), `select revision from catalog_api.catalogs where stream = $1`, stream).Scan(&now))
	if now != revision {
		b.t.Errorf("served is %s, want %s", now, revision)
	}
	var d digest.Digest
	b.must(b.gateway.QueryRow(b.t.Context(), `select p.digest from catalog_api.revision_packages r join catalog_api.packages p using (tenant, digest) where r.revision = $1`, revision).Scan(&d))
	p, err := b.store.Package(b.t.Context(), events.DefaultTenant, d)
	b.must(err)
	if got, err := p.Digest(); err != nil || got != d {
		b.t.Errorf("package document %s has the digest %s (%v)", d, got, err)
	}
}

func (b *bench) findingsAre(document, rule string) {
	b.t.Helper()
	var f catalog.Findings
	b.must(b.gateway.QueryRow(b.t.Context(), `select findings from catalog_api.findings where document = $1`, document).Scan(&f))
	if len(f) == 0 || f[0].Rule != rule || f[0].File != "buoy/catalog.yaml" || f[0].Line == 0 {
		b.t.Errorf("findings: %v", f)
	}
}

// TestUnreadableSource proves that a directory that is not there is told once and taken up when it appears.
func TestUnreadableSource(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := filepath.Join(t.TempDir(), "later")
	stream := b.add("later", dir)
	b.must(b.lookAt(stream))
	b.must(b.lookAt(stream))
	facts := b.facts(stream)
	if len(facts) != 1 || facts[0].(events.CatalogLoadFailed).Reason != "SourceUnreadable" {
		t.Fatalf("facts: %v", facts)
	}
	b.must(b.compare(t.Context()))
	write(t, dir, "catalog.yaml", good)
	b.must(b.compare(t.Context()))
	var dirty int
	b.must(b.pool.QueryRow(t.Context(), `select count(*) from catalog.dirty where cluster = $1`, stream).Scan(&dirty))
	if dirty != 1 {
		t.Errorf("the directory has appeared, but the catalog is not marked")
	}
	b.must(b.lookAt(stream))
	if facts := b.facts(stream); len(facts) != 2 {
		t.Errorf("facts: %v", facts)
	}
}

// TestRemovedAndAddedAgain proves that a removed catalog is left alone and a new one of its name begins anew.
func TestRemovedAndAddedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	write(t, dir, "catalog.yaml", good)
	first := b.add("harbour", dir)
	b.must(b.lookAt(first))
	b.intent("harbour", events.CatalogRemoved{})
	write(t, dir, "catalog.yaml", newer)
	b.must(b.lookAt(first))
	if n := len(b.facts(first)); n != 1 {
		t.Errorf("a removed catalog got %d facts", n)
	}
	second := b.add("harbour", dir)
	if first == second {
		t.Fatal("the same stream again")
	}
	b.must(b.lookAt(second))
	if f := b.facts(second); len(f) != 1 || f[0].(events.CatalogRevisionPublished).Previous != "" {
		t.Errorf("facts of the second life: %v", f)
	}
}
