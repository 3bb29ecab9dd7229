package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/api/document"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

type callers struct {
	asked   int
	revoked string
}

// Claims reads tokens as "ey.SUBJECT.REST".
func (c *callers) Claims(r authn.Request) (subject string, signed bool) {
	parts := strings.Split(r.Bearer, ".")
	if len(parts) != 3 {
		return "", false
	}
	return parts[1], true
}

func (c *callers) Caller(_ context.Context, r authn.Request) (model.Caller, events.Position, error) {
	c.asked++
	token := r.Bearer
	if r.OnBehalfOf != "" {
		return c.behind(r)
	}
	if strings.HasSuffix(token, "wrong") || token == c.revoked {
		return model.Caller{}, events.Position{}, errs.New(errs.Unauthenticated, "no such token")
	}
	if subject, signed := c.Claims(r); signed {
		token = subject
	}
	return model.Caller{Tenant: "default", Actor: token, Role: model.RoleViewer}, events.Position{}, nil
}

// behind is a portal that asks for people; with an error of what it says of them it is known all the same.
func (c *callers) behind(r authn.Request) (model.Caller, events.Position, error) {
	refused := errs.New(errs.Unauthenticated, "no such token")
	if strings.HasSuffix(r.Bearer, "wrong") || r.Bearer == c.revoked {
		return model.Caller{}, events.Position{}, refused
	}
	who := model.Caller{Tenant: "default", Actor: r.Bearer, Token: r.Bearer, Role: model.RoleAdmin}
	if strings.HasSuffix(r.OnBehalfOf, "wrong") {
		return who, events.Position{}, refused
	}
	who.OnBehalfOf, _ = c.Claims(authn.Request{Bearer: r.OnBehalfOf})
	return who, events.Position{}, nil
}

// unbound is a tenant without roles and bindings of its own.
type unbound struct{}

func (unbound) Serves() error { return nil }

func (unbound) Policy(context.Context, string, events.Position) (*access.Policy, error) {
	return access.NewPolicy(access.State{}, nil), nil
}

// One identity that asks without pause is told to wait, by a problem with Retry-After; others are answered. Guessing
// tokens from one address ends before each guess costs a look at the database, and keeps nobody out who has one.
func TestRequestsAreLimitedByIdentity(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	const burst, refused = requestBurst * DefaultRequestRate, refusedBurst * DefaultRefusedRate
	tokens := &callers{}
	a := &API{
		router: chi.NewRouter(), tenants: NewTenants(time.Now), callers: tokens, policies: unbound{},
		limits: newLimits(Limits{}, func() time.Time { return now }),
	}
	served := a.authenticate(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	ask := func(token, from string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/clusters", http.NoBody)
		r.RemoteAddr = from + ":1234"
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)
		return w
	}
	for range burst {
		if w := ask("busy", "10.0.0.1"); w.Code != 200 {
			t.Fatalf("within the burst: %d", w.Code)
		}
	}
	if w := ask("calm", "10.0.0.1"); w.Header().Get("Ratelimit-Limit") != strconv.Itoa(burst) ||
		w.Header().Get("Ratelimit-Remaining") != strconv.Itoa(burst-1) || w.Header().Get("Ratelimit-Reset") != "1" ||
		w.Header().Get("Ratelimit-Policy") != strconv.Itoa(burst)+`;w=4;name="read"` {
		t.Errorf("what is left is told by %v", w.Header())
	}
	looks := tokens.asked
	w := ask("busy", "10.0.0.2")
	if tokens.asked != looks {
		t.Error("a request past the limit costs a look at the database")
	}
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" ||
		w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Ratelimit-Remaining") != "0" ||
		w.Header().Get("Ratelimit-Reset") != "4" {
		t.Errorf("past it: %d, %v", w.Code, w.Header())
	}
	if w := ask("other", "10.0.0.1"); w.Code != 200 {
		t.Errorf("another identity at the same address: %d", w.Code)
	}
	now = now.Add(time.Second)
	if w := ask("busy", "10.0.0.1"); w.Code != 200 {
		t.Errorf("after the wait: %d", w.Code)
	}
	codes := map[int]int{}
	before := tokens.asked
	for range 10 * refused {
		codes[ask("wrong", "10.0.0.3").Code]++
	}
	if codes[401] != refused || codes[429] != 9*refused || tokens.asked-before != refused {
		t.Errorf("guesses were answered %v, with %d looks at the database", codes, tokens.asked-before)
	}
	if w := ask("busy", "10.0.0.3"); w.Code != 200 {
		t.Errorf("who has a good token at the address of the guesses: %d", w.Code)
	}
	if w := ask("wrong", "10.0.0.4"); w.Code != 401 {
		t.Errorf("another address: %d", w.Code)
	}
	tokens.revoked = "busy"
	if first, next := ask("busy", "10.0.0.3").Code, ask("busy", "10.0.0.3").Code; first != 401 || next != 429 {
		t.Errorf("a token that was revoked is answered %d and %d at the address of the guesses", first, next)
	}
	for i := range 10 * refused { // addresses of one network of IPv6
		codes[ask("wrong", fmt.Sprintf("[2001:db8::%x]", i+1)).Code]++
	}
	if codes[401] != 2*refused {
		t.Errorf("%d guesses from one network of IPv6 were looked at", codes[401]-refused)
	}
}

