package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

const (
	// parkedFirst and parkedMax bound the pause before a parked stream is tried again by itself; it doubles.
	parkedFirst = 5 * time.Second
	parkedMax   = 10 * time.Minute
	// behindReason is the reason of events that wait behind a parked one.
	behindReason = "behind an earlier event of this stream"
)

// Parked is an event that a consumer could not take, or one that waits behind such an event.
type Parked struct {
	Consumer  string          `json:"consumer"`
	Tenant    string          `json:"tenant"`
	Stream    string          `json:"stream"` // events.StreamID.String
	Version   int64           `json:"version"`
	Position  events.Position `json:"position"`
	Type      events.Type     `json:"type"`
	Reason    string          `json:"reason"`   // text of the handler's error
	Attempts  int             `json:"attempts"` // 0 for an event that waits behind another
	Since     time.Time       `json:"since"`
	NextRetry time.Time       `json:"nextRetry"`
}

// Skipped is an event that a person has had a consumer go on without.
type Skipped struct {
	Parked

	Skipped   time.Time `json:"skipped"`
	SkippedBy string    `json:"skippedBy"` // actor
	Why       string    `json:"why"`       // what the person gave as the reason
}

const parkedColumns = `consumer, tenant, stream, version, epoch, position, type, reason, attempts, since, next_retry`

func (p *Parked) fields() []any {
	return []any{
		&p.Consumer, &p.Tenant, &p.Stream, &p.Version, &p.Position.Epoch, &p.Position.N,
		&p.Type, &p.Reason, &p.Attempts, &p.Since, &p.NextRetry,
	}
}

