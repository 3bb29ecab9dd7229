package migrate_test

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/migrations"
)

var quiet = migrate.Options{Log: slog.New(slog.DiscardHandler)}

func up(t *testing.T, d *pgtest.Database) {
	t.Helper()
	if err := migrate.Up(t.Context(), d.URL(pgtest.Admin), quiet); err != nil {
		t.Fatal(err)
	}
}

// The migration command bootstraps, is safe to repeat, and may run twice at once.
func TestUpAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	d := pgtest.Empty(t)
	errors := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errors {
		wg.Go(func() { errors[i] = migrate.Up(t.Context(), d.URL(pgtest.Admin), quiet) })
	}
	wg.Wait()
	for i, err := range errors {
		if err != nil {
			t.Errorf("run %d: %v", i, err)
		}
	}
	up(t, d)
	if err := migrate.Check(t.Context(), d.Pool(t, "gateway"), migrate.OldestBinary); err != nil {
		t.Error(err)
	}
}

// Runs in several databases of an instance meet at the roles, which belong to the instance.
func TestUpInSeveralDatabases(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 4 {
		d := pgtest.Empty(t)
		o := quiet
		o.Passwords = map[string]string{"*": "pgtest"} // writes every role each time
		wg.Go(func() {
			if err := migrate.Up(t.Context(), d.URL(pgtest.Admin), o); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// An administrator who is no superuser, as managed databases have it, can migrate.
func TestUpWithoutSuperuser(t *testing.T) {
	t.Parallel()
	d := pgtest.Empty(t)
	admin := d.Pool(t, pgtest.Admin)
	// Roles that superusers have made belong to superusers: here they exist already, so membership is given.
	up(t, pgtest.Empty(t))
	role := strings.ReplaceAll(d.Name, "test_", "admin_")
	for _, sql := range []string{
		"create role " + role + " login createrole password 'pgtest'",
		"grant chandler_owner to " + role,
		"alter database " + d.Name + " owner to " + role,
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	t.Cleanup(func() {
		for _, sql := range []string{
			"reassign owned by " + role + " to postgres", "drop owned by " + role,
			"drop role " + role,
		} {
			if _, err := admin.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	for range 2 {
		if err := migrate.Up(t.Context(), d.URL(role), quiet); err != nil {
			t.Fatal(err)
		}
	}
}

// Passwords are set where asked for.
func TestPasswords(t *testing.T) {
	t.Parallel()
	d := pgtest.Empty(t)
	o := quiet
	o.Passwords = map[string]string{"*": "pgtest"} // the one that all tests use
	if err := migrate.Up(t.Context(), d.URL(pgtest.Admin), o); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"gateway", "resolver", "installer", "catalog_indexer"} {
		var hash string
		if err := d.Pool(t, pgtest.Admin).QueryRow(t.Context(),
			"select coalesce(rolpassword, '') from pg_authid where rolname = 'chandler_' || $1", role).Scan(
			&hash); err != nil || hash == "" {
			t.Errorf("%s: %q %v", role, hash, err)
		}
	}
}

// The registry of the database is that of the code; what only a later release knows stays.
func TestRegistryIsCopied(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	admin := d.Pool(t, pgtest.Admin)
	for _, sql := range []string{
		"update eventlog.event_types set writer = 'nobody' where type = 'cluster.removed.v1'",
		"delete from eventlog.event_types where type = 'csv.removed.v1'",
		"insert into eventlog.event_types values ('cluster.painted.v1', 'cluster', 'gateway', false)",
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	up(t, d)
	want := map[string]string{"cluster.painted.v1": "cluster chandler_gateway false"}
	for _, def := range events.All() {
		ends := "false"
		if strings.Contains(string(def.Type), ".removed.") || strings.Contains(string(def.Type), ".deleted.") {
			ends = "true"
		}
		want[string(def.Type)] = string(def.Kind) + " " + migrate.Role(def.Writer) + " " + ends
	}
	got := map[string]string{}
	rows, err := admin.Query(t.Context(), "select type, kind || ' ' || role || ' ' || closes from eventlog.event_types")
	if err != nil {
		t.Fatal(err)
	}
	var typ, line string
	if _, err := pgx.ForEachRow(rows, []any{&typ, &line}, func() error { got[typ] = line; return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("registry (-code +database):\n%s", diff)
	}
}

// A service that does not fit the schema refuses to start with a clear message.
func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql, binary, want string
		kind              errs.Kind
	}{
		"fits":            {"select 1", "0.1.0", "", ""},
		"a later release": {"select 1", "v3.0.1-rc.1", "", ""},
		"built from source": {
			"update eventlog.schema_info set oldest_binary = '99.0.0'",
			"c9880c1f2a3b-dirty", "", "",
		},
		"the schema is newer, fits": {
			"update eventlog.schema_info set version = version + 5, oldest_binary = '0.2.0'",
			"0.2.0", "", "",
		},
		"the schema has left it": {
			"update eventlog.schema_info set oldest_binary = '0.2.0' where schema = " +
				"'gateway'", "0.1.9",
			`the schema "gateway" of the database serves release 0.2.0 and newer, this program is release 0.1.9: upgrade it`, errs.Unavailable,
		},
		"the schema is older": {
			"update eventlog.schema_info set version = 1 where schema = 'eventlog'",
			"0.1.0", "run the migration command of this release first", errs.Unavailable,
		},
		"a schema is missing": {
			"delete from eventlog.schema_info where schema = 'eventlog'", "0.1.0",
			`the schema "eventlog" of the database is at version 0`, errs.Unavailable,
		},
		"never migrated": {
			"drop schema eventlog cascade", "0.1.0", "run the migration command, chandler migrate, first",
			errs.Unavailable,
		},
		"a release that is no number": {"select 1", "1.2", `release "1.2": want major.minor.patch`, errs.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.DB(t)
			if _, err := d.Pool(t, pgtest.Admin).Exec(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
			err := migrate.Check(t.Context(), d.Pool(t, "installer"), c.binary)
			if errs.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v (%s), want %q", err, errs.KindOf(err), c.want)
			}
		})
	}
}

// A release that is older than the schema, but served by it, leaves it alone.
func TestUpOfAnOlderRelease(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	admin := d.Pool(t, pgtest.Admin)
	for _, sql := range []string{
		"update eventlog.schema_migrations set version = 9000",
		"insert into eventlog.migrations_applied values (9000, '9000_later.up.sql', 'sha256:x')",
		"update eventlog.schema_info set version = 9000, oldest_binary = '0.9.0' where schema = 'eventlog'",
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	up(t, d)
	var version int64
	var oldest string
	if err := admin.QueryRow(t.Context(),
		"select version, oldest_binary from eventlog.schema_info where schema = 'eventlog'").Scan(
		&version, &oldest); err != nil || version != 9000 || oldest != "0.9.0" {
		t.Errorf("version %d, oldest %s, %v", version, oldest, err)
	}
}

// A URL that leads nowhere is an error at once: a migration job is repeated by who runs it.
func TestUpWithoutDatabase(t *testing.T) {
	t.Parallel()
	if err := migrate.Up(t.Context(), "postgres://x@127.0.0.1:1/x", quiet); !errs.Is(err, errs.Unavailable) {
		t.Errorf("%v (%s)", err, errs.KindOf(err))
	}
}

// onlyFor are the views that one service alone may read.
var onlyFor = map[string]string{
	"gateway_api.cluster_credentials": "installer",       // it has the identity that they are encrypted to
	"gateway_api.catalog_secrets":     "catalog-indexer", // likewise
}

// Each service sees its own tables and the views of the others, nothing else (migrations/README.md).
func TestRightsOfRoles(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	owns := map[string]string{
		"gateway": "gateway", "resolver": "resolver", "installer": "installer",
		"catalog-indexer": "catalog",
	}
	admin := d.Pool(t, pgtest.Admin)
	for role, own := range owns {
		pool := d.Pool(t, role)
		for _, schema := range migrations.Schemas() {
			for _, table := range tables(t, admin, schema) {
				_, err := pool.Exec(t.Context(), "select from "+schema+"."+table)
				if allowed := schema == own || schema == "eventlog"; allowed != (err == nil) && !books(table) &&
					!strings.HasPrefix(table, "events_") {
					t.Errorf("%s reads %s.%s: %v", role, schema, table, err)
				}
				if _, err := pool.Exec(t.Context(), "delete from "+schema+"."+table); (schema != own || books(table)) &&
					schema != "eventlog" && !errs.Is(pg.Err(err), errs.Forbidden) {
					t.Errorf("%s deletes from %s.%s: %v", role, schema, table, err)
				}
			}
			for _, view := range tables(t, admin, schema+"_api") {
				only, limited := onlyFor[schema+"_api."+view]
				_, err := pool.Exec(t.Context(), "select from "+schema+"_api."+view)
				if allowed := !limited || only == role; allowed != (err == nil) {
					t.Errorf("%s reads %s_api.%s: %v", role, schema, view, err)
				}
			}
		}
	}
}

// books are the tables in which migrations are booked.
func books(table string) bool { return table == "schema_migrations" || table == "migrations_applied" }

// tables lists tables and views of a schema.
func tables(t *testing.T, admin *pg.Pool, schema string) []string {
	t.Helper()
	rows, err := admin.Query(t.Context(),
		"select relname::text from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'p', 'v', "+
			"'m') order by 1", schema)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// An admin URL with a password in it must not appear in an error.
func TestErrorsHideThePassword(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(pgtest.Empty(t).URL("nobody_knows"))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("nobody_knows", "geheim")
	if err := migrate.Up(t.Context(), u.String(), quiet); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
}
