package recorder

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// ledger is the transaction that records one report, with what the report may still begin. What it may not now is
// withheld: the newest report is looked at again, and says then what holds then.
type ledger struct {
	pgx.Tx
	scope, cluster record.Budget
	left           int // of both, before anything is spent
	spent          int
	withheld       bool
}

// may reports whether another fact may be begun. Outcomes of plans and removals are recorded in any case: of those there
// are as many as people and resolvers asked for.
func (l *ledger) may() bool { return l.spent < l.left }

// bounded leaves out of what a report adds to a plan or a removal what it could add for ever, when the budget is used up.
func (l *ledger) bounded(payloads []events.Payload) []events.Payload {
	var out []events.Payload
	for _, p := range payloads {
		switch p.(type) {
		case events.InstallPlanBlocked, events.CSVRemovalBlocked:
			if !l.may() {
				l.withheld = true
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// tellWithheld says once that the facts of a scope are held back.
func (r *Recorder) tellWithheld(s protocol.Scope) {
	const text = "the reports begin more facts than they may; what else they say is recorded later, as it is then"
	key := s.ClusterID + "/" + s.Namespace + "/budget"
	r.mu.Lock()
	same := r.told[key] == text
	r.remember(key, text)
	r.mu.Unlock()
	if !same {
		r.c.Log.Warn(text, "cluster", s.Cluster, "namespace", s.Namespace, "atOnce", r.c.Scope.Burst, "ofTheCluster", r.c.Cluster.Burst)
	}
}

// settle notes what was spent.
func (l *ledger) settle(ctx context.Context, s protocol.Scope) error {
	l.scope.Spent += l.spent
	l.cluster.Spent += l.spent
	_, err := l.Exec(ctx, `with c as (update installer.holders set budget = $5 where tenant = $1 and cluster_id = $2)
		update installer.reports set budget = $4 where tenant = $1 and cluster_id = $2 and namespace = $3`,
		s.Tenant, s.ClusterID, s.Namespace, l.scope, l.cluster)
	return err
}
