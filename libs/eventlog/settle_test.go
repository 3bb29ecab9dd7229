package eventlog_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// settle lets the sequencer look now, not in 200 ms, and returns the id behind which moves begin.
func (b bundle) settle(t *testing.T, term int64) (settled int64) {
	t.Helper()
	for range 2 { // first it notes who is writing, then whether these have ended
		if _, err := b.admin.Exec(t.Context(), `update eventlog.sequencer set settling = '-infinity',
			until = clock_timestamp()`); err != nil {
			t.Fatal(err)
		}
		b.sequenceAll(t, term)
	}
	if err := b.admin.QueryRow(t.Context(), `select settled from eventlog.sequencer`).Scan(&settled); err != nil {
		t.Fatal(err)
	}
	return settled
}

// Moves never begin behind an event that has drawn its id and is not committed yet, however many later ones were moved
// meanwhile: it gets its position when it is committed.
func TestMovesBeginBeforeWhatIsOpen(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	term := b.lead(t)
	b.mustAppend(t, "before", 0, registered("before"))
	if settled := b.settle(t, term); settled != 1 {
		t.Fatalf("moves begin behind %d, want 1", settled)
	}
	held, lost := b.begin(t), b.begin(t)
	b.draw(t, held, "held")
	b.draw(t, lost, "lost")
	for _, name := range []string{"x", "y"} {
		b.mustAppend(t, name, 0, registered(name))
		if settled := b.settle(t, term); settled != 1 {
			t.Fatalf("moves begin behind %d although an event with the id 2 is not committed", settled)
		}
	}
	if err := lost.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if settled := b.settle(t, term); settled != 1 {
		t.Fatalf("moves begin behind %d although an event with the id 2 is not committed", settled)
	}
	commit(t, held)
	if settled := b.settle(t, term); settled != 5 {
		t.Errorf("moves begin behind %d when all have ended, want 5", settled)
	}
	if diff := cmp.Diff([]string{"before", "x", "y", "held"}, subjects(b.readAll(t))); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

// Neither a snapshot that stays open, nor a write that is open in another database or in another table of this one,
// keeps the beginning of the moves back.
func TestOpenSnapshotsDoNotHoldMovesBack(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.snapshot(t)
	elsewhere := pgtest.Empty(t).Pool(t, pgtest.Admin)
	for _, pool := range []interface {
		Begin(ctx context.Context) (pgx.Tx, error)
	}{elsewhere, b.admin} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // nothing of it is wanted
		if _, err := tx.Exec(t.Context(), `create table public.held (n int)`); err != nil {
			t.Fatal(err)
		}
	}
	term := b.lead(t)
	b.mustAppend(t, "a", 0, registered("a"), replaced(1))
	if settled := b.settle(t, term); settled != 2 {
		t.Errorf("moves begin behind %d, want 2", settled)
	}
}

// A stream that spans partitions is read whole, from any version, with what has no position yet, and each of its events
// has its position.
func TestStreamsSpanPartitions(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	const partitions = 5
	b.age(t, partitions)
	b.mustAppend(t, "long", partitions, replaced(partitions))
	for after := range int64(partitions + 2) {
		list, err := b.log.ReadStream(t.Context(), b.pool, events.DefaultTenant, clusterStream("long"), after)
		if err != nil || len(list) != partitions+1-int(after) {
			t.Fatalf("behind version %d: %d events (%v)", after, len(list), err)
		}
		for i, e := range list {
			version := after + int64(i) + 1
			p, ok, err := b.log.PositionOf(t.Context(), b.pool, events.DefaultTenant, clusterStream("long"), version)
			if err != nil || e.Version != version || e.Position != p || ok != (version <= partitions) {
				t.Errorf("version %d: read %d at %s, position %s %v (%v)", version, e.Version, e.Position, p, ok, err)
			}
		}
	}
	m := meta()
	for _, want := range []bool{false, true} { // a command that is repeated is found in whichever partition it is
		var a eventlog.Appended
		err := b.pool.Tx(t.Context(), func(tx pgx.Tx) (err error) {
			a, err = b.log.AppendOnce(t.Context(), tx, m, clusterStream("early"), "early", 3, replaced(9))
			return err
		})
		if err != nil || a.Repeated != want || a.Version != 4 {
			t.Errorf("repeated %v at version %d, want %v (%v)", a.Repeated, a.Version, want, err)
		}
		b.fill(t, 500)
	}
}
