package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Identities is who signs in at providers, and which machines show certificates.
type Identities struct{ pool *pg.Pool }

// NewIdentities returns the identities of the pool's database.
func NewIdentities(pool *pg.Pool) *Identities { return &Identities{pool: pool} }

const identityColumns = `id, kind, provider, name, actor, disabled, created, seen`

// Find returns who has a subject, with the version of roles and bindings of the tenant; without an id where nobody has.
func (s *Identities) Find(
	ctx context.Context, tenant string, subject model.Subject,
) (i model.Identity, version events.Position, err error) {
	err = s.pool.QueryRow(ctx, `select coalesce(i.id, ''), coalesce(i.kind, ''), coalesce(i.provider, ''), coalesce(i.name, ''),
			coalesce(i.actor, ''), coalesce(i.disabled, false), coalesce(i.created, now()), coalesce(i.seen, now()),
			coalesce(v.epoch, 0), coalesce(v.position, 0)
		from (select) one left join gateway.identities i on i.tenant = $1 and i.subject = $2
		left join access_versions v on v.tenant = $1`, tenant, subject[:]).
		Scan(&i.ID, &i.Kind, &i.Provider, &i.Name, &i.Actor, &i.Disabled, &i.CreatedAt, &i.SeenAt, &version.Epoch,
			&version.N)
	return i, version, errs.Wrap(errs.Unavailable, pg.Err(err), "read an identity")
}

// Add makes an identity known, unless somebody else does at the same time.
func (s *Identities) Add(
	ctx context.Context, q pg.Querier, tenant string, subject model.Subject, i model.Identity,
) (added bool, err error) {
	tag, err := q.Exec(ctx, `insert into gateway.identities (tenant, subject, `+identityColumns+`)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict (tenant, subject) do nothing`,
		tenant, subject[:], i.ID, i.Kind, i.Provider, i.Name, i.Actor, i.Disabled, i.CreatedAt, i.SeenAt)
	return tag.RowsAffected() > 0, errs.Wrap(errs.KindOf(pg.Err(err)), err, "store identity %s", i.ID)
}

// NewSince returns how many identities of a provider or authority became known since a moment, up to most.
func (s *Identities) NewSince(
	ctx context.Context, q pg.Querier, tenant, provider string, since time.Time, most int,
) (n int, err error) {
	err = q.QueryRow(ctx, `select count(*) from (select from gateway.identities
		where created > $3 and tenant = $1 and provider = $2 limit $4) x`, tenant, provider, since, most).Scan(&n)
	return n, errs.Wrap(errs.KindOf(pg.Err(err)), err, "count the new identities of %s", provider)
}

// LockNew has nobody else make an identity of a provider or authority known until the transaction ends.
func (s *Identities) LockNew(ctx context.Context, tx pgx.Tx, tenant, provider string) error {
	name := "gateway.identities\n" + tenant + "\n" + provider
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, name)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "lock the new identities of %s", provider)
}

// ObserveFull shows as a gauge how many providers and authorities of all tenants made as many identities known within a
// time as they may, until ctx ends.
func (s *Identities) ObserveFull(ctx context.Context, within time.Duration, most int) error {
	return observe(ctx, "chandler.identities.full",
		"identity providers and authorities that made as many identities known as they may, and can make no more known now",
		func(ctx context.Context) (n int64, err error) {
			err = s.pool.QueryRow(ctx, `select count(*) from (select from gateway.identities
				where created > now() - $1::interval group by tenant, provider having count(*) >= $2) x`, within, most).Scan(&n)
			return n, pg.Err(err)
		})
}

// Seen notes that an identity was seen, and what it is called now.
func (s *Identities) Seen(ctx context.Context, tenant, id, name string, at time.Time) error {
	_, err := s.pool.Exec(ctx, `update gateway.identities set seen = $3, name = $4 where tenant = $1 and id = $2
		and (seen < $3 or name <> $4)`, tenant, id, at, name)
	return errs.Wrap(errs.Unavailable, pg.Err(err), "note that identity %s was seen", id)
}

// Lock returns an identity that nobody else changes until the transaction ends.
func (s *Identities) Lock(ctx context.Context, tx pgx.Tx, tenant, id string) (model.Identity, error) {
	rows, err := tx.Query(ctx, `select `+identityColumns+` from gateway.identities where tenant = $1 and id = $2
		for update`, tenant, id)
	if err != nil {
		return model.Identity{}, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read identity %s", id)
	}
	i, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[model.Identity])
	if errors.Is(err, pgx.ErrNoRows) {
		return i, errs.New(errs.NotFound, "there is no identity %q", id).At("path.id", "identity-known")
	}
	return i, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read identity %s", id)
}

// Set changes whose an identity is, and whether it lets anybody in.
func (s *Identities) Set(ctx context.Context, tx pgx.Tx, tenant string, i model.Identity) error {
	_, err := tx.Exec(ctx, `update gateway.identities set actor = $3, disabled = $4 where tenant = $1 and id = $2`,
		tenant, i.ID, i.Actor, i.Disabled)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "change identity %s", i.ID)
}

// KindOf says whether the actor of an identity is a person or a machine; "" where no identity has this actor.
func (s *Identities) KindOf(ctx context.Context, q pg.Querier, tenant, actor string) (kind string, err error) {
	err = q.QueryRow(ctx, `select coalesce(min(kind), '') from gateway.identities where tenant = $1 and actor = $2`,
		tenant, actor).Scan(&kind)
	return kind, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read the identities of actor %s", actor)
}

// Page lists identities behind a name and id.
func (s *Identities) Page(
	ctx context.Context, q pg.Querier, tenant, name, id string, limit int,
) ([]model.Identity, error) {
	rows, err := q.Query(ctx, `select `+identityColumns+` from gateway.identities
		where tenant = $1 and (name, id) > ($2, $3) order by name, id limit $4`, tenant, name, id, limit)
	if err != nil {
		return nil, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read identities")
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[model.Identity])
	return list, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read identities")
}
