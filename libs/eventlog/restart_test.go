package eventlog_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
)

// Postgres away in mid-run: appends are refused as unavailable meanwhile, the sequencer goes on by
// itself afterwards, and what had been committed is there.
func TestDatabaseAwayInMidRun(t *testing.T) {
	t.Parallel()
	o := pglocal.Options{Dir: filepath.Join(t.TempDir(), "data"), Durable: true, Log: quiet}
	start := func() *pglocal.Server {
		s, err := pglocal.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	server := start()
	t.Cleanup(func() {
		if err := pglocal.Remove(o.Dir); err != nil {
			t.Error(err)
		}
	})
	if err := migrate.Up(t.Context(), server.AdminURL(), migrate.Options{Log: quiet}); err != nil {
		t.Fatal(err)
	}
	pool, err := pg.Open(t.Context(), server.RoleURL("chandler_gateway"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := bundle{pool: pool, log: eventlog.New(pool)}
	b.sequencer(t, "a")
	position := func(a eventlog.Appended) int64 {
		t.Helper()
		p, ok, err := b.log.Wait(t.Context(), a, patience)
		if err != nil || !ok {
			t.Fatalf("wait: %v %v", ok, err)
		}
		return p.N
	}
	if n := position(b.mustAppend(t, "east", 0, registered("east"))); n != 1 {
		t.Errorf("position %d, want 1", n)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.append(t.Context(), "east", 1, replaced(1)); !errs.Is(err, errs.Unavailable) {
		t.Errorf("while it is away: %v (%s)", err, errs.KindOf(err))
	}
	start()
	if n := position(b.mustAppend(t, "east", 1, replaced(1))); n != 2 {
		t.Errorf("position %d, want 2", n)
	}
	list, err := b.log.ReadStream(t.Context(), pool, events.DefaultTenant, clusterStream("east"), 0)
	if err != nil || len(list) != 2 || !cmp.Equal(list[1].Payload, replaced(1)) {
		t.Errorf("stream: %d events, %v", len(list), err)
	}
}
