package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// MaxEventBytes bounds one event. Events carry digests, not bodies, so that a real one is far
	// smaller; the bound keeps an event with its headers within a NATS message of 1 MB.
	MaxEventBytes = 512 << 10
	// MaxEventsPerAppend bounds one append: a decision that needs more is a batch job in disguise, and
	// would hold the stream's head locked for as long as it takes to write them.
	MaxEventsPerAppend = 1000
)

// Append appends payloads to stream s inside tx, which decides. expected is the version of the last
// event that the decision took into account, 0 where the stream must not exist. The tenant of the
// session must be m.Tenant or "*".
//
// Errors: *ConflictError where the stream is elsewhere; errs.Conflict for a stream that has ended;
// errs.Forbidden where the role of the session may not write a type; errs.Invalid for a type that the
// database does not know; errs.TooLarge. After any of them PostgreSQL accepts nothing more in tx.
func (l *Log) Append(ctx context.Context, tx pgx.Tx, m events.Meta, s events.StreamID, subject string, expected int64,
	payloads ...events.Payload,
) (Appended, error) {
	return appendTo(ctx, tx, request{m, s, subject, expected, false, payloads})
}

// AppendOnce is Append for callers that may be asked for the same command twice: where the stream
// holds the command's events already, nothing is appended, whatever expected is, and Appended says
// Repeated and has the version of the last of them.
func (l *Log) AppendOnce(ctx context.Context, tx pgx.Tx, m events.Meta, s events.StreamID, subject string,
	expected int64, payloads ...events.Payload,
) (Appended, error) {
	return appendTo(ctx, tx, request{m, s, subject, expected, true, payloads})
}

// Queue is Append as a part of a batch, for decisions that write much at once: the transaction of the batch decides.
// The version that the stream will have is known before, since an append that finds another one fails; the errors are
// those of Append, and come from the batch.
func (l *Log) Queue(b *pgx.Batch, m events.Meta, s events.StreamID, subject string, expected int64,
	payloads ...events.Payload,
) (version int64, err error) {
	r := request{m, s, subject, expected, false, payloads}
	args, _, err := r.seal()
	if err != nil {
		return 0, err
	}
	b.Queue(appendSQL, args...).QueryRow(func(row pgx.Row) error {
		var version int64
		var repeated bool
		if err := row.Scan(&version, &repeated); err != nil {
			return appendError(err, r)
		}
		return nil
	})
	return expected + int64(len(payloads)), nil
}

// FactCommand is events.FactCommand in the present epoch of the log, for facts that are appended in q.
func (l *Log) FactCommand(ctx context.Context, q pg.Querier, space uuid.UUID, place string,
	payloads ...events.Payload,
) (uuid.UUID, error) {
	head, err := l.Head(ctx, q)
	if err != nil {
		return uuid.Nil, err
	}
	return events.FactCommand(space, head.Epoch, place, payloads...)
}

// AppendFact appends facts that nobody asked for behind the last event of a subject, or as the first ones where there
// is none. Their ids are those of FactCommand; m.Command is ignored. The errors are those of Append.
func (l *Log) AppendFact(ctx context.Context, tx pgx.Tx, m events.Meta, space uuid.UUID, kind events.Kind,
	subject string, payloads ...events.Payload,
) (Appended, error) {
	head, err := l.Latest(ctx, tx, m.Tenant, kind, subject)
	if err != nil {
		return Appended{}, err
	}
	place := fmt.Sprintf("%s\x00%s\x00%d", m.Tenant, head.ID, head.Version)
	if m.Command, err = l.FactCommand(ctx, tx, space, place, payloads...); err != nil {
		return Appended{}, err
	}
	return l.Append(ctx, tx, m, head.ID, subject, head.Version, payloads...)
}

type request struct {
	meta     events.Meta
	stream   events.StreamID
	subject  string
	expected int64
	once     bool
	payloads []events.Payload
}

