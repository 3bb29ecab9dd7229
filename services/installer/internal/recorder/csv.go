package recorder

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// instance is one object (UID) that had a CSV's name.
type instance struct {
	uid   string
	state record.CSV
}

// recordCSVs records what a report says of each CSV. Where the budget is used up, the rest waits, and comes first next
// time.
func (w *writer) recordCSVs(ctx context.Context, tx *reportTx, report protocol.ScopeReport) (
	settled bool, err error,
) {
	list, settled := report.CSVs, true
	first := max(0, slices.IndexFunc(list, func(c protocol.CSVReport) bool { return c.Name == tx.scope.Next }))
	tx.scope.Next = ""
	for i := range list {
		c := list[(first+i)%len(list)]
		if !tx.mayAppend() {
			tx.withheld, tx.scope.Next = true, c.Name
			return false, nil
		}
		ok, err := w.recordCSV(ctx, tx, report, c)
		if err != nil {
			return false, err
		}
		settled = settled && ok
	}
	return settled, nil
}

// recordCSV records what a report says of one CSV. settled: the same report can add nothing later.
func (w *writer) recordCSV(ctx context.Context, tx *reportTx, report protocol.ScopeReport, c protocol.CSVReport) (
	settled bool, err error,
) {
	scope := report.Scope
	lives, err := instancesOf(ctx, tx, scope, c.Name)
	if err != nil {
		return false, err
	}
	if c.UID == "" { // it vanished while it was to be followed
		if !c.Removed {
			return true, nil
		}
		if len(lives) == 0 {
			if lives, err = w.instanceFromLog(ctx, tx, scope, c.Name); err != nil {
				return false, err
			}
		}
		if err := w.endInstances(ctx, tx, scope, c.Name, lives, c.RemovedReason, c.Removal); err != nil {
			return false, err
		}
		return true, w.endUnseen(ctx, tx, scope, c, lives)
	}
	mine, others, anew, err := w.instanceOf(ctx, tx, scope, c, lives)
	if err != nil || mine.state.Removed {
		return true, err // said again
	}
	if err := w.endInstances(ctx, tx, scope, c.Name, others, "", ""); err != nil {
		return false, err
	}
	payloads, next := record.DecideCSV(mine.state, scope, c, w.c.Now())
	switch {
	case anew && len(payloads) == 0 && !next.Exists:
		return true, nil // of what adds nothing to the log nothing is kept
	case anew:
		if err := deleteLeftovers(ctx, tx, scope, c.Package); err != nil {
			return false, err
		}
	}
	more, next, err := w.recordHealth(ctx, tx, report, c, next)
	if err != nil {
		return false, err
	}
	payloads = append(payloads, more...)
	if err := w.appendCSV(ctx, tx, scope, c.Name, c.Plan, c.TraceParent, mine.state.Exists, payloads); err != nil {
		return false, err
	}
	if err := saveInstance(ctx, tx, scope, c.Name, instance{c.UID, next}); err != nil {
		return false, err
	}
	return next.Settled(), saveMessage(ctx, tx, scope.Tenant, kindCSV, csvKey(scope, c.Name), lastMessage(c))
}

func csvKey(s protocol.Scope, name string) string { return s.Cluster + "/" + s.Namespace + "/" + name }

// lastMessage is empty for one that is gone or succeeded.
func lastMessage(c protocol.CSVReport) string {
	if c.Removed || len(c.History) == 0 {
		return ""
	}
	if c.Message != "" {
		return c.Message
	}
	return c.History[len(c.History)-1].Message
}

// instancesOf are the known objects of a name: the present one, and removed ones that may be reported again.
func instancesOf(ctx context.Context, tx pgx.Tx, s protocol.Scope, name string) ([]instance, error) {
	rows, err := tx.Query(ctx, `select uid, state from installer.csv_lives
		where tenant = $1 and cluster_id = $2 and namespace = $3 and name = $4 order by uid`, s.Tenant, s.ClusterID, s.Namespace, name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l instance, err error) {
		return l,
			row.Scan(&l.uid, &l.state)
	})
}

