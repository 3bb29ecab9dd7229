package catalogview_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/resolver/internal/catalogview"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

const tenant = events.DefaultTenant

// database is a database with catalogs in it, as the indexer stores them.
type database struct {
	tb              testing.TB
	indexer, reader *pg.Pool
}

func newDatabase(tb testing.TB) *database {
	tb.Helper()
	db := pgtest.DB(tb)
	return &database{tb: tb, indexer: db.Pool(tb, string(events.Indexer)), reader: db.Pool(tb, string(events.Resolver))}
}

func (s *database) must(err error) {
	s.tb.Helper()
	if err != nil {
		s.tb.Fatal(err)
	}
}

func (s *database) exec(sql string, args ...any) {
	s.tb.Helper()
	_, err := s.indexer.Exec(s.tb.Context(), sql, args...)
	s.must(err)
}

// add stores package documents and returns their digests.
func (s *database) add(packages ...catalog.Package) []string {
	s.tb.Helper()
	enc, err := zstd.NewWriter(nil)
	s.must(err)
	var out []string
	for _, p := range packages {
		d, err := p.Digest()
		s.must(err)
		raw, err := p.Canonical()
		s.must(err)
		s.exec(`insert into catalog.packages (tenant, digest, package, document) values ($1, $2, $3, $4)
			on conflict do nothing`, tenant, string(d), p.Name, enc.EncodeAll(raw, nil))
		out = append(out, string(d))
	}
	return out
}

// revision makes packages a revision.
func (s *database) revision(id string, packages ...catalog.Package) {
	s.tb.Helper()
	for i, d := range s.add(packages...) {
		s.exec(`insert into catalog.revision_packages (tenant, revision, package, digest) values ($1, $2, $3, $4)`,
			tenant, id, packages[i].Name, d)
	}
}

func property(typ, value string) catalog.Property {
	return catalog.Property{Type: typ, Value: json.RawMessage(value)}
}

func api(kind string) catalog.GVK { return catalog.GVK{Group: "sea.test", Version: "v1", Kind: kind} }

// offering is a package of one version with an API.
func offering(name, kind string) catalog.Package {
	raw, err := json.Marshal(api(kind))
	if err != nil {
		panic(err)
	}
	csv := name + ".v1.0.0"
	return catalog.Package{
		Name: name, DefaultChannel: "stable", Description: "not for resolution",
		Channels: []catalog.Channel{{Name: "stable", Entries: []catalog.Entry{{Name: csv}}}},
		Bundles: []catalog.Bundle{{
			Name: csv, Version: "1.0.0", Content: "sha256:c", Image: "sea.test/" + name,
			Metadata: json.RawMessage(`{"description":"nor this"}`),
			Properties: []catalog.Property{property(catalog.TypePackage,
				`{"packageName":"`+name+`","version":"1.0.0"}`), property(catalog.TypeGVK, string(raw))},
		}},
	}
}

var fleet = resolution.CatalogKey{Name: "fleet"}

func (s *database) view(v *catalogview.Views, revision string) *catalogview.View {
	return v.View(s.tb.Context(), tenant, []catalogview.Catalog{{Key: fleet, Subject: "fleet", Revision: revision}})
}

// TestViewAnswers: packages, providers and names of the revision that a catalog serves, and nothing of another.
func TestViewAnswers(t *testing.T) {
	t.Parallel()
	s := newDatabase(t)
	s.revision("r1", offering("kelp", "Kelp"), offering("buoy", "Buoy"), offering("anchor", "Buoy"))
	s.revision("r2", offering("foreign", "Buoy"))
	views := catalogview.New(s.reader)
	for range 2 { // what is remembered is the same
		v := s.view(views, "r1")
		if diff := cmp.Diff([]string{"anchor", "buoy"}, v.Providers(fleet, api("Buoy"))); diff != "" {
			t.Errorf("providers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"anchor", "buoy", "kelp"}, v.Packages(fleet)); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		p := v.Package(fleet, "kelp")
		if want, err := offering("kelp", "Kelp").Digest(); err != nil || p == nil || p.Digest != want ||
			!p.Provides(api("Kelp")) {
			t.Errorf("package %+v (%v)", p, err)
		}
		for _, name := range []string{"foreign", "", "a\x00b", "a\xff"} {
			if p := v.Package(fleet, name); p != nil {
				t.Errorf("package %q is there: %+v", name, p)
			}
		}
		for _, kind := range []string{"Gull", "a\x00b", "a\xff"} {
			if got := v.Providers(fleet, api(kind)); len(got) > 0 {
				t.Errorf("%q is provided by %v", kind, got)
			}
		}
		if v.Package(resolution.CatalogKey{Name: "other"}, "kelp") != nil || v.Err() != nil {
			t.Errorf("another catalog has it, too (%v)", v.Err())
		}
	}
}

// TestRevisionThatWentAway: an answer is not made up of a revision that is not stored any more.
func TestRevisionThatWentAway(t *testing.T) {
	t.Parallel()
	s := newDatabase(t)
	views := catalogview.New(s.reader)
	for name, ask := range map[string]func(*catalogview.View){
		"package":   func(v *catalogview.View) { v.Package(fleet, "buoy") },
		"providers": func(v *catalogview.View) { v.Providers(fleet, api("Buoy")) },
		"names":     func(v *catalogview.View) { v.Packages(fleet) },
	} {
		v := s.view(views, "gone")
		ask(v)
		if !errs.Is(v.Err(), errs.Conflict) {
			t.Errorf("%s: %v", name, v.Err())
		}
	}
	s.revision("gone", offering("buoy", "Buoy")) // it comes back
	if v := s.view(views, "gone"); v.Package(fleet, "buoy") == nil || v.Err() != nil {
		t.Errorf("what was not there is remembered: %v", v.Err())
	}
}

// TestOffersStay: what a package offers is known after its document left the catalog, so that decisions can be made
// again; rows of an older version, which kept the APIs alone, are completed.
func TestOffersStay(t *testing.T) {
	t.Parallel()
	s := newDatabase(t)
	digests := s.add(offering("buoy", "Buoy"), offering("kelp", "Kelp"))
	if _, err := s.reader.Exec(t.Context(), `insert into resolver.package_apis (tenant, digest, apis)
		values ($1, $2, '{sea.test/v1/Kelp}')`, tenant, digests[1]); err != nil {
		t.Fatal(err)
	}
	before := map[string]catalog.Package{}
	for _, d := range digests {
		p, err := catalogview.New(s.reader).Document(t.Context(), tenant, d)
		if err != nil || len(p.Bundles) != 1 || p.Bundles[0].Image == "" || p.Bundles[0].Content == "" ||
			p.Description != "" || p.Bundles[0].Metadata != nil {
			t.Fatalf("document %+v: %v", p, err)
		}
		before[d] = p
	}
	s.exec(`delete from catalog.packages where tenant = $1`, tenant)
	views := catalogview.New(s.reader)
	for _, d := range digests {
		p, err := views.Document(t.Context(), tenant, d)
		if diff := cmp.Diff(before[d], p); err != nil || diff != "" {
			t.Errorf("%v (-before +after):\n%s", err, diff)
		}
	}
	if _, err := views.Package(t.Context(), tenant, "sha256:never"); !errs.Is(err, errs.NotFound) {
		t.Errorf("a document that was never met: %v", err)
	}
}
