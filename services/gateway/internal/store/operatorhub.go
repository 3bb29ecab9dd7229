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
	err := q.QueryRow(ctx, `select disable_all, sources from gateway.operatorhub where tenant = $1`, tenant).Scan(&hub.DisableAll, &sources)
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

// Put keeps what is said.
func (OperatorHub) Put(ctx context.Context, tx pgx.Tx, tenant string, hub operatorhub.Hub, now time.Time) error {
	sources, err := json.Marshal(hub.Sources)
	if err != nil {
		return fmt.Errorf("encode the operator hub: %w", err)
	}
	_, err = tx.Exec(ctx, `insert into gateway.operatorhub (tenant, disable_all, sources, updated) values ($1, $2, $3, $4)
		on conflict (tenant) do update set disable_all = excluded.disable_all, sources = excluded.sources, updated = excluded.updated`,
		tenant, hub.DisableAll, sources, now)
	if err != nil {
		return fmt.Errorf("store the operator hub: %w", err)
	}
	return nil
}
