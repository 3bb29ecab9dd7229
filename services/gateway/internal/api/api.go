// Package api is the REST interface under /api/v1: chi routes and huma types, from which the OpenAPI document is made.
// It checks the form of requests and the rights of tokens, asks read models and carries out intents, and turns errors
// into RFC 9457 problems. Each resource has a struct of handlers, whose methods bear the names of their operations. It
// holds no rules of the field.
//
// Every route but authConfig, the OpenAPI document included, wants a bearer token or a certificate, and every operation
// names what a caller must be allowed to and where (need.go); what is not named is denied (DESIGN D10). The one
// exception are push notifications
// (hooks.go), which bring the secret of a catalog's hook and can do nothing but ask for a poll of its source.
package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/accesslog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/api/document"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn"
	"github.com/chandler-fleet/chandler/services/gateway/internal/installerclient"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/quotas"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/resolverclient"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Prefix is where the API lives; a breaking change gets another one.
const Prefix = "/api/v1"

const prefix = Prefix

const (
	// maxBody bounds a request's body: names, lists of namespaces and configuration of a few kilobytes.
	maxBody = 128 << 10
	// maxIntentBody leaves room for annotations of the largest size, escaped as JSON.
	maxIntentBody = maxBody + 2*events.MaxAnnotations
	// maxKubeconfigBody leaves room for a kubeconfig of the largest size, escaped as JSON.
	maxKubeconfigBody = 640 << 10
	// bodyTimeout bounds how long a client may take for a body.
	bodyTimeout = 15 * time.Second
	// requestTimeout bounds the work on one request; the longest, a read that waits for its view, takes
	// some seconds. A stream is bounded by streamLife instead.
	requestTimeout = 30 * time.Second
)

// Callers finds who asks.
type Callers interface {
	// Claims says of whom a token that a provider signs says it is, which nobody has checked; it asks nobody.
	Claims(r authn.Request) (subject string, signed bool)
	// Caller returns who that is, and the version of roles and bindings at that moment.
	Caller(ctx context.Context, r authn.Request) (model.Caller, events.Position, error)
}

// Policies tells who may do what in a tenant. It reads nothing while the version stays.
type Policies interface {
	// Serves is nil once it can be told.
	Serves() error
	Policy(ctx context.Context, tenant string, version events.Position) (*access.Policy, error)
}

// Deps are what the API is made of.
type Deps struct {
	Log     *slog.Logger
	Callers Callers
	// Logins are how people sign in.
	Logins    []model.LoginProvider
	Policies  Policies
	Intents   *intent.Services
	Reads     *view.Reads
	Resolver  resolverclient.Client
	Installer installerclient.Client
	Access    *accesslog.Log
	Keys      *store.Keys // answers to requests with an Idempotency-Key
	Tickets   *store.Tickets
	Limits    Limits
	Quotas    *quotas.Service
	Tenants   *limit.Tenants // counts what they ask for; nil bounds nobody
	// TrustedProxies are networks of proxies whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// Origins are those whose pages may read answers.
	Origins []string
}

// API is the whole interface.
type API struct {
	huma    huma.API
	router  *chi.Mux
	callers Callers
	// policies and reads say what a caller may do.
	policies Policies
	reads    *view.Reads
	limits   limits
	tenants  *limit.Tenants
	log      *slog.Logger
	keys     *store.Keys
	turns    *limit.Turns // of requests with an Idempotency-Key
	streams  *places
	waits    *places // of requests that wait for operations
	// proxies are those whose word about a client's address is believed.
	proxies []netip.Prefix
	// declared is what each operation takes, by method and pattern of its route.
	declared map[string]declared
}

