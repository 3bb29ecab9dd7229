package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// renderingReasons are those of plans whose executor renders otherwise than they say.
func renderingReasons() []string {
	return []string{events.RenderingGone, events.RenderingDiffers, events.RenderingAhead}
}

// Renderings finds plans that were rendered by other rules.
type Renderings struct {
	pool  *pg.Pool
	marks Marker
}

// Mark makes dirty the scopes of plans that were not begun and were rendered by other rules than these, and of plans
// that ended because they could not be rendered any more. It returns how many there are.
func (r *Renderings) Mark(ctx context.Context, newest string) (n int, err error) {
	err = r.pool.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select distinct tenant, cluster, namespace from resolver.plans
			where live and not coalesce((state->>'Begun')::boolean, false)
			  and coalesce(state->'Proposed'->>'rendering', '') <> $1
			or phase = 'Failed' and state->'Failure'->>'Reason' = any ($2)`, newest, renderingReasons())
		if err != nil {
			return fmt.Errorf("find plans that were rendered by other rules: %w", pg.Err(err))
		}
		scopes, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s bus.Scope, err error) {
			return s, r.Scan(&s.Tenant, &s.Cluster, &s.Namespace)
		})
		if err != nil {
			return fmt.Errorf("find plans that were rendered by other rules: %w", pg.Err(err))
		}
		n = len(scopes)
		return r.marks.Mark(ctx, tx, bus.FanOut, scopes...)
	})
	return n, err
}
