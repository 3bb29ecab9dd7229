// Package app wires the gateway: the REST interface over intents and read models, the projections
// that keep these, and its candidate for the sequencer.
//
// It starts in this order: Postgres (waited for), the schema (refused where it does not fit), NATS
// (waited for), Postgres for requests, tokens, listeners. It stops in reverse: requests and streams first.
package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/service/platform"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/gateway/internal/accesslog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/api"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/clientcert"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/oidc"
	"github.com/chandler-fleet/chandler/services/gateway/internal/installerclient"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/quotas"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/webhooks"
	"github.com/chandler-fleet/chandler/services/gateway/internal/pages"
	"github.com/chandler-fleet/chandler/services/gateway/internal/resolverclient"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/eventlist"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// App is the service.
type App struct {
	*platform.Platform

	cfg         Config
	requests    *pg.Pool // sees one tenant at a time
	listener    net.Listener
	secure      net.Listener // with TLS; nil without one
	models      []projection.Projection
	projections []*projection.Runner
	unused      *projection.Sweeper
	intents     *intent.Services
	api         http.Handler
	tail        *eventlist.Tail
	access      *accesslog.Log
	sealer      *store.Sealer
	verifier    *oidc.Verifier
	keys        *store.Keys
	deliverer   *webhooks.Deliverer
	quotas      *quotas.Service
}

// New connects to Postgres and NATS, waiting for either while it is away, and begins to listen.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (*App, error) {
	parts, err := readParts(cfg)
	if err != nil {
		return nil, err
	}
	if _, _, err := cfg.requestsURL(); err != nil { // a wrong setting is told before Postgres is waited for
		return nil, err
	}
	models := view.Projections()
	if cfg.tests.models != nil {
		models = cfg.tests.models(models)
	}
	p, err := platform.Open(ctx, "gateway", cfg.Base(), tel,
		platform.WithPool(pg.WithMaxConns(pg.WorkConns), pg.WithSearchPath(view.Places(models)...)))
	if err != nil {
		return nil, err
	}
	a := &App{Platform: p, cfg: cfg, models: models}
	if a.requests, err = openRequests(ctx, a.Platform, cfg, models); err != nil {
		a.Close()
		return nil, err
	}
	if err := a.start(ctx, parts); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

func (a *App) start(ctx context.Context, p parts) error {
	tokens := store.NewTokens(a.Pool)
	tokens.Slog = a.Telemetry.Log
	if err := a.assemble(p, tokens); err != nil {
		return err
	}
	var models []string
	for _, r := range a.projections {
		models = append(models, r.Keeps())
	}
	if err := a.Keeps(ctx, models); err != nil {
		return err
	}
	if err := a.ensureAdmin(ctx); err != nil {
		return err
	}
	// Before anything is stored. While a process of an older release lives, bodies are stored in the clear.
	if _, err := a.sealer.Begin(ctx); err != nil {
		return err
	}
	// Before anybody is served, so that they are there from the first start. What goes wrong is tried again.
	if err := a.intents.Catalogs.EnsureDefaults(ctx); err != nil {
		a.Telemetry.Log.ErrorContext(ctx, "default catalogs are not what the configuration says; trying again", "error",
			err)
	}
	return a.listen(ctx, len(p.authorities) > 0)
}

// listen begins to listen. Certificates of clients are asked for where an authority is set, and checked with each
// request: what is refused then has an answer, and is in the access log.
func (a *App) listen(ctx context.Context, machines bool) (err error) {
	if a.listener, err = httpserver.Listen(ctx, a.cfg.Listen); err != nil || a.cfg.TLS.Listen == "" {
		return err
	}
	config, err := httpserver.NewTLS("tls", a.cfg.TLS.Certificate, a.cfg.TLS.Key, func(err error) {
		a.Telemetry.Log.Error("a newer certificate of the REST interface cannot be used; the one before stays", "error", err)
	})
	if err != nil {
		return err
	}
	if machines {
		config.ClientAuth = tls.RequestClientCert
	}
	plain, err := httpserver.Listen(ctx, a.cfg.TLS.Listen)
	if err != nil {
		return err
	}
	a.secure = tls.NewListener(plain, config)
	return nil
}

// ensureAdmin prints a token that was made to standard error: it is a secret, which the log must not hold.
func (a *App) ensureAdmin(ctx context.Context) error {
	token, err := a.intents.Tokens.EnsureAdmin(ctx, a.cfg.AdminToken)
	if err != nil || token == "" {
		return err
	}
	out := a.cfg.TokenTo
	if out == nil {
		out = os.Stderr
	}
	if _, err := fmt.Fprintf(out, "admin token (shown once): %s\n", token); err != nil {
		return fmt.Errorf("print the admin token: %w", err)
	}
	return nil
}