// New builds the interface. Deps may be empty where only the OpenAPI document is wanted.
func New(d Deps) *API {
	strictCasing()
	options := httpserver.Options{Log: d.Log, TrustedProxies: d.TrustedProxies, Origins: d.Origins}
	if d.Access != nil {
		options.Access = d.Access.Take
	}
	router := httpserver.Router(options)
	tenants := countsOf(d)
	a := &API{
		router: router, callers: d.Callers, policies: d.Policies, reads: d.Reads, limits: newLimits(d.Limits, time.Now),
		proxies: d.TrustedProxies, keys: d.Keys, log: d.Log, tenants: tenants, streams: newPlaces(d.Limits, tenants),
		waits: newPlaces(Limits{Streams: maxWaits, OwnStreams: ownWaits}, NewTenants(time.Now)),
		turns: limit.NewTurns(store.KeyedRequests, ownKeyed, lineKeyed, keyedWait),
	}
	hooks := newHookHandlers(d)
	router.With(a.form).Post(prefix+pathHook, hooks.push)
	router.With(a.form).Get(prefix+pathAuthConfig, a.authConfig(d.Logins))
	router.Route(prefix, func(r chi.Router) {
		r.Use(a.authenticate, a.form, a.prefer, a.once, a.try)
		a.huma = humachi.New(r, config())
		a.huma.UseMiddleware(a.answer)
		clusterHandlers{d}.register(a)
		effectsHandlers{d}.register(a)
		catalogHandlers{d}.register(a)
		catalogAccessHandlers{d}.register(a)
		hooks.register(a)
		a.describeAuthConfig()
		packageHandlers{d}.register(a)
		upgradeHandlers{d}.register(a)
		groupHandlers{d}.register(a)
		subscriptionHandlers{d}.register(a)
		previewHandlers{d}.register(a)
		planHandlers{d}.register(a)
		newReviewHandlers(d).register(a)
		policyHandlers{d}.register(a)
		fleetHandlers{d}.register(a)
		fleetBudgetHandlers{d}.register(a)
		webhookHandlers{d}.register(a)
		operatorHandlers{d}.register(a)
		summaryHandlers{d}.register(a)
		explanationHandlers{d}.register(a)
		eventHandlers{d, a.streams}.register(a)
		ticketHandlers{d, a.isStream}.register(a)
		tokenHandlers{d}.register(a)
		quotaHandlers{d}.register(a)
		breakGlassHandlers{d}.register(a)
		identityHandlers{d}.register(a)
		roleHandlers{d}.register(a)
		accessHandlers{d}.register(a)
		operationHandlers{a}.register(a)
		parkedHandlers{d}.register(a)
		keyHandlers{d}.register(a)
		replicaHandlers{d}.register(a)
		ruleHandlers{}.register(a)
		nameHandlers{d}.register(a)
		a.tidy()
		a.documents(r)
	})
	a.declare()
	return a
}

// Open has a handler answer below a path, without a token and behind what all answers are behind: the access log, the
// id of the request, and a limit for each address. It is for the start of a process.
func (a *API) Open(path string, h http.Handler) {
	a.router.Handle(path+"*", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait, ok := a.limits.pages.Take(limit.Network(httpserver.ClientAddress(r, a.proxies))); !ok {
			tooMany(w, r, wait)
			return
		}
		h.ServeHTTP(w, r)
	}))
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.router.ServeHTTP(w, r) }

// OpenAPI returns the document as YAML.
func (a *API) OpenAPI() ([]byte, error) { return a.huma.OpenAPI().YAML() }

// Document is what OpenAPI writes; it is not to be changed.
func (a *API) Document() *huma.OpenAPI { return a.huma.OpenAPI() }

// OpenAPI30 returns the document in OpenAPI 3.0 as YAML, for generators that do not read 3.1.
func (a *API) OpenAPI30() ([]byte, error) { return document.Downgrade(a.huma.OpenAPI()) }

func config() huma.Config {
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    document.Info(description),
			Servers: []*huma.Server{{URL: prefix}},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"bearer": {Type: "http", Scheme: "bearer"},
					"onBehalfOf": {
						Type: "apiKey", In: "header", Name: authn.HeaderOnBehalfOf,
						Description: "Bearer and a token of an identity provider: the person for whom the service account " +
							"of the bearer token, or of the certificate, asks",
					},
					"certificate": {
						Type: "mutualTLS", Description: "A client certificate of a machine, at the address with TLS, " +
							"where no bearer token is sent",
					},
				},
			},
			Security: []map[string][]string{
				{"bearer": {}},
				{"bearer": {}, "onBehalfOf": {}},
				{"certificate": {}},
				{"certificate": {}, "onBehalfOf": {}},
			},
		},
		Formats:       map[string]huma.Format{"application/json": strictJSON, "json": strictJSON},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{problems, someFields},
	}
	return c
}