// Whatever somebody tries at an address, who was let in by a provider is let in there with a token that was renewed,
// and whoever comes for the first time is not kept out by guessed tokens of Chandler. What is tried is bounded, in the
// name of somebody as well.
func TestRenewedTokensAreNotKeptOut(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	const guesses, forgeries = refusedBurst * DefaultRefusedRate, forgedFactor * refusedBurst * DefaultRefusedRate
	tokens := &callers{}
	a := &API{
		router: chi.NewRouter(), tenants: NewTenants(time.Now), callers: tokens, policies: unbound{},
		limits: newLimits(Limits{}, func() time.Time { return now }),
	}
	served := a.authenticate(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	ask := func(token, from string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/clusters", http.NoBody)
		r.RemoteAddr = from + ":1234"
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)
		return w.Code
	}
	flood := func(token string, bound int) {
		t.Helper()
		before := tokens.asked
		for range 2 * bound {
			ask(token, "10.0.0.1")
		}
		if n := tokens.asked - before; n != bound {
			t.Errorf("%d tokens such as %q were looked at, want %d", n, token, bound)
		}
	}
	if code := ask("ey.ann.first", "10.0.0.1"); code != 200 {
		t.Fatalf("who signs in: %d", code)
	}
	flood("wrong", guesses)
	if code := ask("ey.bob.first", "10.0.0.1"); code != 200 {
		t.Errorf("who signs in at the address of guesses: %d", code)
	}
	flood("ey.nobody.wrong", forgeries)
	if code := ask("ey..wrong", "10.0.0.1"); code != 429 {
		t.Errorf("one more that names nobody: %d", code)
	}
	if code := ask("ey.ann.renewed", "10.0.0.1"); code != 200 {
		t.Errorf("a token that was renewed, at the address of the forgeries: %d", code)
	}
	flood("ey.ann.wrong", forgeries)
	for i := range 3 * forgeries {
		ask(fmt.Sprintf("ey.ann.%d-wrong", i), "10.0.0.1")
	}
	for _, from := range []string{"10.0.0.1", "10.0.0.2"} {
		if code := ask("ey.ann.renewed", from); code != 200 {
			t.Errorf("who is named by forgeries, at %s: %d", from, code)
		}
	}
	tokens.revoked = "ey.ann.renewed"
	if first, next := ask(tokens.revoked, "10.0.0.1"), ask(tokens.revoked, "10.0.0.1"); first != 401 || next != 429 {
		t.Errorf("a token that was good and is not any more is answered %d and %d", first, next)
	}
	now = now.Add(time.Second)
	if code := ask("ey.ann.again", "10.0.0.1"); code != 200 {
		t.Errorf("a second after the forgeries: %d", code)
	}
}

