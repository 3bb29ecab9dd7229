package recorder

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// kindPlan, kindCSV and kindCluster are the kinds of installer.messages.
const (
	kindPlan    = "installplan"
	kindCSV     = "csv"
	kindCluster = "cluster"
)

// recordPlan records what a report says of one plan. An impossible part is logged and left out: the rest of
// the report is still valid.
func (w *writer) recordPlan(ctx context.Context, tx *reportTx, report protocol.ScopeReport,
	p protocol.PlanReport,
) error {
	scope := report.Scope
	id, err := uuid.Parse(p.ID)
	if err != nil {
		w.logRefused(scope, p.ID, errs.Wrap(errs.Invalid, err, "plan id"))
		return nil
	}
	stream := events.StreamID{
		Kind: events.KindInstallPlan,
		Key:  events.Key(scope.Tenant, events.KindInstallPlan, id.String()), Incarnation: 1,
	}
	recs, err := w.c.EventLog.ReadStream(ctx, tx, scope.Tenant, stream, 0)
	if err != nil {
		return err
	}
	if len(recs) == 0 {
		w.logRefused(scope, p.ID, errs.New(errs.NotFound, "the record does not hold this plan"))
		return nil
	}
	state, err := fold(recs)
	if err != nil {
		return err
	}
	if state.Proposed.Cluster != scope.Cluster || state.Proposed.Namespace != scope.Namespace {
		w.logRefused(scope, p.ID, errs.New(errs.Forbidden, "the plan belongs to %s/%s", state.Proposed.Cluster,
			state.Proposed.Namespace))
		return nil
	}
	start := installplan.Start{Epoch: report.Epoch, Now: w.c.Now()}
	if !state.Begun && record.ClaimsStart(p) {
		if start.Grant, err = grantedUntil(ctx, tx, scope.Tenant, id); err != nil {
			return err
		}
	}
	return w.decidePlan(ctx, tx, scope, p, recs, state, start)
}

// grantedUntil is until when the last grant of a plan lets it begin, as the hub wrote down before it published it; zero
// where it signed none.
func grantedUntil(ctx context.Context, tx pgx.Tx, tenant string, plan uuid.UUID) (until time.Time, err error) {
	err = tx.QueryRow(ctx, `select until from installer.grants where tenant = $1 and plan = $2`, tenant, plan).Scan(&until)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return until, err
}

func (w *writer) decidePlan(ctx context.Context, tx *reportTx, scope protocol.Scope, p protocol.PlanReport,
	life []eventlog.Recorded, state installplan.State, start installplan.Start,
) error {
	last := life[len(life)-1]
	sum, body, err := record.StepLog(p)
	if err != nil { // how the plan ended is true all the same
		w.logRefused(scope, p.ID, errs.Wrap(errs.Invalid, err, "step log"))
	}
	payloads, refusal := record.DecidePlan(state, p, sum, start)
	if refusal != nil {
		w.logRefused(scope, p.ID, refusal)
	}
	subject := last.Envelope.Subject
	if refusal == nil {
		if err := saveMessage(ctx, tx, scope.Tenant, kindPlan, subject, messageOf(p)); err != nil {
			return err
		}
	}
	if payloads = tx.withinBudget(payloads); len(payloads) == 0 {
		return nil
	}
	if len(body) > 0 {
		if _, err := tx.Exec(
			ctx, `insert into installer.step_logs (tenant, digest, body) values ($1, $2, $3) on conflict do nothing`,
			scope.Tenant, string(sum), body); err != nil {
			return err
		}
	}
	o := causedByPlan(life)
	if p.TraceParent != "" {
		o.trace = p.TraceParent
	}
	return w.append(ctx, tx, scope.Tenant, last.StreamID, subject, last.Version, o, payloads)
}

// messageOf is empty for a plan that goes as it should.
func messageOf(p protocol.PlanReport) string {
	if p.Phase == protocol.PlanStarted || p.Phase == protocol.PlanFinished {
		return ""
	}
	return p.Message
}

func fold(recs []eventlog.Recorded) (installplan.State, error) {
	payloads := make([]events.Payload, len(recs))
	for i, e := range recs {
		payloads[i] = e.Payload
	}
	return installplan.Fold(payloads...)
}

// logRefused logs an impossible part of a report once.
func (w *writer) logRefused(scope protocol.Scope, what string, err error) {
	key := strings.Join([]string{scope.ClusterID, scope.Namespace, what}, "/")
	if w.logged.isNew(key, err.Error()) {
		w.c.Log.Error("a part of a report is impossible and is not recorded",
			"cluster", scope.Cluster, "namespace", scope.Namespace, "of", what, "error", err)
	}
}
