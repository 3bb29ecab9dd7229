package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// database is a connection on which only plain tables are read.
type database struct {
	conn   *sql.Conn
	limits limits
	facts  int                        // bytes remembered so far
	tables map[string]map[string]bool // columns of the plain tables
}

// wanted are the tables of a catalog, and whether every version has them.
var wanted = map[string]bool{
	"operatorbundle": true, "package": true, "channel": true, "channel_entry": true,
	"api_provider": false, "api_requirer": false, "related_image": false,
	"dependencies": false, "properties": false, "deprecated": false,
}

// inspect finds the plain tables and their stored columns. A view or virtual table is as good as absent.
func (d *database) inspect(ctx context.Context) error {
	const query = `select m.name, c.name from sqlite_schema m, pragma_table_xinfo(m.name) c
		where m.type = 'table' and m.rootpage > 0 and c.hidden = 0`
	err := d.rows(ctx, query, 2, func(v []string) error { //nolint:mnd // two columns
		table := strings.ToLower(v[0])
		if _, ok := wanted[table]; !ok {
			return nil
		}
		if d.tables[table] == nil {
			d.tables[table] = map[string]bool{}
		}
		d.tables[table][strings.ToLower(v[1])] = true
		return nil
	})
	if err != nil {
		return err
	}
	for table, always := range wanted {
		if always && d.tables[table] == nil {
			return errs.New(errs.Invalid, "the database has no table %s: it is no index of operators", table).At(
				"path", "R-CAT-75")
		}
	}
	return nil
}

// has reports whether a table has all of some columns.
func (d *database) has(table string, columns ...string) bool {
	for _, c := range columns {
		if !d.tables[table][c] {
			return false
		}
	}
	return d.tables[table] != nil
}

// each reads columns of a table, row by row. A column that this version does not have, and NULL, is "".
func (d *database) each(ctx context.Context, table string, take func([]string) error, columns ...string) error {
	if d.tables[table] == nil {
		return nil
	}
	expressions := make([]string, len(columns))
	for i, c := range columns {
		if expressions[i] = `''`; d.tables[table][c] {
			expressions[i] = `"` + c + `"`
		}
	}
	// Neither names nor columns come from the database: they are words of this package.
	return d.rows(ctx, `select `+strings.Join(expressions, ", ")+` from "`+table+`" not indexed`, len(columns), take)
}

// rows runs a query and yields every row as text.
func (d *database) rows(ctx context.Context, query string, columns int, take func([]string) error) (err error) {
	rows, err := d.conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	cells, places := make([]sql.NullString, columns), make([]any, columns)
	for i := range cells {
		places[i] = &cells[i]
	}
	for n := 0; rows.Next(); n++ {
		if n >= d.limits.rows {
			return errs.New(errs.TooLarge, "a table of the index database has more than %d rows", d.limits.rows).At(
				"path", "sqlite.MaxRows")
		}
		if err := rows.Scan(places...); err != nil {
			return err
		}
		v := make([]string, columns)
		for i, c := range cells {
			v[i] = c.String
		}
		if err := take(v); err != nil {
			return err
		}
	}
	return rows.Err()
}

// remember counts what is kept in memory.
func (d *database) remember(v ...string) error {
	const overhead = 64 // of a row in a map
	d.facts += overhead
	for _, s := range v {
		d.facts += len(s)
	}
	if d.facts > d.limits.facts {
		return errs.New(errs.TooLarge, "the index database says more than %d bytes beside manifests",
			d.limits.facts).At("path", "sqlite.MaxFacts")
	}
	return nil
}
