package migrate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

func TestConcurrentStatements(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		"create index concurrently x on gateway.tokens (name);": nil, // no mark
		"-- concurrently\n-- why; so\ncreate unique index concurrently x on gateway.tokens (name);\n": {
			"create unique index concurrently x on gateway.tokens (name)",
		},
		"-- concurrently\ndrop index concurrently if exists gateway.x;\ncreate index concurrently x on gateway.t(n)": {
			"drop index concurrently if exists gateway.x", "create index concurrently x on gateway.t(n)",
		},
		"-- concurrently\ncreate index x on gateway.tokens (name);":                            {"refused"},
		"-- concurrently\ncreate index concurrently if not exists x on gateway.tokens (name);": {"refused"},
		"-- concurrently\ndrop index concurrently gateway.x;":                                  {"refused"},
		"-- concurrently\nupdate gateway.tokens set name = '';":                                {"refused"},
	} {
		got, err := migrate.ConcurrentStatements([]byte(body))
		if err != nil {
			got = []string{"refused"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q (%v), want %q", body, got, err, want)
		}
	}
}

// An index is built while its table is written. A run that is killed in the middle leaves an invalid index and no entry
// in the book; the next one makes it anew, and leaves alone what the killed one had finished.
func TestIndexesAreBuiltBesideWrites(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	admin := d.Pool(t, pgtest.Admin)
	exec(t, admin, `set role chandler_owner; create table gateway.big (n int, m int); reset role`)
	files := map[string]string{
		"9001_big.up.sql": "-- compatible: 0\n-- concurrently\ncreate index concurrently big_n on gateway.big (n);\n" +
			"create index concurrently big_m on gateway.big (m);\n",
		"9001_big.down.sql": "",
	}
	exec(t, admin, `create index big_n on gateway.big (n)`) // as a run that was killed between the two
	var kept, made uint32
	oid := func(into *uint32, index string) {
		t.Helper()
		if err := admin.QueryRow(t.Context(), `select $1::regclass::oid`, index).Scan(into); err != nil {
			t.Fatal(err)
		}
	}
	oid(&kept, "gateway.big_n")

	writer, err := admin.Begin(t.Context()) // the build waits for it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Rollback(context.Background()) }) // a no-op where the test came to its end
	if _, err := writer.Exec(t.Context(), `insert into gateway.big values (1, 1)`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- upGateway(t, d, files) }()
	const building = `select coalesce(max(pid), 0) from pg_stat_progress_create_index where relid = 'gateway.big'::regclass
		and phase like 'waiting%'`
	pid := awaitPID(t, admin, building)
	exec(t, admin, `insert into gateway.big values (2, 2)`) // who writes is not held up
	var ended bool
	if err := admin.QueryRow(t.Context(), `select pg_terminate_backend($1)`, pid).Scan(&ended); err != nil || !ended {
		t.Fatalf("end the build: %v", err)
	}
	if err := <-done; err == nil {
		t.Fatal("a build that was killed counts as done")
	}
	var invalid, booked bool
	if err := admin.QueryRow(t.Context(), `select not indisvalid from pg_index where indexrelid = 'gateway.big_m'::regclass`).
		Scan(&invalid); err != nil || !invalid {
		t.Fatalf("the killed build left an index that is invalid: %t %v", invalid, err)
	}
	const book = `select exists (select from gateway.migrations_applied where version = 9001)`
	if err := admin.QueryRow(t.Context(), book).Scan(&booked); err != nil || booked {
		t.Fatalf("the killed run is in the book: %t %v", booked, err)
	}
	if err := writer.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := upGateway(t, d, files); err != nil {
		t.Fatal(err)
	}
	if err := admin.QueryRow(t.Context(), `select bool_or(not indisvalid), (`+book+`) from pg_index
		where indrelid = 'gateway.big'::regclass`).Scan(&invalid, &booked); err != nil || invalid || !booked {
		t.Errorf("after the next run: invalid %t, in the book %t, %v", invalid, booked, err)
	}
	oid(&made, "gateway.big_n")
	if made != kept {
		t.Error("an index that was there and valid was made anew")
	}
	err = upGateway(t, d, map[string]string{
		"9001_big.up.sql": files["9001_big.up.sql"], "9001_big.down.sql": "",
		"9002_more.up.sql": "-- concurrently\nupdate gateway.big set n = 0;", "9002_more.down.sql": "",
	})
	if err == nil || !strings.Contains(err.Error(), "create index concurrently") {
		t.Errorf("another statement in a file with the mark: %v", err)
	}
}

// awaitPID is the session that a query finds, once there is one.
func awaitPID(t *testing.T, admin *pg.Pool, query string) (pid int) {
	t.Helper()
	until(t, "the index is being built", func() bool {
		if err := admin.QueryRow(t.Context(), query).Scan(&pid); err != nil {
			t.Error(err)
		}
		return pid != 0
	})
	return pid
}
