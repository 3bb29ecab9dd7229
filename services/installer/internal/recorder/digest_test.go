package recorder_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/placement"
)

// patience bounds every wait for something that is to happen.
const patience = 30 * time.Second

// fleet is an env with a bus, and what an executor has said so far.
type fleet struct {
	*env
	bus *bus.Bus
	by  *protocol.Session
	// entries are what the stream took, by namespace: the executor's digest is over them.
	entries map[string]protocol.Entry
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{env: setup(t), bus: bustest.Start(t).Connect(t), entries: map[string]protocol.Entry{}}
	if _, err := f.bus.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.by = f.session(1)
	return f
}

// run has a recorder record what comes until the test ends; it is placed once, as if it were alone.
func (f *fleet) run(name string) {
	f.t.Helper()
	f.recordBy(name, f.bus)
	f.start(name)
}

// start starts the recorder.
func (f *fleet) start(name string) {
	f.t.Helper()
	r := f.recorder
	if err := r.Place(f.t.Context(), []placement.Replica{{Name: name}}); err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	})
}

// write makes the report of a namespace, and publishes it unless it is lost on the way although the stream took it.
func (f *fleet) write(namespace, message string, lost bool) {
	f.t.Helper()
	s := f.scope
	s.Namespace = namespace
	m := f.message(protocol.ScopeReportSubject(s), protocol.ScopeReport{
		Scope: s, Epoch: 1, Reported: time.Now().UTC(), CSVs: []protocol.CSVReport{pending("u1", message)},
	})
	f.entries[namespace] = protocol.EntryOf(m.Subject, m.Data)
	if !lost {
		f.publish(m.Subject, m.Data)
	}
}

func (f *fleet) publish(subject string, data []byte) {
	f.t.Helper()
	m := nats.NewMsg(subject)
	m.Data = data
	m.Header.Set(protocol.HeaderSession, f.by.ID())
	m.Header.Set(protocol.HeaderReportSignature, f.by.SignReport(subject, data))
	if _, err := f.bus.JetStream().PublishMsg(f.t.Context(), m); err != nil {
		f.t.Fatal(err)
	}
}

// beat publishes the report of the cluster, with the digest over what the stream took.
func (f *fleet) beat() {
	f.t.Helper()
	set := &protocol.ReportSet{}
	for _, e := range f.entries {
		set.Add(e)
	}
	r := protocol.ClusterReport{
		Tenant: f.scope.Tenant, Cluster: f.scope.Cluster, ClusterID: f.scope.ClusterID, State: "Connected",
		HolderEpoch: 1, Session: f.by.ID(), Sequence: f.by.Next(), Reported: time.Now().UTC(), Scopes: set,
	}
	data, err := json.Marshal(r)
	if err != nil {
		f.t.Fatal(err)
	}
	f.publish(protocol.ClusterReportSubject(r.Tenant, r.ClusterID), data)
}

// until beats until a text is kept of the operator of a namespace.
func (f *fleet) until(what, namespace, message string) {
	f.t.Helper()
	f.eventually(what, func() bool {
		f.beat()
		return f.kept(namespace) == message
	})
}

func (f *fleet) kept(namespace string) (message string) {
	f.t.Helper()
	if err := f.own.QueryRow(f.t.Context(), `select coalesce((select message from installer.messages where subject = $1), '')`,
		"east/"+namespace+"/etcd.v1").Scan(&message); err != nil {
		f.t.Fatal(err)
	}
	return message
}

// eventually looks every 50 ms; a heartbeat each time is three hundred times as often as executors have one.
func (f *fleet) eventually(what string, ok func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// TestLostReportsHeal: executors say what changes once. Whatever is lost of it – nobody was listening, a message is
// lost on the way, the stream is purged, the record is one of before – shows in the digest of the next heartbeat, and
// is read from the stream, or asked for.
func TestLostReportsHeal(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	asked, err := f.bus.Conn().SubscribeSync(protocol.RepeatSubject(f.scope.Tenant, f.scope.ClusterID))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		f.write(fmt.Sprint("ns", i), "before", false)
	}
	f.beat()
	f.run("one")
	f.eventually("what was said while nobody listened is recorded", func() bool {
		return f.kept("ns0") == "before" && f.kept("ns1") == "before" && f.kept("ns2") == "before"
	})
	f.write("ns0", "heard", false)
	f.eventually("what is said is recorded", func() bool { return f.kept("ns0") == "heard" })

	// A record of before: it holds the reports no more, and has a digest of before.
	f.exec(`delete from installer.reports where namespace <> 'ns2'`)
	f.exec(`update installer.holders set scopes = 1, scopes_sum = (select entry from installer.reports)`)
	f.exec(`delete from installer.messages`)
	f.until("a record that has gone back is brought up to date", "ns0", "heard")
	if m, err := asked.NextMsg(time.Millisecond); err == nil {
		t.Errorf("what the stream holds is asked for on %s", m.Subject)
	}

	// A message that neither came nor is in the stream any more.
	f.write("ns1", "lost", true)
	f.eventually("the executor is asked", func() bool {
		f.beat()
		_, err := asked.NextMsg(time.Millisecond)
		return err == nil
	})
	for _, ns := range []string{"ns0", "ns1", "ns2"} { // it says all of it again
		f.write(ns, "again", false)
	}
	f.until("what it says again is recorded", "ns1", "again")
	f.until("what it says again is recorded", "ns0", "again")
	f.eventually("the digests are equal", func() bool {
		f.beat()
		var have protocol.ReportSet
		var sum []byte
		if err := f.own.QueryRow(t.Context(), `select scopes, scopes_sum from installer.holders`).Scan(&have.Count,
			&sum); err != nil {
			t.Fatal(err)
		}
		want := protocol.ReportSet{Sum: protocol.Entry(sum)}
		for _, e := range f.entries {
			want.Add(e)
		}
		return have.Count == len(f.entries) && want.Sum == protocol.Entry{}
	})
}

