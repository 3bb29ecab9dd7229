package hub

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// overrideFolds fold what is to count in the place of operators' own conditions.
type overrideFolds struct{ folder }

// overridden keeps what counts in the place of an operator's own conditions until that ends, or the operator is gone.
func (f overrideFolds) overridden(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.OperatorConditionOverridden,
) error {
	return f.setOverrides(ctx, tx, e, &protocol.Overrides{Conditions: p.Overrides, Since: e.Time})
}

func (f overrideFolds) overridesRemoved(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.OperatorConditionOverridesRemoved,
) error {
	return f.setOverrides(ctx, tx, e, nil)
}

func (f overrideFolds) setOverrides(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, o *protocol.Overrides) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update installer.csvs set overrides = $5 where tenant = $1 and cluster = $2
		and namespace = $3 and name = $4`, e.Tenant, s.cluster, s.namespace, s.name, o); err != nil {
		return err
	}
	return f.mark(ctx, tx, bus.Interactive, e, s.cluster, s.namespace)
}
