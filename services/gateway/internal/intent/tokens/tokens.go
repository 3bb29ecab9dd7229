// Package tokens makes, lists and revokes bearer tokens of the API.
package tokens

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
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
	// DefaultLife is how long a token is good that says nothing itself: a quarter of a year, after which somebody has
	// looked at it again.
	DefaultLife = 90 * 24 * time.Hour
	// DefaultMaxLife is how long one may be good, unless the settings say otherwise.
	DefaultMaxLife = 366 * 24 * time.Hour
	// LeastMaxLife bounds that setting: a token must outlive a deployment.
	LeastMaxLife = time.Hour
	// GreatestMaxLife bounds it, too: one of ten years has no end for whoever made it.
	GreatestMaxLife = 10 * 366 * 24 * time.Hour
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
	// BreakGlass is about the token that works while nobody can sign in.
	BreakGlass *BreakGlass
	// MaxLife is how long a token may be good; 0 is DefaultMaxLife.
	MaxLife time.Duration
	// configured: the settings give the administrator's token.
	configured atomic.Bool
}

// EnsureAdmin makes the token of the configuration the administrator's, or makes one for a new installation and returns
// it. A token that is new, or has another secret than at the last start, is an event in the same transaction, and so is
// one of before that never was; starts that change nothing are none.
func (s *Service) EnsureAdmin(ctx context.Context, given string) (generated string, err error) {
	s.configured.Store(given != "")
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

// Add makes a token for a person or a program, who is new or has one already. An actor that no token has had is
// refused: ids of people are Chandler's own, so that no name gets into events, and a slip makes no second person.
func (s *Service) Add(ctx context.Context, who model.Caller, in model.AddToken) (model.NewToken, error) {
	made := model.NewToken{
		Token: model.Token{
			ID: unit.Opaque("token"), Name: in.Name, Role: in.Role, Actor: in.Actor,
			Kind: cmp.Or(in.Kind, access.KindUser), CreatedAt: s.Units.Now(),
		},
		Secret: newSecret(),
	}
	if in.Actor == "" {
		made.Actor = unit.NewActor(made.Kind)
	}
	var err error
	if made.EndsAt, err = s.end(made.CreatedAt, in.EndsAt); err != nil {
		return model.NewToken{}, err
	}
	if in.Actor != "" {
		if made.Kind, err = s.kindOf(ctx, who, in); err != nil {
			return model.NewToken{}, err
		}
	}
	if err := s.checkGiven(ctx, who, made.Token, in.Actor != ""); err != nil {
		return model.NewToken{}, err
	}
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
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

func newSecret() string { return tokenMark + rand.Text() + rand.Text() }

// defaultOverlap is how long the secret before a rotation is good, where nobody says: as long as it takes to give the
// new one to whoever uses it.
const defaultOverlap = time.Hour

// Rotate gives a token another secret, and lets the one before go on for a while. Nobody gets a secret this way that
// they could not have made themselves.
func (s *Service) Rotate(
	ctx context.Context, who model.Caller, id string, in model.RotateToken,
) (made model.NewToken, err error) {
	now := s.Units.Now().Truncate(time.Microsecond) // as the database keeps it
	ends, err := s.end(now, in.EndsAt)
	if err != nil {
		return made, err
	}
	previous := now.Add(defaultOverlap)
	if in.OverlapSeconds != nil {
		previous = now.Add(time.Duration(*in.OverlapSeconds) * time.Second)
	}
	if id == store.AdminID && who.Tenant == events.DefaultTenant && s.configured.Load() {
		return made, errs.New(errs.Conflict, "token %q is the one of the configuration, whose secret the next start would "+
			"bring back: give the gateway another CHANDLER_ADMIN_TOKEN", id).At("path.id", "token-of-configuration")
	}
	// What a token allows never changes, so that it can be looked at before the token is locked.
	token, err := s.Get(ctx, who, id)
	if err == nil {
		err = s.checkGiven(ctx, who, token, true)
	}
	if err != nil {
		return made, err
	}
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		locked, err := s.locked(ctx, u, id)
		if err != nil {
			return err
		}
		made = model.NewToken{Token: locked[0], Secret: newSecret()}
		// A rotation lengthens no secret's life.
		for _, end := range []*time.Time{made.EndsAt, ends} {
			if end != nil && end.Before(previous) {
				previous = *end
			}
		}
		made.EndsAt, made.PreviousEndsAt = ends, &previous
		if err := s.Tokens.Rotate(ctx, u.Tx, who.Tenant, id, made.Secret, *ends, previous); err != nil {
			return err
		}
		rotated := events.TokenRotated{Token: id, Ends: *ends, PreviousEnds: previous}
		if err := u.Append(ctx, stream(id), rotated); err != nil {
			return err
		}
		return audit.Record(ctx, u, preview.ActionTokenRotate, aboutToken(made.Token), uuid.Nil)
	})
	if err != nil {
		return model.NewToken{}, err
	}
	return made, nil
}

