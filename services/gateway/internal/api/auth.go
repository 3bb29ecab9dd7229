package api

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxTokenChars bounds a bearer token before it is hashed and looked up.
const maxTokenChars = 512

type callerKey struct{}

// authenticate lets nobody in without a token that is known, wherever the request goes.
func (a *API) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := bearer(r)
		if err != nil {
			httpserver.Problem(w, r, err)
			return
		}
		from := limit.Network(httpserver.ClientAddress(r, a.proxies))
		if wait, ok := a.limits.before(token, from); !ok {
			tooMany(w, r, wait)
			return
		}
		who, err := a.caller(r.Context(), token)
		if err != nil {
			if errs.Is(err, errs.Unauthenticated) {
				a.limits.known.Remove(token)
				a.limits.refused.Take(from)
			}
			httpserver.Problem(w, r, public(err))
			httpserver.NoteError(r.Context(), err)
			return
		}
		httpserver.NoteCaller(r.Context(), httpserver.Caller{
			Tenant: who.Tenant, Actor: who.Actor, Token: who.Token, Role: string(who.Role),
		})
		a.limits.known.Add(token, identity(who))
		if wait, ok := a.limits.identities.Take(identity(who)); !ok {
			tooMany(w, r, wait)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

func bearer(r *http.Request) (string, error) {
	if len(r.Header.Values("Authorization")) > 1 {
		return "", errs.New(errs.Unauthenticated, "the request has several Authorization headers: send one")
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxTokenChars {
		return "", errs.New(errs.Unauthenticated,
			"the request has no bearer token: send 'Authorization: Bearer <token>'")
	}
	return token, nil
}

// caller finds who holds a token, with what they may do.
func (a *API) caller(ctx context.Context, token string) (model.Caller, error) {
	if err := a.policies.Serves(); err != nil {
		return model.Caller{}, err
	}
	who, version, err := a.tokens.Caller(ctx, token)
	if err != nil {
		return who, err
	}
	policy, err := a.policies.Policy(ctx, who.Tenant, version)
	if err != nil {
		return who, err
	}
	who.Rights = policy.RightsOf(who.Identity())
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
	register(a, fleetWide(access.List, access.Tokens), operation(http.MethodGet, "/tokens", "list-tokens", tagTokens,
		"List tokens by name, without what they are made of, revoked ones included; for administrators"), h.listTokens)
	register(a, fleetWide(access.Create, access.Tokens), created("/tokens", "add-token", tagTokens,
		"Make a token for a person or program; it is answered this once"), h.addToken)
	register(a, fleetWide(access.Delete, access.Tokens),
		operation(http.MethodDelete, "/tokens/{id}", "revoke-token", tagTokens,
			"Refuse a token from now on; one administrator's token always stays"), h.revokeToken)
}

type listTokensInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many items"`
	Cursor string `query:"cursor" maxLength:"2048" doc:"next of the page before"`
}

func (h tokenHandlers) listTokens(
	ctx context.Context, who model.Caller, in *listTokensInput,
) (*listOutput[model.Token], error) {
	page, err := ListQuery{Limit: in.Limit, Cursor: in.Cursor}.page()
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

func (h tokenHandlers) revokeToken(ctx context.Context, who model.Caller, in *TokenPath) (*struct{}, error) {
	if err := h.Intents.Tokens.Revoke(ctx, who, in.ID); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
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

// Limits bound what one identity, address or process asks for. Zero values are the defaults.
type Limits struct {
	RequestRate int // requests of one identity a second, over a time
	RefusedRate int // requests of one address a second that bring no good token
	Streams     int // open streams of this process
	OwnStreams  int // of one identity
}

func (l Limits) orDefaults() Limits {
	return Limits{
		RequestRate: cmp.Or(l.RequestRate, DefaultRequestRate), RefusedRate: cmp.Or(l.RefusedRate, DefaultRefusedRate),
		Streams: cmp.Or(l.Streams, DefaultStreams), OwnStreams: cmp.Or(l.OwnStreams, DefaultOwnStreams),
	}
}

// Check refuses limits that would let nobody in, or one identity take all places.
func (l Limits) Check() error {
	l = l.orDefaults()
	for _, one := range []struct {
		name  string
		value int
	}{
		{"request-rate", l.RequestRate},
		{"refused-rate", l.RefusedRate},
		{"streams", l.Streams},
		{"own-streams", l.OwnStreams},
	} {
		if one.value < 1 || one.value > maxLimit {
			return errs.New(errs.Invalid, "setting %s is %d; give 1 to %d", one.name, one.value, maxLimit).
				At(one.name, "")
		}
	}
	if l.OwnStreams > l.Streams {
		return errs.New(errs.Invalid, "setting own-streams is %d, and there are %d streams in all", l.OwnStreams,
			l.Streams).At("own-streams", "")
	}
	return nil
}

const (
	// DefaultRequestRate is how many requests one identity makes a second, over a time: many times what a portal with
	// all its pages open asks for, and less than what a gateway answers, so that the others are answered, too.
	DefaultRequestRate = 1000
	// requestBurst is how many seconds of them it makes at once: a program that reads every object of a fleet.
	requestBurst = 4
	// DefaultRefusedRate bounds requests of one address that bring no good token, each of which costs a look
	// at the database. Those that bring one are not counted by address: many people share that of a proxy.
	DefaultRefusedRate = 5
	// refusedBurst is how many seconds of them come at once: a program that was started with a wrong token.
	refusedBurst = 10
	// DefaultStreams bounds open streams of one process: each costs a goroutine and a batch in memory.
	DefaultStreams = 256
	// DefaultOwnStreams bounds open streams of one identity, so that one does not take the places of all.
	DefaultOwnStreams = 32
	// maxLimit bounds settings of limits: beyond it nothing is limited.
	maxLimit = 1_000_000
)

// limits are those of the whole interface.
type limits struct {
	identities, refused *limit.Buckets
	known               *limit.Known
}

// before says whether a request may cost a look at the database. A token that was good a while ago is counted for whom
// it was, and is not kept out by what others try from its address, such as a proxy's.
func (l *limits) before(token, from string) (wait time.Duration, ok bool) {
	var empty bool
	if identity, good := l.known.Of(token); good {
		wait, empty = l.identities.Empty(identity)
	} else {
		wait, empty = l.refused.Empty(from)
	}
	return wait, !empty
}

func newLimits(l Limits, now func() time.Time) limits {
	l = l.orDefaults()
	requests, refused := float64(l.RequestRate), float64(l.RefusedRate)
	return limits{
		identities: limit.NewBuckets(requests, requestBurst*requests, now),
		refused:    limit.NewBuckets(refused, refusedBurst*refused, now),
		known:      limit.NewKnown(),
	}
}

// identity is whose requests are counted together: all tokens of one person or program.
func identity(who model.Caller) string { return who.Tenant + "\x00" + who.Actor }

// tooMany answers a request that is one too many.
func tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	httpserver.TooMany(w, r, wait, "too many requests: wait as Retry-After says")
}

// places counts open streams by identity.
type places struct {
	max  int // of each
	mu   sync.Mutex
	open map[string]int
}

func (p *places) enter(who model.Caller) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[string]int{}
	}
	if p.open[identity(who)] >= p.max {
		return false
	}
	p.open[identity(who)]++
	return true
}

func (p *places) leave(who model.Caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[identity(who)]--
	if p.open[identity(who)] <= 0 {
		delete(p.open, identity(who))
	}
}
