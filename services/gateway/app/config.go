package app

import (
	"io"
	"time"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/renewed"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/services/gateway/internal/accesslog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/api"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/identities"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/tokens"
)

// DefaultListen is where the API is served by default: this machine only.
const DefaultListen = "127.0.0.1:8080"

// DefaultGlobalNamespaces are the default global namespaces of OpenShift and of OLM elsewhere.
const DefaultGlobalNamespaces = "openshift-operators,operators"

// DefaultGlobalCatalogNamespaces are the global catalog namespaces of OpenShift and of OLM elsewhere, and the one of
// Chandler's own examples.
const DefaultGlobalCatalogNamespaces = "openshift-marketplace,olm,catalogs"

// RequestsLogin is how requests are answered: by a role of their own, where URL or Password is given; else by the role
// of DatabaseURL.
type RequestsLogin struct {
	URL      string
	Password string // DatabaseURL with the role and this password is the URL
}

// SignIn is by what people and programs are let in.
type SignIn struct {
	// OIDCProviders is a YAML file with the providers of OpenID Connect that say who people are.
	OIDCProviders string
	// ClientAuthorities is a YAML file with the authorities whose certificates let machines in.
	ClientAuthorities string
	// MaxTokenLife is how long a token may be good; 0 is tokens.DefaultMaxLife.
	MaxTokenLife time.Duration
	// NewIdentities is how many one provider or authority makes known within an hour; 0 is identities.DefaultMostNew.
	NewIdentities int
}

// TLS is a listener of the REST interface with TLS, beside the one without.
type TLS struct {
	Listen           string          // "" is none; port 0 takes a free one
	Certificate, Key renewed.Setting // of the server, in PEM
}

// Keep is how long what is kept.
type Keep struct {
	AccessLog    time.Duration // 0 is accesslog.DefaultRetention
	UnusedModels time.Duration // tables of read models that no gateway uses; 0 is projection.DefaultKeepUnused
	// LegalHold keeps the access log, whatever the retention says, and bodies, whoever wants to erase one.
	LegalHold bool
}

// Browsers are what people read with.
type Browsers struct {
	// CORSOrigins are origins, with commas, whose pages may read answers; "*" is all of them, and "" none.
	CORSOrigins string
	// ConsoleURL is the address of a console to which /go/… leads; "" is none.
	ConsoleURL string
}

// fortests are what tests change.
type fortests struct {
	// models changes which versions of read models this gateway has.
	models func([]projection.Projection) []projection.Projection
	// clock is that of intents and of what webhooks send.
	clock func() time.Time
	// lease is how long the webhooks of a process that was killed wait.
	lease time.Duration
	// webhooks is how many webhooks this gateway sends for at a time.
	webhooks int
}

// Config is the configuration of the gateway.
type Config struct {
	service.Config
	Requests RequestsLogin
	Listen   string // address of the API; port 0 takes a free one
	TLS      TLS
	// AdminToken becomes the admin token. Without one a new installation makes its own.
	AdminToken string
	// CredentialsRecipient is the public age key that kubeconfigs are encrypted to.
	CredentialsRecipient string
	// CatalogCredentialsRecipient is the public age key that credentials of catalog sources are encrypted to.
	CatalogCredentialsRecipient string
	// HookKey are the keys that secrets of catalogs' hooks are derived from, the active one first.
	HookKey string
	// Bodies are the keys that bodies are sealed by.
	Bodies bodies.Secrets
	// SignIn is by what people and programs are let in.
	SignIn SignIn
	// DefaultCatalogs is a YAML file with the catalogs that come with the installation.
	DefaultCatalogs string
	// GlobalNamespaces are namespaces, with commas, of every cluster in which the first subscription makes the operator
	// group global-operators where there is none (R-OG-5).
	GlobalNamespaces string
	// GlobalCatalogNamespaces are namespaces, with commas, of every cluster whose catalogs the whole cluster sees,
	// unless somebody says otherwise of one; a catalog of any other namespace is seen there alone (R-CAT-85).
	GlobalCatalogNamespaces string
	// TrustedProxies are networks, with commas, of proxies whose X-Forwarded-For is believed.
	TrustedProxies string
	Browsers       Browsers
	// WebhookNetworks are networks, with commas, that webhooks may lead to although they are not public.
	WebhookNetworks string
	// Keep is how long what is kept.
	Keep Keep
	// Limits are those of the REST interface; 0 is the default.
	Limits api.Limits
	// TokenTo is where a token that was made is printed, once; os.Stderr when nil. It is no setting.
	TokenTo io.Writer

	tests fortests // zero but in tests
}

// settings declares the settings of the listener with TLS.
func (t *TLS) settings(s *service.Settings) {
	s.String(&t.Listen, "tls-listen", "", "address of the REST interface with TLS, beside the one without; "+
		"only there are client certificates asked for; none without it")
	s.Renewed(&t.Certificate, "tls-certificate", "certificate of that address, in PEM")
	s.Renewed(&t.Key, "tls-key", "its key, in PEM")
}

