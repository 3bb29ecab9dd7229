package recorder_test

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/internal/recorder"
)

// flood writes n values for namespaces that do not exist, which nobody signed.
func (f *fleet) flood(prefix string, n int) {
	f.t.Helper()
	for i := range n {
		s := f.scope
		s.Namespace = fmt.Sprint(prefix, i)
		if _, err := f.bus.JetStream().PublishAsync(protocol.ScopeReportSubject(s), []byte(`{}`)); err != nil {
			f.t.Fatal(err)
		}
	}
	select {
	case <-f.bus.JetStream().PublishAsyncComplete():
	case <-f.t.Context().Done():
	}
}

// subjects counts those of a cluster in REPORTS.
func (f *fleet) subjects(clusterID string) (n int) {
	f.t.Helper()
	_, err := f.bus.Subjects(f.t.Context(), protocol.StreamReports, protocol.ReportsFilter(f.scope.Tenant, clusterID),
		func(page map[string]uint64) error {
			n += len(page)
			return nil
		})
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// published has the hub want something of a namespace.
func (f *fleet) published(namespace string) {
	f.t.Helper()
	f.exec(`insert into installer.published (tenant, cluster_id, namespace, cluster, digest, stopped, published)
		values ($1, $2, $3, 'east', 'x', false, now())`, events.DefaultTenant, f.scope.ClusterID, namespace)
}

// fill bounds REPORTS by the bytes that it has.
func (f *fleet) fill() {
	f.t.Helper()
	stream, err := f.bus.Stream(f.t.Context(), protocol.StreamReports)
	if err != nil {
		f.t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxBytes = int64(stream.CachedInfo().State.Bytes)
	if _, err := f.bus.JetStream().UpdateStream(f.t.Context(), config); err != nil {
		f.t.Fatal(err)
	}
}

// runBounded is run, with a bound on the subjects of namespaces that are not registered.
func (f *fleet) runBounded(name string, foreign int) {
	f.t.Helper()
	f.recorder = recorder.New(recorder.Config{
		Pool: f.own, EventLog: f.log, Bus: f.bus, Name: name, Log: bustest.Log(f.t),
		Key: keys.Accept(hubKey.Public().(ed25519.PublicKey)), Foreign: foreign,
	})
	f.start(name)
}

// TestFloodOfSubjectsIsPurged: who has the NATS credentials of a cluster makes up namespaces without end. Their
// subjects are purged, before and while the cluster's reports are recorded, and people are told. Nothing is lost of
// what is registered and was not recorded yet, and nothing of another cluster.
func TestFloodOfSubjectsIsPurged(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprint("full=", full), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			const foreign = 40
			other := uuid.NewString()
			s := f.scope
			s.ClusterID = other
			f.publish(protocol.ScopeReportSubject(s), []byte(`{"of": "another cluster"}`))
			f.published("ns")
			f.write("ns", "before the flood", false)
			f.flood("made-up-", 5*foreign)
			if full {
				f.fill()
			}
			f.runBounded("one", foreign)
			f.eventually("the flood is purged", func() bool { return f.subjects(f.scope.ClusterID) == 1 })
			if n := f.subjects(other); n != 1 {
				t.Errorf("%d subjects of another cluster are left, want 1", n)
			}
			f.until("what was written before is recorded", "ns", "before the flood")
			f.flood("more-", 2*foreign)
			f.eventually("a second flood is purged", func() bool {
				f.beat()
				said := f.text(`select coalesce((select message from installer.messages
					where kind = 'cluster-reports' and subject = 'east'), '')`)
				return strings.Contains(said, fmt.Sprintf("where %d may be", foreign)) &&
					f.subjects(f.scope.ClusterID) < foreign
			})
			f.write("ns", "behind the flood", false)
			f.until("what is written later is recorded", "ns", "behind the flood")
		})
	}
}
