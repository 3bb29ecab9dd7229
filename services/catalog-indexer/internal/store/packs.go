package store

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// learnBytes bounds the chunks of stored packs that a load compares with: the latest ones, of which a
	// new version has most. It takes some 60 ms.
	learnBytes = 32 << 20
	// cachedPackBytes bounds unpacked packs in memory while remembered values are read: a catalog comes
	// package by package.
	cachedPackBytes = 16 << 20
)

// chunkIndex is a package's chunk index with the ids of its packs, by number. Its name is in the column shelf. After
// a pack was learned only the
// goroutine that writes batches reads and sets ids.
type chunkIndex struct {
	*content.ChunkIndex
	name string
	ids  map[int]int64
}

// chunkIndex returns the chunk index of a package. The first time in a load it is learned from what is stored.
func (w *ContentWriter) chunkIndex(name string) (*chunkIndex, error) {
	name = storableKey(name)
	if s := w.indexes[name]; s != nil {
		return s, nil
	}
	s := &chunkIndex{ChunkIndex: content.NewChunkIndex(), name: name, ids: map[int]int64{}}
	rows, err := w.contents.pool.Query(w.ctx, `select id, data from (
		  select id, data, sum(size) over (order by id desc) as so_far from catalog.packs
		  where tenant = $1 and shelf = $2) as p
		where so_far <= $3 order by id`, w.tenant, name, learnBytes)
	if err != nil {
		return nil, pg.Err(err)
	}
	var id int64
	var data []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &data}, func() error {
		p, err := w.packs.unpacker.Unpack(data)
		if err == nil { // one that cannot be read is one that nothing new shall draw on
			s.ids[s.Learn(p)] = id
		}
		return nil
	})
	if err != nil {
		return nil, pg.Err(err)
	}
	w.indexes[name] = s
	return s, nil
}

// Read returns a canonical bundle; errs.NotFound where it is not stored.
func (s *Contents) Read(ctx context.Context, tenant string, d digest.Digest) ([]byte, error) {
	var r content.Stored
	err := s.pool.QueryRow(
		ctx, `select pack, recipe, packs from catalog_api.contents where tenant = $1 and digest = $2`, tenant, d).
		Scan(&r.Whole, &r.Recipe, &r.Packs)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errs.New(errs.NotFound, "content %s is not stored", d)
	}
	if err != nil {
		return nil, pg.Err(err)
	}
	return s.reader.Bundle(d, r)
}

// packedValue is a value as its row holds it.
type packedValue struct {
	whole, recipe []byte
	packs         []int64
}

// packCache reads values of one tenant, many of the same packs in a row.
type packCache struct {
	pool     *pg.Pool
	tenant   string
	unpacker *content.Unpacker

	mu    sync.Mutex
	packs map[int64]content.Pack
	order []int64 // the first one goes first
	bytes int
}

func newPackCache(pool *pg.Pool, tenant string) *packCache {
	return &packCache{pool: pool, tenant: tenant, unpacker: content.NewUnpacker(), packs: map[int64]content.Pack{}}
}

func (c *packCache) close() { c.unpacker.Close() }

// value assembles a value.
func (c *packCache) value(ctx context.Context, r packedValue) ([]byte, error) {
	if r.recipe == nil {
		return content.Decompress(r.whole)
	}
	return content.Assemble(r.recipe, len(r.packs),
		func(i int) (content.Pack, error) { return c.pack(ctx, r.packs[i]) })
}

// pack returns a pack; errs.NotFound where it is not stored any more.
func (c *packCache) pack(ctx context.Context, id int64) (content.Pack, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.packs[id]; ok {
		return p, nil
	}
	var data []byte
	err := c.pool.QueryRow(ctx, `select data from catalog.packs where tenant = $1 and id = $2`, c.tenant,
		id).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return content.Pack{}, errs.New(errs.NotFound, "pack %d is not stored", id)
	}
	if err != nil {
		return content.Pack{}, pg.Err(err)
	}
	p, err := c.unpacker.Unpack(data)
	if err != nil {
		return content.Pack{}, err
	}
	for c.bytes+p.Size() > cachedPackBytes && len(c.order) > 0 {
		c.bytes -= c.packs[c.order[0]].Size()
		delete(c.packs, c.order[0])
		c.order = c.order[1:]
	}
	c.packs[id], c.order, c.bytes = p, append(c.order, id), c.bytes+p.Size()
	return p, nil
}
