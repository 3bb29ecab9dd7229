package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
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

// EnsureAdmin makes the given token the admin token. Without one, and only where there is no token at
// all, it makes a new one and returns it; that is the only time that it can be seen.
func (t *Tokens) EnsureAdmin(ctx context.Context, given string) (generated string, err error) {
	if given != "" {
		return "", t.setAdmin(ctx, given)
	}
	token := rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(token))
	tag, err := t.pool.Exec(ctx, `
		insert into gateway.tokens (tenant, id, hash, role) select $1, $2, $3, 'admin'
		where not exists (select from gateway.tokens) on conflict do nothing`,
		events.DefaultTenant, adminID, hash[:])
	if err != nil {
		return "", errs.Wrap(errs.KindOf(pg.Err(err)), err, "store the first admin token")
	}
	if tag.RowsAffected() == 0 {
		return "", nil
	}
	return token, nil
}

func (t *Tokens) setAdmin(ctx context.Context, token string) error {
	if len(token) < MinTokenChars {
		return errs.New(errs.Invalid, "the admin token has %d characters, at least %d are wanted", len(token), MinTokenChars).
			At("admin-token", "min-length")
	}
	hash := sha256.Sum256([]byte(token))
	_, err := t.pool.Exec(ctx, `
		insert into gateway.tokens (tenant, id, hash, role) values ($1, $2, $3, 'admin')
		on conflict (tenant, id) do update set hash = excluded.hash, role = 'admin', expires = null
		where tokens.hash <> excluded.hash or tokens.expires is not null`,
		events.DefaultTenant, adminID, hash[:])
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "store the admin token")
}

// Add makes a token known. It is for tools and tests; the API does not hand out tokens yet.
func (t *Tokens) Add(ctx context.Context, c model.Caller, token string) error {
	hash := sha256.Sum256([]byte(token))
	_, err := t.pool.Exec(ctx, `insert into gateway.tokens (tenant, id, hash, role) values ($1, $2, $3, $4)`,
		c.Tenant, c.Actor, hash[:], string(c.Role))
	return pg.Err(err)
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

// Caller returns who holds a token, an error of kind errs.Unauthenticated where nobody does.
func (t *Tokens) Caller(ctx context.Context, token string) (model.Caller, error) {
	var c model.Caller
	hash := sha256.Sum256([]byte(token))
	err := t.pool.QueryRow(ctx, `select tenant, id, role from gateway.tokens where hash = $1 and (expires is null or expires > now())`, hash[:]).
		Scan(&c.Tenant, &c.Actor, &c.Role)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, errs.New(errs.Unauthenticated, "the bearer token is not known or has expired")
	}
	if err != nil {
		return c, errs.Wrap(errs.Unavailable, pg.Err(err), "look up the bearer token")
	}
	return c, nil
}
