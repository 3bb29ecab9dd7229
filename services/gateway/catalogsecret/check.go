package catalogsecret

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/kubeconfig"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Names of the rules; they are part of the API.
const (
	RuleForm         = "secret-form"
	RuleDockerConfig = "docker-config"
	RuleNoHelpers    = "docker-config-no-helpers"
	RulePEM          = "pem"
	RuleKnownHosts   = "known-hosts"
	RuleToken        = "printable-token"
)

// MaxBytes bounds a value: authorities of a company in PEM are the largest, with some hundred kilobytes.
const MaxBytes = 512 << 10

// Check returns nil for a value that can be used as a credential of this kind, and otherwise an error of
// kind errs.Invalid that names every rule broken. Texts never quote values. field is the value's place in the input.
func Check(field string, k source.SecretKind, value []byte) error {
	c := checker{field: field}
	if len(value) > MaxBytes {
		c.Addf(field, rule.MaxLength, "the value has %d bytes, %d are allowed", len(value), MaxBytes)
		return c.Err()
	}
	switch k {
	case source.DockerConfig:
		c.dockerConfig(value)
	case source.Basic:
		c.basic(value)
	case source.Token:
		c.token(value)
	case source.SSH:
		c.ssh(value)
	case source.CA:
		c.authorities(value)
	case source.Kubeconfig:
		return c.kubeconfig(value)
	default:
		c.Addf("/kind", rule.OneOf,
			"a secret of an unknown kind: want one of dockerconfigjson, basic, token, ssh, ca, kubeconfig")
	}
	return c.Err()
}

type checker struct {
	rule.Violations

	field string
}

// read decodes an object with these fields and no others. The decoder's own text may quote the input and is left out.
func (c *checker) read(value []byte, into any, fields string) bool {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if dec.Decode(into) != nil {
		c.Addf(c.field, RuleForm, "the value is not a JSON object of the form {%s}", fields)
		return false
	}
	return true
}

func (c *checker) required(name, value string) {
	if value == "" {
		c.Addf(c.field+"/"+name, rule.Required, "%s must not be empty", name)
	}
}

// dockerConfig takes the entries of a docker configuration for registries. Helpers are programs, which nothing
// that somebody sends may name.
func (c *checker) dockerConfig(value []byte) {
	var config struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Username      string `json:"username"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
		CredsStore  string            `json:"credsStore"`
		CredHelpers map[string]string `json:"credHelpers"`
	}
	if json.Unmarshal(value, &config) != nil {
		c.Addf(c.field, RuleDockerConfig,
			`the value is not a docker configuration of the form {"auths": {"registry": {"auth": …}}}`)
		return
	}
	if config.CredsStore != "" || len(config.CredHelpers) > 0 {
		c.Addf(c.field, RuleNoHelpers,
			"the docker configuration names credential helpers, which would be run as programs: log in without one, "+
				"so that the file itself holds the credentials")
	}
	if len(config.Auths) == 0 {
		c.Addf(c.field+"/auths", rule.Required, "the docker configuration has credentials for no registry")
	}
	for _, host := range slices.Sorted(maps.Keys(config.Auths)) {
		a := config.Auths[host]
		switch {
		case host == "":
			c.Addf(c.field+"/auths", RuleDockerConfig, "an entry of the docker configuration names no registry")
		case a.Auth != "":
			pair, err := base64.StdEncoding.DecodeString(a.Auth)
			if err != nil || !bytes.Contains(pair, []byte(":")) {
				c.Addf(c.field+"/auths", RuleDockerConfig,
					"auth of registry %q is not the base64 form of user:password", host)
			}
		case a.Username == "" && a.IdentityToken == "" && a.RegistryToken == "":
			c.Addf(c.field+"/auths", RuleDockerConfig, "registry %q of the docker configuration has no credentials",
				host)
		}
	}
}

func (c *checker) basic(value []byte) {
	var v struct{ Username, Password string }
	if c.read(value, &v, "username, password") {
		c.required("username", v.Username)
		c.required("password", v.Password)
	}
}

func (c *checker) token(value []byte) {
	var v struct{ Token string }
	if !c.read(value, &v, "token") {
		return
	}
	c.required("token", v.Token)
	if strings.ContainsFunc(v.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		c.Addf(c.field+"/token", RuleToken,
			"the token holds a space, a line end or something that is not printable ASCII, and could not be sent")
	}
}

func (c *checker) ssh(value []byte) {
	var v struct{ PrivateKey, KnownHosts, Passphrase string }
	if !c.read(value, &v, "privateKey, knownHosts, passphrase") {
		return
	}
	c.required("privateKey", v.PrivateKey)
	if block, _ := pem.Decode([]byte(v.PrivateKey)); v.PrivateKey != "" &&
		(block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY")) {
		c.Addf(c.field+"/privateKey", RulePEM, "privateKey is not a private key in PEM or OpenSSH form")
	}
	c.required("knownHosts", v.KnownHosts)
	for i, line := range strings.Split(v.KnownHosts, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		const parts = 3 // hosts, type of the key, key
		if f := strings.Fields(strings.TrimPrefix(line, "@cert-authority ")); len(f) < parts {
			c.Addf(c.field+"/knownHosts", RuleKnownHosts, "line %d of knownHosts is not of the form: host type key",
				i+1)
			return
		}
	}
}

func (c *checker) authorities(value []byte) {
	var v struct{ Certificates string }
	if !c.read(value, &v, "certificates") {
		return
	}
	n := 0
	for rest := []byte(v.Certificates); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			c.Addf(c.field+"/certificates", RulePEM,
				"certificates holds a block of another type than CERTIFICATE; a private key does not belong there")
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			c.Addf(c.field+"/certificates", RulePEM, "certificate %d cannot be read", n+1)
			return
		}
		n++
	}
	if n == 0 {
		c.Addf(c.field+"/certificates", RulePEM, "certificates holds no certificate in PEM form")
	}
}

func (c *checker) kubeconfig(value []byte) error {
	var v struct{ Kubeconfig string }
	if !c.read(value, &v, "kubeconfig") {
		return c.Err()
	}
	return kubeconfig.Check(c.field+"/kubeconfig", []byte(v.Kubeconfig))
}
