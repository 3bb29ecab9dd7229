// Package oidc tells who holds a JWT that a provider of OpenID Connect signed. Providers are settings. It keeps their
// keys, so that a provider that is away for a while keeps nobody out, and asks no provider about a request.
package oidc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/reach"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/vouch"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

const (
	// maxProviders bounds the providers of an installation: each is asked for its keys every few minutes.
	maxProviders = 20
	// defaultSkew is how far the clocks of a provider and of a gateway may be apart.
	defaultSkew = 30 * time.Second
	// maxSkew bounds that: a token is good for so much longer than it says.
	maxSkew = 5 * time.Minute
)

// Algorithms are the signatures that can be allowed: by keys of which a gateway has the public half alone. The rest
// (none, and those by a shared secret) cannot be.
var Algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512,
	jose.EdDSA,
}

// defaultAlgorithms are what providers sign by unless the settings say otherwise.
var defaultAlgorithms = []string{string(jose.RS256), string(jose.ES256), string(jose.PS256), string(jose.EdDSA)}

// noRule is of what only settings say, which no caller is told about.
const noRule = ""

// Provider is one provider, as the file of providers has it.
type Provider struct {
	Name      string   `json:"name"`
	Issuer    string   `json:"issuer"`
	Audiences []string `json:"audiences"`
	// Tenant is that of everybody whom the provider vouches for.
	Tenant string `json:"tenant,omitempty"`
	// NameClaim is what people are shown as. It gets into no event, and no right hangs on it.
	NameClaim   string `json:"nameClaim,omitempty"`
	GroupsClaim string `json:"groupsClaim,omitempty"`
	// GroupsPrefix goes before the provider's groups in bindings; "name:" where it is not given.
	GroupsPrefix *string `json:"groupsPrefix,omitempty"`
	// RequiredClaims must all be there with these values; of a list one of them.
	RequiredClaims map[string]string `json:"requiredClaims,omitempty"`
	Algorithms     []string          `json:"algorithms,omitempty"`
	// ClockSkew is how far the clocks of the provider and of the gateway may be apart, such as 30s.
	ClockSkew string `json:"clockSkew,omitempty"`
	// CAFile are certificates that the provider's is checked by, in the place of the system's.
	CAFile string `json:"caFile,omitempty"`
	// Login is how chandler login signs people in; nil where it does not.
	Login *Login `json:"login,omitempty"`
}

// Login is what a program of a person's own machine signs in with.
type Login struct {
	ClientID string `json:"clientID"`
	// ClientSecret is for providers that want one of programs that cannot keep any. Everybody may read it.
	ClientSecret string   `json:"clientSecret,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
}

// ReadFile reads the file of providers; an empty path is none.
func ReadFile(path string) ([]Provider, error) {
	if path == "" {
		return nil, nil
	}
	var file struct {
		Providers []Provider `json:"providers"`
	}
	if err := vouch.ReadFile("oidc-providers", path, &file); err != nil {
		return nil, err
	}
	if len(file.Providers) > maxProviders {
		return nil, errs.New(errs.Invalid, "setting oidc-providers: %s has %d providers, %d are allowed", path,
			len(file.Providers), maxProviders)
	}
	for i := range file.Providers {
		file.Providers[i].complete()
	}
	return file.Providers, check(path, file.Providers)
}

// complete gives what is left out its default.
func (p *Provider) complete() {
	p.Tenant = cmp.Or(p.Tenant, events.DefaultTenant)
	p.NameClaim = cmp.Or(p.NameClaim, "preferred_username")
	p.GroupsClaim = cmp.Or(p.GroupsClaim, "groups")
	if p.GroupsPrefix == nil {
		own := p.Name + ":"
		p.GroupsPrefix = &own
	}
	if len(p.Algorithms) == 0 {
		p.Algorithms = defaultAlgorithms
	}
	p.ClockSkew = cmp.Or(p.ClockSkew, defaultSkew.String())
	if p.Login != nil && len(p.Login.Scopes) == 0 {
		p.Login.Scopes = []string{"openid", "profile", "groups", "offline_access"}
	}
}

// check refuses providers that could not be told apart, or would let in whom they do not know.
func check(path string, list []Provider) error {
	var v rule.Violations
	for i, p := range list {
		at := place(path, i)
		v.DNSLabelName(at+".name", p.Name)
		v.DNSLabelName(at+".tenant", p.Tenant)
		p.check(&v, at)
		if slices.ContainsFunc(list[:i], func(o Provider) bool { return o.Issuer == p.Issuer }) {
			v.Addf(at+".issuer", rule.Unique, "%s: provider %q has the issuer of another one", at, p.Name)
		}
	}
	vouch.Check(&v, Sources(path, list))
	return v.Err()
}

func place(path string, i int) string { return fmt.Sprintf("%s: providers[%d]", path, i) }

// Sources are providers of a file as those who vouch for somebody.
func Sources(path string, list []Provider) (out []vouch.Source) {
	for i, p := range list {
		out = append(out, vouch.Source{At: place(path, i), Name: p.Name, Tenant: p.Tenant, Prefix: *p.GroupsPrefix})
	}
	return out
}

func (p *Provider) check(v *rule.Violations, at string) {
	if err := issuerURL(p.Issuer); err != nil {
		v.Addf(at+".issuer", noRule, "%s.issuer: %s", at, err)
	}
	if len(p.Audiences) == 0 || slices.Contains(p.Audiences, "") {
		v.Addf(at+".audiences", rule.Required, "%s.audiences: name for whom tokens must be: those for other programs "+
			"are not for Chandler", at)
	}
	for _, a := range p.Algorithms {
		if !slices.Contains(Algorithms, jose.SignatureAlgorithm(a)) {
			v.Addf(at+".algorithms", rule.OneOf, "%s.algorithms: %q cannot be allowed: want some of %v", at, a, Algorithms)
		}
	}
	if d, err := time.ParseDuration(p.ClockSkew); err != nil || d < 0 || d > maxSkew {
		v.Addf(at+".clockSkew", noRule, "%s.clockSkew is %q; give 0s to %s", at, p.ClockSkew, maxSkew)
	}
	if p.Login != nil && (p.Login.ClientID == "" || !slices.Contains(p.Login.Scopes, "openid")) {
		v.Addf(at+".login", rule.Required, "%s.login: give a clientID, and scopes with openid", at)
	}
}

// issuerURL refuses what cannot be an issuer.
func issuerURL(given string) error {
	if strings.ContainsAny(given, "?#") {
		return errs.New(errs.Invalid, "%q is no address such as https://login.example.org", given)
	}
	return reach.SafeURL(given)
}
