package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

// Webhooks keeps webhooks with their addresses and secrets, and the deliveries of each. Everything is a row that is
// written in the transaction of its event, or by the one process that has the lease of the webhook.
type Webhooks struct{ Keys bodies.Keys }

// WebhookRow is a webhook as it is kept.
type WebhookRow struct {
	Tenant, Name string
	Stream       string
	Version      int64
	Spec         events.WebhookSpec
	Owner        events.WebhookOwner
	Disabled     string
	Revision     int64
	At           events.Position
	LastSuccess  *time.Time
	Unsent       time.Duration // of one that was claimed: how long nobody had sent for it
	Sealed       webhook.Sealed

	keyID string
	body  []byte // sealed
}

// Put stores a webhook. One that is there keeps where it is in the log; with every change who sends begins anew.
func (w Webhooks) Put(ctx context.Context, tx pgx.Tx, r WebhookRow, host string, now time.Time) error {
	sealed, err := w.seal(r)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into gateway.webhooks as w (tenant, name, stream, version, spec, owner, disabled, active,
			host, key_id, sealed, created, updated, epoch, position)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $13, $14)
		on conflict (tenant, name) do update set version = excluded.version, spec = excluded.spec, owner = excluded.owner,
			disabled = excluded.disabled, active = excluded.active, host = excluded.host, key_id = excluded.key_id,
			sealed = excluded.sealed, updated = excluded.updated, revision = w.revision + 1`,
		r.Tenant, r.Name, r.Stream, r.Version, r.Spec, r.Owner, r.Disabled, r.Disabled == "" && !r.Spec.Suspended, host,
		sealed.KeyID, sealed.Body, now, r.At.Epoch, r.At.N)
	return pg.Err(err)
}

func (w Webhooks) seal(r WebhookRow) (bodies.Row, error) {
	plain, err := json.Marshal(r.Sealed)
	if err != nil {
		return bodies.Row{}, errs.Wrap(errs.Internal, err, "write a webhook")
	}
	return w.Keys.Seal(r.Tenant, bodies.Row{Commitment: r.Name, Kind: bodies.Webhook, Body: plain})
}

const webhookColumns = `tenant, name, stream, version, spec, owner, disabled, revision, epoch, position, last_success, key_id, sealed`

// Get reads a webhook, an error of kind errs.NotFound where there is none. Where lock is set nobody else changes it
// before the transaction ends.
func (w Webhooks) Get(ctx context.Context, q pg.Querier, tenant, name string, lock bool) (WebhookRow, error) {
	query := `select ` + webhookColumns + `, interval '0' from gateway.webhooks where tenant = $1 and name = $2`
	if lock {
		query += ` for update`
	}
	list, err := w.rows(ctx, q, query, tenant, name)
	if err != nil {
		return WebhookRow{}, err
	}
	if len(list) == 0 {
		return WebhookRow{}, webhook.NotKnown(name)
	}
	return list[0], w.open(&list[0])
}

// rows reads webhooks, by webhookColumns and how long nobody had sent; they are not opened.
func (w Webhooks) rows(ctx context.Context, q pg.Querier, query string, args ...any) ([]WebhookRow, error) {
	found, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, pg.Err(err)
	}
	list, err := pgx.CollectRows(found, func(c pgx.CollectableRow) (r WebhookRow, err error) {
		err = c.Scan(&r.Tenant, &r.Name, &r.Stream, &r.Version, &r.Spec, &r.Owner, &r.Disabled, &r.Revision,
			&r.At.Epoch, &r.At.N, &r.LastSuccess, &r.keyID, &r.body, &r.Unsent)
		return r, err
	})
	return list, pg.Err(err)
}

func (w Webhooks) open(r *WebhookRow) error {
	plain, err := w.Keys.Open(r.Tenant, bodies.Row{
		Commitment: r.Name, Kind: bodies.Webhook, KeyID: r.keyID, Body: r.body, OnlySealed: true,
	})
	if err != nil {
		return err
	}
	return errs.Wrap(errs.Internal, json.Unmarshal(plain, &r.Sealed), "read webhook %s", r.Name)
}

// Delete ends a webhook with all of its deliveries.
func (Webhooks) Delete(ctx context.Context, tx pgx.Tx, tenant, name string) error {
	_, err := tx.Exec(ctx, `delete from gateway.webhooks where tenant = $1 and name = $2`, tenant, name)
	return pg.Err(err)
}

// CountOthers counts the webhooks of a tenant beside one.
func (Webhooks) CountOthers(ctx context.Context, tx pgx.Tx, tenant, name string) (n int, err error) {
	err = tx.QueryRow(ctx, `select count(*) from gateway.webhooks where tenant = $1 and name <> $2`, tenant, name).Scan(&n)
	return n, pg.Err(err)
}

// Again has deliveries that wait tried at once, as if for the first time.
func (Webhooks) Again(ctx context.Context, tx pgx.Tx, tenant, name string, now time.Time) error {
	_, err := tx.Exec(ctx, `update gateway.webhook_deliveries set attempts = 0, first = null, next = null, since = $3
		where tenant = $1 and webhook = $2 and state = 'Pending'`, tenant, name, now)
	return pg.Err(err)
}

// Rewind has a webhook go on behind where it is now. What waits behind that will come again, in its order.
func (Webhooks) Rewind(ctx context.Context, tx pgx.Tx, r WebhookRow) error {
	if _, err := tx.Exec(ctx, `delete from gateway.webhook_deliveries where tenant = $1 and webhook = $2
		and state = 'Pending' and (epoch, position) > ($3, $4)`, r.Tenant, r.Name, r.At.Epoch, r.At.N); err != nil {
		return pg.Err(err)
	}
	_, err := tx.Exec(ctx, `update gateway.webhooks set epoch = $3, position = $4, version = $5, revision = revision + 1
		where tenant = $1 and name = $2`, r.Tenant, r.Name, r.At.Epoch, r.At.N, r.Version)
	return pg.Err(err)
}

// OwnerOf says what lets the owner of a webhook in by now: the role of their tokens, and the version of roles and
// bindings. An owner whom neither a token nor an identity lets in any more is not known.
func (Webhooks) OwnerOf(ctx context.Context, q pg.Querier, tenant, actor string) (
	role model.Role, version events.Position, known bool, err error,
) {
	err = q.QueryRow(ctx, `select coalesce(v.epoch, 0), coalesce(v.position, 0), coalesce(t.role, ''),
			t.role is not null or exists (select from gateway.identities i
				where i.tenant = $1 and i.actor = $2 and not i.disabled)
		from (select case when bool_or(role = 'admin') then 'admin' when bool_or(role = 'viewer') then 'viewer'
				when count(*) > 0 then 'none' end as role from gateway.tokens
			where tenant = $1 and coalesce(actor, id) = $2 and (expires is null or expires > now())) t
		left join access_versions v on v.tenant = $1`, tenant, actor).
		Scan(&version.Epoch, &version.N, &role, &known)
	return role, version, known, pg.Err(err)
}
