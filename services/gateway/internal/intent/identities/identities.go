// Package identities knows who signs in at providers of OpenID Connect, and which machines show certificates: each has
// an actor of Chandler's own, which events, approvals and bindings name.
package identities

import (
	"cmp"
	"context"
	"errors"
	"sync"
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
	// seenEvery is how exactly it is known when somebody was seen, and by what name: a request more often writes
	// nothing.
	seenEvery = time.Hour
	// newWithin is the time in which new identities are counted.
	newWithin = time.Hour
	// DefaultMostNew is how many identities one provider or authority makes known within that time: the people of a
	// large house on the first morning. Each is a row and an event for good, whoever has taken the provider over.
	DefaultMostNew = 1000
	// MaxMostNew bounds the setting: beyond it nothing is bounded.
	MaxMostNew = 1_000_000
	// toldEvery is how often it is logged that a provider makes no more identities known.
	toldEvery = time.Minute
)

// RuleNew is the rule that a provider makes so many identities known within an hour.
const RuleNew = "new-identities"

// Refused says whether an error is that of a provider or authority that may make no more identities known for now.
func Refused(err error) bool {
	e, ok := errors.AsType[*errs.Error](err)
	return ok && e.Rule == RuleNew
}

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
	MostNew    int // that one provider or authority makes known within an hour; 0 is DefaultMostNew

	mu   sync.Mutex
	told map[string]time.Time // when it was logged of a provider that it makes no more known
}

// SignedIn finds the identity of whom a provider or an authority vouches for, with the version of roles and bindings at
// that moment. Somebody who was never seen becomes known: an actor is made for them, which is an event. An identity
// that is disabled lets nobody in.
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
	kind := cmp.Or(p.Kind, access.KindUser)
	i := model.Identity{
		ID: unit.Opaque("identity"), Kind: kind, Provider: p.Provider, Name: p.Name, Actor: unit.NewActor(kind),
		CreatedAt: now, SeenAt: now.Truncate(seenEvery),
	}
	who := model.Caller{Tenant: p.Tenant, Actor: i.Actor}
	// First without the lock, so that a flood of names does not wait in line with a connection each.
	if err := s.Units.Once(ctx, who, func(u *unit.Work) error { return s.room(ctx, u, p) }); err != nil {
		return err
	}
	return s.Units.Run(ctx, who, "intent identity", func(ctx context.Context, u *unit.Work) error {
		if err := s.Identities.LockNew(ctx, u.Tx, p.Tenant, p.Provider); err != nil {
			return err
		}
		if err := s.room(ctx, u, p); err != nil {
			return err
		}
		added, err := s.Identities.Add(ctx, u.Tx, p.Tenant, subject, i)
		if err != nil || !added {
			return err
		}
		return u.Append(ctx, stream(i.ID), defined(i))
	})
}

// room refuses another new identity of a provider or authority that made as many known lately as it may.
func (s *Service) room(ctx context.Context, u *unit.Work, p model.Person) error {
	most := cmp.Or(s.MostNew, DefaultMostNew)
	n, err := s.Identities.NewSince(ctx, u.Tx, p.Tenant, p.Provider, u.Now().Add(-newWithin), most)
	if err != nil || n < most {
		return err
	}
	s.tell(ctx, p, most)
	return errs.New(errs.Unavailable, "%s vouched for %d identities within an hour that were not known before, which is all "+
		"that the setting new-identities allows: who is known goes on, and others are let in later", p.Provider, most).
		At("", RuleNew)
}

// tell logs now and then that a provider makes no more identities known.
func (s *Service) tell(ctx context.Context, p model.Person, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = map[string]time.Time{}
	}
	if now := s.Units.Now(); now.Sub(s.told[p.Provider]) >= toldEvery {
		s.told[p.Provider] = now
		s.Units.Slog.WarnContext(ctx, "no more identities of this provider or authority become known for now", "provider",
			p.Provider, "tenant", p.Tenant, "new-identities", most)
	}
}

// Observe shows as a gauge how many providers and authorities may make no more identities known, until ctx ends.
func (s *Service) Observe(ctx context.Context) error {
	return s.Identities.ObserveFull(ctx, newWithin, cmp.Or(s.MostNew, DefaultMostNew))
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
// than they may themselves: they could ask the provider for a token of it, or the authority for a certificate.
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
		if err := s.checkActor(ctx, u, out.Kind, in.Actor); err != nil {
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
	for _, kind := range []string{access.KindUser, access.KindServiceAccount} {
		if !who.Rights.Cover(policy.RightsOf(access.Identity{Kind: kind, Name: actor})) {
			return errs.New(errs.Forbidden, "an identity of actor %q would allow more than you may: role bindings give that "+
				"actor more than you have", actor).At("/actor", access.RuleEscalation)
		}
	}
	return nil
}

// checkActor refuses an actor that nobody has, since a slip would make another one, and one of another kind.
func (s *Service) checkActor(ctx context.Context, u *unit.Work, kind, actor string) error {
	if actor == "" {
		return nil
	}
	is, err := s.Tokens.KindOf(ctx, u.Tx, u.Caller.Tenant, actor)
	if err == nil && is == "" {
		is, err = s.Identities.KindOf(ctx, u.Tx, u.Caller.Tenant, actor)
	}
	switch {
	case err != nil:
		return err
	case is == "":
		return errs.New(errs.Invalid, "no token and no identity has had the actor %q", actor).At("/actor", "actor-known")
	case is != kind:
		return errs.New(errs.Invalid, "the actor %q is a %s, and the identity that of a %s: a person and a program are never "+
			"one actor", actor, is, kind).At("/actor", "actor-kind")
	}
	return nil
}

// stream is the key of an identity's events.
func stream(id string) string { return "identity/" + id }

func defined(i model.Identity) events.Payload {
	e := events.IdentityDefined{Identity: i.ID, Provider: i.Provider, Holder: i.Actor, Disabled: i.Disabled}
	if i.Kind != access.KindUser {
		e.Kind = i.Kind
	}
	return e
}
