package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"log/slog"
	"net/url"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/migrations"
)

const (
	// password of Chandler's roles in a test instance that asks for one.
	password = "pgtest"
	// templateLock is the key of the advisory lock under which templates are made. Arbitrary.
	templateLock = 0x7067746573740001
)

// firstStrategy is the version of PostgreSQL that can also log the pages of a template, and does unless it is told not
// to.
const firstStrategy = 150000

// prepare returns an instance with a migrated template database, which it makes if it is missing. A half-made one,
// whose maker has died, is made anew: only a finished one is marked as a template.
func prepare(ctx context.Context, admin string) (instance, error) {
	in := instance{url: admin}
	var err error
	if in.template, err = templateName(); err != nil {
		return in, err
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return in, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // ends the session and its lock
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", int64(templateLock)); err != nil {
		return in, err
	}
	if err := reap(ctx, conn); err != nil {
		return in, err
	}
	var version int
	var there bool
	err = conn.QueryRow(ctx, `select current_setting('server_version_num')::int,
		exists (select from pg_database where datname = $1 and datistemplate)`, in.template).Scan(&version, &there)
	if version >= firstStrategy {
		in.strategy = " strategy file_copy"
	}
	if err != nil || there {
		return in, err
	}
	return in, makeTemplate(ctx, conn, admin, in.template)
}

// reap drops the databases of tests that were killed, on an instance that outlives them.
func reap(ctx context.Context, conn *pgx.Conn) error {
	const keep = "6 hours" // no test runs as long
	rows, err := conn.Query(ctx, `select datname::text from pg_database where datname ~ '^test_[0-9]+_[0-9]+_[0-9]+$'
		and to_timestamp(split_part(datname, '_', 3)::bigint / 1000) < now() - $1::text::interval`, keep)
	if err != nil {
		return err
	}
	old, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range old {
		if _, err := conn.Exec(ctx, "drop database if exists "+name+" with (force)"); err != nil {
			return err
		}
	}
	return nil
}

func makeTemplate(ctx context.Context, conn *pgx.Conn, admin, name string) error {
	for _, sql := range []string{"drop database if exists " + name + " with (force)", "create database " + name} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	u, err := url.Parse(admin)
	if err != nil {
		return err
	}
	u.Path = "/" + name
	o := migrate.Options{Passwords: map[string]string{"*": password}, Log: slog.New(slog.DiscardHandler)}
	if err := migrate.Up(ctx, u.String(), o); err != nil {
		return err
	}
	if err := identify(ctx, u.String()); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "alter database "+name+" with is_template true allow_connections false")
	return err
}

// Installation is the id of the installation in every database of a test, so that streams have known names.
const Installation = "7e570000-0000-4000-8000-000000000001"

func identify(ctx context.Context, database string) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "update eventlog.installation set id = $1", Installation)
	return errors.Join(err, conn.Close(ctx))
}

// templateName depends on everything that migrate.Up puts into a database.
func templateName() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(migrations.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(migrations.FS, path)
		return errors.Join(err, write(h, path, string(data)))
	})
	for _, d := range events.All() {
		err = errors.Join(err, write(h, string(d.Type), string(d.Kind), string(d.Writer)))
	}
	err = errors.Join(err, write(h, migrate.Bootstrap(), Installation))
	return "chandler_template_" + hex.EncodeToString(h.Sum(nil)[:8]), err
}

func write(h hash.Hash, parts ...string) error {
	for _, p := range parts {
		if _, err := fmt.Fprintf(h, "%d:%s", len(p), p); err != nil {
			return err
		}
	}
	return nil
}
