package hub

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestDeadNamespacesAreForgotten: once nothing is wanted of a namespace, and its executor has had time to hear so, its
// messages and rows go, and that is not taken for a loss of the stream. A namespace in which something lives stays, and
// one that comes back begins anew.
func TestDeadNamespacesAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	d := newFixture(t, now)
	ctx := t.Context()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := d.h.c.Pool.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	count := func(table string) (n int) {
		t.Helper()
		if err := d.h.c.Pool.QueryRow(ctx, `select count(*) from installer.`+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	scope := protocol.Scope{Tenant: events.DefaultTenant, ClusterID: registration, Namespace: "ns"}
	messages := func(stream, subject string) uint64 {
		t.Helper()
		s, err := d.h.c.Bus.JetStream().Stream(ctx, d.h.c.Bus.StreamName(stream))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.GetLastMsgForSubject(ctx, subject); err != nil {
			return 0
		}
		return 1
	}
	d.publishPlan(windowed("Automatic"))
	d.publishPlan(events.InstallPlanSuperseded{})
	exec(`update installer.published set published = $1`, now)
	exec(`insert into installer.reports (tenant, cluster_id, namespace, epoch, reported, digest)
		values ($1, $2, 'ns', 1, now(), 'x')`, events.DefaultTenant, registration)
	exec(`insert into installer.csv_lives (tenant, cluster_id, namespace, name, uid, state, removed)
		values ($1, $2, 'ns', 'tide.v1', 'u', '{}', false)`, events.DefaultTenant, registration)
	if _, err := d.h.c.Bus.JetStream().Publish(ctx, protocol.ScopeReportSubject(scope), []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	d.at(now.Add(deadAfter - time.Minute))
	d.at(now.Add(deadAfter))
	if messages(protocol.StreamPlans, protocol.PlansSubject(scope)) != 1 || count("reports") != 1 {
		t.Fatal("a namespace in which an operator lives was forgotten")
	}
	exec(`update installer.csv_lives set removed = true`)
	d.at(now.Add(2*deadAfter + time.Minute))
	for _, table := range []string{"published", "reports", "csv_lives"} {
		if n := count(table); n != 0 {
			t.Errorf("%d rows stay in %s", n, table)
		}
	}
	if messages(protocol.StreamPlans, protocol.PlansSubject(scope))+
		messages(protocol.StreamReports, protocol.ScopeReportSubject(scope)) != 0 {
		t.Error("last values stay")
	}
	fills := count("streams where fills > 1")
	if err := d.h.streams(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.h.streams(ctx); err != nil || count("streams where fills > 1") != fills {
		t.Errorf("the purge was taken for a loss: %v", err)
	}
	d.publishPlan(events.InstallPlanStarted{})
	if messages(protocol.StreamPlans, protocol.PlansSubject(scope)) != 1 {
		t.Error("a namespace that is back is not published")
	}
}
