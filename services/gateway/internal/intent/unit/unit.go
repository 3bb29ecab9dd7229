// Package unit carries out units of work: transactions of one tenant in which aggregates decide, and in which their
// events are appended to the log together with the bodies that these refer to. A unit that lost a race on a stream runs
// again from its beginning, on the newest states.
//
// The unit is passed openly. What takes a *Work runs in the transaction of its caller, who commits it or takes it back;
// what takes a model.Caller opens a unit of its own.
package unit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

const (
	// attempts bounds how often a unit runs that lost a race: each attempt loses to somebody who succeeded, so more
	// than a few mean that clients fight over one resource.
	attempts = 4
	// positionWait bounds how long a write waits for its position; the sequencer needs some 25 ms when idle.
	positionWait = 100 * time.Millisecond
)

// Runner opens units of work.
type Runner struct {
	Pool  *pg.Pool // sees one tenant at a time
	Work  *pg.Pool // for all tenants
	Log   *eventlog.Log
	Clock func() time.Time
	NewID func() uuid.UUID
	Slog  *slog.Logger
	// Bodies keeps what events have commitments to.
	Bodies store.Bodies
}

// Now is the time in UTC, as events have it.
func (r *Runner) Now() time.Time { return r.Clock().UTC() }

// Work is one unit of work.
type Work struct {
	Tx     pgx.Tx
	Caller model.Caller

	runner *Runner
	done   *done
}

// done is what happened in a unit so far.
type done struct {
	last     eventlog.Appended // of the decision that was made last, whether it appended anything or not
	recorder *Recorder         // nil where nobody records
	warnings []string
}

// Now is the time in UTC.
func (u *Work) Now() time.Time { return u.runner.Now() }

// Bodies keeps what the events of this unit have commitments to.
func (u *Work) Bodies() store.Bodies { return u.runner.Bodies }

// NewID is a new random id.
func (u *Work) NewID() uuid.UUID { return u.runner.NewID() }

// As is the same unit on behalf of another actor of the tenant.
func (u *Work) As(actor string) *Work {
	other := *u
	if other.Caller.OnBehalfOf != "" {
		other.Caller.OnBehalfOf = actor // through the same portal
	} else {
		other.Caller.Actor = actor
	}
	return &other
}

// Warn notes warnings for whoever opened the unit.
func (u *Work) Warn(list ...string) { u.done.warnings = append(u.done.warnings, list...) }

// Exists reports whether a stream is open: its object was made and is not deleted. It asks the log and not a read
// model, so that an object can be used the moment it is made.
func (u *Work) Exists(ctx context.Context, kind events.Kind, key string) (bool, error) {
	head, err := u.Latest(ctx, kind, key)
	return err == nil && head.Exists(), err
}

// Latest is where the stream of a key stands in the log. Who reads it before what stands beside the log knows a version
// that is no newer than that.
func (u *Work) Latest(ctx context.Context, kind events.Kind, key string) (eventlog.StreamHead, error) {
	return u.runner.Log.Latest(ctx, u.Tx, u.Caller.Tenant, kind, key)
}

// AnyOpen reports whether a stream is open whose key begins with a prefix.
func (u *Work) AnyOpen(ctx context.Context, kind events.Kind, prefix string) (bool, error) {
	return u.runner.Log.AnyOpen(ctx, u.Tx, u.Caller.Tenant, kind, prefix)
}

// Append appends an event to the access stream of a key in this unit: what was done to a thing that is kept outside of
// the log, such as a token, and has no aggregate to decide. It stands or falls with the rest of the unit.
func (u *Work) Append(ctx context.Context, key string, p events.Payload) error {
	head, err := u.Latest(ctx, events.KindAccess, key)
	if err != nil {
		return err
	}
	stream, version := head.Create(), int64(0)
	if head.Exists() {
		version = head.Version
	}
	_, err = u.runner.Log.Append(ctx, u.Tx, u.meta(ctx, u.Now()), stream, key, version, p)
	return err
}

