package tokens

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// BreakGlassLife is how long one reason lets the token in: long enough to set right what is wrong, and short enough
	// that no use goes on for hours without another event.
	BreakGlassLife = time.Hour
	// toldFor is how long everybody is told of a use after its end: who was away over night sees it.
	toldFor = 24 * time.Hour
)

// BreakGlass makes, opens and revokes break-glass tokens.
type BreakGlass struct {
	Units *unit.Runner
	Store store.BreakGlass
	Slog  *slog.Logger
}

// Create makes the token of the caller's tenant. The one before is refused from then on.
func (s *BreakGlass) Create(ctx context.Context, who model.Caller) (made model.NewBreakGlass, err error) {
	if !who.Rights.CoverRole(access.RoleAdmin) {
		return made, errs.New(errs.Forbidden, "a break-glass token has the rights of %s, which are more than yours: nobody "+
			"gives more than they have", access.RoleAdmin).At("", access.RuleEscalation)
	}
	err = s.Units.Run(ctx, who, "intent break-glass token", func(ctx context.Context, u *unit.Work) error {
		before, err := s.Store.Get(ctx, u.Tx, who.Tenant, u.Now(), true)
		if err != nil {
			return err
		}
		if before.Good {
			if err := u.Append(ctx, stream(before.ID), events.TokenRevoked{Token: before.ID}); err != nil {
				return err
			}
		}
		made = model.NewBreakGlass{
			BreakGlass: model.BreakGlass{ID: unit.Opaque("break-glass"), Good: true, CreatedAt: u.Now()},
			Secret:     model.BreakGlassMark + rand.Text() + rand.Text(),
		}
		if err := s.Store.Set(ctx, u.Tx, who.Tenant, made.BreakGlass, made.Secret); err != nil {
			return err
		}
		return u.Append(ctx, stream(made.ID), events.TokenCreated{
			Token: made.ID, Role: access.RoleAdmin, Holder: made.ID, BreakGlass: true,
		})
	})
	if err != nil {
		return model.NewBreakGlass{}, err
	}
	return made, nil
}

// Get returns the token of the caller's tenant, with why it was used last.
func (s *BreakGlass) Get(ctx context.Context, who model.Caller) (out model.BreakGlass, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		if out, err = s.Store.Get(ctx, u.Tx, who.Tenant, u.Now(), false); err != nil || out.Reason == "" {
			return err
		}
		reason, err := bodies.Read(ctx, u, out.Reason)
		out.Reason = string(reason)
		return err
	})
	if err == nil && out.ID == "" {
		err = errNone()
	}
	return out, err
}

// Held returns the token of the caller's tenant without why it was used; without an id where there is none that is
// good.
func (s *BreakGlass) Held(ctx context.Context, who model.Caller) (out model.BreakGlass, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		out, err = s.Store.Get(ctx, u.Tx, who.Tenant, u.Now(), false)
		return err
	})
	if !out.Good {
		return model.BreakGlass{}, err
	}
	out.Reason = ""
	return out, err
}

func errNone() error {
	return errs.New(errs.NotFound, "the tenant has no break-glass token: chandler auth break-glass create makes one")
}

// Revoke has the token refused from now on, also in a session.
func (s *BreakGlass) Revoke(ctx context.Context, who model.Caller) error {
	return s.Units.Run(ctx, who, "intent break-glass token", func(ctx context.Context, u *unit.Work) error {
		now, err := s.Store.Get(ctx, u.Tx, who.Tenant, u.Now(), true)
		if err != nil {
			return err
		}
		if !now.Good {
			return errNone()
		}
		if err := s.Store.Revoke(ctx, u.Tx, who.Tenant, u.Now()); err != nil {
			return err
		}
		return u.Append(ctx, stream(now.ID), events.TokenRevoked{Token: now.ID})
	})
}

// Open lets the token in for BreakGlassLife. Only who holds it may; the event is in the same transaction, so that
// nothing is done or read with the token that no event tells of.
func (s *BreakGlass) Open(
	ctx context.Context, who model.Caller, in model.OpenBreakGlass,
) (use model.BreakGlassUse, err error) {
	if !who.BreakGlass {
		return use, errs.New(errs.Conflict, "only the break-glass token itself opens a session of it").At(
			"header.Authorization", "break-glass-token")
	}
	err = s.Units.Run(ctx, who, "intent break-glass session", func(ctx context.Context, u *unit.Work) error {
		token, err := s.Store.Get(ctx, u.Tx, who.Tenant, u.Now(), true)
		if err != nil {
			return err
		}
		if !token.Good || token.ID != who.Token { // meanwhile
			return errs.New(errs.Unauthenticated, "the break-glass token was revoked")
		}
		use = model.BreakGlassUse{Open: true, Since: u.Now().Truncate(time.Microsecond)} // as the database keeps it
		use.Until = use.Since.Add(BreakGlassLife)
		if token.Use != nil && token.Use.Open {
			use.Since = token.Use.Since
		}
		reason, err := bodies.Commit(ctx, u, store.KindPlanReason, []byte(in.Reason), "")
		if err != nil {
			return err
		}
		if err := s.Store.Open(ctx, u.Tx, who.Tenant, use, reason); err != nil {
			return err
		}
		return u.Append(ctx, stream(token.ID), events.BreakGlassUsed{
			Token: token.ID, Reason: reason, Ends: use.Until,
		})
	})
	if err != nil {
		return model.BreakGlassUse{}, err
	}
	s.Slog.WarnContext(ctx, "the break-glass token is in use", "tenant", who.Tenant, "token", who.Token,
		"until", use.Until)
	return use, nil
}

// Told is the use that everybody of a tenant is told of: one that goes on, or ended a while ago. Nil where there is
// none.
func (s *BreakGlass) Told(ctx context.Context, who model.Caller) (use *model.BreakGlassUse, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		token, err := s.Store.Get(ctx, u.Tx, who.Tenant, u.Now(), false)
		if err == nil && token.Use != nil && u.Now().Before(token.Use.Until.Add(toldFor)) {
			use = token.Use
		}
		return err
	})
	return use, err
}
