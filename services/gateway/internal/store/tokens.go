package store

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// MinTokenChars is the least length of a token that is given by configuration: below it a token could
// be guessed against the stored hash.
const MinTokenChars = 16

// AdminID is the id, and the actor, of the token that an installation starts with.
const AdminID = "token-admin"

// Tokens is who may call the API.
type Tokens struct {
	Slog *slog.Logger
	pool *pg.Pool
}

// NewTokens returns the tokens of the pool's database.
func NewTokens(pool *pg.Pool) *Tokens {
	return &Tokens{Slog: slog.New(slog.DiscardHandler), pool: pool}
}

// Admin is what EnsureAdmin did.
type Admin struct {
	Token     model.Token // the admin token; without an id where it is none of this installation's any more
	Generated string      // a new secret; that is the only time that it can be seen
	Changed   bool        // the token is new, or has another secret than before
}

// EnsureAdmin makes the given token the admin token. Without one, and only where there is no token at
// all, it makes a new one.
func (t *Tokens) EnsureAdmin(ctx context.Context, tx pgx.Tx, given string) (a Admin, err error) {
	if given != "" {
		a.Changed, err = t.setAdmin(ctx, tx, given)
	} else {
		a.Generated, err = t.makeAdmin(ctx, tx)
		a.Changed = a.Generated != ""
	}
	if err != nil {
		return a, err
	}
	list, err := tokens(ctx, tx, `select `+tokenColumns+` from gateway.tokens where tenant = $1 and id = $2
		and role = 'admin' and (expires is null or expires > now())`, events.DefaultTenant, AdminID)
	if len(list) > 0 {
		a.Token = list[0]
	}
	return a, err
}

func (t *Tokens) makeAdmin(ctx context.Context, tx pgx.Tx) (string, error) {
	var there bool // of any tenant, which the transaction does not see
	if err := t.pool.QueryRow(ctx, `select exists (select from gateway.tokens)`).Scan(
		&there); err != nil || there {
		return "", errs.Wrap(errs.KindOf(pg.Err(err)), err, "look for tokens")
	}
	token := rand.Text() + rand.Text()
	hash := model.HashToken(token)
	tag, err := tx.Exec(ctx, `insert into gateway.tokens (tenant, id, hash, role) values ($1, $2, $3, 'admin')
		on conflict do nothing`, events.DefaultTenant, AdminID, hash[:])
	if err != nil {
		return "", errs.Wrap(errs.KindOf(pg.Err(err)), err, "store the first admin token")
	}
	if tag.RowsAffected() == 0 {
		return "", nil
	}
	return token, nil
}

// setAdmin has a token that is new take the place of the one before, revoked or not. One that was given before and is
// revoked stays so.
func (t *Tokens) setAdmin(ctx context.Context, tx pgx.Tx, token string) (changed bool, err error) {
	if len(token) < MinTokenChars {
		return false, errs.New(errs.Invalid, "the admin token (CHANDLER_ADMIN_TOKEN) has %d characters, at least %d are wanted", len(token),
			MinTokenChars).
			At("admin-token", "min-length")
	}
	hash := model.HashToken(token)
	tag, err := tx.Exec(ctx, `
		insert into gateway.tokens (tenant, id, hash, role) values ($1, $2, $3, 'admin')
		on conflict (tenant, id) do update set hash = excluded.hash, role = 'admin', expires = null, previous = null,
			previous_ends = null, used = null
		where tokens.hash <> excluded.hash`,
		events.DefaultTenant, AdminID, hash[:])
	return tag.RowsAffected() > 0, errs.Wrap(errs.KindOf(pg.Err(err)), err, "store the admin token")
}

