package store_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/internal/store"
)

// searched is a package whose head says this.
func searched(t *testing.T, name, displayName, description string, keywords ...string) catalog.Package {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"displayName": displayName, "description": description,
		"keywords": keywords,
	})
	if err != nil {
		t.Fatal(err)
	}
	return catalog.Package{
		Name: name, DefaultChannel: "stable", Channels: []catalog.Channel{
			{Name: "stable", Entries: []catalog.Entry{{Name: name + ".v1"}}},
		},
		Bundles: []catalog.Bundle{{
			Name: name + ".v1", Version: "1.0.0", Properties: []catalog.Property{},
			Metadata: raw,
		}},
	}
}

// storeRevision stores packages as one revision and returns their digests by name.
func storeRevision(t *testing.T, s *store.Store, pool *pg.Pool, tenant, revision string,
	packages ...catalog.Package,
) map[string]digest.Digest {
	t.Helper()
	digests := map[string]digest.Digest{}
	for _, p := range packages {
		d, err := p.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[p.Name] = d
	}
	if err := s.Documents.PutPackages(t.Context(), tenant, packages, digests); err != nil {
		t.Fatal(err)
	}
	for name, d := range digests {
		if _, err := pool.Exec(t.Context(), `insert into catalog.revision_packages (tenant, revision, package, digest)
			values ($1, $2, $3, $4)`, tenant, revision, name, d); err != nil {
			t.Fatal(err)
		}
	}
	return digests
}

// ask searches as the gateway does, best first.
func ask(t *testing.T, pool *pg.Pool, tenant, revision string, words ...string) []digest.Digest {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select digest from catalog_api.search_packages($1, $2, $3)
		order by rank desc, digest`, tenant, []string{revision}, words)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[digest.Digest])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSearchRows proves R-UI-1 as far as Postgres goes: names before keywords before descriptions, the
// beginnings of words, stems, all words, one revision, and one tenant.
func TestSearchRows(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	indexer, gateway := db.Pool(t, "catalog-indexer"), db.Pool(t, "gateway")
	s := store.New(indexer, eventlog.New(indexer), bodies.Keys{})
	packages := []catalog.Package{
		searched(t, "tide.gauge", "Tide Gauge", "measures the sea\x00"),
		searched(t, "cert-harbour", "Harbour", "with a gauge for databases", "storage"),
		searched(t, "buoys", "Buoys", strings.Repeat("many words ", 600)+"lighthouse", "gauges"),
	}
	digests := storeRevision(t, s, indexer, "default", "r1", packages...)
	put := func(tenant string, packages []catalog.Package, digests map[string]digest.Digest) {
		t.Helper()
		err := indexer.Tx(t.Context(), func(tx pgx.Tx) error {
			return store.PutSearch(t.Context(), tx, tenant, packages,
				digests)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("default", packages, digests)
	put("default", packages, digests) // again is no error
	newer := searched(t, "tide.gauge", "Tide Gauge 2", "")
	put("default", []catalog.Package{newer}, storeRevision(t, s, indexer, "default", "r2", newer))
	put("other", packages[:1], storeRevision(t, s, indexer, "other", "r1", packages[:1]...))

	name := map[digest.Digest]string{}
	for n, d := range digests {
		name[d] = n
	}
	for _, c := range []struct{ words, want string }{
		{"gauge", "tide.gauge buoys cert-harbour"},
		{"tide", "tide.gauge"},
		{"ti", "tide.gauge"},
		{"cert", "cert-harbour"},
		{"harbour", "cert-harbour"},
		{"database", "cert-harbour"},
		{"gauge storage", "cert-harbour"},
		{"the sea", "tide.gauge"},
		{"lighthouse", ""}, // behind what is searched of a description
		{"the", "tide.gauge cert-harbour buoys"},
		{`x&y|!(z'\\`, ""}, // signs of the query language are none here
	} {
		var got []string
		for _, d := range ask(t, gateway, "default", "r1", strings.Fields(c.words)...) {
			got = append(got, name[d])
		}
		want := strings.Fields(c.want)
		if c.words == "the" { // asks for nothing: all, in no order
			if len(got) != len(want) {
				t.Errorf("%q: %v", c.words, got)
			}
			continue
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q: got %v, want %v", c.words, got, want)
		}
	}
	if got := ask(t, gateway, "default", "r2", "gauge"); len(got) != 1 || name[got[0]] != "" {
		t.Errorf("of another revision: %v", got)
	}
}

// TestSearchKeepsTenantsApart: the function that is used as a view checks the tenant as views do (D10).
func TestSearchKeepsTenantsApart(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	gateway := db.Pool(t, "gateway")
	err := gateway.TenantTx(t.Context(), "default", func(tx pgx.Tx) error {
		var n int
		return tx.QueryRow(t.Context(),
			`select count(*) from catalog_api.search_packages('other', '{r1}', '{gauge}')`).Scan(&n)
	})
	if err == nil || !strings.Contains(err.Error(), "does not belong to tenant") {
		t.Errorf("a session of another tenant: %v", err)
	}
	if _, err := db.Pool(t, "resolver").Exec(t.Context(),
		`select * from catalog_api.search_packages('default', '{}', '{}')`); err == nil {
		t.Error("another service may search")
	}
}

// TestFillSearch: packages that were stored before there were search rows get theirs, once.
func TestFillSearch(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	indexer := db.Pool(t, "catalog-indexer")
	s := store.New(indexer, eventlog.New(indexer), bodies.Keys{})
	var packages []catalog.Package
	for name := range strings.FieldsSeq("a b c d e f g h i j k l m n o p q r s t") {
		packages = append(packages, searched(t, name, "Old "+name, "gauge"))
	}
	storeRevision(t, s, indexer, "default", "r1", packages...)
	for range 2 {
		if err := s.Search.Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := ask(t, db.Pool(t, "gateway"), "default", "r1", "old"); len(got) != len(packages) {
		t.Errorf("%d of %d packages are found", len(got), len(packages))
	}
	// A row goes with the document that it was made from.
	if _, err := indexer.Exec(t.Context(), `delete from catalog.packages`); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, db.Pool(t, "gateway"), "default", "r1", "old"); len(got) != 0 {
		t.Errorf("%d rows outlive their documents", len(got))
	}
}
