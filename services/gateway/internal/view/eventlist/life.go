package eventlist

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
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

// resources are what people may read of what streams are about, without a right on events.
var resources = map[events.Kind]access.Resource{
	events.KindSubscription: access.Subscriptions, events.KindOperatorGroup: access.OperatorGroups,
	events.KindInstallPlan: access.InstallPlans, events.KindCSV: access.Operators,
	events.KindCluster: access.Clusters, events.KindCatalog: access.Catalogs,
}

// Knows reports whether a caller may know that an event is at a position of the log: they caused it, or may read it, or
// what it is about.
func (r *Reader) Knows(ctx context.Context, who model.Caller, at events.Position) (bool, error) {
	e, err := r.At(ctx, who.Tenant, model.Place{Position: at})
	if err != nil {
		return false, err
	}
	return mayKnow(who, e), nil
}

func mayKnow(who model.Caller, e eventlog.Recorded) bool {
	about := targetOf(e)
	if e.Actor == who.Person() || e.Actor == who.Actor || who.May(access.List, access.Events, about) {
		return true
	}
	resource, has := resources[e.StreamID.Kind]
	return has && who.May(access.Get, resource, about)
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
