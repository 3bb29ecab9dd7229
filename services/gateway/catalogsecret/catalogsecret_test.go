package catalogsecret_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/catalogsecret"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/rule/ruletest"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	set := events.CatalogSecretSet{Name: "a", Kind: "token", Credential: "c1:1"}
	for _, c := range []struct {
		name  string
		given []events.Payload
		when  catalogsecret.Command
		then  []events.Payload
		kind  errs.Kind
	}{
		{"set", nil, catalogsecret.Set{Kind: source.Token, Credential: "c1:1"}, []events.Payload{set}, ""},
		{
			"set again",
			[]events.Payload{set},
			catalogsecret.Set{Kind: source.Token, Credential: "c1:1"},
			[]events.Payload{set},
			"",
		},
		{"delete", []events.Payload{set}, catalogsecret.Delete{}, []events.Payload{events.CatalogSecretDeleted{}}, ""},
		{"delete what is not there", nil, catalogsecret.Delete{}, nil, errs.NotFound},
		{
			"delete twice",
			[]events.Payload{set, events.CatalogSecretDeleted{}},
			catalogsecret.Delete{},
			nil,
			errs.NotFound,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := catalogsecret.State{Name: "a"}
			var err error
			for _, e := range c.given {
				if s, err = catalogsecret.Evolve(s, e); err != nil {
					t.Fatal(err)
				}
			}
			got, err := catalogsecret.Decide(s, c.when)
			if errs.KindOf(err) != c.kind || !cmp.Equal(got, c.then) {
				t.Errorf("got %v %v, want %v %v", got, err, c.then, c.kind)
			}
		})
	}
	if _, err := catalogsecret.Evolve(catalogsecret.State{}, events.CatalogRemoved{}); err == nil {
		t.Error("an event of another stream was taken")
	}
}

func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<31, 0)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

func object(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const privateKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nczNjcjN0\n-----END OPENSSH PRIVATE KEY-----\n"

// TestCheck proves R-DIS-5 and D10: what cannot be used, or would run a program, is refused by rule, and no
// text repeats a value.
func TestCheck(t *testing.T) {
	t.Parallel()
	ca := certificate(t)
	for _, c := range []struct {
		name  string
		kind  source.SecretKind
		value string
		rule  string // "" is taken
	}{
		{
			"docker", source.DockerConfig,
			`{"auths": {"registry.test": {"auth": "dTpzM2NyM3Q="}, "b.test": {"username": "u", "password": "s3cr3t"}}}`,
			"",
		},
		{"docker with a token", source.DockerConfig, `{"auths": {"registry.test": {"identitytoken": "s3cr3t"}}}`, ""},
		{"docker without registries", source.DockerConfig, `{"auths": {}}`, rule.Required},
		{"docker that is none", source.DockerConfig, `["s3cr3t"]`, catalogsecret.RuleDockerConfig},
		{
			"docker with a store", source.DockerConfig, `{"credsStore": "s3cr3t", "auths": {"a": {"auth": "dTpw"}}}`,
			catalogsecret.RuleNoHelpers,
		},
		{
			"docker with a helper", source.DockerConfig,
			`{"credHelpers": {"a": "s3cr3t"}, "auths": {"a": {"auth": "dTpw"}}}`, catalogsecret.RuleNoHelpers,
		},
		{
			"docker without a colon", source.DockerConfig, `{"auths": {"a": {"auth": "czNjcjN0"}}}`,
			catalogsecret.RuleDockerConfig,
		},
		{"docker with nothing", source.DockerConfig, `{"auths": {"a": {}}}`, catalogsecret.RuleDockerConfig},
		{"basic", source.Basic, `{"username": "u", "password": "s3cr3t"}`, ""},
		{"basic without a password", source.Basic, `{"username": "u"}`, rule.Required},
		{
			"basic with more", source.Basic, `{"username": "u", "password": "s3cr3t", "token": "s3cr3t"}`,
			catalogsecret.RuleForm,
		},
		{"token", source.Token, `{"token": "s3cr3t"}`, ""},
		{"token with a line's end", source.Token, `{"token": "s3cr3t\n"}`, catalogsecret.RuleToken},
		{"no token", source.Token, `{}`, rule.Required},
		{"ssh", source.SSH, object(t, map[string]string{
			"privateKey": privateKey,
			"knownHosts": "# hosts\ngit.test ssh-ed25519 AAAA\n@cert-authority *.test ssh-rsa AAAA\n",
		}), ""},
		{"ssh without hosts", source.SSH, object(t, map[string]string{"privateKey": privateKey}), rule.Required},
		{
			"ssh with odd hosts", source.SSH, object(
				t, map[string]string{"privateKey": privateKey, "knownHosts": "git.test s3cr3t"}),
			catalogsecret.RuleKnownHosts,
		},
		{
			"ssh with no key", source.SSH, object(t, map[string]string{"privateKey": "s3cr3t", "knownHosts": "a b c"}),
			catalogsecret.RulePEM,
		},
		{"ca", source.CA, object(t, map[string]string{"certificates": ca + ca}), ""},
		{
			"ca with a key", source.CA, object(t, map[string]string{"certificates": ca + privateKey}),
			catalogsecret.RulePEM,
		},
		{
			"ca that is broken", source.CA, object(t, map[string]string{
				"certificates": "-----BEGIN CERTIFICATE-----\nczNjcjN0\n-----END CERTIFICATE-----\n",
			}),
			catalogsecret.RulePEM,
		},
		{"no ca", source.CA, `{"certificates": "s3cr3t"}`, catalogsecret.RulePEM},
		{"kubeconfig that runs a program", source.Kubeconfig, `{"kubeconfig": "s3cr3t: ["}`, "kubeconfig-parses"},
		{"kubeconfig of another form", source.Kubeconfig, `"s3cr3t"`, catalogsecret.RuleForm},
		{"another kind", "s3cr3t-kind", `{}`, rule.OneOf},
		{"too large", source.Token, `{"token": "` + strings.Repeat("s3cr3t", 100_000) + `"}`, rule.MaxLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := catalogsecret.Check("/value", c.kind, []byte(c.value))
			if c.rule == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			all := ruletest.All(err)
			if len(all) == 0 || all[0].Rule != c.rule {
				t.Errorf("got %v, want rule %s", err, c.rule)
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the text repeats the value: %v", err)
			}
		})
	}
}

// TestFits proves R-DIS-4: each kind of source takes the credentials that it can use.
func TestFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source source.Type
		secret source.SecretKind
		want   bool
	}{
		{source.Image, source.DockerConfig, true},
		{source.Directory, source.DockerConfig, true}, // its bundle images
		{source.Image, source.Basic, false},
		{source.Git, source.Basic, true},
		{source.Git, source.SSH, true},
		{source.Archive, source.SSH, false},
		{source.GRPC, source.Token, true},
		{source.GRPC, source.CA, true},
		{source.Directory, source.CA, false},
		{source.ConfigMap, source.Kubeconfig, true},
		{source.Git, source.Kubeconfig, false},
		{source.Git, "other", false},
	} {
		if got := catalogsecret.Fits(c.source, c.secret); got != c.want {
			t.Errorf("Fits(%s, %s) = %v", c.source, c.secret, got)
		}
	}
}