const description = `Chandler supplies fleets of Kubernetes clusters with operators.

Every request carries a bearer token, or comes with the certificate of a machine. A write answers with the position
of its event, in the header Chandler-Position and the field position; a read with minPosition waits until it shows
that position.
Lists are paged: next is the cursor of the page after. Errors are RFC 9457 problems; errors[] names
each place in the input and the rule that it breaks. Nothing of a request is dropped: parameters that are
unknown, empty, given twice or cannot be decoded, unknown fields, fields that stand twice, and headers for
conditional requests where there are none, are errors.

HEAD is answered wherever GET is, without a body, and OPTIONS everywhere, with Allow. Answers to reads are
compressed with zstd or gzip as Accept-Encoding says.

Requests of one person or program are counted by class: read, list (lists, searches, explanations, previews), write
and sign-in; x-chandler-rate-class of an operation names its own. RateLimit-Limit, RateLimit-Remaining and
RateLimit-Reset say how many requests of the class the caller may make at once, how many are left, and in how many
seconds all are there again; RateLimit-Policy names the class. One too many is answered 429 with Retry-After.
A request has at most 1000 parameters, and headers of at most 64 KiB together; what a body may have stands beside it.`

// documents serves the OpenAPI document in its forms.
func (a *API) documents(r chi.Router) {
	r.Get("/openapi.json", a.document(func() ([]byte, error) { return json.Marshal(a.huma.OpenAPI()) },
		"application/json"))
	r.Get("/openapi.yaml", a.document(a.OpenAPI, "application/yaml"))
	r.Get("/openapi-3.0.yaml", a.document(a.OpenAPI30, "application/yaml"))
}

// document serves the OpenAPI document.
func (a *API) document(encode func() ([]byte, error), contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		raw, err := encode()
		if err != nil {
			httpserver.Problem(w, r, errs.Wrap(errs.Internal, err, "write the OpenAPI document"))
			return
		}
		w.Header().Set("Content-Type", contentType)
		// The caller may have gone; the access log has what was answered.
		_, _ = w.Write(raw)
	}
}

// tidy takes huma's own error type out of the document, since answers never have it, and completes the rest.
func (a *API) tidy() {
	schemas := a.huma.OpenAPI().Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	document.Complete(a.huma.OpenAPI())
}

// register adds an operation. Handlers return plain errors; they become problems here.
func register[I, O any](
	a *API, n need, op huma.Operation, h func(ctx context.Context, who model.Caller, in *I) (*O, error),
) {
	_, conditional := any(new(I)).(matched)
	op.Responses = withProblems(op.Responses, a.huma.OpenAPI().Components, &op, conditional)
	n.check(op, new(I))
	n.document(&op)
	n.classify(&op)
	_, previewed := any(new(I)).(interface{ dry() bool })
	_, tries := any(new(I)).(interface{ tries() })
	if op.Metadata == nil {
		op.Metadata = map[string]any{}
	}
	op.Metadata[triedOperation] = tries
	offerFields(&op, typeOf[O]())
	keyed(&op, previewed || tries)
	op.BodyReadTimeout = bodyTimeout
	if op.MaxBodyBytes == 0 {
		op.MaxBodyBytes = maxBody
	}
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		who, err := callerOf(ctx)
		if err == nil {
			err = a.authorize(ctx, who, n, in)
		}
		if err != nil {
			return nil, problemOf(ctx, err)
		}
		out, err := h(matching(ctx, in), who, in)
		if err != nil {
			return nil, problemOf(ctx, err)
		}
		return out, nil
	})
}

// operation describes one route.
func operation(method, path, id, tag, summary string) huma.Operation {
	return huma.Operation{Method: method, Path: path, OperationID: id, Summary: summary, Tags: []string{tag}}
}

// intended is an operation that takes an intent with its annotations.
func intended(op huma.Operation) huma.Operation {
	op.MaxBodyBytes = maxIntentBody
	return op
}

// created is operation for a POST that makes something.
func created(path, id, tag, summary string) huma.Operation {
	op := operation(http.MethodPost, path, id, tag, summary)
	op.DefaultStatus = http.StatusCreated
	return op
}
