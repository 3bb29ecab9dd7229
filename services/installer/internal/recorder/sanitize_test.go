package recorder_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// fact appends what another service would.
func (e *env) fact(role string, source events.Writer, kind events.Kind, key, subject string,
	p events.Payload,
) events.StreamID {
	e.t.Helper()
	return e.factAt(role, source, kind, key, subject, 0, p)
}

// follows appends the second event of a stream.
func (e *env) follows(source events.Writer, kind events.Kind, key, subject string, p events.Payload) {
	e.t.Helper()
	e.factAt(string(source), source, kind, key, subject, 1, p)
}

func (e *env) factAt(role string, source events.Writer, kind events.Kind, key, subject string, version int64,
	p events.Payload,
) events.StreamID {
	e.t.Helper()
	pool := e.db.Pool(e.t, role)
	stream := events.StreamID{Kind: kind, Key: events.Key(events.DefaultTenant, kind, key), Incarnation: 1}
	m := events.Meta{Tenant: events.DefaultTenant, Source: source, Command: uuid.New(), Time: time.Now()}
	if err := pool.Tx(e.t.Context(), func(tx pgx.Tx) error {
		_, err := eventlog.New(pool).Append(e.t.Context(), tx, m, stream, subject, version, p)
		return err
	}); err != nil {
		e.t.Fatal(err)
	}
	return stream
}

// slot is where a test puts what a hostile cluster says.
const slot = "SLOT"

// TestNothingHoldsUpAReport: whatever a cluster says, and wherever, what stands beside it is recorded, and everybody
// who reads what is kept can: each place with text of a cluster, with everything that Postgres refuses.
func TestNothingHoldsUpAReport(t *testing.T) {
	t.Parallel()
	e := setup(t)
	plan := uuid.NewString()
	e.fact("resolver", events.Resolver, events.KindInstallPlan, plan, "east/ns/install-x", events.InstallPlanProposed{
		Plan: plan, Name: "install-x", Cluster: "east", Namespace: "ns", Approval: "Automatic", Steps: 1,
	})
	e.granted(plan, time.Now().Add(time.Minute))
	group := e.fact("gateway", events.Gateway, events.KindOperatorGroup, "east/ns/coast", "east/ns/coast",
		events.OperatorGroupCreated{Cluster: "east", Namespace: "ns", Name: "coast"})
	e.csvs(1, pending("u1", ""))
	e.requested("r1")

	ref := protocol.ObjectRef{Kind: slot, Name: slot, Namespace: slot, Group: slot}
	r := protocol.ScopeReport{
		Scope: e.scope, Epoch: 1, Reported: time.Now().UTC(), Cut: protocol.Cut{Fields: 3},
		Plans: []protocol.PlanReport{{
			ID: plan, Phase: protocol.PlanFinished, Begun: true, Steps: 1, Done: 1,
			Message: slot, TraceParent: slot, StepLog: json.RawMessage(`{"steps":["` + slot + `"]}`),
		}},
		CSVs: []protocol.CSVReport{{
			Name: "tide.v1", UID: "u2", Package: slot, Version: slot, Content: slot, Plan: slot, TraceParent: slot,
			History: []protocol.Transition{{
				Phase: "Pending" + slot, Reason: slot, Message: slot,
				Time: time.Now(),
			}},
			Requirements: json.RawMessage(`[{"name":"` + slot + `"}]`),
			Condition:    &protocol.OperatorCondition{Reason: slot, Message: slot},
			Drift: []protocol.Drift{
				{
					ObjectRef: ref, Fields: []protocol.FieldDrift{
						{Path: slot, Have: json.RawMessage(`"` + slot + `"`)},
					},
					Manager: slot, Reason: slot,
				},
			},
			Components: []protocol.Component{{ObjectRef: ref, Status: slot, Message: slot}},
			Cut:        protocol.Cut{Fields: 3},
		}},
		Removals: []protocol.RemovalReport{{
			ID: "r1", CSV: "etcd.v1", Phase: protocol.PlanFinished,
			Left: []protocol.Leftover{{ObjectRef: ref, Reason: slot, Owners: []string{slot}}}, Cut: 2,
		}},
		Group: &protocol.GroupReport{
			ID: group.UUID().String(), Name: "coast", Targets: []string{slot}, ProvidedAPIs: []string{slot},
			Conditions: []protocol.GroupCondition{
				{Type: slot, Reason: slot, Message: slot},
				{Type: protocol.GroupTargetsMissing, Message: slot},
			},
		},
	}
	hostile := `a\u0000b\ud800c` + "\xff\xc3" + `\\u0000`
	if err := e.recorder.Record(t.Context(),
		e.replaced(protocol.ScopeReportSubject(e.scope), r, slot, hostile)); err != nil {
		t.Fatal(err)
	}
	e.facts(events.KindCSV, "east/ns/tide.v1", "csv.phase-changed.v1", "operatorcondition.changed.v1", "csv.drifted.v1")
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1", "csv.removal-requested.v1",
		"csv.removal-started.v1")
	e.facts(events.KindOperatorGroup, "east/ns/coast", "operatorgroup.created.v1", "operatorgroup.observed.v1")
	e.facts(events.KindInstallPlan, plan, "installplan.proposed.v1", "installplan.started.v1",
		"installplan.finished.v1")
	cluster := protocol.ClusterReport{
		Tenant: e.scope.Tenant, Cluster: "east", ClusterID: e.scope.ClusterID,
		State: "Connected", Reason: slot, Message: slot, KubernetesVersion: slot, TokenAuth: slot, HolderEpoch: 1,
	}
	if err := e.recorder.Record(t.Context(), e.replaced(
		protocol.ClusterReportSubject(e.scope.Tenant, e.scope.ClusterID), cluster, slot, hostile)); err != nil {
		t.Fatal(err)
	}
	e.facts(events.KindCluster, "east", "cluster.registered.v1", "cluster.observed.v1 Connected")

	const said = "a\uFFFDb\uFFFDc\uFFFD\\\\u0000" // as JSON: the last is a backslash and letters
	for _, sql := range []string{
		`select document::jsonb::text from installer_api.step_logs`,
		`select document::jsonb::text from installer_api.drifts`,
		`select objects::text from installer_api.leftovers where more = 2`,
		`select (requirements::jsonb || condition::jsonb || drift::jsonb || components::jsonb)::text
			from installer_api.operator_details where cut::jsonb = '{"fields": 3}'`,
		`select state::text from installer.group_observations`,
		`select state::text from installer.observations`,
		`select state::text from installer.csv_lives where name = 'tide.v1'`,
		`select to_json(string_agg(message, ' '))::text from installer_api.messages`,
		`select string_agg(convert_from(body, 'UTF8')::jsonb::text, ' ') from eventlog.appended
			where type = 'operatorgroup.observed.v1'`,
	} {
		if got := e.text(sql); !strings.Contains(got, said) {
			t.Errorf("%s: got %s, want %s in it", sql, got, said)
		}
	}
}

