package hub

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/joining"
)

// agentFolds fold who is the agent of a cluster.
type agentFolds struct{ folder }

// keep keeps who is, or wants to become, the agent of a cluster. What has changed is pushed to NATS afterwards
// (package joins).
func (f agentFolds) keep(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	var state joining.State
	err := tx.QueryRow(ctx, `select state from installer.agents where tenant = $1 and cluster_id = $2`, e.Tenant,
		e.StreamID.UUID()).Scan(&state)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	_, err = tx.Exec(ctx, `insert into installer.agents (tenant, cluster_id, cluster, state) values ($1, $2, $3, $4)
		on conflict (tenant, cluster_id) do update set state = excluded.state, pushed = null`,
		e.Tenant, e.StreamID.UUID(), e.Envelope.Subject, joining.Evolve(state, e.Payload))
	return err
}

// forget takes the rights of a removed cluster's agent away.
func (f agentFolds) forget(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	_, err := tx.Exec(ctx, `update installer.agents set state = '{}', pushed = null
		where tenant = $1 and cluster_id = $2`, e.Tenant, e.StreamID.UUID())
	return err
}
