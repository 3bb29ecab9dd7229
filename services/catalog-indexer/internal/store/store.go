// Package store holds the indexer's state in Postgres, schema catalog: catalogs as the log tells
// them, and everything that is stored once by digest.
//
// Order of writing (a crash between any two lines must change nothing): content, package documents
// and blobs first, in transactions of their own, since nothing refers to them yet and writing them
// again is a no-op; then, in one transaction, the revision, the live pointer and the event.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// commandSpace is the UUIDv5 namespace of the indexer's commands. It is arbitrary and must never change.
var commandSpace = uuid.MustParse("5f0c64c1-36a8-5d6e-8f55-0a2b7c1de903")

// DirtyTable is the table of the lanes; its column "cluster" holds the stream.
const DirtyTable = "catalog.dirty"

// Catalog is one life of a catalog.
type Catalog struct {
	Tenant, Stream, Subject string
	SourceType, Spec        string
	Removed                 bool
	Wanted, Looked          int64 // looks asked for, and the last one that was answered
	Fingerprint             string
	Revision                digest.Digest
	FailedInput             string
}

// Store reads and writes the schema.
type Store struct {
	pool *pg.Pool
	log  *eventlog.Log
}

// New returns the store of a database; log is where outcomes are appended.
func New(pool *pg.Pool, log *eventlog.Log) *Store { return &Store{pool: pool, log: log} }

const columns = `tenant, stream, subject, source_type, spec, removed, wanted, looked, fingerprint, revision, failed_input`

func scan(row pgx.Row) (Catalog, error) {
	var c Catalog
	err := row.Scan(&c.Tenant, &c.Stream, &c.Subject, &c.SourceType, &c.Spec, &c.Removed, &c.Wanted, &c.Looked,
		&c.Fingerprint, &c.Revision, &c.FailedInput)
	return c, err
}

// Get returns one catalog; errs.NotFound where there is none.
func (s *Store) Get(ctx context.Context, tenant, stream string) (Catalog, error) {
	c, err := scan(s.pool.QueryRow(ctx, `select `+columns+` from catalog.catalogs where tenant = $1 and stream = $2`, tenant, stream))
	if errors.Is(err, pgx.ErrNoRows) {
		return c, errs.New(errs.NotFound, "no catalog has the stream %s", stream)
	}
	return c, pg.Err(err)
}

// Live returns every catalog that is not removed, in order.
func (s *Store) Live(ctx context.Context) ([]Catalog, error) {
	rows, err := s.pool.Query(ctx, `select `+columns+` from catalog.catalogs where not removed order by tenant, stream`)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (Catalog, error) { return scan(r) })
	return out, pg.Err(err)
}

// Dirty returns the catalogs that wait for a look, or are being looked at, by tenant and stream.
func (s *Store) Dirty(ctx context.Context) (map[[2]string]bool, error) {
	rows, err := s.pool.Query(ctx, `select tenant, cluster from `+DirtyTable)
	if err != nil {
		return nil, pg.Err(err)
	}
	dirty := map[[2]string]bool{}
	var tenant, stream string
	_, err = pgx.ForEachRow(rows, []any{&tenant, &stream}, func() error {
		dirty[[2]string{tenant, stream}] = true
		return nil
	})
	return dirty, pg.Err(err)
}

// Settings returns the body of the catalog's source; errs.NotFound where it was erased.
func (s *Store) Settings(ctx context.Context, c Catalog) (json.RawMessage, error) {
	var body []byte
	err := s.pool.QueryRow(ctx, `select body from gateway_api.bodies
		where tenant = $1 and commitment = $2 and kind = 'catalog-source'`, c.Tenant, c.Spec).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errs.New(errs.NotFound, "the settings of the source of catalog %s are not there any more; add the catalog again", c.Subject)
	}
	return body, pg.Err(err)
}

// Apply folds one intent into the table, inside the consumer's transaction. It returns whether the
// source is to be looked at.
func (s *Store) Apply(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) (bool, error) {
	stream := e.StreamID.String()
	switch p := e.Payload.(type) {
	case events.CatalogAdded:
		_, err := tx.Exec(ctx, `insert into catalog.catalogs (tenant, stream, subject, source_type, spec, priority, visibility_cluster, visibility_namespace)
			values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (tenant, stream) do nothing`,
			e.Tenant, stream, e.Subject, p.SourceType, p.Spec, p.Priority, p.Visibility.Cluster, p.Visibility.Namespace)
		return true, pg.Err(err)
	case events.CatalogChanged:
		_, err := tx.Exec(ctx, `update catalog.catalogs set wanted = wanted + ((source_type, spec) is distinct from ($3, $4))::int, source_type = $3, spec = $4,
			priority = $5, visibility_cluster = $6, visibility_namespace = $7, updated = now() where tenant = $1 and stream = $2`,
			e.Tenant, stream, p.SourceType, p.Spec, p.Priority, p.Visibility.Cluster, p.Visibility.Namespace)
		return true, pg.Err(err)
	case events.CatalogRefreshRequested:
		_, err := tx.Exec(ctx, `update catalog.catalogs set wanted = wanted + 1 where tenant = $1 and stream = $2`, e.Tenant, stream)
		return true, pg.Err(err)
	case events.CatalogRemoved:
		_, err := tx.Exec(ctx, `update catalog.catalogs set removed = true, updated = now() where tenant = $1 and stream = $2`, e.Tenant, stream)
		return false, pg.Err(err)
	default:
		return false, errs.New(errs.Internal, "the indexer does not take events of type %s", e.Type)
	}
}

