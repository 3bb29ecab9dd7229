package projection

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Consumer tables
//
// The handlers of a service name its tables by schema and name, since those who decide and work share the statements.
// In a rebuild the same handlers run in a transaction that has each such name lead to the table beside.

// redirect leads the names of some tables of one schema to those of the session.
func redirect(schema string, tables []string) func(sql string) string {
	quoted := make([]string, len(tables))
	for i, t := range tables {
		quoted[i] = regexp.QuoteMeta(t)
	}
	// A name ends where no letter, digit or underscore follows: plans is not plans_x, nor resolver chandler_resolver.
	names := regexp.MustCompile(`\b` + regexp.QuoteMeta(schema) + `\.(` + strings.Join(quoted, "|") + `)\b`)
	known := map[string]string{} // a transaction is used by one goroutine at a time
	return func(sql string) string {
		to, ok := known[sql]
		if !ok {
			to = names.ReplaceAllString(sql, beside+".$1")
			known[sql] = to
		}
		return to
	}
}

// redirected is a transaction whose statements go by redirect.
type redirected struct {
	pgx.Tx
	to func(sql string) string
}

func (r redirected) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := r.Tx.Begin(ctx)
	return redirected{tx, r.to}, err
}

func (r redirected) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return r.Tx.Exec(ctx, r.to(sql), args...)
}

func (r redirected) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return r.Tx.Query(ctx, r.to(sql), args...)
}

func (r redirected) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return r.Tx.QueryRow(ctx, r.to(sql), args...)
}

func (r redirected) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return r.Tx.Prepare(ctx, name, r.to(sql))
}

func (r redirected) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		q.SQL = r.to(q.SQL)
	}
	return r.Tx.SendBatch(ctx, b)
}

// written counts what the session has written to each table of a schema, by name. Within one transaction the counts
// only grow, so that the difference of two says what was written between them.
func written(ctx context.Context, tx pgx.Tx, schema string) (map[string]int64, error) {
	rows, err := tx.Query(ctx, `select c.relname::text, pg_stat_get_xact_tuples_inserted(c.oid) +
		  pg_stat_get_xact_tuples_updated(c.oid) + pg_stat_get_xact_tuples_deleted(c.oid)
		from pg_class c where c.relnamespace = $1::regnamespace and c.relkind = 'r'`, schema)
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	var name string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		counts[name] = n
		return nil
	})
	return counts, err
}

// shape is what a swap needs to know of a table.
type shape struct {
	columns []string // those that can be written, quoted
	key     []string // of the primary key, quoted
}

// shapeOf reads the columns of a table without those that PostgreSQL computes.
func shapeOf(ctx context.Context, tx pgx.Tx, schema, table string) (s shape, err error) {
	err = tx.QueryRow(ctx, `select array_agg(quote_ident(a.attname) order by a.attnum) filter (where a.attgenerated = ''),
		  coalesce(array_agg(quote_ident(a.attname) order by a.attnum) filter (where a.attnum = any (k.conkey)), '{}')
		from pg_attribute a left join pg_constraint k on k.conrelid = a.attrelid and k.contype = 'p'
		where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped`,
		pgx.Identifier{schema, table}.Sanitize()).Scan(&s.columns, &s.key)
	return s, err
}

// replace makes the contents of a live table those of the one beside, but for the columns of keep, which stay as they
// are where the row stays. Rows that are equal are not touched: whoever works by them waits for nothing.
func replace(ctx context.Context, tx pgx.Tx, schema, table string, keep []string) error {
	s, err := shapeOf(ctx, tx, schema, table)
	if err != nil {
		return fmt.Errorf("read the columns of %s: %w", table, err)
	}
	live, side := pgx.Identifier{schema, table}.Sanitize(), pgx.Identifier{beside, table}.Sanitize()
	if len(s.key) == 0 {
		return fmt.Errorf("table %s has no primary key: what is made beside cannot be compared with it", table)
	}
	kept := map[string]bool{}
	for _, c := range keep {
		kept[pgx.Identifier{c}.Sanitize()], kept[c] = true, true
	}
	var same, moved, sets []string
	for _, k := range s.key {
		same = append(same, "s."+k+" = l."+k)
		kept[k] = true
	}
	for _, c := range s.columns {
		if !kept[c] {
			moved = append(moved, c)
			sets = append(sets, c+" = excluded."+c)
		}
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf(`delete from %s l where not exists (select from %s s where %s)`, live, side,
		strings.Join(same, " and "))); err != nil {
		return fmt.Errorf("take rows out of %s: %w", table, err)
	}
	columns, onConflict := strings.Join(s.columns, ", "), "nothing"
	if len(moved) > 0 {
		// As text, since not every type can be compared (json).
		onConflict = fmt.Sprintf(`update set %s where row(%s)::text <> row(%s)::text`, strings.Join(sets, ", "),
			"l."+strings.Join(moved, ", l."), "excluded."+strings.Join(moved, ", excluded."))
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf(`insert into %s as l (%s) select %s from %s on conflict (%s) do %s`, live,
		columns, columns, side, strings.Join(s.key, ", "), onConflict)); err != nil {
		return fmt.Errorf("fill %s: %w", table, err)
	}
	return nil
}