// What a portal forwards in vain is counted with the portal and with what it forwarded: neither expired nor forged
// tokens of a person keep that person out, nor new people of the portal, nor strangers at its address, and guesses at
// its address keep nobody of the portal out. What one portal may have looked at is bounded, whomever it names; a
// revoked one is a stranger.
func TestPeopleBehindAPortalAreCountedApart(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	const forgeries, forwarded = forgedFactor * refusedBurst * DefaultRefusedRate, requestBurst * DefaultRequestRate
	tokens := &callers{}
	a := &API{
		router: chi.NewRouter(), tenants: NewTenants(time.Now), callers: tokens, policies: unbound{},
		limits: newLimits(Limits{}, func() time.Time { return now }),
	}
	served := a.authenticate(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	ask := func(token, person string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/clusters", http.NoBody)
		r.RemoteAddr = "10.0.0.1:1234"
		r.Header.Set("Authorization", "Bearer "+token)
		if person != "" {
			r.Header.Set(authn.HeaderOnBehalfOf, "Bearer "+person)
		}
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)
		return w.Code
	}
	want := func(what string, got, code int) {
		t.Helper()
		if got != code {
			t.Errorf("%s: %d, want %d", what, got, code)
		}
	}
	for range 2 * forgeries {
		ask("portal", "ey.ann.wrong") // it had no good token before
	}
	if tokens.asked != forgeries {
		t.Errorf("%d expired tokens of one person were looked at, want %d", tokens.asked, forgeries)
	}
	want("an expired token after many", ask("portal", "ey.ann.wrong"), http.StatusTooManyRequests)
	for i := range 2 * forgeries {
		ask("portal", fmt.Sprintf("ey.ann.%d-wrong", i))
	}
	want("who is named by forgeries, for the first time", ask("portal", "ey.ann.good"), http.StatusOK)
	want("a new person", ask("portal", "ey.bob.good"), http.StatusOK)
	want("a stranger at the address", ask("wrong", ""), http.StatusUnauthorized)
	for range 2 * refusedBurst * DefaultRefusedRate {
		ask("wrong", "ey.ann.good")
	}
	want("a guess after many", ask("wrong", "ey.ann.good"), http.StatusTooManyRequests)
	want("a new person at the address of guesses", ask("portal", "ey.eve.good"), http.StatusOK)
	for i := range 2 * forwarded {
		ask("portal", fmt.Sprintf("ey.nobody-%d.wrong", i))
	}
	want("nobody, after many", ask("portal", "ey.nobody.wrong"), http.StatusTooManyRequests)
	want("who was let in before", ask("portal", "ey.bob.renewed"), http.StatusOK)
	for i := range 2 * forgeries {
		ask("portal", fmt.Sprintf("ey.ann.%d-wrong", i))
	}
	want("who is named by forgeries, with a token that was good", ask("portal", "ey.ann.good"), http.StatusOK)
	want("the portal itself", ask("portal", ""), http.StatusOK)
	now = now.Add(time.Minute)
	tokens.revoked = "portal"
	for range 2 * refusedBurst * DefaultRefusedRate {
		ask("portal", "ey.bob.renewed")
	}
	want("a portal that was revoked", ask("portal", "ey.bob.renewed"), http.StatusTooManyRequests)
	want("another token at its address", ask("wrong", ""), http.StatusTooManyRequests)
}

// TestRefusalsOfRequestsForPeople: what is refused for a person is counted with the portal while the portal's own token
// is good, and with the address once it is not, whose token is forgotten then: nobody takes it for a portal's, which
// counts more. A provider that is away is nobody's fault.
func TestRefusalsOfRequestsForPeople(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	const portal, address = "default\x00portal\x00", "10.0.0.1"
	unknown := errs.New(errs.Unauthenticated, "no such token")
	for name, c := range map[string]struct {
		who   model.Caller
		err   error
		at    string // what is counted
		known bool   // the token of the portal is remembered
	}{
		"of a portal": {model.Caller{Tenant: "default", Actor: "portal", Token: "t"}, unknown, "portal", true},
		"of a portal that may not ask": {
			model.Caller{Tenant: "default", Actor: "portal", Token: "t"},
			errs.New(errs.Forbidden, "no"), "portal",
			true,
		},
		"of a machine": {
			model.Caller{Tenant: "default", Actor: "portal", Machine: "m"}, unknown, "portal", true,
		},
		"without a portal":        {model.Caller{}, unknown, "address", false},
		"without one that may":    {model.Caller{}, errs.New(errs.Forbidden, "no"), "address", false},
		"while something is away": {model.Caller{}, errs.New(errs.Unavailable, "away"), "", true},
	} {
		a := &API{callers: &callers{}, limits: newLimits(Limits{}, func() time.Time { return now })}
		a.limits.known.Add("token", portal)
		b := a.bearing(authn.Request{Bearer: "token", OnBehalfOf: "ey.ann.x"}, address)
		a.limits.failed(b, c.who, c.err)
		for at, bucket := range map[string]struct {
			of  *limit.Buckets
			key string
		}{"portal": {a.limits.forwarded, portal}, "address": {a.limits.refused, address}} {
			if counted := bucket.of.Len() > 0; counted != (at == c.at) {
				t.Errorf("%s: counted with the %s: %v", name, at, counted)
			}
		}
		if n := a.limits.forged.Len(); n != 0 {
			t.Errorf("%s: counted with what claims to be of a provider", name)
		}
		if _, known := a.limits.known.Of("token"); known != c.known {
			t.Errorf("%s: the portal is remembered: %v", name, known)
		}
	}
}

