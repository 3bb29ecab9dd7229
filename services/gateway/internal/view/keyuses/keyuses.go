// Package keyuses answers what still uses which key of the installation, so that nobody takes one out that is needed.
package keyuses

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Reader answers from the tables that name keys.
type Reader struct{ Pool *pg.Pool }

// List returns how much uses each key, by purpose and key. It counts over all tenants: keys are the installation's.
func (r *Reader) List(ctx context.Context) ([]model.KeyUse, error) {
	rows, err := r.Pool.Query(ctx, `select purpose, key_id, sum(uses)::bigint from (
		select 'credentials' as purpose, key_id, 1 as uses from gateway.credentials
		union all select 'catalog-credentials', key_id, 1 from gateway.catalog_secrets
		union all select 'hook', key_id, 1 from gateway.catalog_hooks
		union all select case kind when 'subscription-config' then 'configuration' when 'catalog-source' then 'source'
			when 'annotations' then 'annotation' else 'reason' end, key_id, 1 from gateway.bodies where key_id <> ''
		union all select 'reason', key_id, 1 from gateway.previews where key_id <> ''
		union all select 'reason', key_id, 1 from gateway.webhooks
		union all select 'grant', key_id, uses from installer_api.key_uses) u
		group by purpose, key_id order by purpose, key_id`)
	if err != nil {
		return nil, pg.Err(err)
	}
	list, err := pgx.CollectRows(rows, func(c pgx.CollectableRow) (u model.KeyUse, err error) {
		return u, c.Scan(&u.Purpose, &u.Key, &u.Uses)
	})
	return list, pg.Err(err)
}
