package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// batchBytes is how much packed content is written in one transaction: it spreads the price of a
	// commit over many bundles and bounds what waits in memory.
	batchBytes = 4 << 20
	// batchRows bounds the rows of one such transaction, for content that packs to next to nothing.
	batchRows = 256
	// MaxDocumentBytes bounds a package document as JSON; the largest real one has 4 MB.
	MaxDocumentBytes = 64 << 20
)

// ContentWriter stores the content of one load. Its methods may be called from several goroutines.
type ContentWriter struct {
	store    *Store
	ctx      context.Context //nolint:containedctx // the writer lives for one load, whose callback has no context
	tenant   string
	packer   *bundle.Packer
	unpacker *zstd.Decoder

	mu      sync.Mutex
	seen    map[digest.Digest]bool
	batch   []content
	decoded []decoded
	bytes   int
	// Stored and Known count bundles that were written, and that were there already or remembered.
	Stored, Known int
}

type content struct {
	digest digest.Digest
	size   int
	pack   []byte
}

type decoded struct {
	key, content digest.Digest
	value        []byte
}

// Contents returns a writer for one load; ctx bounds it.
func (s *Store) Contents(ctx context.Context, tenant string) (*ContentWriter, error) {
	unpacker, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(MaxDocumentBytes))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "zstd")
	}
	return &ContentWriter{store: s, ctx: ctx, tenant: tenant, unpacker: unpacker, packer: bundle.NewPacker(runtime.GOMAXPROCS(0)), seen: map[digest.Digest]bool{}}, nil
}

// Keep stores one bundle unless it is there. It is written when enough is gathered, or by Flush.
func (w *ContentWriter) Keep(c catalog.Content) error {
	if !w.first(c.Digest) {
		return nil
	}
	there, err := w.store.hasContent(w.ctx, w.tenant, c.Digest)
	if err != nil || there {
		w.count(there)
		return err
	}
	return w.add(content{c.Digest, len(c.Canonical), w.packer.Pack(c.Canonical)})
}

func (w *ContentWriter) first(d digest.Digest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[d] {
		return false
	}
	w.seen[d] = true
	return true
}

func (w *ContentWriter) count(known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known {
		w.Known++
	}
}

func (w *ContentWriter) add(c content) error {
	w.mu.Lock()
	w.Stored++
	w.batch = append(w.batch, c)
	w.bytes += len(c.pack)
	w.mu.Unlock()
	return w.flush(false)
}

// Recall implements catalog.Memory. What names content that is not stored is as if forgotten.
func (w *ContentWriter) Recall(key digest.Digest) ([]byte, error) {
	var packed []byte
	err := w.store.pool.QueryRow(w.ctx, `select value from catalog.decoded d where tenant = $1 and key = $2
		and (content = '' or exists (select from catalog.contents c where c.tenant = d.tenant and c.digest = d.content))`, w.tenant, key).Scan(&packed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, pg.Err(err)
	}
	w.count(true)
	return w.unpacker.DecodeAll(packed, nil)
}

// Remember implements catalog.Memory. The value is written with the content that it names.
func (w *ContentWriter) Remember(key, content digest.Digest, value []byte) error {
	packed := w.packer.Pack(value)
	w.mu.Lock()
	w.decoded = append(w.decoded, decoded{key, content, packed})
	w.bytes += len(packed)
	w.mu.Unlock()
	return w.flush(false)
}

// Flush writes what is gathered. After it everything that Keep took is stored.
func (w *ContentWriter) Flush() error {
	defer w.unpacker.Close()
	return w.flush(true)
}

// flush writes what is gathered if it is enough for a transaction, or all of it.
func (w *ContentWriter) flush(all bool) error {
	w.mu.Lock()
	if !all && w.bytes < batchBytes && len(w.batch)+len(w.decoded) < batchRows {
		w.mu.Unlock()
		return nil
	}
	contents, values := w.batch, w.decoded
	w.batch, w.decoded, w.bytes = nil, nil, 0
	w.mu.Unlock()
	if len(contents)+len(values) == 0 {
		return nil
	}
	err := w.store.pool.Tx(w.ctx, func(tx pgx.Tx) error {
		if err := putContents(w.ctx, tx, w.tenant, contents); err != nil {
			return err
		}
		return putDecoded(w.ctx, tx, w.tenant, values)
	})
	if err != nil {
		return fmt.Errorf("store %d bundles: %w", len(contents), err)
	}
	return nil
}

func (s *Store) hasContent(ctx context.Context, tenant string, d digest.Digest) (bool, error) {
	var there bool
	err := s.pool.QueryRow(ctx, `select exists (select from catalog.contents where tenant = $1 and digest = $2)`, tenant, d).Scan(&there)
	return there, pg.Err(err)
}

func putContents(ctx context.Context, tx pgx.Tx, tenant string, batch []content) error {
	digests, sizes, packs := make([]string, len(batch)), make([]int64, len(batch)), make([][]byte, len(batch))
	for i, c := range batch {
		digests[i], sizes[i], packs[i] = string(c.digest), int64(c.size), c.pack
	}
	_, err := tx.Exec(ctx, `insert into catalog.contents (tenant, digest, size, pack)
		select $1, d, s, p from unnest($2::text[], $3::bigint[], $4::bytea[]) as u(d, s, p)
		order by d on conflict do nothing`, tenant, digests, sizes, packs)
	return err
}

func putDecoded(ctx context.Context, tx pgx.Tx, tenant string, batch []decoded) error {
	keys, contents, values := make([]string, len(batch)), make([]string, len(batch)), make([][]byte, len(batch))
	for i, d := range batch {
		keys[i], contents[i], values[i] = string(d.key), string(d.content), d.value
	}
	_, err := tx.Exec(ctx, `insert into catalog.decoded (tenant, key, content, value)
		select $1, k, c, v from unnest($2::text[], $3::text[], $4::bytea[]) as u(k, c, v)
		order by k on conflict do nothing`, tenant, keys, contents, values)
	return err
}