// One identity does not take the streams of all.
func TestPlacesOfStreams(t *testing.T) {
	t.Parallel()
	p := newPlaces(Limits{Streams: 4, OwnStreams: 3}, NewTenants(time.Now))
	one, other := model.Caller{Tenant: "default", Actor: "a"}, model.Caller{Tenant: "default", Actor: "b"}
	var leave func()
	enter := func(who model.Caller) bool {
		left, err := p.enter(who)
		if err == nil {
			leave = left
		}
		return err == nil
	}
	for range p.max {
		if !enter(one) {
			t.Fatal("refused within the bound")
		}
	}
	free := leave
	if enter(one) || !enter(other) {
		t.Error("the bound is not that of each identity")
	}
	if enter(other) {
		t.Error("there are more streams than places")
	}
	full := problemOf(t.Context(), noPlace("%d streams are open", p.max))
	if full.Status != http.StatusTooManyRequests || full.GetHeaders().Get("Retry-After") != "1" {
		t.Errorf("who finds no place is answered %+v, %v", full, full.GetHeaders())
	}
	free()
	free() // once
	if !enter(one) || enter(one) {
		t.Error("a place that was left is not given again")
	}
}

// Limits of the configuration take the place of the defaults; those that let nobody in are refused.
func TestLimits(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := newLimits(Limits{RequestRate: 2, RefusedRate: 1}, func() time.Time { return now })
	for i := range 2*requestBurst + 1 {
		if _, ok := l.identities.Take(limit.Read, "one"); ok != (i < 2*requestBurst) {
			t.Errorf("request %d is taken: %v", i, ok)
		}
	}
	if p := newPlaces(Limits{Streams: 7, OwnStreams: 2}, NewTenants(time.Now)); cap(p.all) != 7 || p.max != 2 {
		t.Errorf("%d streams, %d of one", cap(p.all), p.max)
	}
	for _, c := range []struct {
		l  Limits
		ok bool
	}{
		{Limits{}, true},
		{Limits{RequestRate: 1, RefusedRate: 1, Streams: 1, OwnStreams: 1}, true},
		{Limits{RequestRate: -1}, false},
		{Limits{RefusedRate: maxLimit + 1}, false},
		{Limits{Streams: 8}, false}, // one identity would have more places than there are
	} {
		if err := c.l.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.l, err)
		}
	}
}

// Each class has a limit of its own: who has listed too much still writes. Every operation of the document has a class,
// and one whose verb says none is no operation.
func TestClassesAreLimitedApart(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	a := New(Deps{Callers: &callers{}, Policies: unbound{}, Limits: Limits{RequestRate: 4}})
	a.limits = newLimits(Limits{RequestRate: 4}, func() time.Time { return now })
	served := a.authenticate(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	ask := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, Prefix+path, http.NoBody)
		r.Header.Set("Authorization", "Bearer busy")
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)
		return w
	}
	const whole, half = 4 * requestBurst, 2 * requestBurst
	for _, c := range []struct {
		method, path string
		class        limit.Class
		burst        int
	}{
		{http.MethodGet, "/clusters", limit.List, half},
		{http.MethodGet, "/clusters/one", limit.Read, whole},
		{http.MethodDelete, "/clusters/one", limit.Write, half},
		{http.MethodPost, "/breakglass/sessions", limit.SignIn, requestBurst},
	} {
		policy := fmt.Sprintf("%d;w=%d;name=%q", c.burst, requestBurst, c.class)
		for range c.burst {
			if w := ask(c.method, c.path); w.Code != 200 || w.Header().Get("Ratelimit-Policy") != policy {
				t.Fatalf("%s within the burst: %d, %v, want policy %s", c.class, w.Code, w.Header(), policy)
			}
		}
		w := ask(c.method, c.path)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Ratelimit-Policy") != policy ||
			w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "class "+string(c.class)) ||
			!strings.Contains(w.Body.String(), "docs/problems/too-many-requests.md") {
			t.Errorf("%s past it: %d, %v, %s", c.class, w.Code, w.Header(), w.Body)
		}
	}
	for path, item := range a.Document().Paths {
		for method, op := range document.Operations(item) {
			if class, _ := op.Extensions[classExtension].(limit.Class); class == "" && path != pathHook {
				t.Errorf("%s %s has no class", method, path)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("an operation without a class is registered")
		}
	}()
	op := operation(http.MethodPost, "/x", "x", tagTokens, "x")
	everybody.document(&op)
	everybody.classify(&op)
}