// project makes the projections, and returns who waits for what they have folded.
func (a *App) project() (map[string]view.Waiter, error) {
	waiters := map[string]view.Waiter{}
	for _, v := range a.models {
		r, err := projection.New(v, projection.Deps{Log: a.Log, Pool: a.Pool, Bus: a.Bus, Logger: a.Telemetry.Log})
		if err != nil {
			return nil, err
		}
		a.projections = append(a.projections, r)
		waiters[v.Name] = r
	}
	return waiters, nil
}

func (a *App) assemble(p parts, tokens *store.Tokens) error {
	waiters, err := a.project()
	if err != nil {
		return err
	}
	if a.access, err = accesslog.New(a.Pool, a.requests, cmp.Or(a.cfg.Keep.AccessLog, accesslog.DefaultRetention),
		a.cfg.Keep.LegalHold, a.Telemetry.Log); err != nil {
		return err
	}
	kept, err := a.keep(p)
	if err != nil {
		return err
	}
	opening, err := readmodel.OpenBodies(p.bodies, a.Telemetry.Log)
	if err != nil {
		return err
	}
	reads, err := view.New(view.Deps{
		Pool: a.requests, Work: a.Pool, Log: a.Log, Waiters: waiters, Sessions: tokens,
		DefaultCatalogs: p.defaultNames(), Bodies: opening, Slog: a.Telemetry.Log,
	})
	if err != nil {
		return err
	}
	a.tail = reads.Tail
	resolver := resolverclient.Client{Bus: a.Bus, Slog: a.Telemetry.Log}
	installer := installerclient.Client{Bus: a.Bus, Slog: a.Telemetry.Log}
	given := a.intentsOf(p, reads)
	given.Units.Bodies, given.Tokens, given.Resolver, given.Installer = kept, tokens, resolver, installer
	given.Webhooks = webhooks.NewSender(p.hooked)
	a.intents = intent.New(given)
	a.deliverer = &webhooks.Deliverer{
		Service: a.intents.Webhooks, Events: reads.Tail, Policies: reads.Roles, Slog: a.Telemetry.Log,
		Me: uuid.NewString(), Random: rand.Float64, Lease: a.cfg.tests.lease,
		Slots: a.cfg.tests.webhooks,
	}
	tenants := api.NewTenants(time.Now)
	a.quotas = &quotas.Service{Units: given.Units, Tokens: tokens, Tenants: tenants, Slog: a.Telemetry.Log}
	a.keys = &store.Keys{Pool: a.requests, Work: a.Pool, Slog: a.Telemetry.Log, Bodies: p.bodies}
	tickets := &store.Tickets{Pool: a.requests, Work: a.Pool, Tokens: tokens}
	callers, err := a.callersOf(p, tickets, tokens)
	if err != nil {
		return err
	}
	rest := api.New(api.Deps{
		Keys: a.keys, Tickets: tickets,
		Log: a.Telemetry.Log, Callers: callers, Logins: logins(p.providers), Policies: reads.Roles,
		Intents: a.intents, Reads: reads, Resolver: resolver, Installer: installer, Access: a.access,
		TrustedProxies: p.proxies, Origins: p.origins, Limits: a.cfg.Limits, Quotas: a.quotas,
		Tenants: tenants,
	})
	a.api, err = pages.New(rest, api.Prefix, a.cfg.Browsers.ConsoleURL)
	return err
}

// callersOf is who says who asks.
func (a *App) callersOf(p parts, tickets *store.Tickets, tokens *store.Tokens) (*authn.Authenticator, error) {
	callers := &authn.Authenticator{Tickets: tickets, Tokens: tokens, Identities: a.intents.Identities}
	var err error
	if a.verifier, err = oidc.New(p.providers, time.Now, a.Telemetry.Log); err != nil {
		return nil, err
	}
	if len(p.providers) > 0 {
		callers.Verifier = a.verifier
	}
	if len(p.authorities) > 0 {
		callers.Machines, err = clientcert.New(p.authorities, time.Now, a.Telemetry.Log)
	}
	return callers, err
}

// intentsOf is what intents need of the settings and of what is read.
func (a *App) intentsOf(p parts, reads *view.Reads) intent.Deps {
	return intent.Deps{
		Units: &unit.Runner{
			Pool: a.requests, Work: a.Pool, Log: a.Log, Clock: a.clock(), NewID: uuid.New, Slog: a.Telemetry.Log,
		},
		Credentials: p.credentials, Secrets: p.secrets,
		Identities: store.NewIdentities(a.Pool), Access: reads.Roles,
		Offers: reads.Content, Observed: reads.Clusters,
		History:     intent.History{Subscriptions: reads.Subscriptions, Rollouts: reads.Fleet},
		Subscribers: reads.Subscriptions,
		HookKeys:    p.hookKeys, DefaultCatalogs: p.defaults, GlobalNamespaces: p.globals,
		GlobalCatalogNamespaces: p.catalogGlobals, LegalHold: a.cfg.Keep.LegalHold,
		MaxTokenLife: a.cfg.SignIn.MaxTokenLife, NewIdentities: a.cfg.SignIn.NewIdentities,
	}
}

