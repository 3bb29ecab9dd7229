package eventlist

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// At returns the event of a tenant at a place. It is errs.NotFound where there is none. What the caller may see of
// it is for who asks.
func (r *Reader) At(ctx context.Context, tenant string, at model.Place) (e eventlog.Recorded, err error) {
	found := false
	err = r.Pool.TenantTx(ctx, tenant, func(tx pgx.Tx) error {
		pos := at.Position
		if at.Version != 0 {
			var known bool
			if pos, known, err = r.Log.PositionOf(ctx, tx, tenant, at.Stream, at.Version); err != nil {
				return err
			}
			if !known { // it is new, and few are behind it
				list, err := r.Log.ReadStreamRaw(ctx, tx, tenant, at.Stream, at.Version-1)
				if found = err == nil && len(list) > 0 && list[0].Version == at.Version; found {
					e = list[0]
				}
				return err
			}
		}
		list, _, err := r.Log.ReadAfter(ctx, tx, events.Position{Epoch: pos.Epoch, N: pos.N - 1},
			eventlog.Filter{Tenant: tenant, Raw: true}, 1)
		if found = err == nil && len(list) > 0 && list[0].Position == pos; found {
			e = list[0]
		}
		return err
	})
	if err == nil && !found {
		err = errs.New(errs.NotFound, "no event is at this position of the event log")
	}
	return e, err
}

// Behind returns, behind an event in its stream, the first and the last one of each of some types, and where the stream
// ends: zero while its last event has no position.
func (r *Reader) Behind(ctx context.Context, tenant string, e eventlog.Recorded, types []events.Type) (
	list []eventlog.Recorded, end events.Position, err error,
) {
	err = r.Pool.TenantTx(ctx, tenant, func(tx pgx.Tx) error {
		if len(types) > 0 {
			if list, err = r.Log.ReadEnds(ctx, tx, tenant, e.StreamID, e.Version, types); err != nil {
				return err
			}
		}
		end, err = r.Log.EndOf(ctx, tx, tenant, e.StreamID)
		return err
	})
	return list, end, err
}
