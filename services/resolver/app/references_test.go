package app_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
)

// TestDecisionsHoldContent proves that a decision tells the catalog schema's collector what it refers to:
// the bundles of the plan and the package documents that were consulted (DESIGN D3, D5).
func TestDecisionsHoldContent(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	gauge := f.pkg("gauge", version{v: "1.0.0", provides: []string{"Gauge"}})
	buoy := f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}})
	f.publish("fleet", "", buoy, gauge, f.pkg("anchor", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	var want []string
	for _, b := range f.livePlan().Proposed.Bundles {
		want = append(want, "content "+b.Content)
	}
	for _, p := range []string{"buoy", "gauge"} {
		var d string
		f.must(f.pools[events.Indexer].QueryRow(f.ctx,
			`select digest from catalog.revision_packages where tenant = $1 and package = $2`, tenant, p).Scan(&d))
		want = append(want, "package "+d)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, f.references()); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}

	// Plans that were there before the table: the migration itself takes their bundles from them.
	_, err := f.pools[events.Resolver].Exec(f.ctx, `delete from resolver.content_references`)
	f.must(err)
	_, insert, _ := strings.Cut(migration(t, "0003_content_references.up.sql"), "\ninsert into")
	insert, _, _ = strings.Cut(insert, ";")
	_, err = f.pools[events.Resolver].Exec(f.ctx, "insert into"+insert)
	f.must(err)
	want = slices.DeleteFunc(want, func(line string) bool { return strings.HasPrefix(line, "package ") })
	if diff := cmp.Diff(want, f.references()); diff != "" {
		t.Errorf("references that the migration finds (-want +got):\n%s", diff)
	}
}

// migration is the text of one of the resolver's.
func migration(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../../migrations/resolver/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// references is what the collector sees, sorted.
func (f *fleet) references() []string {
	f.t.Helper()
	rows, err := f.pools[events.Indexer].Query(f.ctx,
		`select kind || ' ' || digest from resolver_api.content_references where tenant = $1`, tenant)
	f.must(err)
	defer rows.Close()
	var got []string
	for rows.Next() {
		var line string
		f.must(rows.Scan(&line))
		got = append(got, line)
	}
	f.must(rows.Err())
	slices.Sort(got)
	return got
}
