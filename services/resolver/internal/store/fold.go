package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
)

func exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return pg.Err(err)
}

// markAll makes dirty what a query gives as cluster and namespace: one change that touches many places.
func (s *Store) markAll(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("find scopes made dirty by %s: %w", e.Type, pg.Err(err))
	}
	scopes, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (bus.Scope, error) {
		var cluster, namespace string
		err := r.Scan(&cluster, &namespace)
		return scopeOf(e, cluster, namespace), err
	})
	if err != nil {
		return fmt.Errorf("find scopes made dirty by %s: %w", e.Type, pg.Err(err))
	}
	return s.marks.Mark(ctx, tx, bus.FanOut, scopes...)
}
