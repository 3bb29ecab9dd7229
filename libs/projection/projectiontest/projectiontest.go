// Package projectiontest compares what rebuilds make of tables with what is live.
package projectiontest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
)

// patience bounds the wait for a rebuild.
const patience = time.Minute

// RebuildEqualsLive spoils what is made of the log, asks for a rebuild, which some Rebuilder of the test carries out,
// and compares: the tables are as they were before they were spoiled, and those of others that handlers write are as
// they were all along. The consumer is at rest. spoil are statements of an administrator, whose pool admin is.
func RebuildEqualsLive(t testing.TB, admin *pg.Pool, m projection.Making, spoil ...string) {
	t.Helper()
	before := Contents(t, admin, m)
	for _, table := range m.Derived {
		if len(before[table]) == 0 {
			t.Errorf("%s.%s is empty: a rebuild of it shows nothing", m.Schema, table)
		}
	}
	for _, sql := range spoil {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if maps.EqualFunc(before, Contents(t, admin, m), slices.Equal) {
		t.Fatal("nothing was spoiled")
	}
	Rebuild(t, admin, m.Consumer.Name)
	for table, got := range Contents(t, admin, m) {
		if want := before[table]; !slices.Equal(want, got) {
			t.Errorf("%s.%s was\n%s\nand is after its rebuild\n%s", m.Schema, table, strings.Join(want, "\n"),
				strings.Join(got, "\n"))
		}
	}
}

// Rebuild asks for a rebuild and waits until it is done.
func Rebuild(t testing.TB, admin *pg.Pool, consumer string) {
	t.Helper()
	var known bool
	err := admin.QueryRow(t.Context(), `select eventlog.ask_rebuild($1)`, consumer).Scan(&known)
	if err != nil || !known {
		t.Fatalf("ask for a rebuild of %s: %t %v", consumer, known, err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		var failed *string
		err := admin.QueryRow(t.Context(), `select failed from eventlog.rebuilds where consumer = $1`, consumer).Scan(&failed)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return
		case err != nil:
			t.Fatal(err)
		case failed != nil:
			t.Fatalf("the rebuild of %s failed: %s", consumer, *failed)
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("the rebuild of %s is not done within %s", consumer, patience)
		}
	}
}

// Contents are the rows of the tables that a making names, sorted, without the marks and, in derived tables, without
// the columns that others write.
func Contents(t testing.TB, admin *pg.Pool, m projection.Making) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range slices.Concat(m.Derived, m.Aside) {
		rows, err := admin.Query(t.Context(), fmt.Sprintf(`select (to_jsonb(x) - $1::text[])::text from %s x order by 1`,
			pgx.Identifier{m.Schema, table}.Sanitize()), append([]string{}, m.Keep[table]...))
		if err != nil {
			t.Fatal(err)
		}
		if all[table], err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
