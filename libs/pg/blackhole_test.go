package pg_test

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/tunneltest"
)

// DESIGN D1, fail-over: a server that answers no more, without a closed connection and with everything acknowledged,
// costs the time limit of one statement; after that the pool works again by itself.
func TestBlackHoleCostsSeconds(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	p, through := tunneltest.Database(t, pgtest.DB(t).URL("gateway"))
	pool, err := pg.Open(t.Context(), through, pg.WithAnswerLimit(limit), pg.WithMaxConns(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	ask := func() error {
		_, err := pool.Exec(t.Context(), "select 1")
		return pg.Err(err)
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	p.Swallow()
	start := time.Now()
	if err := ask(); !errs.Is(err, errs.Unavailable) {
		t.Errorf("in the black hole: %v (%s)", err, errs.KindOf(err))
	}
	p.Heal()
	for err := ask(); err != nil && time.Since(start) < 30*time.Second; {
		err = ask()
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("the pool works again after %s", took)
	}
}

// What is known to take long has a limit of its own.
func TestPatient(t *testing.T) {
	t.Parallel()
	pool, err := pg.Open(t.Context(), pgtest.DB(t).URL("gateway"), pg.WithAnswerLimit(200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	const long = "select pg_sleep(0.6)"
	if _, err := pool.Exec(t.Context(), long); err == nil {
		t.Error("a statement that takes longer than the limit of the pool is waited for")
	}
	if _, err := pool.Exec(pg.Patient(t.Context(), time.Minute), long); err != nil {
		t.Errorf("a statement that may take a minute: %v", err)
	}
}
