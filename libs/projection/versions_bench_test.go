package projection_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/projection"
)

// BenchmarkReadByPath compares reads of a row by a qualified name with those by the search path of the sessions, which
// has the table's schema last of seven.
func BenchmarkReadByPath(b *testing.B) {
	d := pgtest.DB(b)
	admin := d.Pool(b, pgtest.Admin)
	path := make([]string, 7)
	for i := range path {
		path[i] = fmt.Sprintf("model_%d_v1", i)
		if _, err := admin.Exec(b.Context(), fmt.Sprintf(`create schema %[1]s; grant usage on schema %[1]s to public;
			create table %[1]s.t%[2]d (tenant text, name text, refreshes int, primary key (tenant, name));
			insert into %[1]s.t%[2]d select 'default', 'n-' || i, i from generate_series(1, 30000) i;
			grant select on %[1]s.t%[2]d to public; analyze %[1]s.t%[2]d`, path[i], i)); err != nil {
			b.Fatal(err)
		}
	}
	pools := map[string]*pg.Pool{
		"model_6_v1.t6": d.Pool(b, "gateway"), "t6": d.Pool(b, "gateway", pg.WithSearchPath(path...)),
	}
	took := map[string][]time.Duration{}
	for n := 0; b.Loop(); n++ {
		for table, pool := range pools { // by turns: a busy machine is busy for both
			begin := time.Now()
			err := pool.TenantTx(b.Context(), events.DefaultTenant, func(tx pgx.Tx) error {
				return tx.QueryRow(b.Context(), `select refreshes from `+table+` where tenant = $1 and name = $2`,
					events.DefaultTenant, fmt.Sprint("n-", 1+n%30000)).Scan(new(int))
			})
			if err != nil {
				b.Fatal(err)
			}
			took[table] = append(took[table], time.Since(begin))
		}
	}
	for table, what := range map[string]string{"model_6_v1.t6": "qualified", "t6": "path"} {
		slices.Sort(took[table])
		b.ReportMetric(float64(took[table][len(took[table])/2].Nanoseconds())/1000, "µs-p50-"+what)
	}
}

// BenchmarkVersions measures how many events a second are made into the tables of a new version, and folded while one
// version lives, and two.
func BenchmarkVersions(b *testing.B) {
	const events = 5000
	for b.Loop() {
		e := setup(b)
		old := e.runner(catalogs(1, 1))
		next := e.runner(catalogs(2, 1))
		e.run(old.Run)
		<-old.Opened()
		one := e.folds(events, old)
		begin := time.Now()
		if err := next.Rebuild(b.Context()); err != nil {
			b.Fatal(err)
		}
		made := time.Since(begin)
		e.run(next.Run)
		<-next.Opened()
		two := e.folds(events, old, next)
		b.ReportMetric(events/made.Seconds(), "made/s")
		b.ReportMetric(events/one.Seconds(), "folded/s-one")
		b.ReportMetric(events/two.Seconds(), "folded/s-two")
	}
}

// folds appends events and says how long it takes until all runners have them.
func (e *env) folds(n int, runners ...*projection.Runner) time.Duration {
	e.t.Helper()
	const batch = 100
	begin := time.Now()
	var last eventlog.Appended
	for i := range n / batch {
		name := fmt.Sprintf("c-%d-%d", len(runners), i)
		payloads := []events.Payload{events.CatalogAdded{Name: name}}
		for range batch - 1 {
			payloads = append(payloads, events.CatalogRefreshRequested{})
		}
		id := events.StreamID{
			Kind: events.KindCatalog, Key: events.Key(events.DefaultTenant, events.KindCatalog, name), Incarnation: 1,
		}
		m := events.Meta{Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now()}
		err := e.pool.Tx(e.t.Context(), func(tx pgx.Tx) (err error) {
			last, err = e.log.Append(e.t.Context(), tx, m, id, name, 0, payloads...)
			return err
		})
		if err != nil {
			e.t.Fatal(err)
		}
	}
	pos, ok, err := e.log.Wait(e.t.Context(), last, patience)
	if err != nil || !ok {
		e.t.Fatalf("no position: %v", err)
	}
	for _, r := range runners {
		if err := r.Wait(e.t.Context(), pos, patience); err != nil {
			e.t.Fatal(err)
		}
	}
	return time.Since(begin)
}

// BenchmarkAdopt measures how many rows a second are copied from the tables of a release of before.
func BenchmarkAdopt(b *testing.B) {
	const rows = 300_000
	for b.Loop() {
		e := setup(b)
		e.exec(fmt.Sprintf(`insert into gateway.counts select 'default', 'n-' || i, i from generate_series(1, %d) i`, rows))
		e.exec(`insert into eventlog.checkpoints (consumer, tenant, epoch, position)
			values ('projection/gateway.tests/v1', '*', 1, 0)`)
		begin := time.Now()
		if err := e.runner(catalogs(1, 1)).Rebuild(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(rows/time.Since(begin).Seconds(), "rows/s")
		if got := e.text(`select count(*)::text from gateway_tests_v1.counts`); got != fmt.Sprint(rows) {
			b.Fatalf("%s rows were copied", got)
		}
	}
}