// TestDoneIsStored: a report that says what is recorded already is noted and not recorded again: by the next recorder,
// and where another session says it. What has changed since, or was recorded in part, is.
func TestDoneIsStored(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.csvs(1, pending("u1", "first"))
	e.exec(`delete from installer.messages`) // recording it would write it again
	e.recordBy("two", nil)
	e.csvs(2, pending("u1", "first")) // the times differ: another history
	if e.text(`select count(*)::text from installer.messages`) != "1" {
		t.Fatal("a report that says something else is not recorded")
	}
	same := pending("u1", "first")
	e.csvs(2, same)
	e.exec(`delete from installer.messages`)
	e.recordBy("three", nil)
	e.csvs(2, same)
	e.csvs(3, same)
	if n := e.text(`select count(*)::text from installer.messages`); n != "0" {
		t.Error("what is recorded was recorded again")
	}
	if by := e.text(`select r.epoch || ' ' || (r.session = h.scopes_session) || ' ' || h.scopes || ' ' ||
		(r.entry = h.scopes_sum) from installer.reports r join installer.holders h using (cluster_id)`); by != "3 true 1 true" {
		t.Errorf("noted is %s, want the last report", by)
	}
	e.exec(`update installer.reports set digest = '', entry = null`) // not wholly recorded
	e.csvs(3, same)
	if n := e.text(`select count(*)::text from installer.messages`); n != "1" {
		t.Error("what was recorded in part is not recorded again")
	}
}

// TestOvertakenRecorderWritesNothing: a recorder whose cluster another one has claimed since records nothing of it,
// however long it was frozen; when it claims the cluster again it goes on.
func TestOvertakenRecorderWritesNothing(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.csvs(1, pending("u1", "first"))
	e.observed(1, "Connected")
	frozen := e.recorder
	e.recordBy("two", nil)
	heard := e.text(`select heard::text || reports.sequence || recorder from installer.holders, installer.reports`)
	for _, m := range []struct {
		subject string
		report  any
	}{
		{protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
			Scope: e.scope, Epoch: 1, CSVs: []protocol.CSVReport{pending("u1", "late")},
		}},
		{protocol.ClusterReportSubject(e.scope.Tenant, e.scope.ClusterID), protocol.ClusterReport{
			Tenant: e.scope.Tenant, Cluster: "east", ClusterID: e.scope.ClusterID, State: "Refused", HolderEpoch: 1,
		}},
	} {
		if err := frozen.Record(t.Context(), e.message(m.subject, m.report)); !errs.Is(err, errs.Conflict) {
			t.Errorf("%T of a recorder that was overtaken: %v", m.report, err)
		}
	}
	e.recorder = frozen
	e.observed(1, "Connected") // said before: only that it was heard would be noted
	if now := e.text(`select heard::text || reports.sequence || recorder from installer.holders, installer.reports`); now != heard {
		t.Errorf("what is noted was %s and is %s", heard, now)
	}
	e.claimCluster()
	e.observed(1, "Refused")
	e.facts(events.KindCluster, "east", "cluster.registered.v1", "cluster.observed.v1 Connected",
		"cluster.observed.v1 Refused")
}

// TestRecordersShareTheClusters: each cluster has one recorder; of one that is gone or drains the others take over, and
// the reports of the time between are recorded.
func TestRecordersShareTheClusters(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	mine := placement.Recorder([]placement.Replica{{Name: "one"}, {Name: "two"}}, f.scope.ClusterID)
	other := map[string]string{"one": "two", "two": "one"}[mine]
	f.run(mine)
	first := f.recorder
	both := []placement.Replica{{Name: "one"}, {Name: "two"}}
	f.recordBy(other, f.bus)
	second := f.recorder
	for _, r := range []struct {
		place interface {
			Place(ctx context.Context, live []placement.Replica) error
			Clusters() int
		}
		want int
	}{{second, 0}, {first, 1}} {
		if err := r.place.Place(t.Context(), both); err != nil || r.place.Clusters() != r.want {
			t.Fatalf("a recorder has %d clusters, want %d: %v", r.place.Clusters(), r.want, err)
		}
	}
	f.write("ns0", "to the first", false)
	f.eventually("the first one records", func() bool { return f.kept("ns0") == "to the first" })
	draining := []placement.Replica{{Name: mine, Draining: true}, {Name: other}}
	if err := first.Place(t.Context(), draining); err != nil || first.Clusters() != 0 {
		t.Fatalf("a recorder that drains has %d clusters: %v", first.Clusters(), err)
	}
	f.write("ns0", "to nobody", false)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- second.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := second.Place(t.Context(), draining); err != nil || second.Clusters() != 1 {
		t.Fatalf("the other one has %d clusters: %v", second.Clusters(), err)
	}
	f.eventually("the second one records what came between", func() bool { return f.kept("ns0") == "to nobody" })
	f.write("ns0", "to the second", false)
	f.eventually("the second one records", func() bool { return f.kept("ns0") == "to the second" })
}
