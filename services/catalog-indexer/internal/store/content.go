package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Contents stores bundles by digest, in packs of chunks.
type Contents struct {
	pool   *pg.Pool
	reader *content.Reader
}

const (
	// batchBytes is how many new chunks are gathered before they are packed and written in one transaction:
	// a full pack. As much again may be in work, which bounds what waits in memory.
	batchBytes = content.PackBytes
	// batchRows bounds the rows of one such transaction, for versions that bring next to nothing new.
	batchRows = 2048
	// knownChunks is from how many chunks on, 15 MB of memory, a load forgets what it knows of packages: a
	// catalog comes package by package. 1,171 bundles of 59 packages have 34,000.
	knownChunks = 200_000
	// touchEvery spares writing: a row that was touched less than this ago is not touched again.
	touchEvery = Grace / 4
)

// ContentWriter stores the content of one load (libs/content). Its methods may be called from several
// goroutines. Batches are packed and written by one goroutine in the order in which they were gathered,
// since recipes name packs of batches before; what parses goes on meanwhile. Flush ends it.
type ContentWriter struct {
	contents *Contents
	ctx      context.Context //nolint:containedctx // the writer lives for one load, whose callback has no context
	tenant   string
	packs    *packCache
	out      chan *batch
	done     chan struct{} // closed when the last batch is written or refused
	failed   atomic.Pointer[error]

	mu      sync.Mutex
	seen    map[digest.Digest]string // contents of this load, with their package
	indexes map[string]*chunkIndex
	next    *batch
	// Stored and Known count bundles that were written, and that were there already or remembered.
	Stored, Known int
}

// Writer returns a writer for one load; ctx bounds it. Flush must be called.
func (s *Contents) Writer(ctx context.Context, tenant string) (*ContentWriter, error) {
	w := &ContentWriter{
		contents: s, ctx: ctx, tenant: tenant, packs: newPackCache(s.pool, tenant),
		out: make(chan *batch), done: make(chan struct{}),
		seen: map[digest.Digest]string{}, indexes: map[string]*chunkIndex{}, next: &batch{},
	}
	go w.write()
	return w, nil
}

// Keep stores one bundle unless it is there. It is written when enough is gathered, or by Flush.
func (w *ContentWriter) Keep(c load.Content) error {
	if !w.first(c) {
		return nil
	}
	there, err := w.contents.has(w.ctx, w.tenant, c.Digest)
	if err != nil || there {
		w.known(there, c.Digest)
		return err
	}
	if len(c.Canonical) > content.MaxValueBytes {
		return errs.New(errs.TooLarge, "bundle %s has %d bytes, more than %d", c.Bundle, len(c.Canonical),
			bundle.MaxBytes).At("", "bundle.MaxBytes")
	}
	return w.add(c.Package, c.Canonical, func(r row) {
		w.Stored++
		w.next.contents = append(w.next.contents, contentRow{row: r, digest: c.Digest})
	})
}

// first reports whether a bundle was not met in this load yet.
func (w *ContentWriter) first(c load.Content) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, met := w.seen[c.Digest]
	if !met {
		w.seen[c.Digest] = c.Package
	}
	return !met
}

// known counts a bundle that is stored, and has it touched: the collector shall not take it before the
// revision refers to it.
func (w *ContentWriter) known(there bool, d digest.Digest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !there {
		return
	}
	w.Known++
	if d != "" {
		w.next.touched = append(w.next.touched, d)
	}
}

// add adds a value to the chunk index of its package and hands its row to take, under the lock.
func (w *ContentWriter) add(pkg string, value []byte, take func(row)) error {
	chunks := content.Split(value)
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.chunkIndex(pkg)
	if err != nil {
		return err
	}
	before := s.Pending()
	r := row{index: s, size: len(value), recipe: s.Add(value, chunks)}
	w.next.bytes += s.Pending() - before
	w.next.use(s)
	take(r)
	if w.next.bytes >= batchBytes || w.next.rows() >= batchRows {
		w.send()
	}
	return w.err()
}

// err is what ended the writing of batches.
func (w *ContentWriter) err() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// send hands the batch on, under the lock. It waits for the one before to be written, and so does
// everybody: that keeps the order, and bounds memory.
func (w *ContentWriter) send() {
	b := w.next
	w.next = &batch{}
	b.take()
	chunks := 0
	for _, s := range w.indexes {
		chunks += s.Chunks()
	}
	if chunks > knownChunks {
		clear(w.indexes)
	}
	w.out <- b
}

// Recall implements load.Memory. What names content that is not stored is as if forgotten.
func (w *ContentWriter) Recall(key digest.Digest) ([]byte, error) {
	var r packedValue
	var named digest.Digest
	err := w.contents.pool.QueryRow(w.ctx, `select value, recipe, packs, content from catalog.decoded d
		where tenant = $1 and key = $2
		and (content = '' or exists (select from catalog.contents c where c.tenant = d.tenant
		and c.digest = d.content))`, w.tenant, key).
		Scan(&r.whole, &r.recipe, &r.packs, &named)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, pg.Err(err)
	}
	value, err := w.packs.value(w.ctx, r)
	if errs.Is(err, errs.NotFound) || errs.Is(err, errs.Invalid) {
		return nil, nil // a cache: what cannot be read is decoded again
	}
	if err != nil {
		return nil, err
	}
	w.known(true, named)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next.recalled = append(w.next.recalled, key)
	return value, nil
}

// Remember implements load.Memory. The value is written with the content that it names, whose package
// it shares icons and descriptions with.
func (w *ContentWriter) Remember(key, named digest.Digest, value []byte) error {
	if len(value) > content.MaxValueBytes {
		return nil // not worth remembering
	}
	return w.add(w.packageOf(named, value), value, func(r row) {
		w.next.decoded = append(w.next.decoded, decodedRow{row: r, key: key, content: named})
	})
}

// packageOf is the package whose chunk index a remembered value is added to. A wrong guess would only find fewer of
// its chunks.
func (w *ContentWriter) packageOf(named digest.Digest, value []byte) string {
	w.mu.Lock()
	pkg := w.seen[named]
	w.mu.Unlock()
	if pkg != "" {
		return pkg
	}
	field := []byte(`"package":"`)
	at := bytes.LastIndex(value, field)
	if at < 0 {
		return ""
	}
	name, _, _ := bytes.Cut(value[at+len(field):], []byte(`"`))
	if len(name) > maxIndexName || !json.Valid(append(append([]byte{'"'}, name...), '"')) {
		return ""
	}
	return string(name)
}

// maxIndexName bounds the name of a chunk index; a package's name is a DNS label or close to it.
const maxIndexName = 253

// Flush writes what is gathered and ends the writer. After it everything that Keep took is stored.
func (w *ContentWriter) Flush() error {
	w.mu.Lock()
	if !w.next.empty() {
		w.send()
	}
	w.mu.Unlock()
	close(w.out)
	<-w.done
	w.packs.close()
	return w.err()
}

// write packs and writes batches until there are no more. After the first error it only takes them.
func (w *ContentWriter) write() {
	defer close(w.done)
	packer := content.NewPacker(1)
	for b := range w.out {
		if w.err() != nil {
			continue
		}
		if err := w.contents.putBatch(w.ctx, w.tenant, packer, b); err != nil {
			w.failed.Store(&err)
		}
	}
}

func (s *Contents) has(ctx context.Context, tenant string, d digest.Digest) (bool, error) {
	var there bool
	err := s.pool.QueryRow(ctx, `select exists (select from catalog.contents where tenant = $1 and digest = $2)`,
		tenant, d).Scan(&there)
	return there, pg.Err(err)
}
