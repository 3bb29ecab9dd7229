package intent

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// hookDelay is how long a push waits for others: those of one moment become one look, and a registry
	// that tells of a push before it serves it has the time to.
	hookDelay = time.Second
	// hookQuiet is the least time between two looks that pushes ask for: whoever pushes all day long must
	// not fill the log. What comes in between leads to one look afterwards, so that nothing is missed.
	hookQuiet = 10 * time.Second
	// hookTurn is how often the gateway looks for pushes that are due.
	hookTurn = 500 * time.Millisecond
	// hookBatch bounds how many catalogs one turn takes.
	hookBatch = 64
)

// actorHook stands where a person's id stands in what people decide.
const actorHook = "hook"

// errTaken ends what another gateway has done already.
var errTaken = errors.New("the push was taken by another gateway")

// MakeHook gives a catalog a hook, or its hook another secret.
func (s *Service) MakeHook(ctx context.Context, who model.Caller, name catalog.Name) (model.CatalogHook, error) {
	if !s.hasHookKey() {
		return model.CatalogHook{}, errs.New(errs.Unprocessable, "this installation has no key for hooks: give the gateway the setting hook-key, which `chandler keys` makes").
			At("/", "hook-key")
	}
	nonce := make([]byte, cataloghook.NonceBytes)
	if _, err := rand.Read(nonce); err != nil {
		return model.CatalogHook{}, errs.Wrap(errs.Internal, err, "draw the nonce of a hook")
	}
	h := cataloghook.Hook{Tenant: who.Tenant, Subject: name.Subject(), Nonce: nonce, Created: s.Now().UTC()}
	err := s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		head, err := s.Log.Latest(ctx, tx, who.Tenant, catalogs.kind, h.Subject)
		if err == nil && !head.Exists() {
			err = errs.New(errs.NotFound, "no catalog %q is known", h.Subject)
		}
		if err != nil {
			return err
		}
		return s.Hooks.Put(ctx, tx, h)
	})
	out := hookAnswer(name, h)
	out.Secret = s.hookSecret(h)
	return out, err
}

// CatalogHook tells of a catalog's hook, without its secret.
func (s *Service) CatalogHook(ctx context.Context, who model.Caller, name catalog.Name) (out model.CatalogHook, err error) {
	err = s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		hooks, err := s.Hooks.Of(ctx, tx, who.Tenant, name.Subject())
		if err == nil && len(hooks) == 0 {
			err = errs.New(errs.NotFound, "catalog %q has no hook", name.Subject())
		}
		if err == nil {
			out = hookAnswer(name, hooks[0])
		}
		return err
	})
	return out, err
}

// EndHook ends a catalog's hook: its secret is worth nothing any more.
func (s *Service) EndHook(ctx context.Context, who model.Caller, name catalog.Name) error {
	return s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error { return s.Hooks.Delete(ctx, tx, who.Tenant, name.Subject()) })
}

func (s *Service) hasHookKey() bool { return len(s.HookKey) >= cataloghook.MinKey }

func hookAnswer(name catalog.Name, h cataloghook.Hook) model.CatalogHook {
	q := url.Values{"hook": {h.ID()}}
	if name.Cluster != "" {
		q.Set("cluster", name.Cluster)
		q.Set("namespace", name.Namespace)
	}
	return model.CatalogHook{Path: "/api/v1/hooks/catalogs/" + name.Name + "?" + q.Encode(), Created: h.Created}
}

// FindHook finds the hook of a catalog by its id, if what the proof says without a body is right. All else is
// the same errs.Unauthenticated.
func (s *Service) FindHook(ctx context.Context, name catalog.Name, id string, proof cataloghook.Proof) (cataloghook.Hook, error) {
	refused := errs.New(errs.Unauthenticated, "no hook of this catalog has this secret")
	nonce, ok := cataloghook.NonceOf(id)
	if !ok || proof.Empty() || !s.hasHookKey() {
		return cataloghook.Hook{}, refused
	}
	hooks, err := s.Hooks.ByNonce(ctx, s.Pool, nonce)
	if err != nil {
		return cataloghook.Hook{}, err
	}
	if len(hooks) == 0 || hooks[0].Subject != name.Subject() || !proof.TokenHolds(s.hookSecret(hooks[0])) {
		return cataloghook.Hook{}, refused
	}
	return hooks[0], nil
}

// Push asks for a look at a catalog's source on behalf of whoever holds the secret of its hook. Nothing else
// can be done with it.
func (s *Service) Push(ctx context.Context, h cataloghook.Hook, proof cataloghook.Proof, body []byte) error {
	if !s.hasHookKey() || !proof.Holds(s.hookSecret(h), body) {
		return errs.New(errs.Unauthenticated, "no hook of this catalog has this secret")
	}
	return s.Pool.TenantTx(ctx, h.Tenant, func(tx pgx.Tx) error {
		return s.Hooks.Pushed(ctx, tx, h, s.Now().UTC(), hookDelay, hookQuiet)
	})
}

func (s *Service) hookSecret(h cataloghook.Hook) string {
	return cataloghook.Secret(s.HookKey, h.Tenant, h.Subject, h.Nonce)
}

// TakePushes has looked at what was pushed, until ctx ends. It returns nil.
func (s *Service) TakePushes(ctx context.Context) error {
	if !s.hasHookKey() {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(hookTurn)
	defer tick.Stop()
	for {
		if err := s.takePushes(ctx); err != nil && ctx.Err() == nil && !errs.Is(err, errs.Unavailable) {
			s.Slog.WarnContext(ctx, "cannot ask for the look that a push wants; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) takePushes(ctx context.Context) error {
	due, err := s.Hooks.Due(ctx, s.Pool, s.Now().UTC(), hookBatch)
	if err != nil {
		return err
	}
	var failed []error
	for _, h := range due {
		name := catalog.ParseSubject(h.Subject)
		_, err := s.onCatalog(ctx, model.Caller{Tenant: h.Tenant, Actor: actorHook}, name,
			func(ctx context.Context, tx pgx.Tx, now catalog.State) (catalog.Command, error) {
				mine, err := s.Hooks.Take(ctx, tx, h, s.Now().UTC())
				if err == nil && (!mine || !now.Added || now.Spec.Disabled) {
					err = errTaken
				}
				return catalog.Refresh{}, err
			})
		if errors.Is(err, errTaken) {
			// Either another gateway has taken it, or there is nothing to look at: then this ends it.
			err = s.Pool.TenantTx(ctx, h.Tenant, func(tx pgx.Tx) error {
				_, err := s.Hooks.Take(ctx, tx, h, s.Now().UTC())
				return err
			})
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
