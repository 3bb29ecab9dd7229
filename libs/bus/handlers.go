package bus

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Handler makes the effects of one event inside a transaction (Consumer.Handle).
type Handler func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error

// Handlers are what a consumer does with events, by their type. The table is the list of the types that it reads.
type Handlers map[events.Type]Handler

// On sets the handler of the events with a payload of type P.
func On[P events.Payload](
	h Handlers, handle func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p P) error,
) {
	var zero P
	h[zero.EventType()] = func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
		p, ok := e.Payload.(P)
		if !ok {
			return errs.New(errs.Internal, "event %s of type %s has the payload %T", e.ID, e.Type, e.Payload)
		}
		return handle(ctx, tx, e, p)
	}
}

// Each sets one handler of several types.
func (h Handlers) Each(handle Handler, payloads ...events.Payload) {
	for _, p := range payloads {
		h[p.EventType()] = handle
	}
}

// All sets one handler of every type that a kind of stream has, those of later versions of the registry included.
func (h Handlers) All(kind events.Kind, handle Handler) {
	for _, d := range events.All() {
		if d.Kind == kind {
			h[d.Type] = handle
		}
	}
}

// Types are the event types of the table, sorted.
func (h Handlers) Types() []events.Type {
	out := make([]events.Type, 0, len(h))
	for t := range h {
		out = append(out, t)
	}
	slices.Sort(out)
	return out
}

// Handle makes the effects of one event. One without a handler is a fault of the caller: its stream must park rather
// than lose the event.
func (h Handlers) Handle(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	handle, known := h[e.Type]
	if !known {
		return errs.New(errs.Internal, "event %s: no handler of type %s", e.ID, e.Type)
	}
	return handle(ctx, tx, e)
}
