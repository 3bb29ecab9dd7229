package eventlog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// patience bounds every wait of these tests; none takes a hundredth of it when all is well.
const patience = time.Minute

// quiet takes the log of what is expected.
var quiet = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) {
	if url := os.Getenv(leaderEnv); url != "" {
		os.Exit(leadAsChild(url, os.Getenv(leaderIDEnv)))
	}
	goleak.VerifyTestMain(m)
}

// bundle is a log in a database of its own, without a sequencer.
type bundle struct {
	db    *pgtest.Database
	admin *pg.Pool
	pool  *pg.Pool // the gateway's
	log   *eventlog.Log
}

func newBundle(tb testing.TB) bundle {
	tb.Helper()
	d := pgtest.DB(tb)
	pool := d.Pool(tb, "gateway", pg.WithMaxConns(24))
	return bundle{db: d, admin: d.Pool(tb, pgtest.Admin, pg.WithMaxConns(24)), pool: pool, log: eventlog.New(pool)}
}

// meta is a command of the gateway.
func meta() events.Meta {
	return events.Meta{Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now()}
}

// clusterStream is the first life of a cluster.
func clusterStream(name string) events.StreamID {
	return events.StreamID{
		Kind: events.KindCluster, Key: events.Key(events.DefaultTenant, events.KindCluster, name),
		Incarnation: 1,
	}
}

func registered(name string) events.Payload {
	return events.ClusterRegistered{Name: name, Credential: "c1:00"}
}

func replaced(n int) events.Payload {
	return events.ClusterCredentialReplaced{Credential: fmt.Sprintf("c1:%02d", n)}
}

// append appends to the stream of a cluster in a transaction of its own.
func (b bundle) append(ctx context.Context, name string, expected int64, payloads ...events.Payload) (
	eventlog.Appended, error,
) {
	var a eventlog.Appended
	err := b.pool.Tx(ctx, func(tx pgx.Tx) (err error) {
		a, err = b.log.Append(ctx, tx, meta(), clusterStream(name), name, expected, payloads...)
		return err
	})
	return a, err
}

func (b bundle) mustAppend(tb testing.TB, name string, expected int64, payloads ...events.Payload) eventlog.Appended {
	tb.Helper()
	a, err := b.append(tb.Context(), name, expected, payloads...)
	if err != nil {
		tb.Fatalf("append to %s: %v", name, err)
	}
	return a
}

// lead makes the test itself the sequencer, whoever was it before, and returns its term.
func (b bundle) lead(tb testing.TB) int64 {
	tb.Helper()
	if _, err := b.admin.Exec(tb.Context(), `update eventlog.sequencer set until = '-infinity'`); err != nil {
		tb.Fatal(err)
	}
	var term int64
	if err := b.pool.QueryRow(tb.Context(), `select eventlog.lead('by hand', interval '1 hour')`).Scan(
		&term); err != nil {
		tb.Fatalf("lead: %v", err)
	}
	return term
}

// sequenceAll moves everything that is committed.
func (b bundle) sequenceAll(tb testing.TB, term int64) int {
	tb.Helper()
	total := 0
	for {
		n, err := b.log.Sequence(tb.Context(), term, eventlog.Batch)
		if err != nil {
			tb.Fatalf("sequence: %v", err)
		}
		if n == 0 {
			return total
		}
		total += n
	}
}

// readAll reads the log from its beginning in batches.
func (b bundle) readAll(tb testing.TB) []eventlog.Recorded {
	tb.Helper()
	var all []eventlog.Recorded
	var at events.Position
	for {
		list, next, err := b.log.ReadAfter(tb.Context(), b.pool, at, eventlog.Filter{}, 500)
		if err != nil {
			tb.Fatalf("read after %s: %v", at, err)
		}
		if all = append(all, list...); len(list) == 0 {
			return all
		}
		at = next
	}
}

// sequencer runs a candidate until the test ends or stop is called.
func (b bundle) sequencer(tb testing.TB, id string) (s *eventlog.Sequencer, stop func()) {
	tb.Helper()
	return b.sequencerWith(tb, eventlog.Options{ID: id, Log: quiet})
}

func (b bundle) sequencerWith(tb testing.TB, o eventlog.Options) (s *eventlog.Sequencer, stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s = eventlog.NewSequencer(b.log, o)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Run(ctx); err != nil {
			tb.Errorf("sequencer %s: %v", o.ID, err)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	tb.Cleanup(stop)
	return s, stop
}

// eventually asks until ok says yes.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			tb.Fatalf("waited in vain for: %s", what)
		}
	}
}

// subjects of events, in order.
func subjects(list []eventlog.Recorded) []string {
	var s []string
	for _, e := range list {
		s = append(s, e.Subject)
	}
	return s
}
