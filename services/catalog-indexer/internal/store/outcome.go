package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// States of a variant.
const (
	Loading = "Loading"
	Ready   = "Ready"
	Failed  = "Failed"
)

// Look is the outcome of looking at a source: what Finish writes.
type Look struct {
	Catalog     Catalog
	Wanted      int64 // of the catalog when the look began
	Fingerprint string
	Document    digest.Digest // of the findings, "" where there are none
	Message     string        // for people
	Meta        events.Meta   // without Command
	Report      Report
	// Exactly one of these.
	Published *Published
	Failed    *events.CatalogLoadFailed
}

// Report is what a look found beside the content: the status of the source (R-CAT status table).
type Report struct {
	Reference   string // that was asked for, where it is an image
	Resolved    string // an image digest or a commit
	NextLook    time.Time
	Error       string // of the source, or a notice about its settings
	ErrorReason string
	Quarantined []string
	// Template is the reason of the condition TemplatesHaveResolved, "" without a template (R-CAT-93).
	Template, TemplateMessage string
	Severities                map[catalog.Severity]int
	// Connected says whether the source could be read.
	Connected bool
}

// next is when to look again; never is a null.
func (r Report) next() *time.Time {
	if r.NextLook.IsZero() {
		return nil
	}
	return &r.NextLook
}

// Published is a revision to serve.
type Published struct {
	Revision digest.Digest
	Packages map[string]digest.Digest
	Blobs    []BlobRef
	Event    events.CatalogRevisionPublished
	// Bundles counts all bundles of the revision.
	Bundles int
	// Images are those that are the only place of their bundle's manifests.
	Images []Image
	// Changed are the packages that the revision before did not have so; they are made findable.
	Changed []catalog.Package
}

// BlobRef places a blob of an unknown schema in a revision.
type BlobRef struct {
	Package, Schema, Name string
	Digest                digest.Digest
}

// Finish records the outcome of a look: revision, live pointer and event in one transaction. It
// returns false where the catalog was removed, disabled or given another source meanwhile; then nothing
// is written and another look is due. A concurrent intent on the stream is errs.Conflict: try again.
func (s *Store) Finish(ctx context.Context, l Look) (bool, error) {
	written := false
	err := s.pool.Tx(ctx, func(tx pgx.Tx) error {
		written = false
		now, err := l.Catalog.read(ctx, tx, "for update")
		if errs.Is(err, errs.NotFound) { // a variant that is not used any more
			return nil
		}
		if err != nil {
			return err
		}
		if now.Removed || now.Disabled || now.Spec != l.Catalog.Spec || now.SourceType != l.Catalog.SourceType ||
			now.Revision != l.Catalog.Revision {
			return nil
		}
		written = true
		if l.Published != nil {
			return s.publish(ctx, tx, l, now)
		}
		return s.fail(ctx, tx, l, now)
	})
	if err != nil {
		return false, fmt.Errorf("record the look at catalog %s: %w", l.Catalog.Subject, err)
	}
	return written, nil
}

// publish makes a revision the one that is served. Serving the same one again is told only where it ends
// a failure, or where other packages are left out.
func (s *Store) publish(ctx context.Context, tx pgx.Tx, l Look, now Catalog) error {
	p := l.Published
	if p.Revision != now.Revision {
		if err := s.serve(ctx, tx, l); err != nil {
			return err
		}
		return s.touch(ctx, tx, l, Ready, "", p.Revision)
	}
	if now.FailedInput != "" || !slices.Equal(now.Quarantined, l.Report.Quarantined) {
		again := p.Event
		again.Revision, again.Previous, again.Changes = string(p.Revision), string(p.Revision), []events.PackageChange{}
		if _, err := s.append(ctx, tx, l, string(p.Revision), again); err != nil {
			return err
		}
	}
	return s.touch(ctx, tx, l, Ready, "", p.Revision)
}

// serve writes a revision that was not served before, and tells of it.
func (s *Store) serve(ctx context.Context, tx pgx.Tx, l Look) error {
	p := l.Published
	if err := insertRevision(ctx, tx, l.Catalog.Tenant, p); err != nil {
		return err
	}
	if err := PutSearch(ctx, tx, l.Catalog.Tenant, p.Changed, p.Packages); err != nil {
		return err
	}
	if err := named(ctx, tx, l.Catalog, p.Images); err != nil {
		return err
	}
	version, err := s.append(ctx, tx, l, string(p.Revision), p.Event)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into catalog.revisions (tenant, catalog, version, revision, previous, packages,
		bundles, created, variant)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, l.Catalog.Tenant, l.Catalog.Stream, version, p.Revision, l.Catalog.Revision,
		len(p.Packages), p.Bundles, l.Meta.Time, l.Catalog.Variant)
	return err
}

// fail records a failure; the revision that was served stays. The same failure is told once.
func (s *Store) fail(ctx context.Context, tx pgx.Tx, l Look, now Catalog) error {
	if now.FailedInput != l.Failed.Input {
		if _, err := s.append(ctx, tx, l, l.Failed.Input, *l.Failed); err != nil {
			return err
		}
	}
	return s.touch(ctx, tx, l, Failed, l.Failed.Reason, now.Revision)
}

