package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// BreakGlass keeps the token of each tenant that works while nobody can sign in.
type BreakGlass struct{}

// Set makes a token that of its tenant. The one before is refused from then on; when it was used stays known.
func (BreakGlass) Set(ctx context.Context, tx pgx.Tx, tenant string, in model.BreakGlass, secret string) error {
	hash := model.HashToken(secret)
	_, err := tx.Exec(ctx, `insert into gateway.break_glass as b (tenant, id, hash, created) values ($1, $2, $3, $4)
		on conflict (tenant) do update set id = excluded.id, hash = excluded.hash, created = excluded.created,
			ends = case when b.ends > excluded.created then excluded.created else b.ends end`, tenant, in.ID, hash[:], in.CreatedAt)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "store the break-glass token")
}

// Get returns the token of a tenant at a moment, with the commitment to the last reason; without an id where it never
// had one. With lock it stays as it is until the transaction ends.
func (BreakGlass) Get(
	ctx context.Context, tx pgx.Tx, tenant string, now time.Time, lock bool,
) (out model.BreakGlass, err error) {
	if lock {
		name := "gateway.break_glass\n" + tenant // also where there is no row yet
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, name); err != nil {
			return out, errs.Wrap(errs.KindOf(pg.Err(err)), err, "lock the break-glass token")
		}
	}
	var opened, ends *time.Time
	err = tx.QueryRow(ctx, `select id, hash is not null, created, opened, ends, coalesce(reason, '')
		from gateway.break_glass where tenant = $1`, tenant).
		Scan(&out.ID, &out.Good, &out.CreatedAt, &opened, &ends, &out.Reason)
	if errors.Is(err, pgx.ErrNoRows) {
		return out, nil
	}
	if opened != nil && ends != nil {
		out.Use = &model.BreakGlassUse{Open: ends.After(now), Since: *opened, Until: *ends}
	}
	return out, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read the break-glass token")
}

// Open lets the token of a tenant in until a moment, for a reason that is committed to.
func (BreakGlass) Open(ctx context.Context, tx pgx.Tx, tenant string, use model.BreakGlassUse, reason string) error {
	_, err := tx.Exec(ctx, `update gateway.break_glass set opened = $2, ends = $3, reason = $4 where tenant = $1`, tenant,
		use.Since, use.Until, reason)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "open the break-glass token")
}

// Revoke has the token of a tenant refused from now on.
func (BreakGlass) Revoke(ctx context.Context, tx pgx.Tx, tenant string, now time.Time) error {
	_, err := tx.Exec(ctx, `update gateway.break_glass set hash = null,
		ends = case when ends > $2 then $2 else ends end where tenant = $1`, tenant, now)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "revoke the break-glass token")
}

// breakGlass is who holds a break-glass token. Outside of a session they may do nothing.
func (t *Tokens) breakGlass(
	ctx context.Context, hash model.TokenHash,
) (c model.Caller, version events.Position, err error) {
	c.BreakGlass, c.Kind, c.Role = true, access.KindUser, model.RoleNone
	var open bool
	err = t.pool.QueryRow(ctx, `select b.tenant, b.id, coalesce(b.ends > now(), false), coalesce(v.epoch, 0),
		coalesce(v.position, 0) from gateway.break_glass b left join access_versions v on v.tenant = b.tenant
		where b.hash = $1`, hash[:]).Scan(&c.Tenant, &c.Token, &open, &version.Epoch, &version.N)
	if errors.Is(err, pgx.ErrNoRows) {
		return model.Caller{}, version, errs.New(errs.Unauthenticated, "the bearer token is not known or has expired")
	}
	if err != nil {
		return model.Caller{}, version, errs.Wrap(errs.Unavailable, pg.Err(err), "read the bearer token")
	}
	c.Actor = c.Token
	if open {
		c.Role = model.RoleAdmin
	}
	return c, version, nil
}

// breakGlassSeen is how long a use is shown by the gauge after its end: several scrapes, and one that failed.
const breakGlassSeen = 15 * time.Minute

// ObserveBreakGlass shows as a gauge how many break-glass tokens are in use, or were a while ago, until ctx ends.
func (t *Tokens) ObserveBreakGlass(ctx context.Context) error {
	return observe(ctx, "chandler.breakglass.used", "break-glass tokens that are in use, or were in the last 15 minutes",
		t.breakGlassUsed)
}

func (t *Tokens) breakGlassUsed(ctx context.Context) (n int64, err error) {
	err = t.pool.QueryRow(ctx, `select count(*) from gateway.break_glass where ends > now() - $1::interval`,
		breakGlassSeen).Scan(&n)
	return n, pg.Err(err)
}
