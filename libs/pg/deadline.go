package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// answerLimit is how long a statement may take until the answer is there, whatever the network says meanwhile: a proxy
// that acknowledges and forwards nothing. Roles have the same limit in the server (statement_timeout), which ends the
// work there, too.
const answerLimit = time.Minute

// deadline gives every statement of a pool a time limit. A connection that waits for notifications has none: nothing
// is asked on it.
type deadline struct{ limit time.Duration }

type cancelKey struct{}

type patienceKey struct{}

// Patient has the statements of ctx wait longer for their answers than the pool does. The server's own limit is another
// one: a transaction raises it for itself by set_config('statement_timeout', …, true).
func Patient(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, limit)
}

func (d deadline) start(ctx context.Context) context.Context {
	limit := d.limit
	if more, ok := ctx.Value(patienceKey{}).(time.Duration); ok {
		limit = max(limit, more)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return context.WithValue(ctx, cancelKey{}, cancel)
}

func (deadline) end(ctx context.Context) {
	if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart implements pgx.QueryTracer: the statement runs in the context that it returns.
func (d deadline) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return d.start(ctx)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (d deadline) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	d.end(ctx)
}

// TraceBatchStart implements pgx.BatchTracer.
func (d deadline) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return d.start(ctx)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (deadline) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (d deadline) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	d.end(ctx)
}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (d deadline) TraceCopyFromStart(
	ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData,
) context.Context {
	return d.start(ctx)
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (d deadline) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromEndData) {
	d.end(ctx)
}

// TracePrepareStart implements pgx.PrepareTracer.
func (d deadline) TracePrepareStart(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	return d.start(ctx)
}

// TracePrepareEnd implements pgx.PrepareTracer.
func (d deadline) TracePrepareEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareEndData) {
	d.end(ctx)
}
