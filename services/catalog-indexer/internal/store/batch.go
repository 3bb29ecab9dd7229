package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// batch is what is written in one transaction: new packs with everything that names them.
type batch struct {
	contents []contentRow
	decoded  []decodedRow
	packages []packageRow
	touched  []digest.Digest // contents that are stored and relied upon
	recalled []digest.Digest // keys of remembered values that were used
	indexes  []*chunkIndex
	packs    []newPack
	bytes    int // of new chunks
}

// row is a value as a recipe. Its packs have ids once the batch's are stored.
type row struct {
	index  *chunkIndex
	size   int
	recipe content.Recipe
}

type contentRow struct {
	row
	digest digest.Digest
}

type decodedRow struct {
	row
	key, content digest.Digest
}

type packageRow struct {
	row
	digest   digest.Digest
	name     string
	contents []int64
}

type newPack struct {
	index *chunkIndex
	content.Numbered
	digest digest.Digest
	data   []byte
}

func (b *batch) rows() int {
	return len(b.contents) + len(b.decoded) + len(b.packages) + len(b.touched) + len(b.recalled)
}

func (b *batch) empty() bool { return b.rows() == 0 }

// use notes that a chunk index has something for this batch.
func (b *batch) use(s *chunkIndex) {
	if !slices.Contains(b.indexes, s) {
		b.indexes = append(b.indexes, s)
	}
}

// take takes the packs from the chunk indexes: from here on the batch belongs to who writes it.
func (b *batch) take() {
	for _, s := range b.indexes {
		for _, p := range s.Take() {
			b.packs = append(b.packs, newPack{index: s, Numbered: p})
		}
	}
}

// ids are the packs of a row.
func (r row) ids() string {
	var list []int64
	for _, n := range r.recipe.Packs() {
		list = append(list, r.index.ids[n])
	}
	return array(list)
}

// array writes numbers as Postgres reads an array.
func array(list []int64) string {
	b := []byte{'{'}
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, '}'))
}

// putBatch packs a batch and writes it.
func (s *Contents) putBatch(ctx context.Context, tenant string, packer *content.Packer, b *batch) error {
	for i := range b.packs {
		p := &b.packs[i]
		p.data = packer.Pack(p.Raw)
		p.digest = digest.Bytes(p.data)
	}
	err := s.pool.Tx(ctx, func(tx pgx.Tx) error {
		if err := share(ctx, tx); err != nil {
			return err
		}
		if err := putPacks(ctx, tx, tenant, b.packs); err != nil {
			return err
		}
		if err := b.sources(ctx, tx, tenant); err != nil {
			return err
		}
		if err := putContents(ctx, tx, tenant, b.contents); err != nil {
			return err
		}
		if err := putDecoded(ctx, tx, tenant, b.decoded); err != nil {
			return err
		}
		if err := putPackages(ctx, tx, tenant, b.packages); err != nil {
			return err
		}
		return touch(ctx, tx, tenant, b)
	})
	if err != nil {
		return fmt.Errorf("store %d bundles: %w", len(b.contents), err)
	}
	return nil
}

// putPacks writes packs and learns their ids. One that is there keeps its id.
func putPacks(ctx context.Context, tx pgx.Tx, tenant string, packs []newPack) error {
	var digests, indexes []string
	var sizes []int
	var data [][]byte
	ids := make(map[digest.Digest]int64, len(packs))
	for _, p := range packs {
		if _, twice := ids[p.digest]; twice {
			continue
		}
		ids[p.digest] = 0
		digests, indexes, sizes, data = append(digests, string(p.digest)), append(indexes, p.index.name),
			append(sizes, p.Size()), append(data, p.data)
	}
	rows, err := tx.Query(ctx, `insert into catalog.packs as p (tenant, digest, shelf, size, data)
		select $1, d, s, n, b from unnest($2::text[], $3::text[], $4::int[], $5::bytea[]) as u(d, s, n, b) order by d
		on conflict (tenant, digest) do update set shelf = p.shelf returning digest, id`, tenant, digests, indexes, sizes, data)
	if err != nil {
		return err
	}
	var d digest.Digest
	var id int64
	if _, err = pgx.ForEachRow(rows, []any{&d, &id}, func() error { ids[d] = id; return nil }); err != nil {
		return err
	}
	for _, p := range packs {
		p.index.ids[p.Number] = ids[p.digest]
	}
	return nil
}

