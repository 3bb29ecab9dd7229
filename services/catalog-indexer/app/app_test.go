package app

import (
	"path/filepath"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
)

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
// a broken source leaves the revision before in service and is recorded once (R-CAT-61, D3).
func TestRevisions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	write(t, dir, "buoy/catalog.yaml", good)
	stream := b.add("harbour", dir)

	b.must(b.pollOnce(stream))
	first := b.facts(stream)
	if len(first) != 1 {
		t.Fatalf("facts after the first poll: %v", first)
	}
	r1 := first[0].(events.CatalogRevisionPublished)
	if r1.Previous != "" || r1.Packages != 1 || r1.Bundles != 1 || r1.Changes[0].Change != "added" ||
		r1.Changes[0].Heads[0].To != "buoy.v1.0.0" {
		t.Errorf("first revision: %+v", r1)
	}
	b.must(b.pollOnce(stream))
	b.intent("harbour", events.CatalogRefreshRequested{})
	b.must(b.pollOnce(stream))
	if n := len(b.facts(stream)); n != 1 {
		t.Errorf("a revision with the same digest was published again: %d facts", n)
	}

	write(t, dir, "buoy/catalog.yaml", newer)
	b.must(b.pollOnce(stream))
	r2 := b.facts(stream)[1].(events.CatalogRevisionPublished)
	c := r2.Changes[0]
	if r2.Previous != r1.Revision || c.Change != "changed" ||
		c.Heads[0] != (events.HeadMove{Channel: "steady", From: "buoy.v1.0.0", To: "buoy.v1.1.0"}) ||
		len(c.BundlesAdded) != 1 || c.BundlesAdded[0] != "buoy.v1.1.0" {
		t.Errorf("second revision: %+v", r2)
	}
	b.servedIs(stream, r2.Revision)

	write(t, dir, "buoy/catalog.yaml", good+"---\nschema: olm.channel\npackage: buoy\nname: fast\n")
	for range 2 {
		b.intent("harbour", events.CatalogRefreshRequested{})
		b.must(b.pollOnce(stream))
	}
	facts := b.facts(stream)
	if len(facts) != 3 {
		t.Fatalf("the same failure must be recorded once: %v", facts)
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
	b.must(b.pollOnce(stream))
	facts = b.facts(stream)
	if state, _, _ := b.state(stream); state != "Ready" || len(facts) != 4 {
		t.Fatalf("the corrected catalog is %s with facts %v", state, facts)
	}
	if again := facts[3].(events.CatalogRevisionPublished); again.Revision != r2.Revision ||
		again.Previous != r2.Revision || len(again.Changes) != 0 || again.Packages != 1 {
		t.Errorf("the end of the failure is recorded as %+v", again)
	}
	b.intent("harbour", events.CatalogRefreshRequested{})
	b.must(b.pollOnce(stream))
	if len(b.facts(stream)) != 4 {
		t.Errorf("the end of the failure is recorded again: %v", b.facts(stream))
	}
}

// TestUnreadableSource proves that a directory that is not there is recorded once and taken up when it appears.
func TestUnreadableSource(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := filepath.Join(t.TempDir(), "later")
	stream := b.add("later", dir)
	b.must(b.pollOnce(stream))
	b.must(b.pollOnce(stream))
	facts := b.facts(stream)
	if len(facts) != 1 || facts[0].(events.CatalogLoadFailed).Reason != "SourceUnreadable" {
		t.Fatalf("facts: %v", facts)
	}
	b.clean(stream)
	write(t, dir, "catalog.yaml", good)
	if b.dirty(stream) != 0 {
		t.Fatal("the catalog is marked before it is due")
	}
	b.due(stream)
	b.must(b.scheduler.markDue(t.Context()))
	if b.dirty(stream) != 1 {
		t.Error("the catalog is due, but not marked")
	}
	b.must(b.pollOnce(stream))
	if facts := b.facts(stream); len(facts) != 2 {
		t.Errorf("facts: %v", facts)
	}
}

// clean does as if the work on a catalog had ended.
func (b *bench) clean(stream string) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), `delete from catalog.dirty where cluster = $1`, stream)
	b.must(err)
}

// due does as if a catalog's interval had passed.
func (b *bench) due(stream string) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), `update catalog.catalogs set next_look = now() where stream = $1`, stream)
	b.must(err)
}

func (b *bench) dirty(stream string) (n int) {
	b.t.Helper()
	b.must(b.Pool.QueryRow(b.t.Context(), `select count(*) from catalog.dirty where cluster = $1`, stream).Scan(&n))
	return n
}

// TestPollLeavesAttempts proves that the poll does not mark a catalog again that waits for another poll:
// otherwise a directory that never rests would never come to the attempt at which it is taken as it is.
func TestPollLeavesAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	write(t, dir, "catalog.yaml", good)
	stream := b.add("restless", dir)
	_, err := b.Pool.Exec(t.Context(), `update catalog.dirty set attempts = 3, generation = 5 where cluster = $1`,
		stream)
	b.must(err)
	b.due(stream)
	b.must(b.scheduler.markDue(t.Context()))
	var attempts, generation int
	b.must(b.Pool.QueryRow(t.Context(), `select attempts, generation from catalog.dirty where cluster = $1`,
		stream).Scan(&attempts, &generation))
	if attempts != 3 || generation != 5 {
		t.Errorf("the poll marked a dirty catalog again: attempts %d, generation %d", attempts, generation)
	}
}

// TestRemovedAndAddedAgain proves that a removed catalog is left alone and a new one of its name begins anew.
func TestRemovedAndAddedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	write(t, dir, "catalog.yaml", good)
	first := b.add("harbour", dir)
	b.must(b.pollOnce(first))
	b.intent("harbour", events.CatalogRemoved{})
	write(t, dir, "catalog.yaml", newer)
	b.must(b.pollOnce(first))
	if n := len(b.facts(first)); n != 1 {
		t.Errorf("a removed catalog got %d facts", n)
	}
	second := b.add("harbour", dir)
	if first == second {
		t.Fatal("the same stream again")
	}
	b.must(b.pollOnce(second))
	if f := b.facts(second); len(f) != 1 || f[0].(events.CatalogRevisionPublished).Previous != "" {
		t.Errorf("facts of the second life: %v", f)
	}
}
