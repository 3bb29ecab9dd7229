package oidc_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/oauth2-proxy/mockoidc"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/oidc"
	"github.com/chandler-fleet/chandler/services/gateway/oidctest"
)

// house is a provider that runs (oauth2-proxy/mockoidc: discovery, keys, codes and tokens over HTTP, keys that can be
// changed while it runs, a clock that can be moved), and whoever checks its tokens.
type house struct {
	*mockoidc.MockOIDC

	t     *testing.T
	clock atomic.Int64 // seconds added to the time of whoever checks
	away  atomic.Bool  // the provider answers 503
	asked atomic.Int64 // for its keys
	v     *oidc.Verifier
}

// newHouse starts both; settings are YAML that goes below the provider.
func newHouse(t *testing.T, settings string) *house {
	t.Helper()
	h := &house{t: t}
	m := oidctest.Start(t, func(_ *mockoidc.MockOIDC, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "jwks.json") {
				h.asked.Add(1)
			}
			if h.away.Load() {
				http.Error(w, "away", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	h.MockOIDC = m
	h.v = h.verifier(settings)
	return h
}

func (h *house) verifier(settings string) *oidc.Verifier {
	h.t.Helper()
	list, err := oidc.ReadFile(file(h.t, fmt.Sprintf("providers:\n- name: house\n  issuer: %s\n  audiences: [other, %s]\n%s",
		h.Issuer(), h.ClientID, settings)))
	if err != nil {
		h.t.Fatal(err)
	}
	v, err := oidc.New(list, func() time.Time { return time.Now().Add(time.Duration(h.clock.Load()) * time.Second) },
		slog.New(slog.DiscardHandler))
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "providers.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// signIn gets an ID token as a program does: by a code, over HTTP.
func (h *house) signIn() string {
	h.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := h.AuthorizationEndpoint() + "?" + url.Values{
		"scope": {"openid profile groups"}, "state": {"s"}, "client_id": {h.ClientID}, "response_type": {"code"},
		"redirect_uri": {"http://127.0.0.1/back"},
	}.Encode()
	answer, err := client.Get(get)
	if err != nil {
		h.t.Fatal(err)
	}
	_ = answer.Body.Close()
	back, err := answer.Location()
	if err != nil {
		h.t.Fatal(err)
	}
	answer, err = client.PostForm(h.TokenEndpoint(), url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "client_id": {h.ClientID},
		"client_secret": {h.ClientSecret},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return field(h.t, answer.Body, "id_token")
}

// signed is a token with claims of one's own, by the provider's key.
func (h *house) signed(claims map[string]any) string {
	return h.signedBy(h.Keypair.PrivateKey, jose.RS256, claims)
}

func (h *house) signedBy(key any, alg jose.SignatureAlgorithm, claims map[string]any) string {
	h.t.Helper()
	kid, err := h.Keypair.KeyID()
	if err != nil {
		h.t.Fatal(err)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key},
		(&jose.SignerOptions{}).WithHeader("kid", kid))
	if err != nil {
		h.t.Fatal(err)
	}
	all := map[string]any{
		"iss": h.Issuer(), "sub": "1", "aud": h.ClientID, "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Minute).Unix(),
	}
	for name, value := range claims {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	text, err := jwt.Signed(s).Claims(all).Serialize()
	if err != nil {
		h.t.Fatal(err)
	}
	return text
}

// field is one text of a JSON document.
func field(t *testing.T, r io.Reader, name string) string {
	t.Helper()
	all := map[string]any{}
	if err := json.NewDecoder(r).Decode(&all); err != nil {
		t.Fatal(err)
	}
	text, ok := all[name].(string)
	if !ok {
		t.Fatalf("no %s in %v", name, all)
	}
	return text
}

// TestPersonOfAProvider: a token that a provider gave for a code says who it is, with groups that no other provider
// could name.
func TestPersonOfAProvider(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.QueueUser(&mockoidc.MockUser{
		Subject: "42", PreferredUsername: "ingrid\x1b[2J", Groups: []string{"ports", "admins", "ports", "a\nb"},
	})
	p, err := h.v.Verify(t.Context(), h.signIn())
	if err != nil {
		t.Fatal(err)
	}
	if p.Tenant != "default" || p.Provider != "house" || p.Issuer != h.Issuer() || p.Subject != "42" ||
		p.Name != "ingrid[2J" || !slices.Equal(p.Groups, []string{"house:admins", "house:ports"}) ||
		p.Until.Before(time.Now()) {
		t.Errorf("got %+v", p)
	}
}

// TestWhatIsNotLetIn: every way in which a token is not what it says, with the reason.
func TestWhatIsNotLetIn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "  requiredClaims: {hd: example.org}\n")
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]any{"hd": "example.org"}
	with := func(more map[string]any) map[string]any {
		all := map[string]any{"hd": "example.org"}
		maps.Copy(all, more)
		return all
	}
	if _, err := h.v.Verify(t.Context(), h.signed(good)); err != nil {
		t.Fatalf("a good token: %v", err)
	}
	public := []byte(other.PublicKey.N.String()) // as the secret of an HMAC
	parts := strings.Split(h.signed(good), ".")
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	large := strings.Repeat("a", oidc.MaxTokenChars)
	for name, c := range map[string]struct{ token, want string }{
		"no signature":           {"eyJhbGciOiJub25lIn0." + parts[1] + ".", "not allowed"},
		"a shared secret":        {h.signedBy(public, jose.HS256, good), "not allowed"},
		"an algorithm not set":   {h.signedBy(h.Keypair.PrivateKey, jose.RS512, good), "not as it must be"},
		"another key":            {h.signedBy(other, jose.RS256, good), "no key of the provider fits"},
		"changed claims":         {parts[0] + "." + parts[1][:len(parts[1])-4] + "AAAA." + parts[2], "refused"},
		"another issuer":         {h.signed(with(map[string]any{"iss": "https://other.example.org"})), "does not know"},
		"another audience":       {h.signed(with(map[string]any{"aud": "portal"})), "not for Chandler"},
		"no audience":            {h.signed(with(map[string]any{"aud": nil})), "not for Chandler"},
		"ended":                  {h.signed(with(map[string]any{"exp": in(-time.Minute)})), "ended at"},
		"without an end":         {h.signed(with(map[string]any{"exp": nil})), "no end"},
		"not yet":                {h.signed(with(map[string]any{"nbf": in(time.Minute)})), "not good yet"},
		"of the future":          {h.signed(with(map[string]any{"iat": in(time.Minute)})), "future"},
		"nobody":                 {h.signed(with(map[string]any{"sub": ""})), "names nobody"},
		"without what is wanted": {h.signed(nil), "claim hd"},
		"with another value":     {h.signed(map[string]any{"hd": "example.com"}), "claim hd"},
		"too many groups":        {h.signed(with(map[string]any{"groups": make([]string, 501)})), "501 groups"},
		"groups of no kind":      {h.signed(with(map[string]any{"groups": 1})), "no list of groups"},
		"too long":               {h.signed(with(map[string]any{"x": large})), "more than"},
		"no JWT":                 {"ey.a.b", "no JWT"},
	} {
		if _, err := h.v.Verify(t.Context(), c.token); !errs.Is(err, errs.Unauthenticated) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want it to be refused: %s", name, err, c.want)
		}
	}
	if n := h.asked.Load(); n != 1 {
		t.Errorf("the provider was asked for its keys %d times, want once", n)
	}
}

// TestClocksMayDiffer: within the skew of the settings, and no further.
func TestClocksMayDiffer(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "  clockSkew: 10s\n")
	token := h.signed(map[string]any{"exp": time.Now().Add(60 * time.Second).Unix()})
	for after, good := range map[int64]bool{0: true, 50: true, 65: true, 75: false} {
		h.clock.Store(after)
		if _, err := h.v.Verify(t.Context(), token); (err == nil) != good {
			t.Errorf("%d s later: %v", after, err)
		}
	}
}

