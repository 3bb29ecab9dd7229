package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
)

// Each service reads the kinds of bodies that its work needs, and no other (DESIGN D10).
func TestBodiesByKind(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	pool := d.Pool(t, "gateway")
	kept := store.Bodies{Keys: bodiestest.Keys(t)}
	for _, kind := range bodies.Kinds() {
		in(t, pool, tenant, func(tx pgx.Tx) error {
			_, err := kept.Commit(t.Context(), tx, tenant, kind, []byte(`{}`), "")
			return err
		})
	}
	for role, want := range map[string][]string{
		"gateway":         {"annotations", "catalog-source", "plan-reason", "subscription-config"},
		"resolver":        {"subscription-config"},
		"installer":       {"annotations", "catalog-source", "subscription-config"},
		"catalog-indexer": {"catalog-source"},
	} {
		rows, err := d.Pool(t, role).Query(t.Context(), `select kind from gateway_api.bodies order by kind`)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
}

// What a lost key sealed is told as such, with the key's id, and can be written again; the same body that opens stays
// as it is.
func TestBodiesOfALostKeyAreWrittenAgain(t *testing.T) {
	t.Parallel()
	pool := pgtest.DB(t).Pool(t, "gateway")
	settings := bodiestest.Settings()
	other := strings.Repeat("another-key-", 4)
	settings[bodies.Annotations] = &other
	found, err := settings.Keys()
	if err != nil {
		t.Fatal(err)
	}
	lost, now := store.Bodies{Keys: bodiestest.Keys(t)}, store.Bodies{Keys: found}
	commit := func(by store.Bodies, previous string) (id string) {
		t.Helper()
		in(t, pool, tenant, func(tx pgx.Tx) (err error) {
			id, err = by.Commit(t.Context(), tx, tenant, bodies.Annotations, []byte(`{"a":"b"}`), previous)
			return err
		})
		return id
	}
	first := commit(lost, "")
	_, err = now.Body(t.Context(), pool, tenant, first)
	if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), lost.Keys.Active(bodies.Annotations)) ||
		!strings.Contains(err.Error(), "CHANDLER_ANNOTATION_KEY") {
		t.Errorf("a body of a lost key: %v", err)
	}
	second := commit(now, first)
	if body, err := now.Body(t.Context(), pool, tenant, second); err != nil || string(body) != `{"a":"b"}` {
		t.Errorf("written again it is %q, %v", body, err)
	}
	if third := commit(now, second); first == second || third != second {
		t.Errorf("commitments %s, %s and %s: the second is to be new, the third is not", first, second, third)
	}
}

// BenchmarkBodiesOfAPage reads what a page of 500 catalogs has in the database, sealed and as releases before kept it.
func BenchmarkBodiesOfAPage(b *testing.B) {
	const page = 500
	d := pgtest.DB(b)
	pool := d.Pool(b, "gateway")
	keys := bodiestest.Keys(b)
	pages := map[string][]string{}
	for _, r := range []struct {
		name string
		put  func(bodies.Row) (bodies.Row, error)
	}{
		{"Clear", func(r bodies.Row) (bodies.Row, error) { return r, nil }},
		{"Sealed", func(r bodies.Row) (bodies.Row, error) { return keys.Seal(tenant, r) }},
	} {
		for i := range page {
			salt := []byte("the salt of tests")
			body := fmt.Appendf(nil, `{"image":"registry.example/%s/catalog:v%d"}`, r.name, i)
			row, err := r.put(bodies.Row{
				Commitment: digest.Commitment(salt, body), Kind: bodies.Source, Salt: salt, Body: body,
			})
			if err != nil {
				b.Fatal(err)
			}
			_, err = pool.Exec(b.Context(), `insert into gateway.bodies (tenant, commitment, kind, key_id, salt, body)
				values ($1, $2, $3, $4, $5, $6)`, tenant, row.Commitment, row.Kind, row.KeyID, row.Salt, row.Body)
			if err != nil {
				b.Fatal(err)
			}
			pages[r.name] = append(pages[r.name], row.Commitment)
		}
	}
	if _, err := d.Pool(b, pgtest.Admin).Exec(b.Context(), `analyze gateway.bodies`); err != nil {
		b.Fatal(err)
	}
	for name, commitments := range pages {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				all, err := keys.ReadAll(b.Context(), pool, bodies.Table, tenant, commitments)
				if err != nil || len(all) != page {
					b.Fatalf("%d bodies, %v", len(all), err)
				}
			}
		})
	}
}