// Add makes a token known; of secret only the hash is stored.
func (t *Tokens) Add(ctx context.Context, q pg.Querier, tenant string, in model.Token, secret string) error {
	hash := model.HashToken(secret)
	_, err := q.Exec(ctx, `insert into gateway.tokens (tenant, id, hash, name, role, actor, created, expires, kind)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		tenant, in.ID, hash[:], in.Name, string(in.Role), in.Actor, in.CreatedAt, in.EndsAt, in.Kind)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "store token %s", in.ID)
}

// KindOf says whether the actor of a token, also of one that is refused by now, is a person or a program; "" where no
// token has had this actor.
func (t *Tokens) KindOf(ctx context.Context, q pg.Querier, tenant, actor string) (kind string, err error) {
	err = q.QueryRow(ctx, `select coalesce(min(kind), '') from gateway.tokens
		where tenant = $1 and coalesce(actor, id) = $2`, tenant, actor).Scan(&kind)
	return kind, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read the tokens of actor %s", actor)
}

const tokenColumns = `id, name, role, kind, coalesce(actor, id), created, expires, used, previous_ends`

// Find returns a token, also one that is refused by now; without an id where there is none.
func (t *Tokens) Find(ctx context.Context, q pg.Querier, tenant, id string) (out model.Token, err error) {
	list, err := tokens(ctx, q, `select `+tokenColumns+` from gateway.tokens where tenant = $1 and id = $2`, tenant, id)
	if len(list) > 0 {
		out = list[0]
	}
	return out, err
}

// Rotate gives a token another secret, of which the hash is stored. The one before is good until previousEnds.
func (t *Tokens) Rotate(
	ctx context.Context, q pg.Querier, tenant, id, secret string, ends, previousEnds time.Time,
) error {
	hash := model.HashToken(secret)
	_, err := q.Exec(ctx, `update gateway.tokens set previous = hash, previous_ends = $5, hash = $3, expires = $4
		where tenant = $1 and id = $2`, tenant, id, hash[:], ends, previousEnds)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "rotate token %s", id)
}

// usedEvery is how exactly it is known when a token was used: requests more often write nothing.
const usedEvery = 5 * time.Minute

// noteUse notes that a token let somebody in, unless that is noted already. Where it cannot be noted the token lets in
// all the same, and the next request tries again: so too where a change of tokens holds it locked, for which no request
// waits.
func (t *Tokens) noteUse(ctx context.Context, tenant, id string) {
	_, err := t.pool.Exec(ctx, `update gateway.tokens set used = now() where (tenant, id) in (
		select tenant, id from gateway.tokens where tenant = $1 and id = $2
			and (used is null or used < now() - $3::interval) for no key update skip locked)`, tenant, id, usedEvery)
	if err != nil {
		t.Slog.WarnContext(ctx, "it is not noted that a token was used", "token", id, "error", pg.Err(err))
	}
}

// Page lists tokens behind a name and id, those that are refused by now included.
func (t *Tokens) Page(ctx context.Context, q pg.Querier, tenant, name, id string, limit int) ([]model.Token, error) {
	return tokens(ctx, q, `select `+tokenColumns+` from gateway.tokens where tenant = $1 and (name, id) > ($2, $3)
		order by name, id limit $4`,
		tenant, name, id, limit)
}

// Lock returns the token with this id and every administrator's, as far as they are not refused by now. Until the
// transaction ends nobody else can End one of them: two administrators who revoke each other are not both gone.
func (t *Tokens) Lock(ctx context.Context, tx pgx.Tx, tenant, id string) ([]model.Token, error) {
	// The clock, not now(): who waited for the lock must see what ended meanwhile.
	return tokens(ctx, tx, `select `+tokenColumns+` from gateway.tokens
		where tenant = $1 and (id = $2 or role = 'admin') and (expires is null or expires > clock_timestamp())
		order by id for update`, tenant, id)
}

// End has a token refused from now on.
func (t *Tokens) End(ctx context.Context, tx pgx.Tx, tenant, id string) error {
	_, err := tx.Exec(ctx, `update gateway.tokens set expires = clock_timestamp() where tenant = $1 and id = $2`,
		tenant, id)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "end token %s", id)
}

func tokens(ctx context.Context, q pg.Querier, query string, args ...any) ([]model.Token, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read tokens")
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[model.Token])
	return list, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read tokens")
}

// List names every tenant that has a token or an identity, sorted; another one has nobody to see anything.
func (t *Tokens) List(ctx context.Context) ([]string, error) {
	rows, err := t.pool.Query(ctx, `select tenant from gateway.tokens union select tenant from gateway.identities order by tenant`)
	if err != nil {
		return nil, pg.Err(err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return tenants, pg.Err(err)
}

// Caller returns who holds a token, an error of kind errs.Unauthenticated where nobody does; and at which version of
// roles and bindings that was, which costs no query of its own. A token that is revoked, and a binding that is gone,
// are
// both seen by the next request.
func (t *Tokens) Caller(ctx context.Context, token string) (c model.Caller, version events.Position, err error) {
	hash := model.HashToken(token)
	if strings.HasPrefix(token, model.BreakGlassMark) {
		return t.breakGlass(ctx, hash)
	}
	var unnoted bool
	err = t.pool.QueryRow(ctx, `select t.tenant, coalesce(t.actor, t.id), t.role, t.id, t.kind,
		coalesce(t.used < now() - $2::interval, true), coalesce(v.epoch, 0), coalesce(v.position, 0)
		from gateway.tokens t left join access_versions v on v.tenant = t.tenant
		where (t.hash = $1 or t.previous = $1 and t.previous_ends > now())
		and (t.expires is null or t.expires > now())`, hash[:], usedEvery).
		Scan(&c.Tenant, &c.Actor, &c.Role, &c.Token, &c.Kind, &unnoted, &version.Epoch, &version.N)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, version, errs.New(errs.Unauthenticated, "the bearer token is not known or has expired")
	}
	if err != nil {
		return c, version, errs.Wrap(errs.Unavailable, pg.Err(err), "read the bearer token")
	}
	if unnoted {
		t.noteUse(ctx, c.Tenant, c.Token)
	}
	return c, version, nil
}

// LockAdmins returns how many tokens make somebody an administrator by themselves. Until the transaction ends none of
// them is revoked.
func (t *Tokens) LockAdmins(ctx context.Context, tx pgx.Tx, tenant string) (int, error) {
	list, err := t.Lock(ctx, tx, tenant, "")
	return len(list), err
}

// maxHolders bounds the tokens that are gone through for who may do something.
const maxHolders = 10_000

// Giving are the tokens that give a role by themselves.
func (t *Tokens) Giving(ctx context.Context, q pg.Querier, tenant string) ([]model.Token, error) {
	return tokens(ctx, q, `select `+tokenColumns+` from gateway.tokens
		where tenant = $1 and role <> 'none' and (expires is null or expires > now()) order by id limit $2`, tenant,
		maxHolders)
}
