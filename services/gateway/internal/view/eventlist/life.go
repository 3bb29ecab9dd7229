package eventlist

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Life returns the event of a tenant at a place, and those that follow in its stream. It is errs.NotFound where there
// is none. What the caller may see of it is for who asks.
func (r *Reader) Life(ctx context.Context, tenant string, at model.Place) (life []eventlog.Recorded, err error) {
	err = r.Pool.TenantTx(ctx, tenant, func(tx pgx.Tx) error {
		if at.Version == 0 {
			f := eventlog.Filter{Tenant: tenant, Raw: true}
			before := events.Position{Epoch: at.Position.Epoch, N: at.Position.N - 1}
			found, _, err := r.Log.ReadAfter(ctx, tx, before, f, 1)
			if err != nil || len(found) == 0 || found[0].Position != at.Position {
				return err
			}
			at.Stream, at.Version = found[0].StreamID, found[0].Version
		}
		life, err = r.Log.ReadStreamRaw(ctx, tx, tenant, at.Stream, at.Version-1)
		return err
	})
	if err == nil && (len(life) == 0 || life[0].Version != at.Version) {
		return nil, errs.New(errs.NotFound, "no event is at this position of the event log")
	}
	return life, err
}