// ListParked returns what is parked of a tenant, by consumer, stream and version; consumer "" is all of them.
func ListParked(ctx context.Context, q pg.Querier, tenant, consumer string) ([]Parked, error) {
	rows, err := q.Query(ctx, `select `+parkedColumns+` from eventlog.parked
		where tenant = $1 and ($2 = '' or consumer = $2) order by consumer, stream, version`, tenant, consumer)
	if err != nil {
		return nil, fmt.Errorf("list parked events: %w", pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (p Parked, err error) {
		return p, r.Scan(p.fields()...)
	})
	return list, pg.Err(err)
}

// ListSkipped returns what consumers went on without, the last first. Nothing of it is tried again: NextRetry is
// when it was skipped.
func ListSkipped(ctx context.Context, q pg.Querier, tenant, consumer string) ([]Skipped, error) {
	rows, err := q.Query(ctx, `select consumer, tenant, stream, version, epoch, position, type, failure, attempts, parked,
		skipped as next_retry, skipped, skipped_by, reason from eventlog.skipped
		where tenant = $1 and ($2 = '' or consumer = $2) order by skipped desc, consumer, stream, version`, tenant, consumer)
	if err != nil {
		return nil, fmt.Errorf("list skipped events: %w", pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s Skipped, err error) {
		return s, r.Scan(append(s.fields(), &s.Skipped, &s.SkippedBy, &s.Why)...)
	})
	return list, pg.Err(err)
}

// ReadParked returns one parked event with the bytes of its envelope, as the log held them when it was parked. Of one
// that waits behind another the bytes are nil.
func ReadParked(ctx context.Context, q pg.Querier, tenant, consumer, stream string, version int64) (
	p Parked, body []byte, err error,
) {
	err = q.QueryRow(ctx, `select `+parkedColumns+`, body from eventlog.parked
		where tenant = $1 and consumer = $2 and stream = $3 and version = $4`, tenant, consumer, stream, version).
		Scan(append(p.fields(), &body)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, nil, errs.New(errs.NotFound, "consumer %q has no parked event %s@%d", consumer, stream, version)
	}
	return p, body, pg.Err(err)
}

// RetryParked makes the consumer try a parked stream again at its next poll; stream "" is all of the
// consumer's. It returns errs.NotFound where nothing is parked there. The role must be the gateway's.
func RetryParked(ctx context.Context, q pg.Querier, tenant, consumer, stream string) error {
	var n int
	err := q.QueryRow(ctx, `select eventlog.retry_parked($1, $2, $3)`, tenant, consumer, stream).Scan(&n)
	if err != nil {
		return fmt.Errorf("retry parked events: %w", pg.Err(err))
	}
	if n == 0 {
		of := ""
		if stream != "" {
			of = fmt.Sprintf(" of stream %q", stream)
		}
		return errs.New(errs.NotFound, "consumer %q has nothing parked%s", consumer, of)
	}
	return nil
}

// SkipParked has a consumer go on without the first parked event of a stream, for ever: a rebuild goes on without it,
// too. Who decided that and why is kept (ListSkipped). The role must be the gateway's.
func SkipParked(ctx context.Context, q pg.Querier, tenant, consumer, stream string, version int64, actor, why string,
) error {
	var done bool
	err := q.QueryRow(ctx, `select eventlog.skip_parked($1, $2, $3, $4, $5, $6)`, tenant, consumer, stream, version, actor,
		why).Scan(&done)
	if err != nil {
		return fmt.Errorf("skip a parked event: %w", pg.Err(err))
	}
	if !done {
		return errs.New(errs.Conflict, "%s@%d is not the first parked event of that stream of consumer %q: those behind "+
			"it have not been tried yet", stream, version, consumer)
	}
	return nil
}

// parkedStreams are what a transaction knows of a consumer's parked and skipped events.
type parkedStreams struct {
	streams map[string]bool
	skipped map[string]bool // stream@version, where the log is read again
}

// take handles one event, or parks it. An *events.UnknownTypeError stops the consumer before this event; any other
// error is transient: the batch ends before it.
func (c *Consumer) take(ctx context.Context, tx pgx.Tx, e *eventlog.Recorded, parked *parkedStreams,
	careful bool,
) error {
	stream := e.StreamID.String()
	err := decode(e)
	if _, unknown := errors.AsType[*events.UnknownTypeError](err); unknown {
		return err
	}
	if parked.skipped[skippedKey(stream, e.Version)] {
		return nil
	}
	if parked.streams[stream] {
		return c.park(ctx, tx, e, behindReason, 0)
	}
	switch {
	case err == nil && !careful:
		return c.handle(ctx, tx, e)
	case err == nil:
		if err = c.guarded(ctx, tx, e); err == nil {
			return nil
		}
		if c.transient(err, e.Position) {
			return fmt.Errorf("event %s (%s): %w", e.Position, e.Type, err)
		}
	case !careful:
		return err
	}
	parked.streams[stream] = true
	c.logger().ErrorContext(ctx, "parking a stream: its event cannot be taken", "consumer", c.Name,
		"stream", stream, "version", e.Version, "type", e.Type, "position", e.Position.String(), "error", err)
	return c.park(ctx, tx, e, err.Error(), 1)
}

// decode fills the payload. A panic is an error like another.
func decode(e *eventlog.Recorded) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errs.New(errs.Internal, "decode event %s of type %s: panic: %v", e.Position, e.Type, r)
		}
	}()
	return e.Decode()
}

func skippedKey(stream string, version int64) string { return fmt.Sprintf("%s@%d", stream, version) }

// skipped are the events ahead that a person has had this consumer go on without: there are some only where the log is
// read again, since an event is behind the checkpoint when it is skipped.
func (c *Consumer) skipped(ctx context.Context, tx pgx.Tx, at events.Position) (map[string]bool, error) {
	rows, err := tx.Query(ctx, `select stream, version from eventlog.skipped
		where consumer = $1 and position > $2`, c.Name, at.N)
	if err != nil {
		return nil, fmt.Errorf("read what consumer %s skips: %w", c.Name, pg.Err(err))
	}
	out := map[string]bool{}
	var stream string
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&stream, &version}, func() error {
		out[skippedKey(stream, version)] = true
		return nil
	})
	return out, pg.Err(err)
}

// guarded handles an event inside a savepoint.
func (c *Consumer) guarded(ctx context.Context, tx pgx.Tx, e *eventlog.Recorded) error {
	return pg.Err(pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error { return c.handle(ctx, sp, e) }))
}

// handle calls Handle inside the trace of the event; a panic is an error like another.
func (c *Consumer) handle(ctx context.Context, tx pgx.Tx, e *eventlog.Recorded) error {
	return c.call(ctx, tx, e, c.Handle)
}

func (c *Consumer) call(ctx context.Context, tx pgx.Tx, e *eventlog.Recorded, handle Handler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errs.New(errs.Internal, "panic: %v", r)
		}
	}()
	return pg.Err(handle(telemetry.WithTraceParent(ctx, e.TraceParent), tx, *e))
}

