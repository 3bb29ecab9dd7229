package intent

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

const (
	// tokenMark begins every token, so that one that leaked into a file can be searched for.
	tokenMark = "cht_"
	// opaqueChars of base32 are 60 bits: ids that nobody guesses to be those of a person, short enough to type.
	opaqueChars = 12
)

// Tokens stores who may call the API. Lock returns a token and every administrator's, as far as they are not refused
// by now; until the transaction ends nobody else can End one of them.
type Tokens interface {
	Add(ctx context.Context, q pg.Querier, tenant string, t model.Token, secret string) error
	Known(ctx context.Context, q pg.Querier, tenant, actor string) (bool, error)
	Page(ctx context.Context, q pg.Querier, tenant, name, id string, limit int) ([]model.Token, error)
	Lock(ctx context.Context, tx pgx.Tx, tenant, id string) ([]model.Token, error)
	End(ctx context.Context, tx pgx.Tx, tenant, id string) error
}

// AddToken makes a token for a person, who is somebody new or has one already. An actor that no token has had is refused:
// ids of people are Chandler's own, so that no name gets into events, and a slip makes no second person.
func (s *Service) AddToken(ctx context.Context, who model.Caller, in model.AddToken) (model.NewToken, error) {
	made := model.NewToken{
		Token:  model.Token{ID: opaque("token"), Name: in.Name, Role: in.Role, Actor: in.Actor, CreatedAt: s.Now().UTC()},
		Secret: tokenMark + rand.Text() + rand.Text(),
	}
	if in.Actor == "" {
		made.Actor = opaque("person")
	}
	err := s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		if err := s.checkActor(ctx, tx, who.Tenant, in.Actor); err != nil {
			return err
		}
		if err := s.Tokens.Add(ctx, tx, who.Tenant, made.Token, made.Secret); err != nil {
			return err
		}
		return s.audit(ctx, tx, who, preview.ActionTokenAdd, aboutToken(made.Token), uuid.Nil)
	})
	if err != nil {
		return model.NewToken{}, err
	}
	return made, nil
}

func (s *Service) checkActor(ctx context.Context, q pg.Querier, tenant, actor string) error {
	if actor == "" {
		return nil
	}
	known, err := s.Tokens.Known(ctx, q, tenant, actor)
	if err != nil || known {
		return err
	}
	return errs.New(errs.Invalid, "no token has had the actor %q: leave it out for a person who has none yet", actor).At("/actor", "actor-known")
}

// ListTokens lists tokens by name, those that are refused by now included.
func (s *Service) ListTokens(ctx context.Context, who model.Caller, page model.Page) (items []model.Token, next []string, err error) {
	var name, id string
	switch len(page.After) {
	case 0:
	case 2: //nolint:mnd // name and id
		name, id = page.After[0], page.After[1]
	default:
		return nil, nil, errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
	}
	err = s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		items, err = s.Tokens.Page(ctx, tx, who.Tenant, name, id, page.Limit)
		return err
	})
	if err == nil && len(items) == page.Limit {
		last := items[len(items)-1]
		next = []string{last.Name, last.ID}
	}
	return items, next, err
}

// RevokeToken has a token refused from now on. The last one of an administrator stays: nobody could make another one.
func (s *Service) RevokeToken(ctx context.Context, who model.Caller, id string) error {
	return s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		locked, err := s.Tokens.Lock(ctx, tx, who.Tenant, id)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(locked, func(t model.Token) bool { return t.ID == id })
		if at < 0 {
			return errs.New(errs.NotFound, "there is no token %q, or it is refused already", id).At("path.id", "token-known")
		}
		ended := locked[at]
		if ended.Role == model.RoleAdmin && len(locked) == 1 {
			return errs.New(errs.Conflict, "token %q is the only one of an administrator: make another one first, or nobody can make any", id).
				At("path.id", "last-administrator")
		}
		if err := s.Tokens.End(ctx, tx, who.Tenant, id); err != nil {
			return err
		}
		return s.audit(ctx, tx, who, preview.ActionTokenRevoke, aboutToken(ended), uuid.Nil)
	})
}

// aboutToken is what the record of questions says of a token: no names.
func aboutToken(t model.Token) string { return fmt.Sprintf("%s %s of %s", t.Role, t.ID, t.Actor) }

func opaque(kind string) string { return kind + "-" + strings.ToLower(rand.Text()[:opaqueChars]) }
