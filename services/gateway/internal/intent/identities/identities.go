// Package identities knows who signs in at providers of OpenID Connect: each person there has an actor of Chandler's
// own, which events, approvals and bindings name.
package identities

import (
	"cmp"
	"context"
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

// seenEvery is how exactly it is known when somebody was seen, and by what name: a request more often writes nothing.
const seenEvery = time.Hour

// Policies says who may do what in a tenant now.
type Policies interface {
	Current(ctx context.Context, tenant string) (*access.Policy, error)
}

// Service knows identities.
type Service struct {
	Units      *unit.Runner
	Identities *store.Identities
	Tokens     *store.Tokens
	Policies   Policies
}

// SignedIn finds the identity of whom a provider vouches for, with the version of roles and bindings at that moment.
// Somebody who was never seen becomes known: an actor is made for them, which is an event. An identity that is
// disabled lets nobody in.
func (s *Service) SignedIn(ctx context.Context, p model.Person) (model.Identity, events.Position, error) {
	subject := model.SubjectOf(p.Issuer, p.Subject)
	i, version, err := s.Identities.Find(ctx, p.Tenant, subject)
	if err == nil && i.ID == "" {
		if err = s.add(ctx, p, subject); err == nil {
			i, version, err = s.Identities.Find(ctx, p.Tenant, subject)
		}
	}
	if err != nil {
		return i, version, err
	}
	if i.Disabled {
		return i, version, errs.New(errs.Unauthenticated, "identity %s is disabled: an administrator enables it", i.ID)
	}
	// Two programs may call one person by two names: that is no reason to write at each request.
	if now := s.Units.Now(); now.Sub(i.SeenAt) >= seenEvery {
		name := cmp.Or(p.Name, i.Name)
		if err := s.Identities.Seen(ctx, p.Tenant, i.ID, name, now.Truncate(seenEvery)); err != nil {
			s.Units.Slog.WarnContext(ctx, "it is not noted that an identity was seen", "identity", i.ID, "error", err)
		}
	}
	return i, version, nil
}

// add makes an identity known. Of two gateways that see somebody at the same moment the second finds what the first
// has made.
func (s *Service) add(ctx context.Context, p model.Person, subject model.Subject) error {
	now := s.Units.Now()
	i := model.Identity{
		ID: unit.Opaque("identity"), Provider: p.Provider, Name: p.Name, Actor: unit.Opaque("person"), CreatedAt: now,
		SeenAt: now.Truncate(seenEvery),
	}
	who := model.Caller{Tenant: p.Tenant, Actor: i.Actor}
	return s.Units.Run(ctx, who, "intent identity", func(ctx context.Context, u *unit.Work) error {
		added, err := s.Identities.Add(ctx, u.Tx, p.Tenant, subject, i)
		if err != nil || !added {
			return err
		}
		return u.Append(ctx, stream(i.ID), defined(i))
	})
}

// List lists identities by name.
func (s *Service) List(
	ctx context.Context, who model.Caller, page model.Page,
) (items []model.Identity, next []string, err error) {
	name, id, err := unit.NameAndID(page)
	if err != nil {
		return nil, nil, err
	}
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		items, err = s.Identities.Page(ctx, u.Tx, who.Tenant, name, id, page.Limit)
		return err
	})
	if err == nil && len(items) == page.Limit {
		last := items[len(items)-1]
		next = []string{last.Name, last.ID}
	}
	return items, next, err
}

// Configure says whose an identity is, and whether it lets anybody in. Nobody makes it that of a person who may do more
// than they may themselves: they could ask the provider for a token of it.
func (s *Service) Configure(
	ctx context.Context, who model.Caller, id string, in model.ConfigureIdentity,
) (out model.Identity, err error) {
	if err := s.checkGiven(ctx, who, in.Actor); err != nil {
		return out, err
	}
	err = s.Units.Run(ctx, who, "intent identity", func(ctx context.Context, u *unit.Work) error {
		if out, err = s.Identities.Lock(ctx, u.Tx, who.Tenant, id); err != nil {
			return err
		}
		before := out
		if in.Actor != "" {
			out.Actor = in.Actor
		}
		if in.Disabled != nil {
			out.Disabled = *in.Disabled
		}
		if out == before {
			return nil
		}
		if err := s.checkActor(ctx, u, in.Actor); err != nil {
			return err
		}
		if err := s.Identities.Set(ctx, u.Tx, who.Tenant, out); err != nil {
			return err
		}
		if err := u.Append(ctx, stream(id), defined(out)); err != nil {
			return err
		}
		return audit.Record(ctx, u, preview.ActionIdentity, id+" of "+out.Actor, uuid.Nil)
	})
	return out, err
}

func (s *Service) checkGiven(ctx context.Context, who model.Caller, actor string) error {
	if actor == "" || who.May(access.Bind, access.Roles, access.Target{}) {
		return nil
	}
	policy, err := s.Policies.Current(ctx, who.Tenant)
	if err != nil {
		return err
	}
	if !who.Rights.Cover(policy.RightsOf(access.Identity{Name: actor})) {
		return errs.New(errs.Forbidden, "an identity of actor %q would allow more than you may: role bindings give that "+
			"person more than you have", actor).At("/actor", access.RuleEscalation)
	}
	return nil
}

// checkActor refuses an actor that nobody has: a slip would make a second person.
func (s *Service) checkActor(ctx context.Context, u *unit.Work, actor string) error {
	if actor == "" {
		return nil
	}
	kind, err := s.Tokens.KindOf(ctx, u.Tx, u.Caller.Tenant, actor)
	if kind == access.KindServiceAccount {
		return errs.New(errs.Invalid, "the actor %q is a ServiceAccount: a person and a program are never one actor",
			actor).At("/actor", "actor-kind")
	}
	known := kind != ""
	if err == nil && !known {
		known, err = s.Identities.Known(ctx, u.Tx, u.Caller.Tenant, actor)
	}
	if err != nil || known {
		return err
	}
	return errs.New(errs.Invalid, "no token and no identity has had the actor %q", actor).At("/actor", "actor-known")
}

// stream is the key of an identity's events.
func stream(id string) string { return "identity/" + id }

func defined(i model.Identity) events.Payload {
	return events.IdentityDefined{Identity: i.ID, Provider: i.Provider, Holder: i.Actor, Disabled: i.Disabled}
}