// TestNamesThatNoObjectBears: of an operator whose name would be another subject of the log nothing is recorded, and
// the others are; a namespace that is none is refused, for good.
func TestNamesThatNoObjectBears(t *testing.T) {
	t.Parallel()
	e := setup(t)
	odd := pending("u2", "")
	odd.Name = "tide/v1"
	e.csvs(1, odd, pending("u1", ""))
	e.facts(events.KindCSV, "east/ns/etcd.v1", "csv.phase-changed.v1")
	if n := e.text(`select count(*)::text from installer.csv_lives`); n != "1" {
		t.Errorf("%s lives are kept", n)
	}
	empty := pending("u3", "")
	empty.Name, empty.History = "silent.v1", nil
	e.csvs(1, empty, pending("u1", ""))
	if n := e.text(`select (select count(*) from installer.csv_lives
		where name = 'silent.v1') || ' ' || (select count(*) from installer.operator_details where name = 'silent.v1')`); n != "0 0" {
		t.Errorf("of an operator of which nothing is told %s rows are kept", n)
	}
}

// TestAStepLogThatCannotBeKept: how a plan ended is recorded though its log is none.
func TestAStepLogThatCannotBeKept(t *testing.T) {
	t.Parallel()
	e := setup(t)
	plan := uuid.NewString()
	e.fact("resolver", events.Resolver, events.KindInstallPlan, plan, "east/ns/install-x", events.InstallPlanProposed{
		Plan: plan, Name: "install-x", Cluster: "east", Namespace: "ns", Approval: "Automatic", Steps: 1,
	})
	e.granted(plan, time.Now().Add(time.Minute))
	e.record(protocol.ScopeReportSubject(e.scope), protocol.ScopeReport{
		Scope: e.scope, Epoch: 1, Reported: time.Now(), Cut: protocol.Cut{StepLogs: 1},
		Plans: []protocol.PlanReport{{ID: plan, Phase: protocol.PlanFinished, Begun: true}},
	})
	e.facts(events.KindInstallPlan, plan, "installplan.proposed.v1", "installplan.started.v1",
		"installplan.finished.v1")
}
