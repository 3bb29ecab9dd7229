package tokens_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/audit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/tokens"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var ann = model.Caller{Tenant: events.DefaultTenant, Actor: "ann", Rights: access.Everything()}

func service(t *testing.T) *tokens.Service {
	t.Helper()
	pool := pgtest.DB(t).Pool(t, "gateway", pg.WithSearchPath("gateway"))
	units := &unit.Runner{
		Pool: pool, Log: eventlog.New(pool), Clock: time.Now, NewID: uuid.New, Slog: slog.New(slog.DiscardHandler),
	}
	return &tokens.Service{Units: units, Tokens: store.NewTokens(pool), Policies: nobody{}}
}

// nobody is a tenant without roles and bindings.
type nobody struct{}

func (nobody) Current(context.Context, string) (*access.Policy, error) {
	return access.NewPolicy(access.State{}, nil), nil
}

func add(t *testing.T, s *tokens.Service, in model.AddToken) model.NewToken {
	t.Helper()
	made, err := s.Add(t.Context(), ann, in)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestLastAdministratorStays: of several administrators' tokens all but the last can be revoked; a viewer's does not
// count.
func TestLastAdministratorStays(t *testing.T) {
	t.Parallel()
	s := service(t)
	first := add(t, s, model.AddToken{Name: "first", Role: model.RoleAdmin})
	add(t, s, model.AddToken{Name: "viewer", Role: model.RoleViewer})
	if err := s.Revoke(t.Context(), ann, first.ID); !errs.Is(err, errs.Conflict) {
		t.Errorf("the only administrator's token was revoked: %v", err)
	}
	second := add(t, s, model.AddToken{Name: "second", Role: model.RoleAdmin})
	if err := s.Revoke(t.Context(), ann, first.ID); err != nil {
		t.Errorf("revoke one of two: %v", err)
	}
	if err := s.Revoke(t.Context(), ann, second.ID); !errs.Is(err, errs.Conflict) {
		t.Errorf("the last administrator's token was revoked: %v", err)
	}
	if err := s.Revoke(t.Context(), ann, first.ID); !errs.Is(err, errs.NotFound) {
		t.Errorf("a token was revoked twice: %v", err)
	}
}

// TestActorsAreChandlersOwn: a token is for somebody new, whose id is made, or for somebody who has had one.
func TestActorsAreChandlersOwn(t *testing.T) {
	t.Parallel()
	s := service(t)
	if _, err := s.Add(t.Context(), ann, model.AddToken{
		Name: "x", Role: model.RoleViewer,
		Actor: "bob@example.org",
	}); !errs.Is(err, errs.Invalid) {
		t.Errorf("an actor that no token has had: %v", err)
	}
	made := add(t, s, model.AddToken{Name: "laptop", Role: model.RoleViewer})
	again := add(t, s, model.AddToken{Name: "phone", Role: model.RoleViewer, Actor: made.Actor})
	if !strings.HasPrefix(made.Actor, "person-") || again.Actor != made.Actor || again.Secret == made.Secret ||
		again.ID == made.ID {
		t.Errorf("tokens %+v and %+v: want one person with two tokens", made.Token, again.Token)
	}
	if who, _, err := s.Tokens.Caller(t.Context(), again.Secret); err != nil || who.Actor != made.Actor ||
		who.Role != model.RoleViewer {
		t.Errorf("the second token belongs to %+v, %v", who, err)
	}
}

// TestRotation: a token gets another secret and another end; the one before is good until its own end, and one of an
// earlier rotation is not. Of both nothing is in the event but when they end.
func TestRotation(t *testing.T) {
	t.Parallel()
	s := service(t)
	first := add(t, s, model.AddToken{Name: "portal", Role: model.RoleViewer})
	good := func(secret string) bool {
		t.Helper()
		who, _, err := s.Tokens.Caller(t.Context(), secret)
		if err != nil && !errs.Is(err, errs.Unauthenticated) {
			t.Fatal(err)
		}
		return err == nil && who.Token == first.ID && who.Actor == first.Actor
	}
	rotate := func(overlap int) model.NewToken {
		t.Helper()
		made, err := s.Rotate(t.Context(), ann, first.ID, model.RotateToken{OverlapSeconds: &overlap})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	second := rotate(3600)
	if second.ID != first.ID || second.Secret == first.Secret || !good(first.Secret) || !good(second.Secret) ||
		time.Until(*second.PreviousEndsAt).Round(time.Minute) != time.Hour || !second.EndsAt.After(*first.EndsAt) {
		t.Errorf("rotated to %+v", second.Token)
	}
	third := rotate(3600)
	if good(first.Secret) || !good(second.Secret) || !good(third.Secret) {
		t.Error("after two rotations the last two secrets are good, and no other")
	}
	soon := time.Now().Add(time.Minute)
	ending := add(t, s, model.AddToken{Name: "ending", Role: model.RoleViewer, EndsAt: &soon})
	if made, err := s.Rotate(t.Context(), ann, ending.ID, model.RotateToken{}); err != nil ||
		made.PreviousEndsAt.After(soon) {
		t.Errorf("a secret is good for longer than it was: %+v, %v", made.Token, err)
	}
	if fourth := rotate(0); good(third.Secret) || !good(fourth.Secret) {
		t.Error("without an overlap the secret before is refused at once")
	} else if err := s.Revoke(t.Context(), ann, first.ID); err != nil || good(fourth.Secret) {
		t.Errorf("a rotated token is revoked: %v", err)
	}
	if _, err := s.Rotate(t.Context(), ann, first.ID, model.RotateToken{}); !errs.Is(err, errs.NotFound) {
		t.Errorf("a revoked token is rotated: %v", err)
	}
	boss := add(t, s, model.AddToken{Name: "boss", Role: model.RoleAdmin})
	reader := model.Caller{Tenant: ann.Tenant, Actor: "bob"}
	if _, err := s.Rotate(t.Context(), reader, boss.ID, model.RotateToken{}); !errs.Is(err, errs.Forbidden) {
		t.Errorf("somebody gets the secret of a token that allows more than they may: %v", err)
	}
	if _, err := s.EnsureAdmin(t.Context(), "configured-token-0123456789"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rotate(t.Context(), ann, store.AdminID, model.RotateToken{}); !errs.Is(err, errs.Conflict) {
		t.Errorf("the token of the configuration is rotated: %v", err)
	}
}

// TestKindsOfActors: all tokens of one actor are a person's or a program's.
func TestKindsOfActors(t *testing.T) {
	t.Parallel()
	s := service(t)
	program := add(t, s, model.AddToken{Name: "portal", Role: model.RoleNone, Kind: access.KindServiceAccount})
	again := add(t, s, model.AddToken{Name: "portal", Role: model.RoleNone, Actor: program.Actor})
	if !strings.HasPrefix(program.Actor, "service-") || again.Kind != access.KindServiceAccount {
		t.Errorf("made %+v and %+v", program.Token, again.Token)
	}
	if _, err := s.Add(t.Context(), ann, model.AddToken{
		Name: "x", Role: model.RoleNone, Actor: program.Actor, Kind: access.KindUser,
	}); !errs.Is(err, errs.Invalid) {
		t.Errorf("an actor is a program and a person: %v", err)
	}
	if who, _, err := s.Tokens.Caller(t.Context(), again.Secret); err != nil || who.Kind != access.KindServiceAccount {
		t.Errorf("the token lets in %+v, %v", who, err)
	}
}

// TestTokensAreAudited: who made and revoked tokens is recorded, newest first, without their names.
func TestTokensAreAudited(t *testing.T) {
	t.Parallel()
	s := service(t)
	add(t, s, model.AddToken{Name: "Ann Example", Role: model.RoleAdmin})
	made := add(t, s, model.AddToken{Name: "Bob Example", Role: model.RoleViewer})
	if err := s.Revoke(t.Context(), ann, made.ID); err != nil {
		t.Fatal(err)
	}
	log := audit.Service{Units: s.Units}
	var actions []string
	page := model.Page{Limit: 2}
	for {
		items, next, err := log.List(t.Context(), ann, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range items {
			actions = append(actions, q.Action)
			if q.Actor != "ann" || strings.Contains(q.About, "Example") {
				t.Errorf("entry %+v", q)
			}
		}
		if page.After = next; next == nil {
			break
		}
	}
	if want := []string{"token.revoke", "token.add", "token.add"}; !slices.Equal(actions, want) {
		t.Errorf("actions %q, want %q", actions, want)
	}
	if _, _, err := log.List(t.Context(), ann, model.Page{Limit: 2, After: []string{"yesterday", "x"}}); !errs.Is(err,
		errs.Invalid) {
		t.Errorf("the cursor of another list: %v", err)
	}
}

// TestAdminTokenIsAnEvent: a token of the configuration is in the record when it is new or another one than at the last
// start, and so is one that was there before such events were; a start that changes nothing is not.
func TestAdminTokenIsAnEvent(t *testing.T) {
	t.Parallel()
	s := service(t)
	told := func() (n int) {
		t.Helper()
		err := s.Units.Pool.QueryRow(t.Context(), `select count(*) from eventlog.appended where type = $1 and subject = $2
			and convert_from(body, 'UTF8') like '%"configuration"%'`, "access.token-created.v1", "token/token-admin").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	secret := strings.Repeat("a", store.MinTokenChars)
	for _, c := range []struct {
		given string
		want  int
	}{{"", 1}, {"", 1}, {secret, 2}, {secret, 2}, {secret + "b", 3}, {"", 3}} {
		if _, err := s.EnsureAdmin(t.Context(), c.given); err != nil {
			t.Fatal(err)
		}
		if n := told(); n != c.want {
			t.Errorf("after a start with %q there are %d events, want %d", c.given, n, c.want)
		}
	}
	add(t, s, model.AddToken{Name: "another", Role: model.RoleAdmin})
	if err := s.Revoke(t.Context(), ann, "token-admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.EnsureAdmin(t.Context(), secret+"b"); err != nil || told() != 3 {
		t.Errorf("a revoked token is an event again: %d, %v", told(), err)
	}

	s = service(t)
	hash := model.HashToken(secret)
	if _, err := s.Units.Pool.Exec(t.Context(), `insert into gateway.tokens (tenant, id, hash, role)
		values ('default', 'token-admin', $1, 'admin')`, hash[:]); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.EnsureAdmin(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	if n := told(); n != 1 {
		t.Errorf("a token of before is %d events, want 1", n)
	}
}