// Look is the outcome of looking at a source: what Finish writes.
type Look struct {
	Catalog     Catalog
	Wanted      int64 // of the catalog when the look began
	Fingerprint string
	Document    digest.Digest // of the findings, "" where there are none
	Message     string        // for people
	Meta        events.Meta   // without Command
	// Exactly one of these, or neither: then only the fingerprint moves.
	Published *Published
	Failed    *events.CatalogLoadFailed
}

// Published is a revision to serve.
type Published struct {
	Revision digest.Digest
	Packages map[string]digest.Digest
	Blobs    []BlobRef
	Event    events.CatalogRevisionPublished
	// Bundles counts all bundles of the revision.
	Bundles int
}

// BlobRef places a blob of an unknown schema in a revision.
type BlobRef struct {
	Package, Schema, Name string
	Digest                digest.Digest
}

// Finish records the outcome of a look: revision, live pointer and event in one transaction. It
// returns false where the catalog was removed or given another source meanwhile; then nothing is
// written and another look is due. A concurrent intent on the stream is errs.Conflict: try again.
func (s *Store) Finish(ctx context.Context, l Look) (bool, error) {
	written := false
	err := s.pool.Tx(ctx, func(tx pgx.Tx) error {
		written = false
		now, err := scan(tx.QueryRow(ctx, `select `+columns+` from catalog.catalogs where tenant = $1 and stream = $2 for update`, l.Catalog.Tenant, l.Catalog.Stream))
		if err != nil {
			return err
		}
		if now.Removed || now.Spec != l.Catalog.Spec || now.SourceType != l.Catalog.SourceType || now.Revision != l.Catalog.Revision {
			return nil
		}
		written = true
		switch {
		case l.Published != nil:
			return s.publish(ctx, tx, l)
		case l.Failed != nil:
			return s.fail(ctx, tx, l, now)
		default:
			return s.touch(ctx, tx, l, "Ready", "", now.Revision)
		}
	})
	if err != nil {
		return false, fmt.Errorf("record the look at catalog %s: %w", l.Catalog.Subject, err)
	}
	return written, nil
}

// publish makes a revision the one that is served. Serving the same one again writes no event.
func (s *Store) publish(ctx context.Context, tx pgx.Tx, l Look) error {
	p := l.Published
	if p.Revision == l.Catalog.Revision {
		return s.touch(ctx, tx, l, "Ready", "", p.Revision)
	}
	if err := insertRevision(ctx, tx, l.Catalog.Tenant, p); err != nil {
		return err
	}
	version, err := s.append(ctx, tx, l, string(p.Revision), p.Event)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into catalog.revisions (tenant, catalog, version, revision, previous, packages, bundles, created)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`, l.Catalog.Tenant, l.Catalog.Stream, version, p.Revision, l.Catalog.Revision,
		len(p.Packages), p.Bundles, l.Meta.Time)
	if err != nil {
		return err
	}
	return s.touch(ctx, tx, l, "Ready", "", p.Revision)
}

// fail records a failure; the revision that was served stays. The same failure is told once.
func (s *Store) fail(ctx context.Context, tx pgx.Tx, l Look, now Catalog) error {
	if now.FailedInput != l.Failed.Input {
		if _, err := s.append(ctx, tx, l, l.Failed.Input, *l.Failed); err != nil {
			return err
		}
	}
	return s.touch(ctx, tx, l, "Failed", l.Failed.Reason, now.Revision)
}

// append appends an outcome behind the stream's last event. The event id derives from what was
// decided and on which version, so that a repeated attempt has the same one.
func (s *Store) append(ctx context.Context, tx pgx.Tx, l Look, what string, p events.Payload) (int64, error) {
	stream, err := events.ParseStreamID(l.Catalog.Stream)
	if err != nil {
		return 0, err
	}
	head, err := s.log.Latest(ctx, tx, l.Catalog.Tenant, events.KindCatalog, l.Catalog.Subject)
	if err != nil {
		return 0, err
	}
	if head.ID != stream || head.Closed {
		return 0, errs.New(errs.Conflict, "catalog %s was removed while it was looked at", l.Catalog.Subject)
	}
	m := l.Meta
	m.Command = uuid.NewSHA1(commandSpace, fmt.Appendf(nil, "%s %d %s", stream, head.Version, what))
	a, err := s.log.Append(ctx, tx, m, stream, l.Catalog.Subject, head.Version, p)
	return a.Version, err
}

// touch writes the state of the catalog after a look.
func (s *Store) touch(ctx context.Context, tx pgx.Tx, l Look, state, reason string, revision digest.Digest) error {
	failed := ""
	if l.Failed != nil {
		failed = l.Failed.Input
	}
	_, err := tx.Exec(ctx, `update catalog.catalogs set state = $3, reason = $4, message = $5, document = $6, fingerprint = $7,
		looked = greatest(looked, $8), revision = $9, failed_input = $10, updated = now() where tenant = $1 and stream = $2`,
		l.Catalog.Tenant, l.Catalog.Stream, state, reason, l.Message, l.Document, l.Fingerprint, l.Wanted, revision, failed)
	return err
}
