package recorder_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/internal/recorder"
)

// heartbeat is how often executors write the report of a cluster, in seconds.
const heartbeat = 15

// cpu is the processor time that this process has used.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRecorderAtRest is what the recorder's process computes for a cluster with 50 namespaces in which nothing
// happens: one heartbeat with the digest of what is recorded. PostgreSQL is another process.
func BenchmarkRecorderAtRest(b *testing.B) {
	e := setup(b)
	set := &protocol.ReportSet{}
	for i := range 50 {
		s := e.scope
		s.Namespace = fmt.Sprint("ns", i)
		m := e.message(protocol.ScopeReportSubject(s), protocol.ScopeReport{
			Scope: s, Epoch: 1, CSVs: []protocol.CSVReport{pending("u1", "")},
		})
		if err := e.recorder.Record(b.Context(), m); err != nil {
			b.Fatal(err)
		}
		set.Add(protocol.EntryOf(m.Subject, m.Data))
	}
	beats := make([]recorder.Message, 0, b.N)
	subject := protocol.ClusterReportSubject(e.scope.Tenant, e.scope.ClusterID)
	for range cap(beats) + 1 {
		beats = append(beats, e.message(subject, protocol.ClusterReport{
			Tenant: e.scope.Tenant, Cluster: e.scope.Cluster, ClusterID: e.scope.ClusterID, State: "Connected",
			HolderEpoch: 1, Scopes: set,
		}))
	}
	if err := e.recorder.Record(b.Context(), beats[0]); err != nil {
		b.Fatal(err)
	}
	begun := cpu(b)
	b.ResetTimer()
	for _, m := range beats[1:] {
		if err := e.recorder.Record(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	each := float64(cpu(b)-begun) / float64(time.Millisecond) / float64(b.N)
	b.ReportMetric(each, "cpu-ms/heartbeat")
	b.ReportMetric(each*100/heartbeat/10, "%core/100clusters")
	if n := e.count(`select scopes from installer.holders`); n != set.Count {
		b.Fatalf("%d of %d reports are recorded", n, set.Count)
	}
}
