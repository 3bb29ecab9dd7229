// Package cataloghooks makes hooks of catalogs for push notifications, and has the catalogs polled that were pushed to.
package cataloghooks

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// delay is how long a push waits for others: those of one moment become one poll, and a registry
	// that notifies before it serves what was pushed has the time to.
	delay = time.Second
	// quiet is the least time between two polls that pushes ask for: whoever pushes all day long must
	// not fill the log. What comes in between leads to one poll afterwards, so that nothing is missed.
	quiet = 10 * time.Second
	// interval is how often the gateway takes pushes that are due.
	interval = 500 * time.Millisecond
	// batch bounds how many catalogs it takes at a time.
	batch = 64
)

// actorHook takes the place of a person's id in events.
const actorHook = "hook"

// Service makes and deletes hooks, and has the catalogs polled whose hooks were called.
type Service struct {
	Units    *unit.Runner
	Hooks    store.Hooks
	Keys     cataloghook.Keys // that secrets of hooks are derived from; without one there are none
	Catalogs *catalogs.Service
	Slog     *slog.Logger
}

// errTaken ends what another gateway has done already.
var errTaken = errors.New("the push was taken by another gateway")

// Make gives a catalog a hook, or its hook another secret.
func (s *Service) Make(ctx context.Context, who model.Caller, name catalog.Name) (model.CatalogHook, error) {
	if !s.hasKey() {
		return model.CatalogHook{}, errs.New(errs.Unprocessable,
			"this installation has no key for hooks: give the gateway the setting hook-key, which `chandler keys` makes").
			At("/", "hook-key")
	}
	nonce := make([]byte, cataloghook.NonceBytes)
	if _, err := rand.Read(nonce); err != nil {
		return model.CatalogHook{}, errs.Wrap(errs.Internal, err, "draw the nonce of a hook")
	}
	h := cataloghook.Hook{
		Tenant: who.Tenant, Subject: name.Subject(), Nonce: nonce, Created: s.Units.Now(),
		KeyID: s.Keys.ActiveID(),
	}
	err := s.Units.Once(ctx, who, func(u *unit.Work) error {
		found, err := u.Exists(ctx, events.KindCatalog, h.Subject)
		if err == nil && !found {
			err = errs.New(errs.NotFound, "no catalog %q is known", h.Subject)
		}
		if err != nil {
			return err
		}
		if err := s.Hooks.Put(ctx, u.Tx, h); err != nil {
			return err
		}
		return u.Append(ctx, store.HookStream(h.Subject), events.HookCreated{Catalog: h.Subject})
	})
	out := answer(name, h)
	out.Secret = s.Keys.Secrets(h)[0]
	return out, err
}

// Get returns a catalog's hook, without its secret.
func (s *Service) Get(ctx context.Context, who model.Caller, name catalog.Name) (out model.CatalogHook, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		hooks, err := s.Hooks.Of(ctx, u.Tx, who.Tenant, name.Subject())
		if err == nil && len(hooks) == 0 {
			err = errs.New(errs.NotFound, "catalog %q has no hook", name.Subject())
		}
		if err == nil {
			out = answer(name, hooks[0])
		}
		return err
	})
	return out, err
}

// Delete deletes a catalog's hook: its secret is worth nothing from then on.
func (s *Service) Delete(ctx context.Context, who model.Caller, name catalog.Name) error {
	return s.Units.Once(ctx, who, func(u *unit.Work) error {
		gone, err := s.Hooks.Delete(ctx, u.Tx, who.Tenant, name.Subject())
		if err != nil || !gone {
			return err
		}
		return u.Append(ctx, store.HookStream(name.Subject()), events.HookRevoked{Catalog: name.Subject()})
	})
}

func (s *Service) hasKey() bool { return len(s.Keys) > 0 }

func answer(name catalog.Name, h cataloghook.Hook) model.CatalogHook {
	q := url.Values{"hook": {h.ID()}}
	if name.Cluster != "" {
		q.Set("cluster", name.Cluster)
		q.Set("namespace", name.Namespace)
	}
	return model.CatalogHook{Path: "/api/v1/hooks/catalogs/" + name.Name + "?" + q.Encode(), Created: h.Created}
}

// Find finds the hook of a catalog by its id, if what the proof says without a body is right. All else is
// the same errs.Unauthenticated.
func (s *Service) Find(
	ctx context.Context, name catalog.Name, id string, proof cataloghook.Proof,
) (cataloghook.Hook, error) {
	refused := errs.New(errs.Unauthenticated, "no hook of this catalog has this secret")
	nonce, ok := cataloghook.NonceOf(id)
	if !ok || proof.Empty() || !s.hasKey() {
		return cataloghook.Hook{}, refused
	}
	hooks, err := s.Hooks.ByNonce(ctx, s.Units.Work, nonce)
	if err != nil {
		return cataloghook.Hook{}, err
	}
	if len(hooks) == 0 || hooks[0].Subject != name.Subject() ||
		!slices.ContainsFunc(s.Keys.Secrets(hooks[0]), proof.TokenHolds) {
		return cataloghook.Hook{}, refused
	}
	return hooks[0], nil
}

// Push asks for a poll of a catalog's source on behalf of whoever holds the secret of its hook. Nothing else
// can be done with it.
func (s *Service) Push(ctx context.Context, h cataloghook.Hook, proof cataloghook.Proof, body []byte) error {
	holds := func(secret string) bool { return proof.Holds(secret, body) }
	if !slices.ContainsFunc(s.Keys.Secrets(h), holds) {
		return errs.New(errs.Unauthenticated, "no hook of this catalog has this secret")
	}
	return s.Units.Once(ctx, model.Caller{Tenant: h.Tenant, Actor: actorHook}, func(u *unit.Work) error {
		return s.Hooks.Pushed(ctx, u.Tx, h, s.Units.Now(), delay, quiet)
	})
}

// TakePushes asks the indexer to poll the catalogs that were pushed to, until ctx ends. It returns nil.
func (s *Service) TakePushes(ctx context.Context) error {
	if !s.hasKey() {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := s.takePushes(ctx); err != nil && ctx.Err() == nil && !errs.Is(err, errs.Unavailable) {
			s.Slog.WarnContext(ctx, "cannot ask for the poll that a push wants; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) takePushes(ctx context.Context) error {
	due, err := s.Hooks.Due(ctx, s.Units.Work, s.Units.Now(), batch)
	if err != nil {
		return err
	}
	var failed []error
	for _, h := range due {
		failed = append(failed, s.takePush(ctx, h))
	}
	return errors.Join(failed...)
}

func (s *Service) takePush(ctx context.Context, h cataloghook.Hook) error {
	who := model.Caller{Tenant: h.Tenant, Actor: actorHook}
	err := s.Units.Run(ctx, who, "intent catalog", func(ctx context.Context, u *unit.Work) error {
		return s.Catalogs.RefreshIn(ctx, u, catalog.ParseSubject(h.Subject), func(now catalog.State) error {
			mine, err := s.Hooks.Take(ctx, u.Tx, h, u.Now())
			if err == nil && (!mine || !now.Added || now.Spec.Disabled) {
				err = errTaken
			}
			return err
		})
	})
	if !errors.Is(err, errTaken) {
		return err
	}
	// Either another gateway has taken it, or there is nothing to poll: then this ends it.
	return s.Units.Once(ctx, who, func(u *unit.Work) error {
		_, err := s.Hooks.Take(ctx, u.Tx, h, u.Now())
		return err
	})
}
