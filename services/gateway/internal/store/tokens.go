package store

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// MinTokenChars is the least length of a token that is given by configuration: below it a token could
// be guessed against the stored hash.
const MinTokenChars = 16

// adminID is the actor of the token that an installation starts with.
const adminID = "token-admin"

// Tokens is who may call the API.
type Tokens struct{ pool *pg.Pool }

// NewTokens returns the tokens of the pool's database.
func NewTokens(pool *pg.Pool) *Tokens { return &Tokens{pool: pool} }

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
		and role = 'admin' and (expires is null or expires > now())`, events.DefaultTenant, adminID)
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
		on conflict do nothing`, events.DefaultTenant, adminID, hash[:])
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
		on conflict (tenant, id) do update set hash = excluded.hash, role = 'admin', expires = null
		where tokens.hash <> excluded.hash`,
		events.DefaultTenant, adminID, hash[:])
	return tag.RowsAffected() > 0, errs.Wrap(errs.KindOf(pg.Err(err)), err, "store the admin token")
}

// Add makes a token known; of secret only the hash is stored.
func (t *Tokens) Add(ctx context.Context, q pg.Querier, tenant string, in model.Token, secret string) error {
	hash := model.HashToken(secret)
	_, err := q.Exec(ctx, `insert into gateway.tokens (tenant, id, hash, name, role, actor, created, expires)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		tenant, in.ID, hash[:], in.Name, string(in.Role), in.Actor, in.CreatedAt, in.EndsAt)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "store token %s", in.ID)
}

// Known says whether a token has, or had, this actor.
func (t *Tokens) Known(ctx context.Context, q pg.Querier, tenant, actor string) (known bool, err error) {
	err = q.QueryRow(ctx, `select exists (select from gateway.tokens where tenant = $1 and coalesce(actor, id) = $2)`,
		tenant, actor).Scan(&known)
	return known, errs.Wrap(errs.KindOf(pg.Err(err)), err, "read the tokens of actor %s", actor)
}

const tokenColumns = `id, name, role, coalesce(actor, id), created, expires`

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

// List names every tenant that has a token, sorted; another one has nobody to see anything.
func (t *Tokens) List(ctx context.Context) ([]string, error) {
	rows, err := t.pool.Query(ctx, `select distinct tenant from gateway.tokens order by tenant`)
	if err != nil {
		return nil, pg.Err(err)
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return tenants, pg.Err(err)
}

// Good returns those of the tokens that nobody has revoked and that have not expired, with the version of roles and
// bindings of their tenants.
func (t *Tokens) Good(ctx context.Context, hashes []model.TokenHash) (map[model.TokenHash]events.Position, error) {
	raw := make([][]byte, len(hashes))
	for i := range hashes {
		raw[i] = hashes[i][:]
	}
	rows, err := t.pool.Query(ctx, `select t.hash, coalesce(v.epoch, 0), coalesce(v.position, 0)
		from gateway.tokens t left join access_versions v on v.tenant = t.tenant
		where t.hash = any ($1) and (t.expires is null or t.expires > now())`, raw)
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, pg.Err(err), "read bearer tokens")
	}
	good := map[model.TokenHash]events.Position{}
	var hash []byte
	var version events.Position
	_, err = pgx.ForEachRow(rows, []any{&hash, &version.Epoch, &version.N}, func() error {
		good[model.TokenHash(hash)] = version
		return nil
	})
	return good, errs.Wrap(errs.Unavailable, pg.Err(err), "read bearer tokens")
}

// Caller returns who holds a token, an error of kind errs.Unauthenticated where nobody does; and at which version of
// roles and bindings that was, which costs no query of its own. A token that is revoked, and a binding that is gone,
// are
// both seen by the next request.
func (t *Tokens) Caller(ctx context.Context, token string) (c model.Caller, version events.Position, err error) {
	hash := model.HashToken(token)
	err = t.pool.QueryRow(ctx, `select t.tenant, coalesce(t.actor, t.id), t.role, t.id,
		coalesce(v.epoch, 0), coalesce(v.position, 0)
		from gateway.tokens t left join access_versions v on v.tenant = t.tenant
		where t.hash = $1 and (t.expires is null or t.expires > now())`, hash[:]).
		Scan(&c.Tenant, &c.Actor, &c.Role, &c.Token, &version.Epoch, &version.N)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, version, errs.New(errs.Unauthenticated, "the bearer token is not known or has expired")
	}
	if err != nil {
		return c, version, errs.Wrap(errs.Unavailable, pg.Err(err), "read the bearer token")
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