// append appends an outcome behind the stream's last event. The event id derives from what was
// decided and on which version, so that a repeated attempt has the same one.
func (s *Store) append(ctx context.Context, tx pgx.Tx, l Look, what string, p events.Payload) (int64, error) {
	return s.tell(ctx, tx, l.Catalog, l.Meta, what, p)
}

func (s *Store) tell(ctx context.Context, tx pgx.Tx, c Catalog, m events.Meta, what string, p events.Payload) (
	int64, error,
) {
	stream, err := events.ParseStreamID(c.Stream)
	if err != nil {
		return 0, err
	}
	head, err := s.log.Latest(ctx, tx, c.Tenant, events.KindCatalog, c.Subject)
	if err != nil {
		return 0, err
	}
	if head.ID != stream || head.Closed {
		return 0, errs.New(errs.Conflict, "catalog %s was removed while it was looked at", c.Subject)
	}
	m.Command = uuid.NewSHA1(commandSpace, fmt.Appendf(nil, "%s %d %s", stream, head.Version, what))
	a, err := s.log.Append(ctx, tx, m, stream, c.Subject, head.Version, p)
	return a.Version, err
}

// touch writes the state of the catalog after a look.
func (s *Store) touch(ctx context.Context, tx pgx.Tx, l Look, state, reason string, revision digest.Digest) error {
	failed := ""
	if l.Failed != nil {
		failed = l.Failed.Input
	}
	r, count := l.Report, l.Report.Severities
	_, err := tx.Exec(ctx, `update `+l.Catalog.table()+` set state = $4, reason = $5, message = $6, document = $7,
		fingerprint = $8,
		looked = greatest(looked, $9), revision = $10, failed_input = $11, reference = $12, resolved = $13,
		quarantined = $14,
		errors = $15, warnings = $16, infos = $17, template = $18, template_message = $19, updated = now()
		where tenant = $1 and stream = $2 and variant = $3`,
		l.Catalog.Tenant, l.Catalog.Stream, l.Catalog.Variant, state, reason, Storable(l.Message), l.Document,
		l.Fingerprint, l.Wanted, revision, failed, Storable(r.Reference), Storable(r.Resolved),
		storableList(r.Quarantined), count[catalog.SeverityError], count[catalog.SeverityWarning],
		count[catalog.SeverityInfo], r.Template, Storable(r.TemplateMessage))
	if err != nil {
		return err
	}
	return seen(ctx, tx, l.Catalog.Key, r)
}

// seen writes the state of the connection.
func seen(ctx context.Context, q pg.Querier, k Key, r Report) error {
	connection := "TRANSIENT_FAILURE"
	if r.Connected {
		connection = "READY"
	}
	_, err := q.Exec(ctx, `update `+k.table()+` set connection = $4, observed = case when connection = $4 then observed
		else now() end,
		connected = case when $5 then now() else connected end, polled = now(), next_look = $6, error = $7,
		error_reason = $8
		where tenant = $1 and stream = $2 and variant = $3`, k.Tenant, k.Stream, k.Variant, connection, r.Connected, r.next(), Storable(r.Error), r.ErrorReason)
	return err
}

// Seen records a look that found what was there before.
func (s *Store) Seen(ctx context.Context, k Key, r Report) error {
	return pg.Err(seen(ctx, s.pool, k, r))
}

// Connecting records that a source is being asked which did not answer before, or was never asked.
func (s *Store) Connecting(ctx context.Context, k Key) error {
	_, err := s.pool.Exec(ctx, `update `+k.table()+` set connection = 'CONNECTING', observed = now()
		where tenant = $1 and stream = $2 and variant = $3 and connection in ('IDLE', 'TRANSIENT_FAILURE')`, k.Tenant, k.Stream, k.Variant)
	return pg.Err(err)
}

// Unreachable records that a source did not answer. What is in service stays so; where nothing is, the
// catalog is Failed until the source answers. No event tells of it: it may be over in a second.
func (s *Store) Unreachable(ctx context.Context, k Key, r Report, reason string) error {
	return s.pool.Tx(ctx, func(tx pgx.Tx) error {
		if err := seen(ctx, tx, k, r); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update `+k.table()+` set state = $4, reason = $5, message = $6, updated = now()
			where tenant = $1 and stream = $2 and variant = $3 and revision = '' and state <> $4`, k.Tenant, k.Stream, k.Variant, Failed, reason, Storable(r.Error))
		return err
	})
}

// Settled records the state of a templated catalog as such: that its variants are what is served. A failure
// of the image that it falls back to stays written down, since its end is to be told when it is used again.
func (s *Store) Settled(ctx context.Context, c Catalog, message string) error {
	_, err := s.pool.Exec(ctx, `update catalog.catalogs set state = 'Ready', reason = '', message = $3,
		looked = greatest(looked, $4), next_look = null,
		connection = 'IDLE', error = '', error_reason = '', updated = now()
		where tenant = $1 and stream = $2 and (message <> $3 or looked < $4 or next_look is not null)`, c.Tenant, c.Stream, message, c.Wanted)
	return pg.Err(err)
}
