package recorder_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/internal/recorder"
)

// stranger is a session that nobody registered.
func stranger(t *testing.T) *protocol.Session {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.NewSession(uuid.NewString(), key)
}

// TestForgedReports: DESIGN D7: whoever can write to the bus, but has no key that is registered, is not believed, and
// keeps nobody else from being believed.
func TestForgedReports(t *testing.T) {
	t.Parallel()
	subject := func(e *env) string { return protocol.ClusterReportSubject(e.scope.Tenant, e.scope.ClusterID) }
	claims := func(e *env, epoch int64, session string) []byte {
		data, err := json.Marshal(protocol.ClusterReport{
			Tenant: e.scope.Tenant, Cluster: "east", ClusterID: e.scope.ClusterID, State: "Unreachable",
			HolderEpoch: epoch, Session: session, Sequence: 1 << 40,
		})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, forge := range map[string]func(e *env) recorder.Message{
		"unsigned": func(e *env) recorder.Message {
			return recorder.Message{Subject: subject(e), Data: claims(e, 3, "")}
		},
		"unsigned, in the name of the holder": func(e *env) recorder.Message {
			id := e.session(3).ID()
			return recorder.Message{Subject: subject(e), Session: id, Data: claims(e, 3, id)}
		},
		"a huge epoch of a session that is not registered": func(e *env) recorder.Message {
			by := stranger(t)
			return e.signed(subject(e), claims(e, 1<<62, by.ID()), by)
		},
		"another key in the name of the holder": func(e *env) recorder.Message {
			m := e.signed(subject(e), claims(e, 3, e.session(3).ID()), stranger(t))
			m.Session = e.session(3).ID()
			return m
		},
		"a huge epoch of a session that only waits": func(e *env) recorder.Message {
			by := e.session(0)
			return e.signed(subject(e), claims(e, 1<<62, by.ID()), by)
		},
		"the holder itself with an epoch that it never registered": func(e *env) recorder.Message {
			by := e.session(3)
			return e.signed(subject(e), claims(e, 4, by.ID()), by)
		},
		"the holder of another cluster": func(e *env) recorder.Message {
			// It is registered for west, with a key of its own, and writes on the subject of east.
			by, east := stranger(t), e.scope
			west := uuid.NewString()
			e.exec(`insert into installer.clusters (tenant, name, cluster_id, stream, credential)
				values ($1, 'west', $2, 's', '')`, events.DefaultTenant, west)
			e.scope.ClusterID = west
			e.register(by, 9, false)
			e.scope = east
			return e.signed(subject(e), claims(e, 9, by.ID()), by)
		},
		"the holder's words on another subject": func(e *env) recorder.Message {
			by := e.session(3)
			m := e.signed(protocol.ScopeReportSubject(e.scope), claims(e, 3, by.ID()), by)
			m.Subject = subject(e)
			return m
		},
		"the holder's words, changed": func(e *env) recorder.Message {
			by := e.session(3)
			m := e.signed(subject(e), claims(e, 3, by.ID()), by)
			m.Data = bytes.Replace(m.Data, []byte("Unreachable"), []byte("Unauthorize"), 1)
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.observed(3, "Connected")
			if err := e.recorder.Record(t.Context(), forge(e)); !errs.Is(err, errs.Forbidden) {
				t.Errorf("the report is %v, want forbidden", err)
			}
			if epoch := e.count(`select epoch from installer.holders where cluster_id = '` + e.scope.ClusterID +
				`'`); epoch != 3 {
				t.Errorf("the epoch of the cluster is %d", epoch)
			}
			e.observed(3, "Refused") // the holder is heard as before
			e.facts(events.KindCluster, "east", "cluster.registered.v1", "cluster.observed.v1 Connected",
				"cluster.observed.v1 Refused")
		})
	}
}

