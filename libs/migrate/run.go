package migrate

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strconv"
	"time"

	gomigrate "github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/migrations"
)

// runner migrates one schema.
type runner struct {
	schema string
	folder fs.FS
	db     *sql.DB
	log    *slog.Logger
}

// up migrates one schema to the latest version that this program carries.
func up(ctx context.Context, adminURL, schema string, log *slog.Logger) error {
	latest, err := Latest(schema)
	if err != nil || latest == 0 {
		return err
	}
	folder, err := fs.Sub(migrations.FS, schema)
	if err != nil {
		return err
	}
	return upFolder(ctx, adminURL, schema, folder, log)
}

// upFolder migrates one schema from the files of a folder.
func upFolder(ctx context.Context, adminURL, schema string, folder fs.FS, log *slog.Logger) error {
	cfg, err := pgx.ParseConfig(adminURL)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "read the database URL")
	}
	cfg.RuntimeParams["role"] = Owner // what is made belongs to it
	cfg.RuntimeParams["search_path"] = schema
	cfg.RuntimeParams["lock_timeout"] = strconv.FormatInt(lockWait.Milliseconds(), 10)
	for attempt := 1; ; attempt++ {
		err := runOn(ctx, cfg, schema, folder, log)
		if attempt == lockTries || !waitedForLock(err) {
			return err
		}
		log.WarnContext(ctx, "a migration waits for a table that is in use; trying again", "schema", schema,
			"error", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockPause):
		}
	}
}

func runOn(ctx context.Context, cfg *pgx.ConnConfig, schema string, folder fs.FS, log *slog.Logger) error {
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }() // nothing is under way any more
	return runner{schema, folder, db, log}.run(ctx)
}

// How a migration waits for a table that is in use. Whoever comes behind a statement that waits for an exclusive lock
// waits as well: so it waits briefly, gives way, and is tried again. A file is one transaction, so that nothing is half
// done.
const (
	lockWait  = 3 * time.Second
	lockPause = 2 * time.Second
	// lockTries make five minutes: a dump or a report may hold a table for that long.
	lockTries = 60
)

// waitedForLock reports whether a migration failed since it did not get a lock in time, or at all.
func waitedForLock(err error) bool {
	var p *pgconn.PgError
	return errors.As(err, &p) && (p.Code == "55P03" || p.Code == "40P01")
}

// run carries out what is missing. A run that failed before is repaired first.
func (r runner) run(ctx context.Context) error {
	if err := r.unchanged(ctx); err != nil {
		return err
	}
	files, err := iofs.New(r.folder, ".")
	if err != nil {
		return err
	}
	driver, err := migratepgx.WithInstance(r.db, &migratepgx.Config{
		SchemaName: r.schema, MigrationsTable: "schema_migrations",
	})
	if err != nil {
		return err
	}
	m, err := gomigrate.NewWithInstance("embedded", &booked{Driver: files, schema: r.schema}, r.schema,
		concurrent{driver, r.db})
	if err != nil {
		return err
	}
	defer func() { _, _ = m.Close() }() // source is in memory, the connection is closed with the pool
	if err := r.repair(ctx, m, driver, files); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { m.GracefulStop <- true })
	defer stop()
	if err := m.Up(); err != nil && !errors.Is(err, gomigrate.ErrNoChange) && !ahead(err) {
		return sentence(err)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return r.keepBooks(ctx)
}

// keepBooks takes back the right to write golang-migrate's own table, which the role of the schema's
// service got with all tables of the schema.
func (r runner) keepBooks(ctx context.Context) error {
	for _, s := range services() {
		if s.schema != r.schema {
			continue
		}
		if _, err := r.db.ExecContext(ctx, fmt.Sprintf("revoke all on %s.schema_migrations from %s", r.schema,
			s.role)); err != nil {
			return err
		}
	}
	return nil
}

// sentence makes golang-migrate's error, which quotes the whole file, one line that names the place.
func sentence(err error) error {
	var failed database.Error
	if !errors.As(err, &failed) {
		return err
	}
	return fmt.Errorf("line %d: %s: %w", failed.Line, failed.Err, failed.OrigErr)
}

// ahead reports whether the database is at a version that this program does not carry: a newer release
// has migrated it, and this one has nothing to add. Check decides whether this program may run on it.
func ahead(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// repair clears the mark that a failed run has left. The body of a migration and its entry in
// migrations_applied are one transaction, so that the entry tells whether the body took effect: the
// process may have died before it (run it again) or just behind it (go on).
func (r runner) repair(ctx context.Context, m *gomigrate.Migrate, d database.Driver, files source.Driver) error {
	version, dirty, err := d.Version()
	if err != nil || !dirty {
		return err
	}
	var applied bool
	err = r.db.QueryRowContext(ctx, fmt.Sprintf(`select exists (select from %s.migrations_applied where version = $1)`,
		r.schema), version).Scan(&applied)
	if err != nil {
		return err
	}
	target := version
	if !applied {
		target = previous(files, version)
	}
	r.log.WarnContext(ctx, "repairs a migration run that failed", "schema", r.schema, "version", version,
		"had taken effect", applied)
	return m.Force(target)
}

// previous is the version before v, -1 (golang-migrate's "none") if v is the first.
func previous(files source.Driver, v int) int {
	if v < 0 {
		return database.NilVersion
	}
	p, err := files.Prev(uint(v))
	if err != nil {
		return database.NilVersion
	}
	return int(p)
}

// unchanged refuses a database in which a migration was carried out in another wording than the one
// that this program carries: its tables are then not what the code expects.
func (r runner) unchanged(ctx context.Context) error {
	rows, err := r.db.QueryContext(ctx, fmt.Sprintf(
		`select version, file, digest from %s.migrations_applied order by version`, r.schema))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // read to the end below
	for rows.Next() {
		var version int64
		var file, sum string
		if err := rows.Scan(&version, &file, &sum); err != nil {
			return err
		}
		body, err := fs.ReadFile(r.folder, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a newer release's
		}
		if err != nil {
			return err
		}
		if got := string(digest.Bytes(body)); got != sum {
			return errs.New(errs.Invalid,
				"migration %s/%s was changed after it had been carried out here (then %s, now %s): add a new "+
					"migration instead", r.schema, file, sum, got)
		}
	}
	return rows.Err()
}

// booking stands between a migration and the statement that books it.
const booking = "\n;\n-- booked\n"

// booked adds to every migration the statement that books it. PostgreSQL runs all statements of one
// message in one transaction, so that body and entry take effect together or not at all; files with -- concurrently are
// booked when all their statements have taken effect.
type booked struct {
	source.Driver
	schema string
}

// ReadUp implements source.Driver.
func (b *booked) ReadUp(version uint) (io.ReadCloser, string, error) {
	r, title, err := b.Driver.ReadUp(version)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = r.Close() }() // a file in memory
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, "", err
	}
	entry := fmt.Sprintf(
		booking+"insert into %s.migrations_applied (version, file, digest) values (%d, '%04d_%s.up.sql', '%s');\n",
		b.schema, version, version, title, digest.Bytes(body))
	return io.NopCloser(bytes.NewReader(append(body, entry...))), title, nil
}