// locked returns a token that is good, followed by those of other administrators.
func (s *Service) locked(ctx context.Context, u *unit.Work, id string) ([]model.Token, error) {
	list, err := s.Tokens.Lock(ctx, u.Tx, u.Caller.Tenant, id)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(t model.Token) bool { return t.ID == id })
	if at < 0 {
		return nil, errs.New(errs.NotFound, "there is no token %q, or it is revoked or expired already", id).At(
			"path.id", "token-known")
	}
	list[0], list[at] = list[at], list[0]
	return list, nil
}

// Get returns a token, also one that is refused by now.
func (s *Service) Get(ctx context.Context, who model.Caller, id string) (out model.Token, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		out, err = s.Tokens.Find(ctx, u.Tx, who.Tenant, id)
		return err
	})
	if err == nil && out.ID == "" {
		err = errs.New(errs.NotFound, "there is no token %q", id).At("path.id", "token-known")
	}
	return out, err
}

// end is when a token ends: every one does, so that one that is forgotten or lost lets nobody in for good.
func (s *Service) end(now time.Time, given *time.Time) (*time.Time, error) {
	most := cmp.Or(s.MaxLife, DefaultMaxLife)
	if given == nil {
		end := now.Add(min(DefaultLife, most))
		return &end, nil
	}
	if !given.After(now) || given.After(now.Add(most)) {
		return nil, errs.New(errs.Invalid, "the token would end at %s: give a time that is to come, and at most %s from now",
			given.UTC().Format(time.RFC3339), most).At("/endsAt", "token-life")
	}
	end := given.UTC()
	return &end, nil
}

// checkGiven refuses a token that allows more than who makes it may: its secret is told to them. A token for a person
// who has one already allows what bindings give to that person, too.
func (s *Service) checkGiven(ctx context.Context, who model.Caller, t model.Token, known bool) error {
	if t.Role != model.RoleNone && !who.Rights.CoverRole(string(t.Role)) {
		return errs.New(errs.Forbidden, "a token of role %q would allow more than you may: nobody gives more than they "+
			"have; make one of role %q, and bind roles to its actor", t.Role, model.RoleNone).At("/role",
			access.RuleEscalation)
	}
	if !known {
		return nil
	}
	policy, err := s.Policies.Current(ctx, who.Tenant)
	if err != nil {
		return err
	}
	if !who.Rights.Cover(policy.RightsOf(access.Identity{Kind: t.Kind, Name: t.Actor})) {
		return errs.New(errs.Forbidden, "a token for actor %q would allow more than you may: role bindings give "+
			"them more than you have", t.Actor).At("/actor", access.RuleEscalation)
	}
	return nil
}

// kindOf is the kind of an actor who has had a token: all tokens of one actor are of one kind.
func (s *Service) kindOf(ctx context.Context, who model.Caller, in model.AddToken) (kind string, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		kind, err = s.Tokens.KindOf(ctx, u.Tx, who.Tenant, in.Actor)
		return err
	})
	switch {
	case err != nil:
		return "", err
	case kind == "":
		return "", errs.New(errs.Invalid, "no token has had the actor %q: leave it out for a person who has none yet",
			in.Actor).At("/actor", "actor-known")
	case in.Kind != "" && in.Kind != kind:
		return "", errs.New(errs.Invalid, "the actor %q is a %s: a person and a program are never one actor", in.Actor,
			kind).At("/kind", "actor-kind")
	}
	return kind, nil
}

// List lists tokens by name, those that are refused by now included.
func (s *Service) List(
	ctx context.Context, who model.Caller, page model.Page,
) (items []model.Token, next []string, err error) {
	name, id, err := unit.NameAndID(page)
	if err != nil {
		return nil, nil, err
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
		locked, err := s.locked(ctx, u, id)
		if err != nil {
			return err
		}
		ended := locked[0]
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
	e := events.TokenCreated{Token: t.ID, Role: string(t.Role), Holder: t.Actor}
	if t.Kind != access.KindUser {
		e.Kind = t.Kind
	}
	if t.EndsAt != nil {
		e.Ends = *t.EndsAt
	}
	return e
}

// aboutToken describes a token in the audit, without names.
func aboutToken(t model.Token) string { return fmt.Sprintf("%s %s of %s", t.Role, t.ID, t.Actor) }
