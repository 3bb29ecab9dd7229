package migrate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// Old and new binaries side by side: a binary works with a schema that is newer only by migrations which say that they
// reach back to it, and refuses every other in one sentence.
func TestSchemaServesOlderBinaries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		back map[int64]int64
		want int64
	}{
		{"nothing is said", map[int64]int64{1: 1, 2: 2, 3: 3}, 3},
		{"the last adds", map[int64]int64{1: 1, 2: 2, 3: 2}, 2},
		{"all add", map[int64]int64{1: 0, 2: 0, 3: 0}, 0},
		{"a change before an addition", map[int64]int64{1: 0, 2: 2, 3: 1}, 2},
		{"the last reaches further than the one before", map[int64]int64{3: 3, 4: 3, 5: 4, 6: 1}, 4},
	} {
		latest := int64(0)
		for v := range c.back {
			latest = max(latest, v)
		}
		if got := migrate.OldestServed(latest, c.back); got != c.want {
			t.Errorf("%s: reaches back to %d, want %d", c.name, got, c.want)
		}
	}
	if err := migrate.Serves(7, 5, 5); err != nil {
		t.Errorf("two additions ahead: %v", err)
	}
	err := migrate.Serves(7, 6, 5)
	if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "upgrade it") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("a change ahead: %v", err)
	}
	if err := migrate.Serves(4, 4, 5); !errs.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "run the migration command") {
		t.Errorf("a schema that is too old: %v", err)
	}
}

func TestStatementsOfMigrations(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int64{
		"-- compatible: 3\ncreate table x ();": 3, "create table x ();": 5, "-- no\n-- compatible: 5\n": 5,
		"-- compatible: 6": -1, "-- compatible: 99999999999999999999": -1, " -- compatible: 3": 5,
	} {
		got, err := migrate.ReachesBack(5, []byte(body))
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q reaches back to %d, want %d (%v)", body, got, want, err)
		}
	}
}

// A migration that waits for a table in use gives way to those behind it, is tried again, and leaves nothing half done.
func TestMigrationGivesWay(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	admin := d.Pool(t, pgtest.Admin)
	dump, err := admin.Begin(t.Context()) // as pg_dump does, for as long as it takes
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dump.Exec(t.Context(), "select from gateway.tokens limit 1"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- upGateway(t, d, map[string]string{
			"9001_more.up.sql": "alter table gateway.tokens add column more int", "9001_more.down.sql": "",
		})
	}()
	waiting := func() (n int) {
		if err := admin.QueryRow(t.Context(), `select count(*) from pg_locks where not granted
			and relation = 'gateway.tokens'::regclass`).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	until(t, "the migration waits", func() bool { return waiting() > 0 })
	until(t, "it gives way", func() bool { return waiting() == 0 })
	if _, err := d.Pool(t, "gateway").Exec(t.Context(), "select from gateway.tokens limit 1"); err != nil {
		t.Errorf("who came behind it: %v", err)
	}
	if err := dump.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the migration: %v", err)
	}
	if _, err := admin.Exec(t.Context(), "select more from gateway.tokens"); err != nil {
		t.Error(err)
	}
}

// until waits for a signal.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
