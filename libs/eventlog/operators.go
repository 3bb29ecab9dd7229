package eventlog

import (
	"context"
	"slices"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// HeardOfOperator says whether the log has csv.* events of an operator that a plan has brought: it lives, or its last
// life came from this plan.
func HeardOfOperator(ctx context.Context, l *Log, q pg.Querier, tenant, subject, plan string) (bool, error) {
	head, err := l.Latest(ctx, q, tenant, events.KindCSV, subject)
	if err != nil || head.Version == 0 || head.Exists() {
		return head.Exists(), err
	}
	life, err := l.ReadStream(ctx, q, tenant, head.ID, 0)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(life, func(r Recorded) bool {
		p, ok := r.Payload.(events.CSVPhaseChanged)
		return ok && p.Plan == plan
	}), nil
}
