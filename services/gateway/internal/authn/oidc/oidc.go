package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/vouch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// MaxTokenChars bounds a JWT: one with hundreds of groups has less, and servers in front take no longer headers.
const MaxTokenChars = 16 << 10

// Verifier checks the tokens of all providers. Nil knows none.
type Verifier struct {
	list []*provider
	now  func() time.Time
}

type provider struct {
	Provider
	keys *keys
	skew time.Duration
}

// New makes a verifier; it asks nobody yet.
func New(list []Provider, now func() time.Time, log *slog.Logger) (*Verifier, error) {
	v := &Verifier{now: now}
	for _, p := range list {
		skew, err := time.ParseDuration(p.ClockSkew)
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "setting oidc-providers: provider %s: clockSkew", p.Name)
		}
		k, err := newKeys(p, now, log)
		if err != nil {
			return nil, err
		}
		v.list = append(v.list, &provider{p, k, skew})
	}
	return v, nil
}

// Providers are those of the settings.
func (v *Verifier) Providers() []Provider {
	if v == nil {
		return nil
	}
	out := make([]Provider, len(v.list))
	for i, p := range v.list {
		out[i] = p.Provider
	}
	return out
}

// Run keeps the keys of all providers fresh, so that requests need not wait for them.
func (v *Verifier) Run(ctx context.Context) error {
	done := make(chan struct{})
	for _, p := range v.list {
		go func() {
			p.keys.keep(ctx)
			done <- struct{}{}
		}()
	}
	for range v.list {
		<-done
	}
	return nil
}

// Looks says whether a bearer token is a JWT rather than a token of Chandler: three parts, of which the first is JSON.
func Looks(token string) bool {
	return strings.HasPrefix(token, "ey") && strings.Count(token, ".") == 2 //nolint:mnd // between three parts
}

// Subject is of whom a JWT says it is, which nobody has checked: what it names is compared, and believed by no one. It
// is empty where nothing can be read.
func Subject(token string) string {
	parts := strings.Split(token, ".")
	var says struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
	}
	if len(token) > MaxTokenChars || len(parts) < 2 { //nolint:mnd // the claims are the second part
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &says) != nil || says.Subject == "" {
		return ""
	}
	return says.Issuer + "\x00" + says.Subject
}

// Verify says who holds a token. An error of kind errs.Unauthenticated says why it lets nobody in, one of kind
// errs.Unavailable that its provider has told no keys for too long.
func (v *Verifier) Verify(ctx context.Context, token string) (model.Person, error) {
	if len(token) > MaxTokenChars {
		return model.Person{}, refused("it has more than %d characters", MaxTokenChars)
	}
	p, kid, err := v.provider(token)
	if err != nil {
		return model.Person{}, err
	}
	list, err := p.keys.of(ctx, kid)
	if err != nil {
		return model.Person{}, err
	}
	// Audiences and times are checked below: by several audiences, and with the skew of the settings.
	checker := oidc.NewVerifier(p.Issuer, keySet{list, p.allowed()}, &oidc.Config{
		SupportedSigningAlgs: p.Algorithms, SkipClientIDCheck: true, SkipExpiryCheck: true,
	})
	checked, err := checker.Verify(ctx, token)
	if err != nil {
		return model.Person{}, refused("it is not signed by its provider %s, or not as it must be: %v", p.Name, err)
	}
	return p.person(checked, v.now())
}

// provider finds whose token it is, by what it says itself: the signature shows whether that is true.
func (v *Verifier) provider(token string) (*provider, string, error) {
	var says struct {
		Issuer string `json:"iss"`
	}
	signed, err := jose.ParseSignedCompact(token, Algorithms)
	if err != nil {
		return nil, "", refused("it is no JWT, or signed in a way that is not allowed")
	}
	if err := json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &says); err != nil {
		return nil, "", refused("its claims cannot be read")
	}
	for _, p := range v.list {
		if p.Issuer == says.Issuer {
			return p, signed.Signatures[0].Header.KeyID, nil
		}
	}
	return nil, "", refused("it is of an issuer that this installation does not know")
}

