package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// maxSearchedDescription bounds how much of a description is searched: what an operator is for is said at
	// its beginning, and the rest is how to use it, with words that every operator has.
	maxSearchedDescription = 4 << 10
	// fillPage is how many documents FillSearch holds at a time; the largest have some megabytes.
	fillPage = 16
)

// Search makes stored packages findable.
type Search struct {
	pool      *pg.Pool
	documents *Documents
}

// PutSearch makes packages findable: one row for each document, with the tile that lists show (R-CAT-106,
// R-UI-1). It belongs into the transaction that publishes a revision of them, so that what is served is
// found. Rows that are there are left alone, so that only new packages need to be given.
func PutSearch(ctx context.Context, tx pgx.Tx, tenant string, packages []catalog.Package,
	digests map[string]digest.Digest,
) error {
	var b pgx.Batch
	for i := range packages {
		p := &packages[i]
		card, metadata := display.Of(p)
		raw, err := json.Marshal(card)
		if err != nil {
			return fmt.Errorf("search row of package %s: %w", p.Name, err)
		}
		b.Queue(`with names as (select setweight(to_tsvector('simple', $5), 'A') || setweight(to_tsvector('english',
			$5), 'A') ||
				setweight(to_tsvector('english', $6), 'B') || setweight(to_tsvector('english', $7), 'C') as v)
			insert into catalog.search (tenant, digest, package, card, names, words)
			select $1, $2, $3, $4, v, v || setweight(to_tsvector('english', $8), 'D') from names on conflict do nothing`,
			tenant, digests[p.Name], p.Name, raw,
			spaced(p.Name, card.DisplayName), spaced(
				append(append([]string{card.Provider}, card.Keywords...), card.Categories...)...),
			clean(card.Summary), clean(head(metadata.Description)))
	}
	if b.Len() == 0 {
		return nil
	}
	return pg.Err(tx.SendBatch(ctx, &b).Close())
}

// Fill writes the rows of packages that were stored before search rows were, a few at a time. It is
// called once at a start; where nothing is missing it is one query.
func (s *Search) Fill(ctx context.Context) error {
	rows, err := s.pool.Query(ctx, `select p.tenant, p.digest, p.package from catalog.packages p
		where not exists (select from catalog.search s where s.tenant = p.tenant and s.digest = p.digest)
		order by p.tenant, p.digest`)
	if err != nil {
		return pg.Err(err)
	}
	type key struct {
		Tenant, Package string
		Digest          digest.Digest
	}
	missing, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (k key, err error) {
		err = r.Scan(&k.Tenant, &k.Digest, &k.Package)
		return k, err
	})
	if err != nil {
		return pg.Err(err)
	}
	for len(missing) > 0 {
		n := min(fillPage, len(missing))
		err := s.pool.Tx(ctx, func(tx pgx.Tx) error {
			for _, k := range missing[:n] {
				p, err := s.documents.Package(ctx, k.Tenant, k.Digest)
				if err != nil {
					return err
				}
				if err := PutSearch(ctx, tx, k.Tenant, []catalog.Package{p},
					map[string]digest.Digest{p.Name: k.Digest}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("make the search rows of stored packages: %w", err)
		}
		missing = missing[n:]
	}
	return nil
}

// spaced joins words, and gives names such as cert-manager in their parts, too: left to itself Postgres
// takes one with dots for a host.
func spaced(words ...string) string {
	var out []string
	for _, w := range words {
		w = clean(w)
		out = append(out, w)
		if parts := strings.FieldsFunc(w, func(r rune) bool { return strings.ContainsRune("-._/", r) }); len(
			parts) > 1 {
			out = append(out, strings.Join(parts, " "))
		}
	}
	return strings.Join(out, " ")
}

// clean drops what Postgres does not take in text.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
}

// head is the part of a description that is searched.
func head(s string) string { return s[:min(len(s), maxSearchedDescription)] }
