// Package view keeps and answers the read models of the API: one file per view, each a projection of
// the log (libs/projection) with the queries on its tables. Nothing here searches the log; the one
// thing read from it is events by position (events.go).
//
// Where the record holds digests only, the document behind one is read from the view of the schema
// that owns it: plans and explanations from resolver_api, catalog content from catalog_api, step logs
// and sentences for people from installer_api. Such a document may be gone; the answer is then given
// without it.
//
// Every query runs in a transaction of the caller's tenant, under row-level security.
package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// schema holds the tables of all views.
const schema = "gateway"

// Names of the projections.
const (
	Clusters       = "gateway.clusters"
	Catalogs       = "gateway.catalogs"
	OperatorGroups = "gateway.operatorgroups"
	Subscriptions  = "gateway.subscriptions"
	InstallPlans   = "gateway.installplans"
	Operators      = "gateway.operators"
	Policies       = "gateway.approvalpolicies"
)

// Projections are all views.
func Projections() []projection.Projection {
	return []projection.Projection{
		clustersProjection(), catalogsProjection(), operatorGroupsProjection(),
		subscriptionsProjection(), installPlansProjection(), operatorsProjection(), policiesProjection(),
	}
}

// Waiter lets a read wait for its projection.
type Waiter interface {
	Wait(ctx context.Context, atLeast events.Position, timeout time.Duration) error
}

// Reader answers queries.
type Reader struct {
	Pool    *pg.Pool
	Log     *eventlog.Log
	Content *Content
	Waiters map[string]Waiter // by name of the projection
	// Defaults are the names of the catalogs that come with the installation.
	Defaults map[string]bool
}

// minPositionWait bounds how long a read waits for its projection: longer than the record is without
// a sequencer after a crash, so that a person who reads what they wrote does not meet it. A projection
// that lags more has trouble that waiting does not mend, and a client that wants to wait longer asks
// again.
const minPositionWait = eventlog.Handover + 3*time.Second

// TimeoutError says that a read model did not reach a position in time.
type TimeoutError struct{ cause error }

func (e *TimeoutError) Error() string { return e.cause.Error() }
func (e *TimeoutError) Unwrap() error { return e.cause }

// Timeout says that asking again later may help, as net.Error does.
func (e *TimeoutError) Timeout() bool { return true }

// WaitFor returns when the projection holds everything up to the place that minPosition names; an
// empty one is no wait. A place beyond the record is errs.Conflict, one not reached in time a
// *TimeoutError.
func (r *Reader) WaitFor(ctx context.Context, tenant, name, minPosition string) error {
	if minPosition == "" {
		return nil
	}
	place, err := model.ParsePlace(minPosition)
	if err != nil {
		return errs.New(errs.Invalid, "%s", err).At("query.minPosition", "position")
	}
	pos, err := r.position(ctx, tenant, place)
	if err != nil {
		return err
	}
	w, ok := r.Waiters[name]
	if !ok {
		return errs.New(errs.Internal, "view %s has no projection", name)
	}
	if err := w.Wait(ctx, pos, minPositionWait); err != nil {
		return &TimeoutError{cause: err}
	}
	return nil
}

// position turns a place into a position, waiting for the sequencer where it has to.
func (r *Reader) position(ctx context.Context, tenant string, p model.Place) (events.Position, error) {
	if p.Version == 0 {
		head, err := r.Log.Head(ctx, r.Pool)
		if err == nil && head.Less(p.Position) {
			err = errs.New(errs.Conflict, "position %s is beyond the record, which ends at %s", p.Position, head).At("query.minPosition", "position-in-record")
		}
		return p.Position, err
	}
	pos, ok, err := r.Log.PositionOf(ctx, r.Pool, tenant, p.Stream, p.Version)
	if err != nil || ok {
		return pos, err
	}
	pos, ok, err = r.Log.Wait(ctx, eventlog.Appended{Tenant: tenant, Stream: p.Stream, Version: p.Version}, minPositionWait)
	if err == nil && !ok {
		err = &TimeoutError{errs.New(errs.Unavailable, "version %d of stream %s has no position yet", p.Version, p.Stream)}
	}
	return pos, err
}

// where collects conditions of a query and their arguments.
type where struct {
	conds []string
	args  []any
}

// clone is where with room for more of its own.
func (w *where) clone() where { return where{conds: slices.Clone(w.conds), args: slices.Clone(w.args)} }

// add adds a condition; each ? stands for the next argument.
func (w *where) add(cond string, args ...any) {
	for _, a := range args {
		w.args = append(w.args, a)
		cond = strings.Replace(cond, "?", fmt.Sprintf("$%d", len(w.args)), 1)
	}
	w.conds = append(w.conds, cond)
}

// equal adds column = value unless the value is empty.
func (w *where) equal(column, value string) {
	if value != "" {
		w.add(column+" = ?", value)
	}
}

// after continues behind the last item of the page before; columns are the key of the list.
func (w *where) after(after []string, columns ...string) error {
	if len(after) == 0 {
		return nil
	}
	if len(after) != len(columns) {
		return errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
	}
	marks := make([]string, len(after))
	args := make([]any, len(after))
	for i, a := range after {
		marks[i], args[i] = "?", a
	}
	w.add("("+strings.Join(columns, ", ")+") > ("+strings.Join(marks, ", ")+")", args...)
	return nil
}

func (w *where) String() string { return " where " + strings.Join(w.conds, " and ") }

// page reads at most limit rows and says whether there are more.
func page[T any](ctx context.Context, q pg.Querier, sql string, args []any, limit int, scan func(pgx.Row) (T, error)) (items []T, more bool, err error) {
	rows, err := q.Query(ctx, fmt.Sprintf("%s limit %d", sql, limit+1), args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	items = make([]T, 0, min(limit, 64))
	for rows.Next() {
		if len(items) == limit {
			return items, true, nil
		}
		item, err := scan(rows)
		if err != nil {
			return nil, false, err
		}
		items = append(items, item)
	}
	return items, false, rows.Err()
}

// one reads one row; missing is the error where there is none.
func one[T any](ctx context.Context, q pg.Querier, sql string, args []any, missing error, scan func(pgx.Row) (T, error)) (T, error) {
	item, err := scan(q.QueryRow(ctx, sql, args...))
	if errs.Is(pg.Err(err), errs.NotFound) {
		return item, missing
	}
	return item, err
}

// unknown is the answer to an event that a projection asked for and does not handle: a fault that must
// park the stream rather than pass.
func unknown(e eventlog.Recorded) error {
	return errs.New(errs.Internal, "view: event type %s is not handled", e.Type)
}

// exec runs one statement of a fold.
func exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

// typesOf lists the types of payloads.
func typesOf(payloads ...events.Payload) []events.Type {
	out := make([]events.Type, len(payloads))
	for i, p := range payloads {
		out[i] = p.EventType()
	}
	return out
}

// scope splits a subject cluster/namespace/name.
func scope(e eventlog.Recorded) (cluster, namespace, name string, err error) {
	p := strings.SplitN(e.Subject, "/", 3)
	if len(p) != 3 {
		return "", "", "", errs.New(errs.Invalid, "event %s of type %s: subject %q is not cluster/namespace/name", e.ID, e.Type, e.Subject)
	}
	return p[0], p[1], p[2], nil
}