// TestReplayedReports: a report that was signed once says nothing when it comes again later: neither an older one of
// the holder, nor the last one of a holder that has gone, which would seem alive.
func TestReplayedReports(t *testing.T) {
	t.Parallel()
	e := setup(t)
	subject := protocol.ClusterReportSubject(e.scope.Tenant, e.scope.ClusterID)
	report := func(state string) recorder.Message {
		return e.message(subject, protocol.ClusterReport{
			Tenant: e.scope.Tenant, Cluster: "east", ClusterID: e.scope.ClusterID, State: state, HolderEpoch: 3,
		})
	}
	record := func(m recorder.Message) {
		t.Helper()
		if err := e.recorder.Record(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	old, last := report("Refused"), report("Connected")
	record(old)
	record(last)
	facts := []string{
		"cluster.registered.v1", "cluster.observed.v1 Refused", "cluster.observed.v1 Connected",
	}
	record(old)
	e.facts(events.KindCluster, "east", facts...)

	e.exec(`update installer.holders set heard = now() - interval '31 seconds'`)
	record(last) // read again from the stream: nobody has said it since
	e.observed(0, "Unreachable")
	e.facts(events.KindCluster, "east", append(facts, "cluster.observed.v1 Unreachable")...)

	scope := func(list ...protocol.CSVReport) recorder.Message {
		return e.message(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
			Scope: e.scope, Epoch: 3, CSVs: list,
		})
	}
	gone := pending("u1", "")
	first, second := scope(pending("u1", "")), scope(func() protocol.CSVReport { gone.Removed = true; return gone }())
	again := pending("u2", "")
	third := scope(again)
	for _, m := range []recorder.Message{first, second, third, second, first} {
		record(m)
	}
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1")
	if n := e.count(`select count(*) from installer.csv_lives where not removed and uid = 'u2'`); n != 1 {
		t.Error("an older report that came again has ended an operator")
	}
}

// granted notes a grant of a plan as the hub does before it publishes one.
func (e *env) granted(plan string, until time.Time) {
	e.t.Helper()
	e.exec(`insert into installer.grants (tenant, plan, cluster_id, until) values ($1, $2, $3, $4)
		on conflict (tenant, plan) do update set until = excluded.until`, e.scope.Tenant, plan, e.scope.ClusterID, until)
}

// TestStartWithoutAuthorityIsNoStart: DESIGN D7: the holder itself, with its own key, says that it began a plan, or has
// finished it: after it was rejected or superseded, without a grant, or when the grant had long ended. That is recorded
// once, the plan stays as it was, and one that is approved afterwards may begin.
func TestStartWithoutAuthorityIsNoStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		approval string
		ends     events.Payload
		grant    time.Duration // from now, 0 for none
		reason   string
	}{
		"superseded":   {"Automatic", events.InstallPlanSuperseded{By: "next"}, time.Minute, "Superseded"},
		"rejected":     {"Manual", events.InstallPlanRejected{Digest: "d"}, time.Minute, "Rejected"},
		"not approved": {"Manual", nil, time.Minute, "NotApproved"},
		"no grant":     {"Automatic", nil, 0, "NoGrant"},
		"expired": {
			"Manual",
			events.InstallPlanApproved{Digest: "d", Expires: time.Now().Add(-time.Hour)},
			-time.Hour,
			"GrantExpired",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			plan := uuid.NewString()
			e.fact("resolver", events.Resolver, events.KindInstallPlan, plan, "east/ns/install-x",
				events.InstallPlanProposed{
					Plan: plan, Name: "install-x", Cluster: "east", Namespace: "ns", Approval: c.approval, Steps: 1,
				})
			want := []string{"installplan.proposed.v1"}
			if c.ends != nil {
				d, _ := events.Lookup(c.ends.EventType())
				e.follows(d.Writer, events.KindInstallPlan, plan, "east/ns/install-x", c.ends)
				want = append(want, string(c.ends.EventType()))
			}
			if c.grant != 0 {
				e.granted(plan, time.Now().Add(c.grant))
			}
			for _, phase := range []string{protocol.PlanStarted, protocol.PlanFinished, protocol.PlanFailed} {
				e.record(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
					Scope: e.scope, Epoch: 3,
					Plans: []protocol.PlanReport{{ID: plan, Phase: phase, Begun: true, Steps: 1, Done: 1}},
				})
			}
			want = append(want, "installplan.start-unauthorised.v1")
			e.facts(events.KindInstallPlan, plan, want...)
			if got := e.text(`select convert_from(body, 'UTF8')::jsonb -> 'data' ->> 'reason' from eventlog.appended
				where type = 'installplan.start-unauthorised.v1'`); got != c.reason {
				t.Errorf("the reason is %s, want %s", got, c.reason)
			}
		})
	}
}

// TestClockOfTheDatabaseJumps: when a holder was heard is compared with the database's clock. A clock that was set back
// does not make a holder speak that has gone.
func TestClockOfTheDatabaseJumps(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.observed(3, "Connected")
	e.exec(`update installer.holders set heard = now() + interval '1 hour'`)
	e.observed(0, "Unreachable")
	e.facts(events.KindCluster, "east", "cluster.registered.v1", "cluster.observed.v1 Connected",
		"cluster.observed.v1 Unreachable")
}

// TestRefusedReportsAreCounted: what somebody forges is seen in the metric chandler.reports.refused. It runs alone:
// instruments belong to the process.
func TestRefusedReportsAreCounted(t *testing.T) { //nolint:paralleltest // it counts
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	otel.SetMeterProvider(provider)
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	e := setup(t)
	e.observed(1, "Connected")
	subject := protocol.ClusterReportSubject(e.scope.Tenant, e.scope.ClusterID)
	good := e.message(subject, protocol.ClusterReport{
		Tenant: e.scope.Tenant, Cluster: e.scope.Cluster, ClusterID: e.scope.ClusterID, HolderEpoch: 1,
	})
	unsigned, foreign, changed := good, good, good
	unsigned.Session, unsigned.Signature = "", ""
	foreign.Session = uuid.NewString()
	changed.Data = append(bytes.Clone(good.Data), ' ')
	for _, m := range []recorder.Message{unsigned, foreign, changed} {
		if err := e.recorder.Record(t.Context(), m); !errs.Is(err, errs.Forbidden) {
			t.Errorf("recorded %v, want forbidden", err)
		}
	}
	var got metricdata.ResourceMetrics
	must(t, reader.Collect(t.Context(), &got))
	var counted int64
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "chandler.reports.refused" {
				counted += sum.DataPoints[0].Value
			}
		}
	}
	if counted != 3 {
		t.Errorf("%d refused reports are counted, want 3", counted)
	}
}