// Settings declares the settings of the service.
func (c *Config) Settings(s *service.Settings) {
	c.Config.Settings(s)
	s.String(&c.Listen, "listen", DefaultListen, "address of the REST interface")
	c.TLS.settings(s)
	s.Secret(&c.Requests.URL, "requests-database-url",
		"URL of the same database with the role "+migrate.GatewayRequests+", which sees one tenant at a time: "+
			"requests are answered with it")
	s.Secret(&c.Requests.Password, "gateway-api-password", "password of that role, where "+
		"database-url with this role and password is the URL")
	s.Secret(&c.AdminToken, "admin-token", "bearer token of the administrator; a new installation makes one without it")
	s.String(&c.CredentialsRecipient, "credentials-recipient", "",
		"public age key (age1…) of the installer, which kubeconfigs are encrypted to")
	s.String(&c.CatalogCredentialsRecipient, "catalog-credentials-recipient", "",
		"public age key (age1…) of the catalog-indexer, which credentials of catalog sources are encrypted to; none "+
			"can be taken without it")
	s.Secret(&c.HookKey, "hook-key",
		"keys that the secrets of catalogs' hooks are derived from, 32 or more random characters each, with commas; "+
			"the first is active; there are no hooks without one")
	c.Bodies.Of("gateway").Declare(s.Secret)
	s.String(&c.SignIn.OIDCProviders, "oidc-providers", "",
		"YAML file with the providers of OpenID Connect that say who people are: {providers: [{name, issuer, audiences, …}]}")
	s.String(&c.SignIn.ClientAuthorities, "client-authorities", "",
		"YAML file with the authorities whose client certificates let machines in: {authorities: [{name, caFile, …}]}")
	s.String(&c.DefaultCatalogs, "default-catalogs", "",
		"YAML file with the catalogs that come with this installation: {catalogs: [{name, source, …}]}")
	s.String(&c.GlobalNamespaces, "global-namespaces", DefaultGlobalNamespaces,
		"namespaces, with commas, of every cluster whose operators serve all namespaces: the first subscription "+
			"makes the operator group global-operators there if there is no group; none where it is -")
	s.String(&c.GlobalCatalogNamespaces, "global-catalog-namespaces", DefaultGlobalCatalogNamespaces,
		"namespaces, with commas, of every cluster whose catalogs the whole cluster sees; those of other namespaces "+
			"are seen there alone, unless their visibility says otherwise; none where it is -")
	s.String(&c.TrustedProxies, "trusted-proxies", "",
		"networks, with commas, of proxies in front of the REST interface, such as 10.0.0.0/8: their X-Forwarded-For says "+
			"where a request came from")
	s.String(&c.Browsers.CORSOrigins, "cors-origins", "",
		"origins, with commas, whose pages may read answers of the REST interface in a browser, such as "+
			"https://portal.example; * is every origin; none without it")
	s.String(&c.Browsers.ConsoleURL, "console-url", "",
		"address of a console, such as https://console.example, to which /go/KIND/… leads; without it these are plain pages")
	s.String(&c.WebhookNetworks, "webhook-allowed-networks", "",
		"networks, with commas, that webhooks may lead to although only this site reaches them, such as 10.1.0.0/16; "+
			"webhooks lead to public addresses alone without it")
	s.Duration(&c.Keep.AccessLog, "access-log-retention", accesslog.DefaultRetention,
		"how long requests to the REST interface are kept, at least 720h")
	s.Duration(&c.Keep.UnusedModels, "keep-unused-models", projection.DefaultKeepUnused,
		"how long the tables of a version of a read model stay that no gateway uses, at least 1h: a release that is "+
			"taken back within that time serves at once")
	s.Int(&c.Limits.RequestRate, "request-rate", api.DefaultRequestRate, "reads a second of one person or program; half as "+
		"many lists and writes, and a twentieth of what makes tokens")
	s.Int(&c.Limits.RefusedRate, "refused-rate", api.DefaultRefusedRate,
		"requests a second of one address that bring no good token")
	s.Int(&c.Limits.Streams, "streams", api.DefaultStreams, "open event streams of a process")
	s.Int(&c.Limits.OwnStreams, "own-streams", api.DefaultOwnStreams, "open event streams of one person or program")
	s.Duration(&c.SignIn.MaxTokenLife, "max-token-life", tokens.DefaultMaxLife,
		"how long a token of the API may be good, 1h to ten years; one that says nothing ends in 90 days, or then")
	s.Int(&c.SignIn.NewIdentities, "new-identities", identities.DefaultMostNew, "people or machines that one identity "+
		"provider, or authority of client certificates, makes known within an hour; those who are known go on")
	s.Bool(&c.Keep.LegalHold, "legal-hold", false, "remove nothing of the access log, whatever its retention is, and "+
		"refuse to erase configurations, annotations, reasons and sources")
}
