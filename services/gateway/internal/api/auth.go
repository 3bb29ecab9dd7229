package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

type callerKey struct{}

// authenticate lets nobody in without a token or a certificate that is good, wherever the request goes.
func (a *API) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, err := credentials(r)
		if ticket, address := ticketOf(r); ticket != "" {
			shown, err = authn.Request{Ticket: ticket, Address: address}, nil
		}
		if err != nil {
			httpserver.Problem(w, r, err)
			return
		}
		bearing := a.bearing(shown, limit.Network(httpserver.ClientAddress(r, a.proxies)))
		class := a.class(r)
		if left, ok := a.before(bearing, class, shown.Bearer); !ok {
			tooMany(w, r, left)
			return
		}
		who, err := a.caller(r.Context(), shown)
		if err != nil {
			a.limits.failed(bearing, who, err)
			httpserver.Problem(w, r, public(err))
			httpserver.NoteError(r.Context(), err)
			return
		}
		httpserver.NoteCaller(r.Context(), httpserver.Caller{
			Tenant: who.Tenant, Actor: who.Person(), Via: who.Via(), Role: string(who.Role),
			Token: cmp.Or(who.Token, who.Machine, who.IdentityID),
		})
		a.limits.succeeded(bearing, who)
		left, ok := a.limits.identities.Take(class, identity(who))
		if !ok {
			tooMany(w, r, left)
			return
		}
		if left, ok = a.ofTenant(who, class, left); !ok {
			tooMany(w, r, left)
			return
		}
		left.Write(w.Header())
		if err := sealed(r, who); err != nil {
			a.log.WarnContext(r.Context(), "the break-glass token was shown outside of a session", "tenant", who.Tenant,
				"token", who.Token, "address", httpserver.ClientAddress(r, a.proxies))
			httpserver.Problem(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// class is by which limit a request is counted. What is no operation costs no more than a read.
func (a *API) class(r *http.Request) limit.Class {
	d, _, _ := a.operationOf(r)
	return cmp.Or(d.class, limit.Read)
}

// credentials are what a request shows: whose token it is, or else which machine's certificate; and for whom a service
// account asks.
func credentials(r *http.Request) (shown authn.Request, err error) {
	_, token := r.Header["Authorization"]
	if !token && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		shown.Certificates, err = r.TLS.PeerCertificates, browsed(r)
	} else {
		shown.Bearer, err = bearer(r)
	}
	if err != nil {
		return shown, err
	}
	if _, acts := r.Header[authn.HeaderOnBehalfOf]; acts {
		shown.OnBehalfOf, err = bearerIn(r, authn.HeaderOnBehalfOf)
	}
	return shown, err
}

// browsed refuses what a browser sends: it shows a certificate by itself, on behalf of whatever page it has open.
func browsed(r *http.Request) error {
	for _, header := range []string{"Origin", "Sec-Fetch-Site"} {
		if r.Header.Get(header) != "" {
			return errs.New(errs.Unauthenticated, "the request is one of a browser (%s): a client certificate lets in machines "+
				"alone; send a bearer token", header).At("header."+header, "")
		}
	}
	return nil
}

func bearer(r *http.Request) (string, error) { return bearerIn(r, "Authorization") }

// bearerIn is the bearer token in a header that stands there once.
func bearerIn(r *http.Request, header string) (string, error) {
	if len(r.Header.Values(header)) > 1 {
		return "", errs.New(errs.Unauthenticated, "the request has several %s headers: send one", header)
	}
	scheme, token, _ := strings.Cut(r.Header.Get(header), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > authn.MaxBearerChars {
		return "", errs.New(errs.Unauthenticated, "the request has no bearer token: send '%s: Bearer <token>'", header)
	}
	return token, nil
}

// caller finds who holds a token or a certificate, with what they may do. With an error it is the service account of
// one that is good, which may not ask for whom it asks; nobody where none is good.
func (a *API) caller(ctx context.Context, r authn.Request) (model.Caller, error) {
	if err := a.policies.Serves(); err != nil {
		return model.Caller{}, err
	}
	who, version, err := a.callers.Caller(ctx, r)
	if err != nil {
		return who, err
	}
	policy, err := a.policies.Policy(ctx, who.Tenant, version)
	if err != nil {
		return who, err
	}
	who.Rights = policy.RightsOf(who.Identity())
	if who.OnBehalfOf == "" {
		return who, nil
	}
	own := policy.RightsOf(access.Identity{Kind: who.Kind, Name: who.Actor, Groups: who.Groups, Role: string(who.Role)})
	if anywhere := (access.Target{Anywhere: true}); !own.Allow(access.Impersonate, access.People, anywhere) {
		return who, access.Denied(access.Impersonate, access.People, anywhere)
	}
	return who, nil
}

// callerOf is who asks, as authenticate has found them.
func callerOf(ctx context.Context) (model.Caller, error) {
	who, ok := ctx.Value(callerKey{}).(model.Caller)
	if !ok {
		return who, errs.New(errs.Unauthenticated, "the request has no caller")
	}
	return who, nil
}

const tagTokens = "Tokens"

// TokenPath is a token in a path.
type TokenPath struct {
	ID string `path:"id" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Id of the token"`
}

// tokenHandlers are the operations on tokens; all of them are for administrators.
type tokenHandlers struct{ Deps }

func (h tokenHandlers) register(a *API) {
	registerList(a, fleetWide(access.List, access.Tokens), operation(http.MethodGet, "/tokens", "list-tokens",
		tagTokens, "List tokens by name, without what they are made of, revoked ones included; for administrators"),
		watchedTokens, h.listTokens)
	register(a, fleetWide(access.Create, access.Tokens), classed(created("/tokens", "add-token", tagTokens,
		"Make a token for a person or program; it is answered this once"), limit.SignIn), h.addToken)
	register(a, fleetWide(access.Get, access.Tokens), operation(http.MethodGet, "/tokens/{id}", "get-token", tagTokens,
		"Show a token, with when it was used last; for administrators"), h.getToken)
	register(a, fleetWide(access.Create, access.Tokens),
		classed(operation(http.MethodPost, "/tokens/{id}/rotate", "rotate-token", tagTokens,
			"Give a token another secret, which is answered this once; the one before is good for a while"),
			limit.SignIn), h.rotateToken)
	register(a, fleetWide(access.Delete, access.Tokens),
		operation(http.MethodDelete, "/tokens/{id}", "revoke-token", tagTokens,
			"Refuse a token from now on; one administrator's token always stays"), h.revokeToken)
}

// watchedTokens, watchedIdentities: that they were used no event tells. Their names are for people.
var (
	watchedTokens = watchedInFleet(func(t model.Token) watch.Name { return watch.Name{ID: t.ID, Name: t.Name} },
		events.KindAccess)
	watchedIdentities = watchedInFleet(func(i model.Identity) watch.Name { return watch.Name{ID: i.ID} },
		events.KindAccess)
)

func (h tokenHandlers) listTokens(
	ctx context.Context, who model.Caller, in *FleetListQuery,
) (*listOutput[model.Token], error) {
	page, err := in.page() // it is never behind a write
	if err != nil {
		return nil, err
	}
	return listed(h.Intents.Tokens.List(ctx, who, page))
}

type addTokenInput struct{ Body model.AddToken }

func (h tokenHandlers) addToken(
	ctx context.Context, who model.Caller, in *addTokenInput,
) (*output[model.NewToken], error) {
	return read(h.Intents.Tokens.Add(ctx, who, in.Body))
}

func (h tokenHandlers) getToken(ctx context.Context, who model.Caller, in *TokenPath) (*output[model.Token], error) {
	return read(h.Intents.Tokens.Get(ctx, who, in.ID))
}

type rotateTokenInput struct {
	TokenPath
	Body model.RotateToken
}

func (h tokenHandlers) rotateToken(
	ctx context.Context, who model.Caller, in *rotateTokenInput,
) (*output[model.NewToken], error) {
	return read(h.Intents.Tokens.Rotate(ctx, who, in.ID, in.Body))
}

func (h tokenHandlers) revokeToken(ctx context.Context, who model.Caller, in *TokenPath) (*struct{}, error) {
	if err := h.Intents.Tokens.Revoke(ctx, who, in.ID); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
}

// IdentityPath is an identity in a path.
type IdentityPath struct {
	ID string `path:"id" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Id of the identity"`
}

// identityHandlers are the operations on identities; all of them are for administrators.
type identityHandlers struct{ Deps }

func (h identityHandlers) register(a *API) {
	registerList(a, fleetWide(access.List, access.Identities), operation(http.MethodGet, "/identities",
		"list-identities", tagTokens, "List who has signed in at an identity provider, by name; for administrators"),
		watchedIdentities, h.list)
	register(a, fleetWide(access.Update, access.Identities),
		operation(http.MethodPatch, "/identities/{id}", "configure-identity", tagTokens,
			"Say whose an identity is, or that it lets nobody in; what is left out stays"), h.configure)
}

func (h identityHandlers) list(
	ctx context.Context, who model.Caller, in *FleetListQuery,
) (*listOutput[model.Identity], error) {
	page, err := in.page() // it is never behind a write
	if err != nil {
		return nil, err
	}
	return listed(h.Intents.Identities.List(ctx, who, page))
}

type configureIdentityInput struct {
	IdentityPath
	Body model.ConfigureIdentity
}

func (h identityHandlers) configure(
	ctx context.Context, who model.Caller, in *configureIdentityInput,
) (*output[model.Identity], error) {
	return read(h.Intents.Identities.Configure(ctx, who, in.ID, in.Body))
}

// authConfig tells whoever asks how people sign in: the one route beside hooks that wants no token, since it is for
// those who have none. It says what the settings say, asks nobody, and is limited for each address.
func (a *API) authConfig(logins []model.LoginProvider) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from := limit.Network(httpserver.ClientAddress(r, a.proxies))
		if wait, ok := a.limits.open.Take(from); !ok {
			tooMany(w, r, wait)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		// The caller may have gone; the access log has what was answered.
		_ = json.NewEncoder(w).Encode(model.AuthConfig{Providers: append([]model.LoginProvider{}, logins...)})
	}
}

// pathAuthConfig is where programs learn how people sign in.
const pathAuthConfig = "/auth/config"

// describeAuthConfig puts the route into the OpenAPI document.
func (a *API) describeAuthConfig() {
	components := a.huma.OpenAPI().Components
	op := operation(http.MethodGet, pathAuthConfig, "get-auth-config", tagTokens,
		"Say how people sign in: issuers and clients of identity providers; without a token")
	op = classed(op, limit.SignIn)
	op.Security = []map[string][]string{{}}
	op.Responses = withProblems(map[string]*huma.Response{"200": {
		Description: "OK", Content: map[string]*huma.MediaType{"application/json": {
			Schema: components.Schemas.Schema(reflect.TypeFor[model.AuthConfig](), true, ""),
		}},
	}}, components, &op, false)
	a.huma.OpenAPI().AddOperation(&op)
}

// accessHandlers show the access log, to administrators.
type accessHandlers struct{ Deps }

func (h accessHandlers) register(a *API) {
	register(a, fleetWide(access.List, access.AccessLog), operation(http.MethodGet, "/access", "list-access", tagTokens,
		"List requests to the API, newest first: who asked for what, from where, and the status; for administrators"),
		h.list)
}

type listAccessInput struct {
	Actor     string `query:"actor" maxLength:"63" doc:"Only of this actor"`
	Token     string `query:"token" maxLength:"63" doc:"Only with this token, by its id"`
	Address   string `query:"address" maxLength:"64" doc:"Only from this address"`
	MinStatus int    `query:"minStatus" minimum:"0" maximum:"599" doc:"Only answers with this status or a higher one, such as 400"`
	From      string `query:"from" maxLength:"40" doc:"Only requests that began then or later (RFC 3339)"`
	Until     string `query:"until" maxLength:"40" doc:"Only requests that began earlier (RFC 3339)"`
	Limit     int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many items"`
	Cursor    string `query:"cursor" maxLength:"2048" doc:"next of the page before"`
}

func (h accessHandlers) list(
	ctx context.Context, who model.Caller, in *listAccessInput,
) (*listOutput[model.AccessEntry], error) {
	page, err := ListQuery{Limit: in.Limit, Cursor: in.Cursor}.page()
	if err != nil {
		return nil, err
	}
	f := model.AccessFilter{Actor: in.Actor, Token: in.Token, Address: in.Address, MinStatus: in.MinStatus}
	if f.From, err = moment("from", in.From); err != nil {
		return nil, err
	}
	if f.Until, err = moment("until", in.Until); err != nil {
		return nil, err
	}
	return listed(h.Access.List(ctx, who, f, page))
}

// moment reads a time; nil where none is given.
func moment(name, given string) (*time.Time, error) {
	if given == "" {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339Nano, given)
	if err != nil {
		return nil, errs.New(errs.Invalid, "%s is no time as RFC 3339 writes it, such as 2026-01-31T12:00:00Z", name).
			At("query."+name, "date-time")
	}
	return &t, nil
}

// momentOrAgo reads a time, or how long before now it is; nil where none is given.
func momentOrAgo(name, given string, now time.Time) (*time.Time, error) {
	if ago, err := time.ParseDuration(given); err == nil && ago >= 0 {
		t := now.Add(-ago)
		return &t, nil
	}
	t, err := moment(name, given)
	if err != nil {
		err = errs.New(errs.Invalid, "%s is neither a time as RFC 3339 writes it, such as 2026-01-31T12:00:00Z, nor how long "+
			"ago it is, such as 90m or 24h", name).At("query."+name, "date-time")
	}
	return t, err
}

// keyHandlers are the operations on the keys of the installation; they are for administrators.
type keyHandlers struct{ Deps }

func (h keyHandlers) register(a *API) {
	register(a, fleetWide(access.List, access.Keys), operation(http.MethodGet, "/keys", "list-key-uses", tagTokens,
		"List what uses which key of the installation, by ids of keys; for administrators"), h.listKeyUses)
}

func (h keyHandlers) listKeyUses(
	ctx context.Context, _ model.Caller, _ *struct{},
) (*listOutput[model.KeyUse], error) {
	uses, err := h.Reads.Keys.List(ctx)
	return listed(uses, nil, err)
}
