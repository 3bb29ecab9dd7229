package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
)

// Hooks keeps the hooks of catalogs, and which of them were pushed to. Its zero value is ready for use.
type Hooks struct{}

// Put makes a hook, or gives the one that is there another nonce.
func (Hooks) Put(ctx context.Context, tx pgx.Tx, h cataloghook.Hook) error {
	_, err := tx.Exec(ctx, `insert into gateway.catalog_hooks (tenant, subject, nonce, created, key_id)
		values ($1, $2, $3, $4, $5)
		on conflict (tenant, subject) do update set nonce = excluded.nonce, created = excluded.created,
			key_id = excluded.key_id`, h.Tenant, h.Subject, h.Nonce, h.Created, h.KeyID)
	if err != nil {
		return fmt.Errorf("store the hook of catalog %s: %w", h.Subject, err)
	}
	return nil
}

// HookStream is the key of the events about the hook of a catalog.
func HookStream(catalog string) string { return "hook/" + catalog }

// Delete ends the hook of a catalog; false where it has none.
func (Hooks) Delete(ctx context.Context, tx pgx.Tx, tenant, subject string) (bool, error) {
	tag, err := tx.Exec(ctx, `delete from gateway.catalog_hooks where tenant = $1 and subject = $2`, tenant, subject)
	if err != nil {
		return false, fmt.Errorf("end the hook of catalog %s: %w", subject, err)
	}
	return tag.RowsAffected() > 0, nil
}

// Of returns the hook of a tenant's catalog; none where it has none.
func (Hooks) Of(ctx context.Context, q pg.Querier, tenant, subject string) ([]cataloghook.Hook, error) {
	return hooks(ctx, q, `select tenant, subject, nonce, created, key_id from gateway.catalog_hooks
		where tenant = $1 and subject = $2`, tenant, subject)
}

// ByNonce returns the hook that was made with this nonce, whichever tenant's it is; none where there is none.
func (Hooks) ByNonce(ctx context.Context, q pg.Querier, nonce []byte) ([]cataloghook.Hook, error) {
	return hooks(ctx, q, `select tenant, subject, nonce, created, key_id from gateway.catalog_hooks
		where nonce = $1`, nonce)
}

// Pushed schedules a poll: after delay, and not sooner than quiet after the poll before. A poll that is scheduled
// already stays, so that pushes in a row cannot put it off.
func (Hooks) Pushed(
	ctx context.Context, tx pgx.Tx, h cataloghook.Hook, now time.Time, delay, quiet time.Duration,
) error {
	_, err := tx.Exec(ctx, `update gateway.catalog_hooks set due = greatest($3::timestamptz + $4, last + $5)
		where tenant = $1 and subject = $2 and due is null`, h.Tenant, h.Subject, now, delay, quiet)
	if err != nil {
		return fmt.Errorf("schedule a poll of catalog %s: %w", h.Subject, err)
	}
	return nil
}

// Due returns hooks whose poll is to be asked for now.
func (Hooks) Due(ctx context.Context, q pg.Querier, now time.Time, limit int) ([]cataloghook.Hook, error) {
	return hooks(ctx, q, `select tenant, subject, nonce, created, key_id from gateway.catalog_hooks where due <= $1
		order by due limit $2`, now, limit)
}

// Take marks that the poll is being asked for, in the transaction that does so; false where another has done it.
func (Hooks) Take(ctx context.Context, tx pgx.Tx, h cataloghook.Hook, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `update gateway.catalog_hooks set due = null, last = $3 where tenant = $1 and subject = $2
		and due <= $3`, h.Tenant, h.Subject, now)
	if err != nil {
		return false, fmt.Errorf("take a push to catalog %s: %w", h.Subject, err)
	}
	return tag.RowsAffected() > 0, nil
}

func hooks(ctx context.Context, q pg.Querier, sql string, args ...any) ([]cataloghook.Hook, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, pg.Err(err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (h cataloghook.Hook, err error) {
		err = r.Scan(&h.Tenant, &h.Subject, &h.Nonce, &h.Created, &h.KeyID)
		return h, err
	})
	return list, pg.Err(err)
}