// splitByUID separates the object of a UID from others that are not known to have ended.
func splitByUID(lives []instance, uid string) (mine instance, others []instance) {
	for _, l := range lives {
		switch {
		case l.uid == uid:
			mine = l
		case !l.state.Removed:
			others = append(others, l)
		}
	}
	return mine, others
}

// instanceOf is the object that a report is about, and the others of the same name that it ends. anew: it is seen for
// the first time, or for the first time since its cluster was restored from a backup; then a removed object may exist
// again.
func (w *writer) instanceOf(ctx context.Context, tx pgx.Tx, scope protocol.Scope, c protocol.CSVReport,
	lives []instance,
) (mine instance, others []instance, anew bool, err error) {
	mine, others = splitByUID(lives, c.UID)
	back := mine.state.Restored && (!mine.state.Removed || !c.Removed)
	if mine.uid != "" && !back {
		return mine, others, false, nil
	}
	notes := mine.state.Health
	if mine, others, err = w.beginInstance(ctx, tx, scope, c, others); err != nil {
		return mine, nil, true, err
	}
	if mine.state.Exists {
		mine.state.Health = notes
	}
	return mine, others, true, nil
}

// beginInstance handles an object that is seen for the first time. Where no object of this name is known although the
// log says that one exists (the cluster was registered again), it continues the log's stream if its history holds what
// the log says, and otherwise is another object.
func (w *writer) beginInstance(ctx context.Context, tx pgx.Tx, scope protocol.Scope, c protocol.CSVReport,
	others []instance,
) (instance, []instance, error) {
	begin := instance{uid: c.UID}
	if len(others) > 0 {
		return begin, others, nil
	}
	last, ok, err := w.lastPhase(ctx, tx, scope, c.Name)
	if err != nil || !ok {
		return begin, nil, err
	}
	old := stateFromLog(last)
	for i, t := range slices.Backward(c.History) {
		if t.Phase == last.Phase && t.Reason == last.Reason {
			old.Taken = c.Dropped + i + 1
			return instance{c.UID, old}, nil, nil
		}
	}
	return begin, []instance{{uid: unknownUID, state: old}}, nil
}

// unknownUID stands for an object that was recorded under another registration of its cluster.
const unknownUID = "unknown"

// unseenUID and the id of its plan stand for an object of which nothing was reported but that it is gone.
const unseenUID = "unseen/"

// instanceFromLog is the object that the log holds of a cluster that was registered again, none where the log does not
// say that it exists.
func (w *writer) instanceFromLog(ctx context.Context, tx pgx.Tx, scope protocol.Scope, name string) (
	[]instance, error,
) {
	last, ok, err := w.lastPhase(ctx, tx, scope, name)
	if err != nil || !ok {
		return nil, err
	}
	return []instance{{uid: unknownUID, state: stateFromLog(last)}}, nil
}

// stateFromLog is the state of an object that only the log knows.
func stateFromLog(last events.CSVPhaseChanged) record.CSV {
	return record.CSV{
		Exists: true, Phase: last.Phase, Reason: last.Reason, SeenPhase: last.Phase,
		SeenReason: last.Reason,
	}
}

// lastPhase is the last phase that the log holds of a CSV that exists.
func (w *writer) lastPhase(ctx context.Context, tx pgx.Tx, scope protocol.Scope, name string) (
	p events.CSVPhaseChanged, ok bool, err error,
) {
	head, err := w.c.EventLog.Latest(ctx, tx, scope.Tenant, events.KindCSV, csvKey(scope, name))
	if err != nil || !head.Exists() {
		return p, false, err
	}
	recs, err := w.c.EventLog.ReadStream(ctx, tx, scope.Tenant, head.ID, 0)
	for _, e := range recs {
		if c, is := e.Payload.(events.CSVPhaseChanged); is {
			p, ok = c, true
		}
	}
	return p, ok, err
}

// endInstances ends the streams of objects that are gone.
func (w *writer) endInstances(ctx context.Context, tx *reportTx, scope protocol.Scope, name string, lives []instance,
	reason, removal string,
) error {
	for _, l := range lives {
		payloads, next := record.EndCSV(l.state, reason, removal)
		if err := w.appendCSV(ctx, tx, scope, name, "", "", l.state.Exists, payloads); err != nil {
			return err
		}
		if err := saveInstance(ctx, tx, scope, name, instance{l.uid, next}); err != nil {
			return err
		}
		if err := saveMessage(ctx, tx, scope.Tenant, kindCSV, csvKey(scope, name), ""); err != nil {
			return err
		}
		if err := deleteDetails(ctx, tx, scope, name); err != nil {
			return err
		}
	}
	return nil
}