// TestKeysRotate: a key that the provider has since the last look is found; one that it took back is refused once the
// keys are read again; guessing keys does not have the provider asked each time.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	before := h.signed(nil)
	if _, err := h.v.Verify(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	next, err := mockoidc.RandomKeypair(2048)
	if err != nil {
		t.Fatal(err)
	}
	h.Keypair = next
	if _, err := h.v.Verify(t.Context(), h.signed(nil)); err != nil {
		t.Errorf("a token of the new key: %v", err)
	}
	if _, err := h.v.Verify(t.Context(), before); !errs.Is(err, errs.Unauthenticated) {
		t.Errorf("a token of a key that is gone: %v", err)
	}
	for range 50 {
		if _, err := h.v.Verify(t.Context(), before); err == nil {
			t.Fatal("it is good again")
		}
	}
	if n := h.asked.Load(); n > 7 {
		t.Errorf("the provider was asked %d times for a key that it does not have", n)
	}
}

// TestProviderAway: its keys are believed for a day; a gateway that never had them says so, and does not call a token
// bad that may be good.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "  clockSkew: 5m\n")
	token := h.signed(nil)
	h.away.Store(true)
	if _, err := h.v.Verify(t.Context(), token); !errs.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "provider house") {
		t.Errorf("without keys: %v, want errs.Unavailable", err)
	}
	h.away.Store(false)
	h.clock.Store(60)
	if _, err := h.v.Verify(t.Context(), token); err != nil {
		t.Errorf("the provider is back: %v", err)
	}
	h.away.Store(true)
	if _, err := h.v.Verify(t.Context(), token); err != nil {
		t.Errorf("with keys of before: %v", err)
	}
	h.clock.Store(int64((25 * time.Hour).Seconds()))
	late := h.signed(map[string]any{"exp": time.Now().Add(30 * time.Hour).Unix()})
	if _, err := h.v.Verify(t.Context(), late); !errs.Is(err, errs.Unavailable) {
		t.Errorf("with keys of yesterday: %v, want errs.Unavailable", err)
	}
}

