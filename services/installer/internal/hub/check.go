package hub

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// foldWait bounds how long a question about a plan that is not known waits for the hub to read the log. Usually that
// takes milliseconds.
const foldWait = 2 * time.Second

// PlanQuestion makes the request to an executor to check a plan, as it would be published now: with
// the operator group of today, its configurations, and its content where the executor finds it. A plan that has ended,
// or that there is not, is errs.NotFound.
func (h *Hub) PlanQuestion(ctx context.Context, tenant, plan string) (
	cluster string, q protocol.PlanQuestion, err error,
) {
	cluster, q, err = h.planQuestion(ctx, tenant, plan)
	if !errs.Is(err, errs.NotFound) {
		return cluster, q, err
	}
	// Who asks may have read of the plan in a read model that is ahead of the hub.
	head, headErr := h.c.EventLog.Head(ctx, h.c.Pool)
	if headErr != nil {
		return "", q, headErr
	}
	wait, cancel := context.WithTimeout(ctx, foldWait)
	defer cancel()
	if err := h.consumer.Wait(wait, head); err != nil {
		return "", q, err
	}
	return h.planQuestion(ctx, tenant, plan)
}

func (h *Hub) planQuestion(ctx context.Context, tenant, plan string) (
	cluster string, q protocol.PlanQuestion, err error,
) {
	var w wanted
	w.message.Scope.Tenant = tenant
	err = h.c.Pool.Snapshot(ctx, func(tx pgx.Tx) error {
		s := &w.message.Scope
		err := tx.QueryRow(ctx, `select p.cluster, p.namespace, c.cluster_id::text from installer.plans p
			join installer.clusters c on c.tenant = p.tenant and c.name = p.cluster and not c.removed
			where p.tenant = $1 and p.plan = $2 and p.phase in ('RequiresApproval', 'Installing')`,
			tenant, plan).Scan(&s.Cluster, &s.Namespace, &s.ClusterID)
		if errors.Is(err, pgx.ErrNoRows) {
			return errs.New(errs.NotFound, "there is no install plan %s that has not ended", plan).At("plan", "R-IP-1")
		}
		if err != nil {
			return err
		}
		if err := h.fillGroup(ctx, tx, &w.message); err != nil {
			return err
		}
		q.Plan, err = livePlan(ctx, tx, h.values(), &w, plan)
		return err
	})
	if err != nil {
		return "", q, pg.Err(err)
	}
	q.Namespace, q.OperatorGroups, q.OperatorGroup = w.message.Scope.Namespace, w.message.OperatorGroups,
		w.message.OperatorGroup
	return w.message.Scope.Cluster, q, h.ensureContents(ctx, &w)
}

func livePlan(ctx context.Context, tx pgx.Tx, v values, w *wanted, id string) (protocol.Plan, error) {
	rows, err := tx.Query(ctx, selectPlan+` where p.tenant = $1 and p.plan = $2`, w.message.Scope.Tenant, id)
	if err != nil {
		return protocol.Plan{}, err
	}
	row, err := pgx.CollectExactlyOneRow(rows, scanPlan)
	if err != nil {
		return protocol.Plan{}, err
	}
	p, why, err := w.plan(ctx, tx, v, row)
	if why != "" {
		return p, errs.New(errs.Unprocessable, "install plan %s cannot be handed to its executor: %s", row.name,
			why).At("plan", "R-IP-1")
	}
	p.Grant.Choices = choices(row.state)
	return p, err
}
