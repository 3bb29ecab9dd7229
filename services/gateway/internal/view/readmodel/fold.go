package readmodel

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
)

// schema holds the tables of all read models.
const schema = "gateway"

// Fold is one event and the transaction that folds it into the tables of a read model.
type Fold struct {
	eventlog.Recorded

	Tx     pgx.Tx
	Tables projection.Tables
}

// Exec runs one statement.
func (f Fold) Exec(ctx context.Context, sql string, args ...any) error {
	_, err := f.Tx.Exec(ctx, sql, args...)
	return err
}

// Table is the qualified name of a table, for use in SQL.
func (f Fold) Table(name string) string { return f.Tables.Name(name) }

// Scope splits the event's subject cluster/namespace/name.
func (f Fold) Scope() (cluster, namespace, name string, err error) {
	p := strings.SplitN(f.Subject, "/", 3)
	if len(p) != 3 {
		return "", "", "", errs.New(errs.Invalid, "event %s of type %s: subject %q is not cluster/namespace/name", f.ID,
			f.Type, f.Subject)
	}
	return p[0], p[1], p[2], nil
}

// Handler folds the events of one type.
type Handler struct {
	eventType events.Type
	apply     func(ctx context.Context, f Fold) error
}

// On is the handler of the events with a payload of type P.
func On[P events.Payload](apply func(ctx context.Context, f Fold, p P) error) Handler {
	var zero P
	return Handler{zero.EventType(), func(ctx context.Context, f Fold) error {
		p, ok := f.Payload.(P)
		if !ok {
			return errs.New(errs.Internal, "event type %s has the payload %T", f.Type, f.Payload)
		}
		return apply(ctx, f, p)
	}}
}

// OnAll are handlers of every type of event that a kind of stream has.
func OnAll(kind events.Kind, apply func(ctx context.Context, f Fold) error) []Handler {
	var list []Handler
	for _, d := range events.All() {
		if d.Kind == kind {
			list = append(list, Handler{d.Type, apply})
		}
	}
	return list
}

// Projection is the projection of a read model: its handlers are the list of event types that it reads.
func Projection(name string, version int, tables []string, handlers ...Handler) projection.Projection {
	types := make([]events.Type, len(handlers))
	byType := make(map[events.Type]Handler, len(handlers))
	for i, h := range handlers {
		types[i], byType[h.eventType] = h.eventType, h
	}
	return projection.Projection{
		Name: name, Version: version, Schema: schema, Tables: tables, Types: types,
		Apply: func(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
			h, ok := byType[e.Type]
			if !ok { // a fault that must park the stream rather than pass
				return errs.New(errs.Internal, "read model %s has no handler of event type %s", name, e.Type)
			}
			return h.apply(ctx, Fold{Recorded: e, Tx: tx, Tables: t})
		},
	}
}

// Labels are labels as their column has them.
func Labels(m events.Metadata) map[string]string {
	if m.Labels == nil {
		return map[string]string{}
	}
	return m.Labels
}