// Run runs do in a transaction of the caller's tenant, and again where it lost a race.
func (r *Runner) Run(
	ctx context.Context, who model.Caller, span string, do func(ctx context.Context, u *Work) error,
) error {
	ctx, end := telemetry.Span(ctx, span)
	var err error
	for range attempts {
		err = r.Once(ctx, who, func(u *Work) error { return do(ctx, u) })
		_, decided := errors.AsType[*PreconditionError](err)
		if decided || !errs.Is(err, errs.Conflict) || ctx.Err() != nil {
			break
		}
	}
	end(err)
	return err
}

// joined is a transaction that units become parts of.
type joined struct {
	tx     pgx.Tx
	tenant string
	tried  bool // and taken back: what is written has no position
}

type joinedKey struct{}

// Join has the units of ctx that are of a tenant run within its transaction: they stand or fall with it. The position
// of such a write is not known before the transaction ends; the name of the version takes its place.
func Join(ctx context.Context, tx pgx.Tx, tenant string) context.Context {
	return context.WithValue(ctx, joinedKey{}, joined{tx: tx, tenant: tenant})
}

// Try is Join for a transaction that its owner takes back, whatever comes of it: writes have no position.
func Try(ctx context.Context, tx pgx.Tx, tenant string) context.Context {
	return context.WithValue(ctx, joinedKey{}, joined{tx: tx, tenant: tenant, tried: true})
}

// Once runs do in a transaction of the caller's tenant.
func (r *Runner) Once(ctx context.Context, who model.Caller, do func(u *Work) error) error {
	if j, ok := ctx.Value(joinedKey{}).(joined); ok && j.tenant == who.Tenant {
		return pg.Err(pgx.BeginFunc(ctx, j.tx, func(tx pgx.Tx) error {
			return do(&Work{Tx: tx, Caller: who, runner: r, done: &done{}})
		}))
	}
	return r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		return do(&Work{Tx: tx, Caller: who, runner: r, done: &done{}})
	})
}

// Write runs do in a unit of its own, and returns what do returned with the position of the last decision.
func Write[T any](
	ctx context.Context, r *Runner, who model.Caller, span string, do func(ctx context.Context, u *Work) (T, error),
) (T, string, error) {
	var out T
	var last eventlog.Appended
	err := r.Run(ctx, who, span, func(ctx context.Context, u *Work) (err error) {
		out, err = do(ctx, u)
		last = u.done.last
		return err
	})
	if err != nil {
		var none T
		return none, "", err
	}
	return out, r.Position(ctx, last.Tenant, last.Stream, last.Version), nil
}

// Position waits a little for the position of a version of a stream. The write has happened: whatever goes wrong now is
// not its failure, and the name of the version serves as well.
func (r *Runner) Position(ctx context.Context, tenant string, stream events.StreamID, version int64) string {
	if version == 0 { // nothing was written
		return ""
	}
	if j, within := ctx.Value(joinedKey{}).(joined); within {
		if j.tried {
			return ""
		}
		return model.StreamVersion(stream, version)
	}
	pos, ok, err := r.Log.Wait(ctx, eventlog.Appended{Tenant: tenant, Stream: stream, Version: version}, positionWait)
	if err != nil {
		r.Slog.WarnContext(ctx, "the position of a write is not known yet", "stream", stream.String(), "error", err)
	}
	if err != nil || !ok {
		return model.StreamVersion(stream, version)
	}
	return pos.String()
}

// Recorder keeps what the decisions of a preview would write.
type Recorder struct {
	Writes   []preview.Write
	Appended []eventlog.Appended // one for each of Writes
	// Announced are the commitments of a preview by write: the same configuration is committed to by the same
	// commitment again, so that a plan that rests on it keeps its digest. What commits to something writes after it, so
	// that the number of writes so far is the index of the next one.
	Announced []preview.Commitments
}

// Recorded is the same unit on a transaction, or a savepoint in it, with its writes recorded.
func (u *Work) Recorded(tx pgx.Tx, r *Recorder) *Work {
	other := *u
	other.Tx, other.done = tx, &done{recorder: r}
	return &other
}

// Warnings are those that were noted so far.
func (u *Work) Warnings() []string { return u.done.warnings }

// Announced are the commitments that a preview announced for the next write; none where it carries no preview out.
func (u *Work) Announced() preview.Commitments {
	if r := u.done.recorder; r != nil && len(r.Writes) < len(r.Announced) {
		return r.Announced[len(r.Writes)]
	}
	return preview.Commitments{}
}
