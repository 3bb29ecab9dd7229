// Package migrate brings a database to the schema that this program carries, and refuses one that does
// not fit.
//
// Up has three parts. Bootstrap makes roles, schemas and rights: outside golang-migrate, since roles
// belong to the instance and golang-migrate needs its schema to be there. Then each schema is migrated
// by golang-migrate under the role that owns all tables. Then the registry of event types is copied
// from the code. All of it is safe to repeat, to run twice at once, and to run after a failed run.
// Services call Check, never Up.
package migrate

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/migrations"
)

// OldestBinary is the oldest release that can work with this schema. Raise it in the same change as a
// migration that an older release would not survive: a column that it writes is gone, for instance.
const OldestBinary = "0.1.0"

// runLock is the key of the advisory lock that makes concurrent runs follow one another. Arbitrary.
const runLock = 0x6368616e646c6572

// Options of Up.
type Options struct {
	// Passwords by database role, such as "chandler_gateway". A role without an entry keeps what it has;
	// a new one then has none and needs another way to authenticate. Passwords (map) also takes "*".
	Passwords map[string]string
	Log       *slog.Logger // default slog.Default()
}

// password returns the password of a role, "" where none is to be set.
func (o Options) password(role string) string {
	if p, ok := o.Passwords[role]; ok {
		return p
	}
	return o.Passwords["*"]
}

// Up brings the database of adminURL to the schema of this program. The role of the URL must be a
// superuser or have CREATEROLE and CREATE on the database. It waits for a run that is under way.
func Up(ctx context.Context, adminURL string, o Options) error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	cfg, err := pgx.ParseConfig(adminURL)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "read the database URL")
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("migrate: %w", pg.Err(err))
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", int64(runLock)); err != nil {
		return fmt.Errorf("migrate: wait for another run: %w", pg.Err(err))
	}
	if err := bootstrap(ctx, conn, o); err != nil {
		return fmt.Errorf("migrate: roles and schemas: %w", pg.Err(err))
	}
	for _, schema := range migrations.Schemas() {
		if err := up(ctx, adminURL, schema, o.Log); err != nil {
			return fmt.Errorf("migrate: schema %s: %w", schema, pg.Err(err))
		}
	}
	if err := finish(ctx, conn); err != nil {
		return fmt.Errorf("migrate: registry and versions: %w", pg.Err(err))
	}
	return nil
}

// closeConn ends the session and with it the advisory lock.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the server drops what was not closed in good order
}

// finish copies the registry, writes what Check reads, and takes back rights on the books of golang-migrate.
func finish(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local role "+Owner); err != nil {
			return err
		}
		if err := syncTypes(ctx, tx); err != nil {
			return err
		}
		return writeInfo(ctx, tx)
	})
}

// syncTypes makes the registry of the database that of the code. A type that the code does not know
// stays: a newer release may have brought it. A new type may be written once every live reader knows it.
func syncTypes(ctx context.Context, tx pgx.Tx) error {
	for _, d := range events.All() {
		_, err := tx.Exec(ctx, `select eventlog.announce_type($1, $2, $3, $4)`, d.Type, d.Kind, d.Writer,
			closes(d.Type))
		if err != nil {
			return fmt.Errorf("register event type %s: %w", d.Type, err)
		}
	}
	if _, err := tx.Exec(ctx, `select eventlog.release_types()`); err != nil {
		return fmt.Errorf("let new event types be written: %w", err)
	}
	return nil
}

// writeInfo records version and oldest binary of each schema. A newer schema that is there already keeps its row.
func writeInfo(ctx context.Context, tx pgx.Tx) error {
	for _, schema := range migrations.Schemas() {
		latest, err := Latest(schema)
		if err != nil {
			return err
		}
		from, err := compatibleFrom(schema)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into eventlog.schema_info as i
			  (schema, version, oldest_binary, compatible_from, migrated) values ($1, $2, $3, $4, clock_timestamp())
			on conflict (schema) do update set version = excluded.version, oldest_binary = excluded.oldest_binary,
			compatible_from = excluded.compatible_from, migrated = excluded.migrated
			where i.version < excluded.version or (i.version = excluded.version and (i.oldest_binary, i.compatible_from)
			  is distinct from (excluded.oldest_binary, excluded.compatible_from))`,
			schema, latest, OldestBinary, from)
		if err != nil {
			return err
		}
	}
	return nil
}

// Check refuses a database whose schema does not fit this program: one that was never migrated, one
// that is older than this program needs, one that a later release has changed in a way that older programs do not
// survive, one that has left binaryVersion ("1.2.3"; what is no release is a
// build from source and counts as the newest) behind. The text says what to do.
func Check(ctx context.Context, pool *pg.Pool, binaryVersion string) error {
	// The column compatible_from may be missing in a database that is too old.
	rows, err := pool.Query(ctx, `select schema, version, oldest_binary,
		coalesce((to_jsonb(i) ->> 'compatible_from')::bigint, version) from eventlog.schema_info i`)
	if err != nil {
		return checkError(pg.Err(err))
	}
	have := map[string]info{}
	for rows.Next() {
		var s string
		var i info
		if err := rows.Scan(&s, &i.version, &i.oldest, &i.from); err != nil {
			return checkError(err)
		}
		have[s] = i
	}
	if err := rows.Err(); err != nil {
		return checkError(pg.Err(err))
	}
	for _, schema := range migrations.Schemas() {
		if err := fits(schema, have[schema], binaryVersion); err != nil {
			return err
		}
	}
	return nil
}

type info struct {
	version int64
	oldest  string
	from    int64 // binaries made for this version of the schema, or a later one, work with it
}

// fits compares one schema with what this program carries.
func fits(schema string, i info, binary string) error {
	need, err := Latest(schema)
	if err != nil {
		return err
	}
	return i.serves(schema, need, binary)
}

// serves says whether a schema serves a binary of a release that was made for version need of it.
func (i info) serves(schema string, need int64, binary string) error {
	if i.version < need {
		return errs.New(errs.Unavailable,
			"the schema %q of the database is at version %d, this program needs version %d: run the migration "+
				"command of this release first", schema, i.version, need)
	}
	if need < i.from {
		return errs.New(errs.Unavailable,
			"the schema %q of the database is at version %d, which serves programs made for version %d and later; this "+
				"program (%s) was made for version %d: upgrade it", schema, i.version, i.from, binary, need)
	}
	older, err := olderThan(binary, i.oldest)
	if err != nil {
		return err
	}
	if older {
		return errs.New(errs.Unavailable,
			"the schema %q of the database serves release %s and newer, this program is release %s: upgrade it", schema,
			i.oldest, binary)
	}
	return nil
}
