// Package replicas shows the replicas of the installer, and lets administrators drain one. That is no event: a replica
// is a process, and where an executor runs is in no cluster's history (ADR 0039).
package replicas

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/audit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// Service shows and drains replicas.
type Service struct{ Units *unit.Runner }

// List lists the replicas that live, and those that did in the last hour, by name.
func (s *Service) List(ctx context.Context, who model.Caller) (items []model.Replica, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		rows, err := u.Tx.Query(ctx, `select name, live, draining, draining_by, capacity, clusters, load, unplaced,
			recorded, moves, heard from installer_api.replicas()`)
		if err != nil {
			return err
		}
		items, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r model.Replica, err error) {
			return r, row.Scan(&r.Name, &r.Live, &r.Draining, &r.DrainingBy, &r.Capacity, &r.Clusters, &r.Weight,
				&r.Unplaced, &r.Recorded, &r.Moves, &r.Heard)
		})
		return err
	})
	return items, err
}

// Drain has a replica give its clusters to the others and take none, or, without Draining, take clusters again. A name
// that no replica has had in the last hour is errs.NotFound.
func (s *Service) Drain(ctx context.Context, who model.Caller, in model.DrainReplica) error {
	return s.Units.Once(ctx, who, func(u *unit.Work) error {
		var there bool
		if err := u.Tx.QueryRow(ctx, `select installer_api.drain_replica($1, $2, $3)`, in.Replica, in.Draining,
			who.Person()).Scan(&there); err != nil {
			return err
		}
		if !there {
			return errs.New(errs.NotFound, "there is no replica %q of the installer", in.Replica).At("replica", "")
		}
		action := preview.ActionUndrain
		if in.Draining {
			action = preview.ActionDrain
		}
		return audit.Record(ctx, u, action, in.Replica, uuid.Nil)
	})
}
