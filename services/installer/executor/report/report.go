// Package report puts together what the hub is notified of a namespace.
//
// It has two stages: Components finds the states of objects, which mirrors and drift look at, too; Stage is the last of
// a reconcile and sends.
package report

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/steplog"
)

// Reporter sends reports to the hub.
type Reporter interface {
	// Scope sends everything that is known of a namespace.
	Scope(r protocol.ScopeReport)
	// Begun sends the plans that are certainly begun; the rest stays as it was reported last.
	Begun(r protocol.ScopeReport)
}

// Drifts knows which objects differ from what was installed.
type Drifts interface {
	Of(namespace, operator string, now time.Time) []protocol.Drift
}

// Stage reports.
type Stage struct {
	Reporter Reporter
	Logs     *steplog.Store
	Drifts   Drifts
	// Group is the report of an operator group, nil where there is not exactly one.
	Group func(*scope.Scope) *protocol.GroupReport
	// Removals are the reports of the removals that the hub names.
	Removals func(*scope.Scope) []protocol.RemovalReport
}

type worker struct{ *scope.Scope }

// Components is the stage that finds the state of every object of the operators (R-CSV-62).
type Components struct{}

// Reconcile finds the states. What the watch knows is relied on; what it does not know may just have been made, and is
// asked for.
func (Components) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	return scope.Result{}, worker{sc}.components(ctx)
}

// Reconcile hands everything that is known of the namespace to the reporter.
func (s *Stage) Reconcile(_ context.Context, sc *scope.Scope) (scope.Result, error) {
	r := s.empty(sc)
	for _, p := range sc.Snapshot.Wanted.Plans {
		if o, ok := sc.Found.Outcomes[p.ID]; ok {
			r.Plans = append(r.Plans, o)
		}
	}
	r.Plans = append(r.Plans, s.Logs.In(sc).Unlisted()...)
	r.CSVs = append(sc.Snapshot.FinalReports(sc.Env.Now()), sc.Found.Deleted...)
	for _, m := range sc.Snapshot.Installed.Operators {
		r.CSVs = append(r.CSVs, s.Operator(sc, m))
	}
	r.Group, r.Removals = s.Group(sc), s.Removals(sc)
	s.Reporter.Scope(r)
	return scope.Result{}, nil
}

// SendBegun sends, after a reconcile that ended in an error, what is certain all the same: the plans that are begun.
func (s *Stage) SendBegun(ctx context.Context, sc *scope.Scope) {
	r := s.empty(sc)
	r.Plans = s.Logs.In(sc).Stored(ctx)
	s.Reporter.Begun(r)
}

// empty is a report that says nothing yet.
func (s *Stage) empty(sc *scope.Scope) protocol.ScopeReport {
	// What was looked at says as much as what was acted on; of a record that has gone back only the latter counts.
	seen, wanted := sc.Env.Seen(sc.Namespace), sc.Snapshot.Wanted
	if !sc.Snapshot.RecordBehind && seen.Less(wanted.Position) {
		seen = kube.Seen{Position: wanted.Position, Proof: wanted.Proof}
	}
	return protocol.ScopeReport{
		Scope: sc.Snapshot.Wanted.Scope,
		Epoch: sc.Env.Client.Number,
		Seen:  seen.Position,
		Proof: seen.Proof,
	}
}

// Operator is what the hub is notified of an operator.
func (s *Stage) Operator(sc *scope.Scope, m *scope.Operator) protocol.CSVReport {
	r := m.Report()
	r.Drift = s.Drifts.Of(sc.Namespace, m.Name(), sc.Env.Now())
	rows, err := json.Marshal(csv.Brief(m.Status.RequirementStatus))
	if err != nil {
		sc.Env.Log.Error("requirements cannot be encoded", "csv", m.Name(), "namespace", sc.Namespace, "error", err)
	}
	if len(m.Status.RequirementStatus) > 0 {
		r.Requirements = rows
	}
	if c, ok := sc.Found.Conditions[m.Name()]; ok {
		r.Condition = &c
	}
	r.Components = sc.Found.Components[m.Name()]
	r.Message, r.Conditions = m.Status.Message, sc.Snapshot.Executions.ConditionsOf(m)
	unready := sc.Found.Unready[m.Name()]
	for _, name := range slices.Sorted(maps.Keys(unready)) {
		r.NotReady = append(r.NotReady, unready[name])
	}
	return r
}