func (c *Consumer) park(ctx context.Context, tx pgx.Tx, e *eventlog.Recorded, reason string, attempts int) error {
	var body []byte // what waits behind another is only in the log
	if attempts > 0 {
		body = e.Bytes
	}
	_, err := tx.Exec(ctx, `select eventlog.park($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		e.Tenant, c.Name, e.StreamID.String(), e.Version, e.Position.Epoch, e.Position.N, string(e.Type),
		Storable(reason, maxReason), attempts, parkedFirst, body)
	if err != nil {
		return fmt.Errorf("park event %s: %w", e.Position, pg.Err(err))
	}
	return nil
}

// waiting is one parked stream.
type waiting struct {
	tenant, stream string
	versions       []int64
	attempts       int
	due            bool
}

// retryDue tries the parked streams whose time has come, and returns those that stay parked.
func (c *Consumer) retryDue(ctx context.Context, tx pgx.Tx) (*parkedStreams, error) {
	rows, err := tx.Query(ctx, `select tenant, stream, array_agg(version order by version), max(attempts),
		`+due("min(next_retry)", aheadFactor*parkedMax)+`
		from eventlog.parked where consumer = $1 group by tenant, stream order by min(position)`, c.Name)
	if err != nil {
		return nil, pg.Err(err)
	}
	streams, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (w waiting, err error) {
		return w, r.Scan(&w.tenant, &w.stream, &w.versions, &w.attempts, &w.due)
	})
	if err != nil {
		return nil, pg.Err(err)
	}
	left := &parkedStreams{streams: map[string]bool{}}
	for _, w := range streams {
		done := false
		if w.due {
			if done, err = c.retry(ctx, tx, w); err != nil {
				return nil, err
			}
		}
		if !done {
			left.streams[w.stream] = true
		}
	}
	return left, nil
}

// retry takes the parked events of a stream in order until one fails again. done: none is left.
func (c *Consumer) retry(ctx context.Context, tx pgx.Tx, w waiting) (done bool, err error) {
	id, err := events.ParseStreamID(w.stream)
	if err != nil {
		return false, err
	}
	if w.versions, err = c.holdParked(ctx, tx, w.stream); err != nil || len(w.versions) == 0 {
		return err == nil, err
	}
	recs, err := c.Log.ReadStreamRaw(ctx, tx, w.tenant, id, w.versions[0]-1)
	if err != nil {
		return false, err
	}
	for i := range recs {
		e := &recs[i]
		if !slices.Contains(w.versions, e.Version) {
			continue
		}
		failure := decode(e)
		if failure == nil {
			failure = c.guarded(ctx, tx, e)
		}
		if failure != nil {
			return false, c.parkAgain(ctx, tx, w, e, failure)
		}
		if _, err := tx.Exec(ctx, `select eventlog.unpark($1, $2, $3)`,
			c.Name, w.stream, e.Version); err != nil {
			return false, pg.Err(err)
		}
	}
	c.logger().InfoContext(ctx, "a parked stream goes on", "consumer", c.Name, "stream", w.stream)
	return true, nil
}

// holdParked locks the parked events of a stream, so that nobody skips one that is being taken, and returns their
// versions as they are now.
func (c *Consumer) holdParked(ctx context.Context, tx pgx.Tx, stream string) ([]int64, error) {
	rows, err := tx.Query(ctx, `select eventlog.hold_parked($1, $2)`, c.Name, stream)
	if err != nil {
		return nil, pg.Err(err)
	}
	versions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return versions, pg.Err(err)
}

// parkAgain keeps a stream parked. The bytes are kept of whichever event cannot be taken now.
func (c *Consumer) parkAgain(ctx context.Context, tx pgx.Tx, w waiting, e *eventlog.Recorded, failure error) error {
	c.logger().WarnContext(ctx, "a parked event failed again", "consumer", c.Name, "stream", w.stream,
		"version", e.Version, "attempts", w.attempts+1, "error", failure)
	_, err := tx.Exec(ctx, `select eventlog.park_again($1, $2, $3, $4, $5, $6, $7)`,
		c.Name, w.stream, e.Version, w.attempts+1, Storable(failure.Error(), maxReason),
		backoff(w.attempts, parkedFirst, parkedMax), e.Bytes)
	return pg.Err(err)
}