// sources checks that every pack that the batch names is stored. One that was learned at the beginning of
// the load may have been garbage, and collected since.
func (b *batch) sources(ctx context.Context, tx pgx.Tx, tenant string) error {
	named := map[int64]bool{}
	for _, c := range b.contents {
		c.names(named)
	}
	for _, d := range b.decoded {
		d.names(named)
	}
	for _, p := range b.packages {
		p.names(named)
	}
	ids := make([]int64, 0, len(named))
	for id := range named {
		ids = append(ids, id)
	}
	var there int
	if err := tx.QueryRow(ctx, `select count(*) from catalog.packs where tenant = $1 and id = any($2)`, tenant,
		ids).Scan(&there); err != nil {
		return err
	}
	if there != len(ids) {
		return errs.New(errs.Conflict,
			"%d of %d packs that new bundles share chunks with were collected meanwhile; polling again", len(ids)-there,
			len(ids))
	}
	return nil
}

func (r row) names(ids map[int64]bool) {
	for _, n := range r.recipe.Packs() {
		ids[r.index.ids[n]] = true
	}
}

func putContents(ctx context.Context, tx pgx.Tx, tenant string, batch []contentRow) error {
	digests, sizes := make([]string, len(batch)), make([]int, len(batch))
	recipes, packs := make([][]byte, len(batch)), make([]string, len(batch))
	for i, c := range batch {
		digests[i], sizes[i], recipes[i], packs[i] = string(c.digest), c.size, c.recipe.Encode(), c.ids()
	}
	_, err := tx.Exec(ctx, `insert into catalog.contents as c (tenant, digest, size, recipe, packs)
		select $1, d, s, r, p::bigint[] from unnest($2::text[], $3::bigint[], $4::bytea[], $5::text[]) as u(d, s, r, p)
		order by d on conflict (tenant, digest) do update set touched = now() where c.touched < now() - $6::interval`,
		tenant, digests, sizes, recipes, packs, touchEvery)
	return err
}

func putDecoded(ctx context.Context, tx pgx.Tx, tenant string, batch []decodedRow) error {
	keys, contents := make([]string, len(batch)), make([]string, len(batch))
	recipes, packs := make([][]byte, len(batch)), make([]string, len(batch))
	for i, d := range batch {
		keys[i], contents[i], recipes[i], packs[i] = string(d.key), string(d.content), d.recipe.Encode(), d.ids()
	}
	// The same text may be in two places of a catalog.
	_, err := tx.Exec(ctx, `insert into catalog.decoded (tenant, key, content, recipe, packs)
		select distinct on (k) $1, k, c, r, p::bigint[]
		from unnest($2::text[], $3::text[], $4::bytea[], $5::text[]) as u(k, c, r, p)
		order by k on conflict (tenant, key) do update set content = excluded.content, value = null,
		  recipe = excluded.recipe, packs = excluded.packs, touched = now()`, tenant, keys, contents, recipes, packs)
	return err
}

func putPackages(ctx context.Context, tx pgx.Tx, tenant string, batch []packageRow) error {
	digests, names, recipes := make([]string, len(batch)), make([]string, len(batch)), make([][]byte, len(batch))
	packs, contents := make([]string, len(batch)), make([]string, len(batch))
	for i, p := range batch {
		digests[i], names[i], recipes[i], packs[i], contents[i] = string(p.digest), p.name, p.recipe.Encode(), p.ids(),
			array(p.contents)
	}
	_, err := tx.Exec(ctx, `insert into catalog.packages as p (tenant, digest, package, recipe, packs, contents)
		select $1, d, n, r, i::bigint[], c::bigint[] from unnest($2::text[], $3::text[], $4::bytea[], $5::text[],
		$6::text[]) as u(d, n, r, i, c)
		order by d on conflict (tenant, digest) do update set touched = greatest(p.touched, now())`, tenant, digests, names, recipes, packs, contents)
	return err
}

// touch gives what a load relies upon another lease of life. A row that somebody else is touching is left
// to them.
func touch(ctx context.Context, tx pgx.Tx, tenant string, b *batch) error {
	const contents = `update catalog.contents set touched = now() where tenant = $1 and digest in (select digest
		from catalog.contents
		where tenant = $1 and digest = any($2) and touched < now() - $3::interval for no key update skip locked)`
	const decoded = `update catalog.decoded set touched = now() where tenant = $1 and key in (select key
		from catalog.decoded
		where tenant = $1 and key = any($2) and touched < now() - $3::interval for no key update skip locked)`
	if len(b.touched) > 0 {
		if _, err := tx.Exec(ctx, contents, tenant, b.touched, touchEvery); err != nil {
			return err
		}
	}
	if len(b.recalled) > 0 {
		if _, err := tx.Exec(ctx, decoded, tenant, b.recalled, touchEvery); err != nil {
			return err
		}
	}
	return nil
}
