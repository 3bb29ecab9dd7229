package hubclient

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// atRest is a reporter of some namespaces in which nothing happens, and what it publishes.
type atRest struct {
	tb       testing.TB
	reporter *Reporter
	stream   jetstream.Stream
	said     *nats.Subscription
	now      time.Time
}

func rest(tb testing.TB, namespaces int) *atRest {
	tb.Helper()
	b := bustest.Start(tb).Connect(tb)
	if _, err := b.Ensure(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		tb.Fatal(err)
	}
	a := &atRest{tb: tb, now: time.Now()}
	h := New(b.JetStream(), bustest.Installation, "t", "c", keys.Accepted{}, protocol.NewSession("s", key))
	a.reporter = NewReporter(h, slog.New(slog.DiscardHandler), time.Minute, func() time.Time { return a.now })
	if a.stream, err = b.Stream(tb.Context(), protocol.StreamReports); err != nil {
		tb.Fatal(err)
	}
	if a.said, err = b.Conn().SubscribeSync(protocol.SubjectReport + ".>"); err != nil {
		tb.Fatal(err)
	}
	for i := range namespaces {
		a.say(fmt.Sprint("ns", i), "x")
	}
	a.reporter.Cluster(protocol.ClusterReport{Tenant: "t", Cluster: "c", ClusterID: "c", State: "Connected"})
	return a
}

func (a *atRest) say(namespace, operator string) {
	a.reporter.Scope(protocol.ScopeReport{
		Scope: protocol.Scope{Tenant: "t", Cluster: "c", ClusterID: "c", Namespace: namespace},
		CSVs:  []protocol.CSVReport{{Name: operator}},
	})
}

// flush writes what is to be written, and returns how many messages that were and the digest of the last heartbeat.
func (a *atRest) flush(beat bool) (messages int, digest *protocol.ReportSet) {
	a.tb.Helper()
	if !a.reporter.flush(a.tb.Context(), beat) {
		a.tb.Fatal("a report was not accepted")
	}
	for {
		m, err := a.said.NextMsg(50 * time.Millisecond)
		if err != nil {
			return messages, digest
		}
		messages++
		var r protocol.ClusterReport
		if m.Subject == protocol.ClusterReportSubject("t", "c") {
			if err := json.Unmarshal(m.Data, &r); err != nil {
				a.tb.Fatal(err)
			}
			digest = r.Scopes
		}
	}
}

// held is the digest over what the stream holds of namespaces.
func (a *atRest) held(ctx context.Context) (set protocol.ReportSet) {
	a.tb.Helper()
	info, err := a.stream.Info(ctx, jetstream.WithSubjectFilter(protocol.ReportsFilter("t", "c")))
	if err != nil {
		a.tb.Fatal(err)
	}
	for subject := range info.State.Subjects {
		if subject == protocol.ClusterReportSubject("t", "c") {
			continue
		}
		m, err := a.stream.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			a.tb.Fatal(err)
		}
		set.Add(protocol.EntryOf(subject, m.Data))
	}
	return set
}

// TestReportsAtRestAreOneDigest: a namespace in which nothing changes is reported once. The heartbeat has the digest
// over what the stream took; all is written again when the hub asks, and not more often than heartbeats.
func TestReportsAtRestAreOneDigest(t *testing.T) {
	t.Parallel()
	const n = 5
	a := rest(t, n)
	if got, _ := a.flush(false); got != n+1 {
		t.Errorf("%d messages at the start, want %d", got, n+1)
	}
	for range 3 {
		got, digest := a.flush(true)
		if held := a.held(t.Context()); got != 1 || digest == nil || *digest != held || held.Count != n {
			t.Errorf("at rest %d messages with the digest %+v, the stream holds %+v", got, digest, held)
		}
	}
	a.say("ns1", "y")
	if got, _ := a.flush(false); got != 1 {
		t.Errorf("%d messages of one change", got)
	}
	a.reporter.Repeat()
	if got, _ := a.flush(false); got != n+1 {
		t.Errorf("%d messages when all are asked for", got)
	}
	a.reporter.Repeat()
	if got, _ := a.flush(false); got != 0 {
		t.Errorf("%d messages when all are asked for at once again", got)
	}
	a.now = a.now.Add(2 * time.Minute)
	a.reporter.Repeat()
	if got, _ := a.flush(false); got != n+1 {
		t.Errorf("%d messages when all are asked for later", got)
	}
	if _, digest := a.flush(true); *digest != a.held(t.Context()) {
		t.Errorf("the digest is %+v, the stream holds %+v", digest, a.held(t.Context()))
	}
	a.reporter.Forget("ns1")
	if _, digest := a.flush(true); digest.Count != n-1 {
		t.Errorf("the digest is over %d reports after one namespace is forgotten", digest.Count)
	}
	a.reporter.Silence()
	if got, _ := a.flush(true); got != 0 {
		t.Errorf("who lost the cluster wrote %d messages", got)
	}
}

// BenchmarkReportsAtRest counts what the executor of a cluster with 50 namespaces writes while nothing happens there,
// and what that is for 1,000 such clusters, which each write every 15 seconds.
func BenchmarkReportsAtRest(b *testing.B) {
	a := rest(b, 50)
	a.flush(false)
	total, rounds := 0, 0
	for b.Loop() {
		if !a.reporter.flush(b.Context(), true) {
			b.Fatal("a report was not accepted")
		}
		rounds++
	}
	got, _ := a.flush(false)
	total += got
	perRound := float64(total) / float64(rounds)
	b.ReportMetric(perRound, "messages/heartbeat")
	b.ReportMetric(perRound*1000/15, "messages/s/1000clusters")
}

// TestHeartbeatsAreSmall: heartbeats have what a cluster is made of once in a while only; a change is told at once.
func TestHeartbeatsAreSmall(t *testing.T) {
	t.Parallel()
	a := rest(t, 1)
	report := protocol.ClusterReport{
		Tenant: "t", Cluster: "c", ClusterID: "c", State: "Connected", Facts: &events.ClusterFacts{Nodes: 3},
		APIs: []string{"v1"},
	}
	a.reporter.Cluster(report)
	told := func(what string, beat, want bool) {
		t.Helper()
		a.flush(beat)
		m, err := a.stream.GetLastMsgForSubject(t.Context(), protocol.ClusterReportSubject("t", "c"))
		if err != nil {
			t.Fatal(err)
		}
		var r protocol.ClusterReport
		if err := json.Unmarshal(m.Data, &r); err != nil {
			t.Fatal(err)
		}
		if (r.Facts != nil) != want || (len(r.APIs) > 0) != want || r.State != "Connected" || r.Scopes == nil {
			t.Errorf("%s: %s", what, m.Data)
		}
	}
	told("at first", false, true)
	told("a heartbeat", true, false)
	a.now = a.now.Add(6 * time.Minute)
	told("a heartbeat after a while", true, true)
	told("the next one", true, false)
	report.Reason = "OLMRunning"
	a.reporter.Cluster(report)
	told("a change", true, true)
}
