package recorder

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// reportTx is the transaction that records one report, with the budget of its namespace and cluster. What does not fit
// into the budget is withheld: the newest report is recorded again later, as it is then.
type reportTx struct {
	pgx.Tx
	scope, cluster record.Budget
	left           int // of both budgets, before anything is spent
	spent          int
	withheld       bool

	known known // of the cluster
	last  taken // report of the scope
}

// taken is the report of a scope that was taken last.
type taken struct {
	epoch    int64
	session  string
	sequence int64
	digest   string
	entry    []byte // nil while it is not wholly recorded
}

// mayAppend reports whether the budget allows another event. Outcomes of plans and removals are recorded in any case:
// there are only as many as people and the resolver asked for.
func (l *reportTx) mayAppend() bool { return l.spent < l.left }

// withinBudget drops the events that a plan or removal may repeat without end, when the budget is used up.
func (l *reportTx) withinBudget(payloads []events.Payload) []events.Payload {
	var out []events.Payload
	for _, p := range payloads {
		switch p.(type) {
		case events.InstallPlanBlocked, events.CSVRemovalBlocked:
			if !l.mayAppend() {
				l.withheld = true
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// reportWithheld logs once that events of a scope are withheld.
func (w *writer) logWithheld(s protocol.Scope) {
	const text = "the reports exceed their rate limit; the rest is recorded later, as it is then"
	key := s.ClusterID + "/" + s.Namespace + "/budget"
	if w.logged.isNew(key, text) {
		w.c.Log.Warn(text, "cluster", s.Cluster, "namespace", s.Namespace, "atOnce", w.c.Scope.Burst, "ofTheCluster",
			w.c.Cluster.Burst)
	}
}

// saveBudget stores what was spent.
func (l *reportTx) saveBudget(ctx context.Context, s protocol.Scope) error {
	l.scope.Spent += l.spent
	l.cluster.Spent += l.spent
	_, err := l.Exec(ctx, `with c as (update installer.holders set budget = $5 where tenant = $1 and cluster_id = $2)
		update installer.reports set budget = $4 where tenant = $1 and cluster_id = $2 and namespace = $3`,
		s.Tenant, s.ClusterID, s.Namespace, l.scope, l.cluster)
	return err
}