// endUnseen records the end of an operator that a plan has brought and of which nothing was recorded before somebody
// deleted it. Who follows the log expects it from the end of the plan on.
func (w *writer) endUnseen(ctx context.Context, tx *reportTx, scope protocol.Scope, c protocol.CSVReport,
	lives []instance,
) error {
	uid := unseenUID + c.Plan
	said := slices.ContainsFunc(lives, func(l instance) bool { return l.uid == uid || !l.state.Removed })
	if said {
		return nil
	}
	recs, err := w.planEvents(ctx, tx, scope.Tenant, c.Plan)
	if err != nil || len(recs) == 0 {
		return err
	}
	plan, err := fold(recs)
	if err != nil {
		return err
	}
	p := plan.Proposed
	if plan.Phase != installplan.Complete || p.Cluster != scope.Cluster || p.Namespace != scope.Namespace ||
		!slices.ContainsFunc(p.Bundles, func(b events.PlannedBundle) bool { return b.CSV == c.Name }) {
		return nil
	}
	heard, err := eventlog.HeardOfOperator(ctx, w.c.EventLog, tx, scope.Tenant, csvKey(scope, c.Name), c.Plan)
	if err != nil || heard {
		return err
	}
	payloads, next := record.EndCSV(record.CSV{Exists: true}, c.RemovedReason, c.Removal)
	if err := w.appendCSV(ctx, tx, scope, c.Name, c.Plan, c.TraceParent, false, payloads); err != nil {
		return err
	}
	return saveInstance(ctx, tx, scope, c.Name, instance{uid, next})
}

func saveInstance(ctx context.Context, tx pgx.Tx, s protocol.Scope, name string, l instance) error {
	state, err := json.Marshal(l.state)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into installer.csv_lives (tenant, cluster_id, namespace, name, uid, state, removed)
		values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant, cluster_id, namespace, name, uid) do update set state = excluded.state,
		removed = excluded.removed`,
		s.Tenant, s.ClusterID, s.Namespace, name, l.uid, state, l.state.Removed)
	return err
}

// appendCSV appends to the stream of the present object, or begins the stream of a new one.
func (w *writer) appendCSV(ctx context.Context, tx *reportTx, scope protocol.Scope, name, plan, trace string,
	exists bool, payloads []events.Payload,
) error {
	if len(payloads) == 0 {
		return nil
	}
	subject := csvKey(scope, name)
	head, err := w.c.EventLog.Latest(ctx, tx, scope.Tenant, events.KindCSV, subject)
	if err != nil {
		return err
	}
	stream, version := head.Create(), int64(0)
	if exists {
		stream, version = head.ID, head.Version
	}
	o, err := w.originOf(ctx, tx, scope.Tenant, plan)
	if err != nil {
		return err
	}
	if trace != "" {
		o.trace = trace
	}
	return w.append(ctx, tx, scope.Tenant, stream, subject, version, o, payloads)
}

// originOf is the last event of the plan that installed a CSV, nothing where there is none.
func (w *writer) originOf(ctx context.Context, tx pgx.Tx, tenant, plan string) (origin, error) {
	recs, err := w.planEvents(ctx, tx, tenant, plan)
	if err != nil || len(recs) == 0 {
		return origin{}, err
	}
	return causedByPlan(recs), nil
}

// planEvents are those of a plan; none where there is no such plan, as not every CSV comes from one.
func (w *writer) planEvents(ctx context.Context, tx pgx.Tx, tenant, plan string) ([]eventlog.Recorded, error) {
	id, err := uuid.Parse(plan)
	if err != nil {
		return nil, nil //nolint:nilerr // it is no plan's
	}
	stream := events.StreamID{
		Kind: events.KindInstallPlan,
		Key:  events.Key(tenant, events.KindInstallPlan, id.String()), Incarnation: 1,
	}
	return w.c.EventLog.ReadStream(ctx, tx, tenant, stream, 0)
}