// TestBadProviders: settings that would let in the wrong people, with their place.
func TestBadProviders(t *testing.T) {
	t.Parallel()
	const good = "providers:\n- {name: a, issuer: 'https://a.example.org', audiences: [chandler]}\n"
	if _, err := oidc.ReadFile(file(t, good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"plain HTTP":        {strings.Replace(good, "https", "http", 1), "is not https"},
		"no address":        {strings.Replace(good, "https://", "", 1), "is no address"},
		"no audience":       {strings.Replace(good, "[chandler]", "[]", 1), "audiences"},
		"no name":           {strings.Replace(good, "name: a", "name: ''", 1), "name"},
		"a shared secret":   {strings.Replace(good, "}", ", algorithms: [HS256]}", 1), "HS256"},
		"no signature":      {strings.Replace(good, "}", ", algorithms: [none]}", 1), "none"},
		"clocks":            {strings.Replace(good, "}", ", clockSkew: 1h}", 1), "clockSkew"},
		"an unknown field":  {strings.Replace(good, "}", ", insecure: true}", 1), "insecure"},
		"a login for none":  {strings.Replace(good, "}", ", login: {scopes: [openid]}}", 1), "clientID"},
		"the same issuer":   {good + "- {name: b, issuer: 'https://a.example.org', audiences: [x]}\n", "the issuer of another"},
		"groups of another": {good + "- {name: b, issuer: 'https://b.example.org', audiences: [x], groupsPrefix: ''}\n", "taken for"},
	} {
		if _, err := oidc.ReadFile(file(t, c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	ca := file(t, strings.Repeat("no certificate ", 3))
	list, err := oidc.ReadFile(file(t, strings.Replace(good, "}", ", caFile: "+ca+"}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oidc.New(list, time.Now, slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))); err == nil {
		t.Error("a file without a certificate is taken for one")
	}
}
