package app

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/outbound"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/clientcert"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/oidc"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/vouch"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/identities"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/tokens"
	"github.com/chandler-fleet/chandler/services/gateway/internal/pages"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/metadata"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// maxDefaultsBytes bounds the file of default catalogs: people write it by hand.
const maxDefaultsBytes = 1 << 20

// parts are what the configuration makes before anything is connected to.
type parts struct {
	credentials *store.Credentials
	secrets     *store.CatalogSecrets
	hookKeys    cataloghook.Keys
	bodies      bodies.Keys
	defaults    []model.AddCatalog
	globals     []string
	// catalogGlobals are the namespaces whose catalogs a whole cluster sees.
	catalogGlobals []string
	proxies        []netip.Prefix
	hooked         []netip.Prefix // networks that webhooks may lead to although they are not public
	origins        []string
	providers      []oidc.Provider
	authorities    []clientcert.Authority // of certificates of machines
}

func readParts(cfg Config) (p parts, err error) {
	if p.credentials, err = store.NewCredentials(cfg.CredentialsRecipient); err != nil {
		return p, err
	}
	if p.secrets, err = store.NewCatalogSecrets(cfg.CatalogCredentialsRecipient); err != nil {
		return p, err
	}
	if p.hookKeys, err = cataloghook.ParseKeys(cfg.HookKey); err != nil {
		return p, errs.Wrap(errs.Invalid, err, "CHANDLER_HOOK_KEY")
	}
	if p.bodies, err = cfg.Bodies.Of("gateway").Keys(); err != nil {
		return p, err
	}
	if p.globals, err = globalNamespaces("global-namespaces", cfg.GlobalNamespaces); err != nil {
		return p, err
	}
	if p.catalogGlobals, err = globalNamespaces("global-catalog-namespaces", cfg.GlobalCatalogNamespaces); err != nil {
		return p, err
	}
	if p.proxies, err = outbound.Networks("trusted-proxies", cfg.TrustedProxies); err != nil {
		return p, err
	}
	if p.hooked, err = outbound.Networks("webhook-allowed-networks", cfg.WebhookNetworks); err != nil {
		return p, err
	}
	if p.origins, err = httpserver.ParseOrigins(cfg.Browsers.CORSOrigins); err != nil {
		return p, errs.Wrap(errs.Invalid, err, "setting cors-origins")
	}
	if err := pages.CheckConsole(cfg.Browsers.ConsoleURL); err != nil {
		return p, err
	}
	if d := cfg.SignIn.MaxTokenLife; d != 0 && (d < tokens.LeastMaxLife || d > tokens.GreatestMaxLife) {
		return p, errs.New(errs.Invalid, "setting max-token-life is %s; give %s to %s", d, tokens.LeastMaxLife,
			tokens.GreatestMaxLife).At("max-token-life", "")
	}
	if p.providers, p.authorities, err = readSignIn(cfg); err != nil {
		return p, err
	}
	if err := cfg.Limits.Check(); err != nil {
		return p, err
	}
	p.defaults, err = readDefaults(cfg.DefaultCatalogs)
	return p, err
}

// noRule is of what only settings say, which no caller is told about.
const noRule = ""

// readSignIn reads who vouches for people and machines.
func readSignIn(cfg Config) (providers []oidc.Provider, authorities []clientcert.Authority, err error) {
	if providers, err = oidc.ReadFile(cfg.SignIn.OIDCProviders); err != nil {
		return nil, nil, err
	}
	if authorities, err = clientcert.ReadFile(cfg.SignIn.ClientAuthorities); err != nil {
		return nil, nil, err
	}
	var v rule.Violations
	vouch.Check(&v, append(oidc.Sources(cfg.SignIn.OIDCProviders, providers),
		clientcert.Sources(cfg.SignIn.ClientAuthorities, authorities)...))
	if n := cfg.SignIn.NewIdentities; n < 0 || n > identities.MaxMostNew {
		v.Addf("new-identities", noRule, "setting new-identities is %d; give 1 to %d", n, identities.MaxMostNew)
	}
	switch t := cfg.TLS; {
	case t.Listen != "" && (!t.Certificate.Given() || !t.Key.Given()):
		v.Addf("tls-listen", rule.Together, "setting tls-listen wants tls-certificate and tls-key")
	case t.Listen == "" && (t.Certificate.Given() || t.Key.Given() || len(authorities) > 0):
		v.Addf("tls-listen", rule.Together, "setting tls-listen is missing: tls-certificate, tls-key and client-authorities "+
			"are for that address alone")
	}
	return providers, authorities, v.Err()
}

// globalNamespaces reads a setting; "-" is none, and so is nothing at all.
func globalNamespaces(name, setting string) (list []string, err error) {
	if setting == "" || setting == "-" {
		return nil, nil
	}
	var v rule.Violations
	for ns := range strings.SplitSeq(setting, ",") {
		ns = strings.TrimSpace(ns)
		v.OpenNamespace("setting "+name, ns)
		list = append(list, ns)
	}
	return list, v.Err()
}

func (p parts) defaultNames() map[string]bool {
	names := map[string]bool{}
	for _, d := range p.defaults {
		names[d.Name] = true
	}
	return names
}

// readDefaults reads the catalogs that come with the installation (R-CAT-110); an empty path is none.
func readDefaults(path string) ([]model.AddCatalog, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("setting default-catalogs: %w", err)
	}
	if info.Size() > maxDefaultsBytes {
		return nil, errs.New(errs.TooLarge, "setting default-catalogs: %s has %d bytes, %d are allowed", path,
			info.Size(), maxDefaultsBytes)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("setting default-catalogs: %w", err)
	}
	var file struct {
		Catalogs []model.AddCatalog `json:"catalogs"`
	}
	if err := yaml.UnmarshalStrict(raw, &file); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "setting default-catalogs: %s", path)
	}
	return file.Catalogs, checkDefaults(path, file.Catalogs)
}

func checkDefaults(path string, list []model.AddCatalog) error {
	var v rule.Violations
	seen := map[string]bool{}
	for i, d := range list {
		at := fmt.Sprintf("%s: catalogs[%d]", path, i)
		v.DNSSubdomainName(at+".name", d.Name)
		if seen[d.Name] {
			v.Addf(at+".name", rule.Unique, "%s: catalog %q stands there twice", at, d.Name)
		}
		seen[d.Name] = true
		if d.Cluster != "" || d.Namespace != "" || d.Visibility != "" {
			v.Addf(at, rule.NotChangeable,
				"%s: a default catalog belongs to the whole fleet: leave out cluster, namespace and visibility", at)
		}
		if d.Disabled {
			v.Addf(at+".disabled", rule.NotChangeable,
				"%s: whether a default catalog is disabled is said by people: with PUT /api/v1/operatorhub, or apply "+
					"of an OperatorHub", at)
		}
		metadata.Check(&v, at, events.KindCatalog, d.Metadata)
		for _, x := range source.Check(d.Source.Type, d.Source.Settings(d.Display)) {
			v.Addf(at+".source"+x.Field, x.Rule, "%s: %s", at, x.Message)
		}
	}
	return v.Err()
}
