package eventlog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// attendEvery is how often a process says that it reads the log. The database takes it for dead a minute after the
	// last time: longer than a fail-over, and short enough that a crashed process does not hold up new types for long.
	attendEvery = 10 * time.Second
	// leaveWithin bounds saying good-bye: without it, others wait for the minute.
	leaveWithin = 2 * time.Second
)

// knownForms are what this release knows beside event types: forms in which something outside of the log is stored
// (table eventlog.needs). They are for good: a form that is in use stays.
var knownForms = []string{"sealed-bodies"} //nolint:gochecknoglobals // a list

// Reader says to the others which event types this process knows for as long as it reads the log. Nobody writes a type
// that a live reader does not know (DESIGN §3), so that releases can run side by side.
type Reader struct {
	Pool    *pg.Pool
	Service string
	Version string
	Types   []events.Type // nil: all of the registry
	// Keeps are the read models that this process keeps, each as its checkpoint is named. No live one is replaced by an
	// older version of it.
	Keeps []string
	Log   *slog.Logger // slog.Default where nil

	instance string
	unknown  []string
}

// Begin says that this process is about to read the log. What is in the log and unknown here is told once: whatever
// meets it stops there.
func (r *Reader) Begin(ctx context.Context) error {
	if r.Log == nil {
		r.Log = slog.Default()
	}
	if r.Types == nil {
		for _, d := range events.All() {
			r.Types = append(r.Types, d.Type)
		}
	}
	if r.instance == "" {
		r.instance = uuid.NewString()
	}
	return r.attend(ctx)
}

// Run goes on saying so until ctx ends, and returns nil then.
func (r *Reader) Run(ctx context.Context) error {
	t := time.NewTicker(attendEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			// What fails is tried again: others wait a minute before they take this process for dead.
			if err := r.attend(ctx); err != nil && ctx.Err() == nil {
				r.Log.DebugContext(ctx, "cannot say which event types are known here; trying again", "error", err)
			}
		case <-ctx.Done():
			return r.leave(context.WithoutCancel(ctx))
		}
	}
}

func (r *Reader) attend(ctx context.Context) error {
	known := slices.Concat(r.Keeps, knownForms)
	for _, t := range r.Types {
		known = append(known, string(t))
	}
	var unknown []string
	err := r.Pool.QueryRow(ctx, `select eventlog.attend($1, $2, $3, $4)`, r.instance, r.Service, r.Version, known).
		Scan(&unknown)
	if err != nil {
		return fmt.Errorf("say which event types are known here: %w", pg.Err(err))
	}
	if !slices.Equal(unknown, r.unknown) {
		r.unknown = unknown
		r.Log.WarnContext(ctx, "the log may hold event types of a later release; what meets one stops there",
			"version", r.Version, "types", unknown)
	}
	return nil
}

func (r *Reader) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	if _, err := r.Pool.Exec(ctx, `select eventlog.leave($1)`, r.instance); err != nil {
		r.Log.DebugContext(ctx, "cannot say that this process reads the log no more", "error", err)
	}
	return nil
}

// Newest chooses which version of an event to write: the first of versions, newest first, that all live readers know.
// What is known stays so: a version that was chosen is not refused by the append that follows, in tx or later. The
// oldest is one that every release knows; where not even that may be written, the error is of kind errs.Unavailable.
func (l *Log) Newest(ctx context.Context, q pg.Querier, versions ...events.Payload) (events.Payload, error) {
	types := make([]string, len(versions))
	for i, v := range versions {
		types[i] = string(v.EventType())
	}
	var chosen int
	err := q.QueryRow(ctx, `select coalesce(min(u.i), 0) from unnest($1::text[]) with ordinality as u(type, i)
		join eventlog.event_types t on t.type = u.type`, types).Scan(&chosen)
	if err != nil {
		return nil, fmt.Errorf("choose the version of an event: %w", pg.Err(err))
	}
	if chosen == 0 {
		return nil, errs.New(errs.Unavailable, "no version of the event may be written yet: %v", types)
	}
	return versions[chosen-1], nil
}