// PutPackages stores package documents by digest; those that are there are left alone.
func (s *Store) PutPackages(ctx context.Context, tenant string, packages []catalog.Package, digests map[string]digest.Digest) error {
	missing, err := s.missing(ctx, "catalog.packages", tenant, digests)
	if err != nil {
		return err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return errs.Wrap(errs.Internal, err, "zstd")
	}
	for _, p := range packages {
		d := digests[p.Name]
		if !missing[d] {
			continue
		}
		raw, err := digest.Canonical(p)
		if err != nil {
			return fmt.Errorf("package %s: %w", p.Name, err)
		}
		if len(raw) > MaxDocumentBytes {
			return errs.New(errs.TooLarge, "the document of package %s has %d bytes, more than %d", p.Name, len(raw), MaxDocumentBytes)
		}
		_, err = s.pool.Exec(ctx, `insert into catalog.packages (tenant, digest, package, document) values ($1, $2, $3, $4) on conflict do nothing`,
			tenant, d, p.Name, enc.EncodeAll(raw, nil))
		if err != nil {
			return fmt.Errorf("store package %s: %w", p.Name, pg.Err(err))
		}
	}
	return nil
}

// missing returns which digests a table does not hold.
func (s *Store) missing(ctx context.Context, table, tenant string, digests map[string]digest.Digest) (map[digest.Digest]bool, error) {
	out := map[digest.Digest]bool{}
	list := make([]string, 0, len(digests))
	for _, d := range digests {
		out[d] = true
		list = append(list, string(d))
	}
	rows, err := s.pool.Query(ctx, `select digest from `+table+` where tenant = $1 and digest = any($2)`, tenant, list)
	if err != nil {
		return nil, pg.Err(err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, d := range there {
		delete(out, digest.Digest(d))
	}
	return out, pg.Err(err)
}

// Revision returns the packages of a revision; "" has none.
func (s *Store) Revision(ctx context.Context, tenant string, revision digest.Digest) (map[string]digest.Digest, error) {
	out := map[string]digest.Digest{}
	rows, err := s.pool.Query(ctx, `select package, digest from catalog.revision_packages where tenant = $1 and revision = $2`, tenant, revision)
	if err != nil {
		return nil, pg.Err(err)
	}
	var name string
	var d digest.Digest
	_, err = pgx.ForEachRow(rows, []any{&name, &d}, func() error { out[name] = d; return nil })
	return out, pg.Err(err)
}

// Package reads a package document.
func (s *Store) Package(ctx context.Context, tenant string, d digest.Digest) (catalog.Package, error) {
	var p catalog.Package
	var document []byte
	err := s.pool.QueryRow(ctx, `select document from catalog.packages where tenant = $1 and digest = $2`, tenant, d).Scan(&document)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, errs.New(errs.NotFound, "package document %s is not stored", d)
	}
	if err != nil {
		return p, pg.Err(err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxDocumentBytes))
	if err != nil {
		return p, errs.Wrap(errs.Internal, err, "zstd")
	}
	defer dec.Close()
	raw, err := dec.DecodeAll(document, nil)
	if err != nil {
		return p, errs.Wrap(errs.Internal, err, "package document %s", d)
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, errs.Wrap(errs.Internal, err, "package document %s", d)
	}
	return p, nil
}

// PutBlobs stores blobs of unknown schemas by the digest of their bytes.
func (s *Store) PutBlobs(ctx context.Context, tenant string, blobs []catalog.Blob) error {
	for _, b := range blobs {
		_, err := s.pool.Exec(ctx, `insert into catalog.documents (tenant, digest, body) values ($1, $2, $3) on conflict do nothing`,
			tenant, b.Digest, []byte(b.Raw))
		if err != nil {
			return fmt.Errorf("store a blob of schema %s: %w", b.Schema, pg.Err(err))
		}
	}
	return nil
}

// PutFindings stores the report of a look and returns its digest, "" where there is nothing to report.
func (s *Store) PutFindings(ctx context.Context, c Catalog, f catalog.Findings) (digest.Digest, error) {
	if len(f) == 0 {
		return "", nil
	}
	d, err := digest.JSON("chandler.findings.v1", f)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	_, err = s.pool.Exec(ctx, `insert into catalog.findings (tenant, document, catalog, findings) values ($1, $2, $3, $4) on conflict do nothing`,
		c.Tenant, d, c.Stream, raw)
	return d, pg.Err(err)
}

// insertRevision writes what a revision is made of; it may be there from another catalog.
func insertRevision(ctx context.Context, tx pgx.Tx, tenant string, p *Published) error {
	names, digests := make([]string, 0, len(p.Packages)), make([]string, 0, len(p.Packages))
	for n, d := range p.Packages {
		names, digests = append(names, n), append(digests, string(d))
	}
	if _, err := tx.Exec(ctx, `insert into catalog.revision_packages (tenant, revision, package, digest)
		select $1, $2, n, d from unnest($3::text[], $4::text[]) as u(n, d) order by n on conflict do nothing`,
		tenant, p.Revision, names, digests); err != nil {
		return err
	}
	for _, b := range p.Blobs {
		if _, err := tx.Exec(ctx, `insert into catalog.revision_blobs (tenant, revision, package, schema, name, digest)
			values ($1, $2, $3, $4, $5, $6) on conflict do nothing`, tenant, p.Revision, b.Package, b.Schema, b.Name, b.Digest); err != nil {
			return err
		}
	}
	return nil
}
