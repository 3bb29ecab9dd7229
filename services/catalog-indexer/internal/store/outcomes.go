package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Outcomes records what polls came to: revisions and failures with their events, and the state of catalogs.
type Outcomes struct {
	pool *pg.Pool
	log  *eventlog.Log
}

// States of a variant that was looked at.
const (
	Ready  = "Ready"
	Failed = "Failed"
)

// Outcome is what a poll came to: what Finish writes.
type Outcome struct {
	Catalog     Catalog
	Wanted      int64 // of the catalog when the poll began
	Fingerprint string
	Document    digest.Digest // of the findings, "" where there are none
	Message     string        // for people
	Meta        events.Meta   // without Command
	Report      Report
	// Exactly one of these.
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

// Finish records the outcome of a poll: revision, live pointer and event in one transaction. It
// returns false where the catalog was removed, disabled or given another source meanwhile; then nothing
// is written and another poll is due. A concurrent intent on the stream is errs.Conflict: try again.
func (o *Outcomes) Finish(ctx context.Context, l Outcome) (bool, error) {
	written := false
	err := o.pool.Tx(ctx, func(tx pgx.Tx) error {
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
			return o.publish(ctx, tx, l, now)
		}
		return o.fail(ctx, tx, l, now)
	})
	if err != nil {
		return false, fmt.Errorf("record the poll of catalog %s: %w", l.Catalog.Subject, err)
	}
	return written, nil
}

// publish makes a revision the one that is served. Serving the same one again is recorded only where it ends
// a failure, or where other packages are left out.
func (o *Outcomes) publish(ctx context.Context, tx pgx.Tx, l Outcome, now Catalog) error {
	p := l.Published
	if p.Revision != now.Revision {
		if err := o.serve(ctx, tx, l); err != nil {
			return err
		}
		return o.touch(ctx, tx, l, Ready, "", p.Revision)
	}
	if now.FailedInput != "" || !slices.Equal(now.Quarantined, l.Report.Quarantined) {
		again := p.Event
		again.Revision, again.Previous, again.Changes = string(p.Revision), string(p.Revision), []events.PackageChange{}
		if _, err := o.append(ctx, tx, l, string(p.Revision), again); err != nil {
			return err
		}
	}
	return o.touch(ctx, tx, l, Ready, "", p.Revision)
}

// serve writes a revision that was not served before, with its event.
func (o *Outcomes) serve(ctx context.Context, tx pgx.Tx, l Outcome) error {
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
	version, err := o.append(ctx, tx, l, string(p.Revision), p.Event)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into catalog.revisions (tenant, catalog, version, revision, previous, packages,
		bundles, created, variant)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, l.Catalog.Tenant, l.Catalog.Stream, version, p.Revision, l.Catalog.Revision,
		len(p.Packages), p.Bundles, l.Meta.Time, l.Catalog.Variant)
	return err
}

// fail records a failure; the revision that was served stays. The same failure is recorded once.
func (o *Outcomes) fail(ctx context.Context, tx pgx.Tx, l Outcome, now Catalog) error {
	if now.FailedInput != l.Failed.Input {
		if _, err := o.append(ctx, tx, l, l.Failed.Input, *l.Failed); err != nil {
			return err
		}
	}
	return o.touch(ctx, tx, l, Failed, l.Failed.Reason, now.Revision)
}

// append appends an outcome behind the stream's last event. The event id derives from what was
// decided and on which version, so that a repeated attempt has the same one.
func (o *Outcomes) append(ctx context.Context, tx pgx.Tx, l Outcome, what string, p events.Payload) (int64, error) {
	return appendNext(ctx, tx, o.log, l.Catalog, l.Meta, what, p)
}

// commandSpace is the UUIDv5 namespace of the indexer's commands. It is arbitrary and must never change.
var commandSpace = uuid.MustParse("5f0c64c1-36a8-5d6e-8f55-0a2b7c1de903")

// appendNext appends an event behind the last one of a catalog's stream. Its id derives from what was decided, what it
// says, on which version and in which epoch of the record, so that a repeated attempt has the same one. It is
// errs.Conflict where the catalog was removed.
func appendNext(ctx context.Context, tx pgx.Tx, log *eventlog.Log, c Catalog, m events.Meta, what string,
	p events.Payload,
) (int64, error) {
	stream, err := events.ParseStreamID(c.Stream)
	if err != nil {
		return 0, err
	}
	head, err := log.Latest(ctx, tx, c.Tenant, events.KindCatalog, c.Subject)
	if err != nil {
		return 0, err
	}
	if head.ID != stream || head.Closed {
		return 0, errs.New(errs.Conflict, "catalog %s was removed while it was polled", c.Subject)
	}
	if m.Command, err = log.FactCommand(ctx, tx, commandSpace, fmt.Sprintf("%s %d %s", stream, head.Version, what),
		p); err != nil {
		return 0, err
	}
	a, err := log.Append(ctx, tx, m, stream, c.Subject, head.Version, p)
	return a.Version, err
}
