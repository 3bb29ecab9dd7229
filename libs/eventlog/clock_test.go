package eventlog_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
)

// A clock of the database that is set a year ahead does not take the time of the log along: that goes on, catches up at
// twice the speed, and the jump is noted. (One that goes back keeps it where it is: TestTimeNeverGoesBack.)
func TestClockThatJumpsAhead(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	term := b.lead(t)
	sequence := func(led time.Duration) (jumped *time.Duration) {
		t.Helper()
		if _, err := b.admin.Exec(t.Context(), `update eventlog.sequencer set until = clock_timestamp()`); err != nil {
			t.Fatal(err)
		}
		if err := b.pool.QueryRow(t.Context(), `select jumped from eventlog.sequence($1, 10, '2 s', $2)`, term, led).
			Scan(&jumped); err != nil {
			t.Fatal(err)
		}
		return jumped
	}
	recorded := func() (ahead time.Duration) {
		t.Helper()
		err := b.admin.QueryRow(t.Context(), `select recorded - clock_timestamp() from eventlog.sequencer`).Scan(&ahead)
		if err != nil {
			t.Fatal(err)
		}
		return ahead
	}
	sequence(0)
	// To the row, a clock that went ahead by a year now is one that was a year behind then.
	if _, err := b.admin.Exec(t.Context(), `update eventlog.sequencer set clock = clock - interval '365 days'`); err != nil {
		t.Fatal(err)
	}
	b.mustAppend(t, "east", 0, registered("east"))
	if jumped := sequence(time.Second); jumped == nil || *jumped < 364*24*time.Hour {
		t.Fatalf("the jump was told as %v", jumped)
	}
	if behind := -recorded(); behind < 364*24*time.Hour {
		t.Errorf("the time of the log followed the clock: it is %s behind it", behind)
	}
	b.mustAppend(t, "east", 1, replaced(1))
	if jumped := sequence(11 * time.Second); jumped != nil {
		t.Errorf("the same jump was told twice: %v", jumped)
	}
	var left time.Duration
	if err := b.admin.QueryRow(t.Context(), `select interval '365 days' - ahead from eventlog.sequencer`).Scan(
		&left); err != nil || left < 9*time.Second || left > 30*time.Second {
		t.Errorf("after 10 seconds it has caught up by %s, want 10s (%v)", left, err)
	}
	var noted int
	if err := b.admin.QueryRow(t.Context(), `select count(*) from eventlog.incidents where kind = 'ClockJumped'`).Scan(
		&noted); err != nil || noted != 1 {
		t.Errorf("%d jumps are noted, want 1 (%v)", noted, err)
	}
	all := b.readAll(t)
	if len(all) != 2 || all[1].Recorded.Before(all[0].Recorded) {
		t.Errorf("time went back: %v", all)
	}
}

// Another server or timeline is noted once, and ends the term of the leader, so that the next one compares what was
// seen with the record (DESIGN D1: lost commits are noticed).
func TestAnotherServerEndsTheTerm(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	compared := make(chan int, 10)
	b.sequencerWith(t, eventlog.Options{ID: "a", Log: quiet, Compare: func(ctx context.Context) error {
		b.mustAppend(t, "east", 0, registered("east"))
		var term *int64
		if err := b.pool.QueryRow(ctx, `select eventlog.lead('b', interval '2 s')`).Scan(&term); err != nil {
			return err
		}
		var waiting int
		err := b.admin.QueryRow(ctx, `select count(*) from eventlog.appended`).Scan(&waiting)
		compared <- waiting
		return err
	}})
	b.awaitLeader(t, "a")
	eventually(t, "the server is noted", func() bool {
		err := b.admin.QueryRow(t.Context(), `select from eventlog.server`).Scan()
		return err == nil
	})
	_, before := b.leader(t)
	for _, sql := range []string{
		`update eventlog.server set timeline = timeline - 1`, // as if it had been promoted since
		`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
	} {
		// The pool of the administrator may lose its connections, too.
		if _, err := b.admin.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Log(err)
		}
	}
	eventually(t, "another term", func() bool {
		var term int64
		err := b.admin.QueryRow(t.Context(), `select term from eventlog.sequencer where leader = 'a'`).Scan(&term)
		return err == nil && term > before
	})
	var noted int
	if err := b.admin.QueryRow(t.Context(), `select count(*) from eventlog.incidents where kind = 'TimelineChanged'`).Scan(
		&noted); err != nil || noted != 1 {
		t.Errorf("%d changes are noted, want 1 (%v)", noted, err)
	}
	if waiting := <-compared; waiting != 1 || len(compared) != 0 {
		t.Errorf("%d events were without a position at the end of the comparison, want 1; compared %d times more", waiting,
			len(compared))
	}
	eventually(t, "what came meanwhile has a position", func() bool {
		var waiting int
		err := b.admin.QueryRow(t.Context(), `select count(*) from eventlog.appended`).Scan(&waiting)
		return err == nil && waiting == 0
	})
}
