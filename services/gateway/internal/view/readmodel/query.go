// Package readmodel is what the read models of the API share: the table of handlers by which one folds events, the
// building of queries, and the documents that stand outside the log.
//
// Where the log holds digests only, the document behind one is read from the view of the schema that owns it: plans and
// explanations from resolver_api, catalog content from catalog_api, step logs and messages from installer_api. Such a
// document may be gone; the answer is then given without it.
//
// Every query runs in a transaction of the caller's tenant, under row-level security.
package readmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Where collects conditions of a query and their arguments.
type Where struct {
	conds []string
	args  []any
}

// Tenant is a Where that begins with a tenant in a column.
func Tenant(column, tenant string) Where {
	return Where{conds: []string{column + " = $1"}, args: []any{tenant}}
}

// Clone is a Where with conditions of its own beside those that are there.
func (w *Where) Clone() Where { return Where{conds: slices.Clone(w.conds), args: slices.Clone(w.args)} }

// Add adds a condition; each ? stands for the next argument.
func (w *Where) Add(cond string, args ...any) {
	for _, a := range args {
		w.args = append(w.args, a)
		cond = strings.Replace(cond, "?", fmt.Sprintf("$%d", len(w.args)), 1)
	}
	w.conds = append(w.conds, cond)
}

// Equal adds column = value unless the value is empty.
func (w *Where) Equal(column, value string) {
	if value != "" {
		w.Add(column+" = ?", value)
	}
}

// After continues behind the last item of the page before; columns are the key of the list.
func (w *Where) After(after []string, columns ...string) error {
	if len(after) == 0 {
		return nil
	}
	if len(after) != len(columns) {
		return ForeignCursor()
	}
	marks := make([]string, len(after))
	args := make([]any, len(after))
	for i, a := range after {
		marks[i], args[i] = "?", a
	}
	w.Add("("+strings.Join(columns, ", ")+") > ("+strings.Join(marks, ", ")+")", args...)
	return nil
}

func (w *Where) String() string { return " where " + strings.Join(w.conds, " and ") }

// Query reads rows that fit; rest follows the conditions.
func (w *Where) Query(ctx context.Context, q pg.Querier, sql, rest string) (pgx.Rows, error) {
	rows, err := q.Query(ctx, sql+w.String()+" "+rest, w.args...)
	return rows, pg.Err(err)
}

// ForeignCursor is the refusal of a cursor that another list gave.
func ForeignCursor() error {
	return errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
}

// Page reads at most limit rows, by the names of their columns, and says whether there are more.
func Page[T any](
	ctx context.Context, q pg.Querier, sql string, w Where, order string, limit int,
) (items []T, more bool, err error) {
	rows, err := q.Query(ctx, fmt.Sprintf("%s%s order by %s limit %d", sql, w.String(), order, limit+1), w.args...)
	if err != nil {
		return nil, false, err
	}
	items, err = pgx.AppendRows(make([]T, 0, min(limit, 64)), rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, false, err
	}
	if len(items) > limit {
		return items[:limit], true, nil
	}
	return items, false, nil
}

// One reads one row by the names of its columns; missing is the error where there is none.
func One[T any](ctx context.Context, q pg.Querier, sql string, w Where, missing error) (item T, err error) {
	rows, err := q.Query(ctx, sql+w.String(), w.args...)
	if err != nil {
		return item, err
	}
	item, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
	if errs.Is(pg.Err(err), errs.NotFound) {
		return item, missing
	}
	return item, err
}
