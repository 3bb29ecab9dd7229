package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
	"github.com/oauth2-proxy/mockoidc"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/oidctest"
)

// house is a gateway with an identity provider.
type house struct {
	*bench

	provider *mockoidc.MockOIDC
	away     atomic.Bool
}

func setupHouse(t *testing.T, settings func(*app.Config)) *house {
	t.Helper()
	h := &house{}
	h.provider = oidctest.Start(t, func(_ *mockoidc.MockOIDC, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h.away.Load() {
				http.Error(w, "away", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	path := filepath.Join(t.TempDir(), "providers.yaml")
	text := fmt.Sprintf("providers:\n- name: house\n  issuer: %s\n  audiences: [%s]\n  clockSkew: 0s\n"+
		"  login: {clientID: %s, clientSecret: %s, scopes: [openid, profile, groups]}\n", h.provider.Issuer(),
		h.provider.ClientID, h.provider.ClientID, h.provider.ClientSecret)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h.bench = setupWith(t, func(c *app.Config) {
		c.SignIn.OIDCProviders = path
		if settings != nil {
			settings(c)
		}
	})
	return h
}

// jwt is a token of the provider for somebody.
func (h *house) jwt(subject string, life time.Duration, groups ...string) string {
	h.t.Helper()
	kid, err := h.provider.Keypair.KeyID()
	if err != nil {
		h.t.Fatal(err)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: h.provider.Keypair.PrivateKey},
		(&jose.SignerOptions{}).WithHeader("kid", kid))
	if err != nil {
		h.t.Fatal(err)
	}
	text, err := jwt.Signed(s).Claims(map[string]any{
		"iss": h.provider.Issuer(), "sub": subject, "aud": h.provider.ClientID, "iat": time.Now().Unix(),
		"exp": time.Now().Add(life).Unix(), "groups": groups, "preferred_username": subject + "@example.org",
	}).Serialize()
	if err != nil {
		h.t.Fatal(err)
	}
	return text
}

func (h *house) whoAmI(bearer string) model.WhoAmI {
	h.t.Helper()
	return must[model.WhoAmI](h.bench, 200, h.as(bearer, "GET", "/api/v1/whoami", nil))
}

// TestSignInByAProvider: somebody of the provider may ask who they are, and nothing else; bindings of their groups and
// of their actor give them more. They are the same person with every token, and no event says what they are called.
func TestSignInByAProvider(t *testing.T) {
	t.Parallel()
	h := setupHouse(t, nil)
	ann := h.jwt("ann", time.Minute, "ports")
	me := h.whoAmI(ann)
	if !strings.HasPrefix(me.Actor, "person-") || !strings.HasPrefix(me.Identity, "identity-") || me.Kind != "User" ||
		!slices.Equal(me.Groups, []string{"house:ports"}) || len(me.Permissions) != 0 || me.Token != "" {
		t.Errorf("got %+v", me)
	}
	must[problem](h.bench, 403, h.as(ann, "GET", "/api/v1/clusters", nil))
	must[model.RoleBinding](h.bench, 200, h.do("PUT", bindingsPath+"ports", model.RoleBindingSpec{
		Role: "viewer", Subjects: []model.AccessSubject{{Kind: "Group", Name: "house:ports"}},
	}))
	if a := h.as(ann, "GET", "/api/v1/clusters", nil); a.status != 200 {
		t.Errorf("a member of a group: %d %s", a.status, a.body)
	}
	must[problem](h.bench, 403, h.as(h.jwt("bob", time.Minute), "GET", "/api/v1/clusters", nil))
	h.bind("bob", "viewer", h.whoAmI(h.jwt("bob", time.Minute)).Actor, model.AccessScope{})
	if a := h.as(h.jwt("bob", time.Minute), "GET", "/api/v1/clusters", nil); a.status != 200 {
		t.Errorf("by a binding of the actor: %d %s", a.status, a.body)
	}
	if again := h.whoAmI(h.jwt("ann", time.Hour)); again.Actor != me.Actor || again.Identity != me.Identity {
		t.Errorf("with another token %+v", again)
	}

	list := must[struct{ Items []model.Identity }](h.bench, 200, h.do("GET", "/api/v1/identities", nil)).Items
	if len(list) != 2 || list[0].ID != me.Identity || list[0].Name != "ann@example.org" || list[0].Provider != "house" {
		t.Errorf("listed %+v", list)
	}
	named := func() string { return h.text(`select string_agg(name, ' ' order by name) from gateway.identities`) }
	h.exec("gateway", `update gateway.identities set name = 'by another program' where id = '`+me.Identity+`'`)
	h.whoAmI(ann)
	if got := named(); got != "bob@example.org by another program" {
		t.Errorf("within the hour people are called %s", got)
	}
	h.exec("gateway", `update gateway.identities set seen = seen - interval '1 hour' where id = '`+me.Identity+`'`)
	h.whoAmI(ann)
	if got := named(); got != "ann@example.org bob@example.org" {
		t.Errorf("after it people are called %s", got)
	}
	h.until(func() bool { return h.eventsWith(me.Identity) == 1 })
	if n := h.eventsWith("example.org"); n != 0 {
		t.Errorf("%d events hold an address (D2)", n)
	}
	h.until(func() bool {
		return strings.Contains(string(h.do("GET", "/api/v1/access?token="+me.Identity, nil).body), "/whoami")
	})
}

// TestBadTokensOfAProvider: a token that ended and one of nobody are 401, with the reason; a provider that is away is
// 503 for a gateway without its keys, and nothing for one that has them.
func TestBadTokensOfAProvider(t *testing.T) {
	t.Parallel()
	h := setupHouse(t, nil)
	good := h.jwt("ann", time.Minute)
	if p := must[problem](h.bench, 401, h.as(h.jwt("ann", -time.Minute), "GET", "/api/v1/whoami", nil)); !strings.
		Contains(p.Detail, "ended at") {
		t.Errorf("got %+v", p)
	}
	must[problem](h.bench, 401, h.as(good[:len(good)-4], "GET", "/api/v1/whoami", nil))
	h.whoAmI(good)
	h.away.Store(true)
	h.whoAmI(h.jwt("bob", time.Minute))
	h.stop()
	h.url, h.stop = h.gateway(token)
	if p := must[problem](h.bench, 503, h.as(good, "GET", "/api/v1/whoami", nil)); !strings.Contains(p.Detail,
		"identity provider house") {
		t.Errorf("got %+v", p)
	}
	if a := h.do("GET", "/api/v1/clusters", nil); a.status != 200 {
		t.Errorf("a token of Chandler while the provider is away: %d", a.status)
	}
}

// TestRenewedTokensBehindGuesses: somebody without any token, at the address of people of a provider, does not keep
// them out when their tokens are renewed.
func TestRenewedTokensBehindGuesses(t *testing.T) {
	t.Parallel()
	h := setupHouse(t, nil)
	h.whoAmI(h.jwt("ann", time.Minute))
	for _, tried := range []string{"nonsense", h.jwt("eve", -time.Minute)} {
		for h.as(tried, "GET", "/api/v1/whoami", nil).status != 429 { //nolint:revive // until it is enough
		}
	}
	h.whoAmI(h.jwt("ann", time.Hour))
}

// TestOnePersonByTokenAndProvider proves R-IP-10 for people with several ways in: an administrator says that an
// identity is that of a person with a token, and their approvals count once.
func TestOnePersonByTokenAndProvider(t *testing.T) {
	t.Parallel()
	h := setupHouse(t, nil)
	byToken := h.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	jwt := h.jwt("ann", time.Minute)
	me := h.whoAmI(jwt)
	must[problem](h.bench, 400, h.do("PATCH", "/api/v1/identities/"+me.Identity, model.ConfigureIdentity{Actor: "ann"}))
	must[problem](h.bench, 404, h.do("PATCH", "/api/v1/identities/none", model.ConfigureIdentity{Actor: byToken.Actor}))
	if i := must[model.Identity](h.bench, 200, h.do("PATCH", "/api/v1/identities/"+me.Identity, model.ConfigureIdentity{
		Actor: byToken.Actor,
	})); i.Actor != byToken.Actor || h.whoAmI(jwt).Actor != byToken.Actor {
		t.Errorf("got %+v", i)
	}
	h.bind("ann", "approver", byToken.Actor, model.AccessScope{})
	id := uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	p.Approvers = 2
	h.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", p)
	for _, bearer := range []string{byToken.Secret, jwt} {
		if got := must[model.InstallPlan](h.bench, 200, h.as(bearer, "POST", "/api/v1/installplans/"+id+"/approve",
			model.ApprovePlan{Digest: p.Digest})); got.MissingApprovals != 1 || got.Approvals[0].By != byToken.Actor {
			t.Errorf("one person counts twice: %+v", got.PlanTerms)
		}
	}
}

// TestIdentitiesAreDisabled: one that is disabled is refused at once, its streams end, and it comes back when it is
// enabled. A stream ends when the provider's word does.
func TestIdentitiesAreDisabled(t *testing.T) {
	t.Parallel()
	h := setupHouse(t, nil)
	ann := h.jwt("ann", time.Minute)
	me := h.whoAmI(ann)
	h.bind("ann", "viewer", me.Actor, model.AccessScope{})
	s := h.streamAs(ann, "", "")
	defer s.close()
	path := "/api/v1/identities/" + me.Identity
	must[problem](h.bench, 403, h.as(ann, "PATCH", path, `{"disabled": false}`))
	if i := must[model.Identity](h.bench, 200, h.do("PATCH", path, `{"disabled": true}`)); !i.Disabled {
		t.Errorf("got %+v", i)
	}
	if p := must[problem](h.bench, 401, h.as(ann, "GET", "/api/v1/whoami", nil)); !strings.Contains(p.Detail,
		"disabled") {
		t.Errorf("got %+v", p)
	}
	for _, _, ok := s.next(); ok; _, _, ok = s.next() { //nolint:revive // until it ends
	}
	must[model.Identity](h.bench, 200, h.do("PATCH", path, `{"disabled": false}`))
	h.whoAmI(ann)
	h.until(func() bool { return h.eventsWith(me.Identity) == 3 }) // seen, disabled, enabled

	short := h.streamAs(h.jwt("ann", 2*time.Second), "", "")
	defer short.close()
	for _, _, ok := short.next(); ok; _, _, ok = short.next() { //nolint:revive // until it ends
	}
}

// TestNobodyLinksToMoreThanTheyHave: who may change identities, and nothing else, does not make theirs that of an
// administrator.
func TestNobodyLinksToMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	h := setupHouse(t, nil)
	must[model.AccessRole](h.bench, 200, h.do("PUT", "/api/v1/roles/linker", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"list", "update"}, Resources: []string{"identities"}},
	}}))
	boss := h.give(model.AddToken{Name: "boss", Role: model.RoleNone})
	h.bind("boss", "admin", boss.Actor, model.AccessScope{})
	ann := h.jwt("ann", time.Minute)
	me := h.whoAmI(ann)
	h.bind("ann", "linker", me.Actor, model.AccessScope{})
	p := must[problem](h.bench, 403, h.as(ann, "PATCH", "/api/v1/identities/"+me.Identity,
		model.ConfigureIdentity{Actor: boss.Actor}))
	if p.Errors[0].Rule != "no-more-than-own" {
		t.Errorf("got %+v", p)
	}
}