func (a *App) clock() func() time.Time {
	if a.cfg.tests.clock != nil {
		return a.cfg.tests.clock
	}
	return time.Now
}

// keep makes what seals bodies, and what deletes the tables of read models that nobody uses.
func (a *App) keep(p parts) (kept store.Bodies, err error) {
	kept = store.Bodies{Keys: p.bodies, Clear: new(atomic.Bool)}
	kept.Clear.Store(true)
	if a.sealer, err = store.NewSealer(a.Pool, kept, a.Telemetry.Log); err != nil {
		return kept, err
	}
	a.unused, err = projection.NewSweeper(projection.Sweeper{
		Pool: a.Pool, Log: a.Telemetry.Log, Service: "gateway",
		After: cmp.Or(a.cfg.Keep.UnusedModels, projection.DefaultKeepUnused),
	})
	return kept, err
}

// logins are the providers at which people sign in by the command line.
func logins(list []oidc.Provider) (out []model.LoginProvider) {
	for _, p := range list {
		if l := p.Login; l != nil {
			out = append(out, model.LoginProvider{
				Name: p.Name, Issuer: p.Issuer, ClientID: l.ClientID, ClientSecret: l.ClientSecret, Scopes: l.Scopes,
			})
		}
	}
	return out
}

// Addr is where the API is served.
func (a *App) Addr() string { return a.listener.Addr().String() }

// TLSAddr is where it is served with TLS; "" where it is not.
func (a *App) TLSAddr() string {
	if a.secure == nil {
		return ""
	}
	return a.secure.Addr().String()
}

// Run works until ctx ends, then stops in order: what takes in work first.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	g := a.Group(a.checks()...)
	rebuilder := &projection.Rebuilder{Pool: a.Pool, Log: a.Telemetry.Log}
	for _, p := range a.projections {
		g.Add("projection "+p.Name(), p.Run)
		rebuilder.Makings = append(rebuilder.Makings, p.Making())
	}
	g.Add("rebuilder", rebuilder.Run)
	g.Add("unused read models", a.unused.Run)
	g.Add("effects", a.intents.Effects.RecordLostCommits)
	g.Add("hooks", a.intents.CatalogHooks.TakePushes)
	g.Add("default catalogs", a.intents.Catalogs.KeepDefaults)
	g.Add("preview sweep", a.intents.Previews.Sweep)
	g.Add("access log", a.access.Run)
	g.Add("sealing of bodies", a.sealer.Run)
	g.Add("idempotency keys", a.keys.Collect)
	g.Add("quotas", a.quotas.Follow)
	g.Add("break-glass gauge", a.intents.Tokens.Tokens.ObserveBreakGlass)
	g.Add("gauge of new identities", a.intents.Identities.Observe)
	g.Add("event tail", a.tail.Run)
	g.Add("webhooks", a.deliverer.Run)
	g.Add("webhook deliveries", a.deliverer.Sweep)
	g.Add("keys of identity providers", a.verifier.Run)
	for name, listener := range map[string]net.Listener{"api": a.listener, "api with TLS": a.secure} {
		if listener == nil {
			continue
		}
		g.Add(name, func(ctx context.Context) error {
			a.awaitModels(ctx)
			a.Telemetry.Log.InfoContext(ctx, "the REST interface is served", "address", listener.Addr().String(), "tls",
				listener == a.secure)
			return httpserver.Serve(ctx, listener, a.api, 0)
		})
	}
	return g.Run(ctx)
}

// modelsWithin is how long connections wait at the start for read models: longer than it takes to look at those that
// are there, to copy a small one, or to make those of an empty log. What takes longer is told to whoever asks.
const modelsWithin = 5 * time.Second

// awaitModels lets the first requests of a start wait rather than fail.
func (a *App) awaitModels(ctx context.Context) {
	late := time.NewTimer(modelsWithin)
	defer late.Stop()
	for _, p := range a.projections {
		select {
		case <-p.Opened():
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// checks say whether the gateway can answer. NATS is none of them: without it hints are missing, and
// read models follow from Postgres alone.
func (a *App) checks() []httpserver.Check {
	requests := httpserver.Check{Name: "postgres of requests", Check: func(ctx context.Context) error {
		if err := a.requests.Ping(ctx); err != nil {
			return fmt.Errorf("postgres does not answer what requests ask: %w", pg.Err(err))
		}
		return nil
	}}
	list := []httpserver.Check{a.PostgresCheck(), requests}
	for _, p := range a.projections {
		list = append(list, httpserver.Check{Name: "projection " + p.Name(), Check: p.Check, Note: p.Note})
	}
	return list
}

// Close lets go of everything that New opened; Run does it at its end.
func (a *App) Close() {
	for _, l := range []net.Listener{a.listener, a.secure} {
		if l == nil {
			continue
		}
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			a.Telemetry.Log.Warn("close a listener of the REST interface", "error", err)
		}
	}
	if a.requests != nil {
		a.requests.Close()
	}
	a.Platform.Close()
}
