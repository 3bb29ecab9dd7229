package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

type callers struct {
	asked   int
	revoked string
}

func (c *callers) Caller(_ context.Context, token string) (model.Caller, events.Position, error) {
	c.asked++
	if token == "wrong" || token == c.revoked {
		return model.Caller{}, events.Position{}, errs.New(errs.Unauthenticated, "no such token")
	}
	return model.Caller{Tenant: "default", Actor: token, Role: model.RoleViewer}, events.Position{}, nil
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
	a := &API{tokens: tokens, policies: unbound{}, limits: newLimits(Limits{}, func() time.Time { return now })}
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
	looks := tokens.asked
	w := ask("busy", "10.0.0.2")
	if tokens.asked != looks {
		t.Error("a request past the limit costs a look at the database")
	}
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" ||
		w.Header().Get("Content-Type") != "application/problem+json" {
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

// One identity does not take the streams of all.
func TestPlacesOfStreams(t *testing.T) {
	t.Parallel()
	p := places{max: 3}
	one, other := model.Caller{Tenant: "default", Actor: "a"}, model.Caller{Tenant: "default", Actor: "b"}
	for range p.max {
		if !p.enter(one) {
			t.Fatal("refused within the bound")
		}
	}
	if p.enter(one) || !p.enter(other) {
		t.Error("the bound is not that of each identity")
	}
	full := problemOf(t.Context(), noPlace("%d streams are open", p.max))
	if full.Status != http.StatusTooManyRequests || full.GetHeaders().Get("Retry-After") != "1" {
		t.Errorf("who finds no place is answered %+v, %v", full, full.GetHeaders())
	}
	p.leave(one)
	if !p.enter(one) {
		t.Error("a place that was left is not given again")
	}
}

// Limits of the configuration take the place of the defaults; those that let nobody in are refused.
func TestLimits(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := newLimits(Limits{RequestRate: 2, RefusedRate: 1}, func() time.Time { return now })
	for i := range 2*requestBurst + 1 {
		if _, ok := l.identities.Take("one"); ok != (i < 2*requestBurst) {
			t.Errorf("request %d is taken: %v", i, ok)
		}
	}
	h := newEventHandlers(Deps{Limits: Limits{Streams: 7, OwnStreams: 2}})
	if cap(h.streams) != 7 || h.own.max != 2 {
		t.Errorf("%d streams, %d of one", cap(h.streams), h.own.max)
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
