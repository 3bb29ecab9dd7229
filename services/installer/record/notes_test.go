package record_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

func drifted(have string, since time.Time) []protocol.Drift {
	return []protocol.Drift{{
		ObjectRef: protocol.ObjectRef{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ops",
			Name: "gauge",
		},
		Fields: []protocol.FieldDrift{{
			Path: "/spec/replicas", Want: json.RawMessage("1"),
			Have: json.RawMessage(have),
		}}, Since: since,
	}}
}

// TestNotes: condition and drift of an operator are recorded when they change (R-COND-3, R-CSV-24), not while they
// stay the same, and not of one that the log does not know.
func TestNotes(t *testing.T) {
	t.Parallel()
	alive := record.CSV{Exists: true}
	no := &protocol.OperatorCondition{Reason: "Reindexing", Message: "archive reindex runs"}
	held := events.OperatorConditionChanged{Reason: "Reindexing"}
	forced := &protocol.OperatorCondition{Upgradeable: true, Reason: "AdminDecision", Overridden: true}
	_, after, err := record.DecideHealth(alive, protocol.CSVReport{Condition: no, Drift: drifted("3", start)}, "report",
		start)
	if err != nil {
		t.Fatal(err)
	}
	waits := []protocol.NotReady{{Deployment: "gauge"}}
	stuck := []protocol.NotReady{{
		Deployment: "gauge", Reason: "AdmissionWebhookFailed", Message: "no",
		Webhook: "v.sea.test", Owner: "ops/buoy.v1",
	}}
	other := []protocol.NotReady{{
		Deployment: "gauge", Reason: "AdmissionWebhookFailed", Message: "no, again",
		Webhook: "v.sea.test", Owner: "ops/buoy.v1",
	}}
	unready := events.CSVReadinessChanged{Deployments: []events.NotReadyDeployment{
		{Name: "gauge", Reason: "AdmissionWebhookFailed", Webhook: "v.sea.test", Owner: "ops/buoy.v1"},
	}}
	_, known, err := record.DecideHealth(alive, protocol.CSVReport{NotReady: stuck}, "report", start)
	if err != nil {
		t.Fatal(err)
	}
	sum := after.Health.Drift
	if sum == "" {
		t.Fatal("no digest of the drift was kept")
	}
	cases := []struct {
		name   string
		before record.CSV
		report protocol.CSVReport
		want   []events.Payload
	}{
		{"nothing is said", alive, protocol.CSVReport{}, nil},
		{
			"it lets itself be upgraded, as by default (R-COND-7)", alive,
			protocol.CSVReport{Condition: &protocol.OperatorCondition{Upgradeable: true}},
			nil,
		},
		{"no longer", alive, protocol.CSVReport{Condition: no}, []events.Payload{held}},
		{"still no longer", after, protocol.CSVReport{Condition: no, Drift: drifted("3", start)}, nil},
		{
			"overridden (R-COND-6)", after,
			protocol.CSVReport{Condition: forced, Drift: drifted("3", start)},
			[]events.Payload{events.OperatorConditionChanged{
				Upgradeable: true, Reason: "AdminDecision",
				Overridden: true,
			}},
		},
		{
			"drift", alive,
			protocol.CSVReport{Drift: drifted("3", start)},
			[]events.Payload{events.CSVDrifted{Objects: 1, Diff: sum, Policy: "report"}},
		},
		{"the same drift seen later", after, protocol.CSVReport{
			Condition: no, Drift: drifted("3", start.Add(time.Hour)),
		}, nil},
		{"put right", after, protocol.CSVReport{Condition: no}, []events.Payload{events.CSVDriftEnded{}}},
		{"a Deployment that merely starts", alive, protocol.CSVReport{NotReady: waits}, nil},
		{
			"a Deployment that does not become ready", alive,
			protocol.CSVReport{NotReady: stuck},
			[]events.Payload{unready},
		},
		{"the same in other words", known, protocol.CSVReport{NotReady: other}, nil},
		{"it is ready", known, protocol.CSVReport{}, []events.Payload{events.CSVReadinessChanged{}}},
		{"before its first phase", record.CSV{}, protocol.CSVReport{Condition: no, Drift: drifted("3", start)}, nil},
		{"removed", record.CSV{Removed: true}, protocol.CSVReport{Condition: no}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := record.DecideHealth(c.before, c.report, "report", start.Add(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNotesAreBounded: who edits an object again and again does not fill the log, and what holds in the end is
// recorded.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	s, n := record.CSV{Exists: true}, 0
	report := func(have string, at time.Duration) {
		t.Helper()
		r := protocol.CSVReport{}
		if have != "" {
			r.Drift = drifted(have, start)
		}
		got, next, err := record.DecideHealth(s, r, "correct", start.Add(at))
		if err != nil {
			t.Fatal(err)
		}
		s, n = next, n+len(got)
	}
	for i := range 99 { // the last one is not what was recorded last
		report([]string{"3", "4"}[i%2], time.Duration(i)*time.Second)
	}
	if n != record.HealthLimit || s.Settled() {
		t.Errorf("%d events, settled %v; want %d and another look at the end of the window", n, s.Settled(),
			record.HealthLimit)
	}
	report("", record.FlapWindow)
	if n != record.HealthLimit+1 || s.Health.Drift != "" || !s.Settled() {
		t.Errorf("after the window %d events, drift %q, settled %v", n, s.Health.Drift, s.Settled())
	}
}

// TestDriftBeyondTheReport: drifted objects that a report had to leave out are counted in the fact; why one cannot be
// put right is for who looks, and no news by itself: API servers word it anew each time.
func TestDriftBeyondTheReport(t *testing.T) {
	t.Parallel()
	r := protocol.CSVReport{Drift: drifted("3", start), Cut: protocol.Cut{Drifts: 40}}
	r.Drift[0].Reason = "the API server refuses trials (request 1)"
	got, after, err := record.DecideHealth(record.CSV{Exists: true}, r, "report", start)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].(events.CSVDrifted).Objects != 41 {
		t.Errorf("recorded %+v, want 41 objects", got)
	}
	r.Drift[0].Reason = "the API server refuses trials (request 2)"
	if again, _, err := record.DecideHealth(after, r, "report", start); err != nil || len(again) != 0 {
		t.Errorf("recorded again: %+v (%v)", again, err)
	}
}