func (p *provider) allowed() (list []jose.SignatureAlgorithm) {
	for _, a := range p.Algorithms {
		list = append(list, jose.SignatureAlgorithm(a))
	}
	return list
}

// keySet verifies by keys that are known.
type keySet struct {
	list    []jose.JSONWebKey
	allowed []jose.SignatureAlgorithm
}

// VerifySignature implements oidc.KeySet.
func (k keySet) VerifySignature(_ context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(token, k.allowed)
	if err != nil {
		return nil, fmt.Errorf("parse it: %w", err)
	}
	for _, key := range k.list {
		if payload, err := signed.Verify(key); err == nil {
			return payload, nil
		}
	}
	return nil, errs.New(errs.Unauthenticated, "no key of the provider fits")
}

// person takes out of a token whose signature is good what counts, and refuses one that is not for Chandler or not good
// now.
func (p *provider) person(t *oidc.IDToken, now time.Time) (model.Person, error) {
	var claims map[string]any
	var times struct {
		NotBefore *float64 `json:"nbf"`
	}
	if err := t.Claims(&claims); err != nil {
		return model.Person{}, refused("its claims cannot be read")
	}
	if err := t.Claims(&times); err != nil {
		return model.Person{}, refused("its claims cannot be read")
	}
	switch until := t.Expiry.Add(p.skew); {
	case claims["exp"] == nil:
		return model.Person{}, refused("it has no end (exp)")
	case !now.Before(until):
		return model.Person{}, refused("it ended at %s: sign in again", t.Expiry.UTC().Format(time.RFC3339))
	}
	if n := times.NotBefore; n != nil && now.Add(p.skew).Before(time.Unix(int64(*n), 0)) {
		return model.Person{}, refused("it is not good yet (nbf)")
	}
	if t.IssuedAt.After(now.Add(p.skew)) {
		return model.Person{}, refused("it was made in the future (iat): the clocks differ")
	}
	if !slices.ContainsFunc(t.Audience, func(a string) bool { return slices.Contains(p.Audiences, a) }) {
		return model.Person{}, refused("it is for %q, and not for Chandler (aud)", t.Audience)
	}
	if t.Subject == "" || len(t.Subject) > vouch.MaxSubject {
		return model.Person{}, refused("it names nobody (sub), or with more than %d characters", vouch.MaxSubject)
	}
	for claim, want := range p.RequiredClaims {
		if !holds(claims[claim], want) {
			return model.Person{}, refused("its claim %s is not what the settings of provider %s require", claim, p.Name)
		}
	}
	out := model.Person{
		Tenant: p.Tenant, Issuer: p.Issuer, Subject: t.Subject, Provider: p.Name, Until: t.Expiry.Add(p.skew),
	}
	if name, ok := claims[p.NameClaim].(string); ok {
		out.Name = vouch.Shown(name)
	}
	var err error
	out.Groups, err = p.groups(claims[p.GroupsClaim])
	return out, err
}

// holds says whether a claim has a value, or is a list with it.
func holds(claim any, want string) bool {
	switch c := claim.(type) {
	case nil:
		return false
	case []any:
		return slices.ContainsFunc(c, func(one any) bool { return holds(one, want) })
	default:
		return fmt.Sprint(c) == want
	}
}

// groups are those of a claim, with the prefix of the provider, each once.
func (p *provider) groups(claim any) (list []string, err error) {
	var all []any
	switch c := claim.(type) {
	case nil:
	case string:
		all = []any{c}
	case []any:
		all = c
	default:
		return nil, refused("its claim %s is no list of groups", p.GroupsClaim)
	}
	if len(all) > vouch.MaxGroups {
		return nil, refused("it has %d groups, %d are allowed: have the provider tell those that concern Chandler",
			len(all), vouch.MaxGroups)
	}
	for _, one := range all {
		if g, ok := one.(string); ok { // no binding could name another one
			list = append(list, g)
		}
	}
	return vouch.Groups(*p.GroupsPrefix, list), nil
}

func refused(format string, args ...any) error {
	return errs.New(errs.Unauthenticated, "the token of the identity provider is refused: "+format, args...)
}
