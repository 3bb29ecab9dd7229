package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Report is what a poll found beside the content: the status of the source (R-CAT status table).
type Report struct {
	Reference   string // that was asked for, where it is an image
	Resolved    string // an image digest or a commit
	NextPoll    time.Time
	Error       string // of the source, or a notice about its settings
	ErrorReason string
	Quarantined []string
	// Template is the reason of the condition TemplatesHaveResolved, "" without a template (R-CAT-93).
	Template, TemplateMessage string
	Severities                map[catalog.Severity]int
	// Connected says whether the source could be read.
	Connected bool
}

// next is when to poll again; never is a null.
func (r Report) next() *time.Time {
	if r.NextPoll.IsZero() {
		return nil
	}
	return &r.NextPoll
}

// touch writes the state of the catalog after a poll.
func (o *Outcomes) touch(ctx context.Context, tx pgx.Tx, l Outcome, state, reason string,
	revision digest.Digest,
) error {
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

// Seen records a poll that found what was there before.
func (o *Outcomes) Seen(ctx context.Context, k Key, r Report) error {
	return pg.Err(seen(ctx, o.pool, k, r))
}

// Connecting records that a source is being asked which did not answer before, or was never asked.
func (o *Outcomes) Connecting(ctx context.Context, k Key) error {
	_, err := o.pool.Exec(ctx, `update `+k.table()+` set connection = 'CONNECTING', observed = now()
		where tenant = $1 and stream = $2 and variant = $3 and connection in ('IDLE', 'TRANSIENT_FAILURE')`, k.Tenant, k.Stream, k.Variant)
	return pg.Err(err)
}

// Unreachable records that a source did not answer. What is in service stays so; where nothing is, the
// catalog is Failed until the source answers. No event is appended: it may be over in a second.
func (o *Outcomes) Unreachable(ctx context.Context, k Key, r Report, reason string) error {
	return o.pool.Tx(ctx, func(tx pgx.Tx) error {
		if err := seen(ctx, tx, k, r); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update `+k.table()+` set state = $4, reason = $5, message = $6, updated = now()
			where tenant = $1 and stream = $2 and variant = $3 and revision = '' and state <> $4`, k.Tenant, k.Stream, k.Variant, Failed, reason, Storable(r.Error))
		return err
	})
}

// Settled records the state of a templated catalog as such: that its variants are what is served. A failure
// of the image that it falls back to stays written down, since its end is to be recorded when it is used again.
func (o *Outcomes) Settled(ctx context.Context, c Catalog, message string) error {
	_, err := o.pool.Exec(ctx, `update catalog.catalogs set state = 'Ready', reason = '', message = $3,
		looked = greatest(looked, $4), next_look = null,
		connection = 'IDLE', error = '', error_reason = '', updated = now()
		where tenant = $1 and stream = $2 and (message <> $3 or looked < $4 or next_look is not null)`, c.Tenant, c.Stream, message, c.Wanted)
	return pg.Err(err)
}