const appendSQL = `select version, repeated from eventlog.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

func appendTo(ctx context.Context, tx pgx.Tx, r request) (Appended, error) {
	args, sealed, err := r.seal()
	if err != nil {
		return Appended{}, err
	}
	done := Appended{Tenant: r.meta.Tenant, Stream: r.stream, Events: sealed}
	if err := tx.QueryRow(ctx, appendSQL, args...).Scan(&done.Version, &done.Repeated); err != nil {
		return Appended{}, appendError(err, r)
	}
	if done.Repeated {
		done.Events = nil
	}
	return done, nil
}

// seal makes the events of a request, and the arguments of appendSQL.
func (r request) seal() (args []any, sealed []events.Envelope, err error) {
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	sealed = make([]events.Envelope, len(r.payloads))
	types := make([]string, len(r.payloads))
	ids := make([]uuid.UUID, len(r.payloads))
	bodies := make([][]byte, len(r.payloads))
	for i, p := range r.payloads {
		e, err := events.Seal(r.meta, r.stream, r.subject, r.expected+int64(i)+1, i, p)
		if err != nil {
			return nil, nil, err
		}
		if bodies[i], err = json.Marshal(e); err != nil {
			return nil, nil, fmt.Errorf("encode event %s: %w", e.ID, err)
		}
		if n := len(bodies[i]); n > MaxEventBytes {
			return nil, nil, errs.New(errs.TooLarge, "an event of type %s for %s %q has %d bytes, the limit is %d",
				e.Type, r.stream.Kind, r.subject, n, MaxEventBytes)
		}
		sealed[i], types[i], ids[i] = e, string(e.Type), events.EventID(r.meta.Command, r.stream, i)
	}
	args = []any{
		r.meta.Tenant, string(r.stream.Kind), r.stream.Key, r.stream.Incarnation, r.subject, r.expected,
		r.once, types, ids, bodies,
	}
	return args, sealed, nil
}

func (r request) check() error {
	switch {
	case len(r.payloads) == 0:
		return errs.New(errs.Internal, "append to %s %q without an event", r.stream.Kind, r.subject)
	case len(r.payloads) > MaxEventsPerAppend:
		return errs.New(errs.TooLarge, "append %d events to %s %q: the limit is %d", len(r.payloads), r.stream.Kind,
			r.subject, MaxEventsPerAppend)
	case r.meta.Tenant == "" || r.meta.Tenant == events.AllTenants:
		return errs.New(errs.Internal, "append to %s %q without a tenant", r.stream.Kind, r.subject)
	case r.meta.Command == uuid.Nil:
		return errs.New(errs.Internal, "append to %s %q without a command id: event ids derive from it", r.stream.Kind,
			r.subject)
	case r.meta.Time.IsZero():
		return errs.New(errs.Internal, "append to %s %q without the time of the decision", r.stream.Kind, r.subject)
	case r.stream.Incarnation < 1:
		return errs.New(errs.Internal, "append to stream %s: incarnations count from 1", r.stream)
	}
	return nil
}

// appendError turns what the function raised into the errors that Append documents.
func appendError(err error, r request) error {
	var p *pgconn.PgError
	if !errors.As(err, &p) {
		return pg.Err(err)
	}
	switch p.Code {
	case pg.CodeConflict, pg.CodeExists:
		kind := errs.Conflict
		if p.Code == pg.CodeExists {
			kind = errs.AlreadyExists
		}
		actual, convErr := strconv.ParseInt(p.Detail, 10, 64)
		if convErr != nil {
			return fmt.Errorf("eventlog.append raised %s without a version: %w", p.Code, err)
		}
		return &ConflictError{
			Tenant: r.meta.Tenant, Stream: r.stream, Subject: r.subject, Expected: r.expected,
			Actual: actual, kind: errs.New(kind, "%s", p.Message),
		}
	case pg.CodeForbidden, pg.CodeClosed, pg.CodeUnknownType:
		return errs.New(errs.KindOf(pg.Err(err)), "append to %s %q: %s", r.stream.Kind, r.subject, p.Message)
	}
	return fmt.Errorf("append to %s %q: %w", r.stream.Kind, r.subject, pg.Err(err))
}
