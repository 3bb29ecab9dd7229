// Package tokens makes, lists and revokes bearer tokens of the API.
package tokens

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/audit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

const (
	// tokenMark begins every token, so that one that leaked into a file can be searched for.
	tokenMark = "cht_"
	// opaqueChars of base32 are 60 bits: ids that nobody guesses to be those of a person, short enough to type.
	opaqueChars = 12
)

// Policies says who may do what in a tenant now.
type Policies interface {
	Current(ctx context.Context, tenant string) (*access.Policy, error)
}

// Service makes, lists and revokes tokens.
type Service struct {
	Units    *unit.Runner
	Tokens   *store.Tokens
	Policies Policies
}

// EnsureAdmin makes the token of the configuration the administrator's, or makes one for a new installation and returns
// it. A token that is new, or has another secret than at the last start, is an event in the same transaction, and so is
// one of before that never was; starts that change nothing are none.
func (s *Service) EnsureAdmin(ctx context.Context, given string) (generated string, err error) {
	who := model.Caller{Tenant: events.DefaultTenant, Actor: model.ActorConfiguration}
	err = s.Units.Run(ctx, who, "intent admin token", func(ctx context.Context, u *unit.Work) error {
		admin, err := s.Tokens.EnsureAdmin(ctx, u.Tx, given)
		if err != nil {
			return err
		}
		generated = admin.Generated
		told := admin.Token.ID == "" // it was revoked, which is an event
		if !admin.Changed && !told {
			if told, err = u.Exists(ctx, events.KindAccess, stream(admin.Token.ID)); err != nil {
				return err
			}
		}
		if told {
			return nil
		}
		return u.Append(ctx, stream(admin.Token.ID), created(admin.Token))
	})
	return generated, err
}

// Add makes a token for a person, who is somebody new or has one already. An actor that no token has had is refused:
// ids of people are Chandler's own, so that no name gets into events, and a slip makes no second person.
func (s *Service) Add(ctx context.Context, who model.Caller, in model.AddToken) (model.NewToken, error) {
	made := model.NewToken{
		Token: model.Token{
			ID: opaque("token"), Name: in.Name, Role: in.Role, Actor: in.Actor, CreatedAt: s.Units.Now(),
		},
		Secret: tokenMark + rand.Text() + rand.Text(),
	}
	if in.Actor == "" {
		made.Actor = opaque("person")
	}
	if err := s.checkGiven(ctx, who, in); err != nil {
		return model.NewToken{}, err
	}
	err := s.Units.Once(ctx, who, func(u *unit.Work) error {
		if err := s.checkActor(ctx, u.Tx, who.Tenant, in.Actor); err != nil {
			return err
		}
		if err := s.Tokens.Add(ctx, u.Tx, who.Tenant, made.Token, made.Secret); err != nil {
			return err
		}
		if err := u.Append(ctx, stream(made.ID), created(made.Token)); err != nil {
			return err
		}
		return audit.Record(ctx, u, preview.ActionTokenAdd, aboutToken(made.Token), uuid.Nil)
	})
	if err != nil {
		return model.NewToken{}, err
	}
	return made, nil
}

// checkGiven refuses a token that allows more than who makes it may: its secret is told to them. A token for a person
// who has one already allows what bindings give to that person, too.
func (s *Service) checkGiven(ctx context.Context, who model.Caller, in model.AddToken) error {
	if in.Role != model.RoleNone && !who.Rights.CoverRole(string(in.Role)) {
		return errs.New(errs.Forbidden, "a token of role %q would allow more than you may: nobody gives more than they "+
			"have; make one of role %q, and bind roles to its actor", in.Role, model.RoleNone).At("/role",
			access.RuleEscalation)
	}
	if in.Actor == "" {
		return nil
	}
	policy, err := s.Policies.Current(ctx, who.Tenant)
	if err != nil {
		return err
	}
	if !who.Rights.Cover(policy.RightsOf(access.Identity{Name: in.Actor})) {
		return errs.New(errs.Forbidden, "a token for actor %q would allow more than you may: role bindings give that "+
			"person more than you have", in.Actor).At("/actor", access.RuleEscalation)
	}
	return nil
}

func (s *Service) checkActor(ctx context.Context, q pg.Querier, tenant, actor string) error {
	if actor == "" {
		return nil
	}
	known, err := s.Tokens.Known(ctx, q, tenant, actor)
	if err != nil || known {
		return err
	}
	return errs.New(errs.Invalid, "no token has had the actor %q: leave it out for a person who has none yet",
		actor).At("/actor", "actor-known")
}

// List lists tokens by name, those that are refused by now included.
func (s *Service) List(
	ctx context.Context, who model.Caller, page model.Page,
) (items []model.Token, next []string, err error) {
	var name, id string
	switch len(page.After) {
	case 0:
	case 2: //nolint:mnd // name and id
		name, id = page.After[0], page.After[1]
	default:
		return nil, nil, errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
	}
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		items, err = s.Tokens.Page(ctx, u.Tx, who.Tenant, name, id, page.Limit)
		return err
	})
	if err == nil && len(items) == page.Limit {
		last := items[len(items)-1]
		next = []string{last.Name, last.ID}
	}
	return items, next, err
}

// Giving are the tokens that give a role by themselves.
func (s *Service) Giving(ctx context.Context, who model.Caller) (list []model.Token, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		list, err = s.Tokens.Giving(ctx, u.Tx, who.Tenant)
		return err
	})
	return list, err
}

// Revoke has a token refused from now on. The last one of an administrator stays: nobody could make another one.
func (s *Service) Revoke(ctx context.Context, who model.Caller, id string) error {
	return s.Units.Once(ctx, who, func(u *unit.Work) error {
		locked, err := s.Tokens.Lock(ctx, u.Tx, who.Tenant, id)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(locked, func(t model.Token) bool { return t.ID == id })
		if at < 0 {
			return errs.New(errs.NotFound, "there is no token %q, or it is revoked or expired already", id).At(
				"path.id",
				"token-known")
		}
		ended := locked[at]
		if ended.Role == model.RoleAdmin && len(locked) == 1 {
			return errs.New(errs.Conflict,
				"token %q is the only administrator's token: make another one first, or nobody can make any", id).
				At("path.id", "last-administrator")
		}
		if err := s.Tokens.End(ctx, u.Tx, who.Tenant, id); err != nil {
			return err
		}
		if err := u.Append(ctx, stream(id), events.TokenRevoked{Token: id}); err != nil {
			return err
		}
		return audit.Record(ctx, u, preview.ActionTokenRevoke, aboutToken(ended), uuid.Nil)
	})
}

// stream is the key of a token's events.
func stream(id string) string { return "token/" + id }

func created(t model.Token) events.Payload {
	return events.TokenCreated{Token: t.ID, Role: string(t.Role), Holder: t.Actor}
}

// aboutToken describes a token in the audit, without names.
func aboutToken(t model.Token) string { return fmt.Sprintf("%s %s of %s", t.Role, t.ID, t.Actor) }

func opaque(kind string) string { return kind + "-" + strings.ToLower(rand.Text()[:opaqueChars]) }
