package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/operatorhub"
)

// OperatorHub keeps which default catalogs are switched off. Its zero value is ready for use.
type OperatorHub struct{}

// Get returns what was said last; nothing was said of a tenant without a row.
func (OperatorHub) Get(ctx context.Context, q pg.Querier, tenant string) (operatorhub.Hub, error) {
	var hub operatorhub.Hub
	var sources []byte
	err := q.QueryRow(ctx, `select disable_all, sources from gateway.operatorhub where tenant = $1`, tenant).Scan(
		&hub.DisableAll, &sources)
	if errors.Is(err, pgx.ErrNoRows) {
		return hub, nil
	}
	if err == nil {
		err = json.Unmarshal(sources, &hub.Sources)
	}
	if err != nil {
		return hub, fmt.Errorf("read the operator hub: %w", err)
	}
	return hub, nil
}

// Lock is Get for those who will Put: nobody else passes it until the transaction ends. It makes a row where
// there is none, since what is not there cannot be locked.
func (h OperatorHub) Lock(ctx context.Context, tx pgx.Tx, tenant string, now time.Time) (operatorhub.Hub, error) {
	if _, err := tx.Exec(ctx, `insert into gateway.operatorhub (tenant, disable_all, sources, updated)
		values ($1, false, '{}', $2)
		on conflict (tenant) do nothing`, tenant, now); err != nil {
		return operatorhub.Hub{}, fmt.Errorf("make the operator hub: %w", err)
	}
	if _, err := tx.Exec(ctx, `select from gateway.operatorhub where tenant = $1 for update`, tenant); err != nil {
		return operatorhub.Hub{}, fmt.Errorf("lock the operator hub: %w", err)
	}
	return h.Get(ctx, tx, tenant)
}

// Put stores which default catalogs are switched off.
func (OperatorHub) Put(ctx context.Context, tx pgx.Tx, tenant string, hub operatorhub.Hub, now time.Time) error {
	sources, err := json.Marshal(hub.Sources)
	if err != nil {
		return fmt.Errorf("encode the operator hub: %w", err)
	}
	_, err = tx.Exec(ctx, `insert into gateway.operatorhub (tenant, disable_all, sources, updated)
		values ($1, $2, $3, $4)
		on conflict (tenant) do update set disable_all = excluded.disable_all, sources = excluded.sources,
		updated = excluded.updated`,
		tenant, hub.DisableAll, sources, now)
	if err != nil {
		return fmt.Errorf("store the operator hub: %w", err)
	}
	return nil
}
