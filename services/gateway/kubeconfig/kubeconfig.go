// Package kubeconfig checks a kubeconfig before Chandler keeps it.
//
// The hub will use the file as it is, so nothing in it may run a program there (exec, auth-provider)
// or read a file there (certificate-authority, client-certificate, client-key, tokenFile): a person
// who may register a cluster must not thereby act as the hub. Only the context that will be used is
// kept in mind for the required parts; the rules on programs and files hold for every entry. Error
// texts never quote values, since any value may be a secret. The package is pure.
package kubeconfig

import (
	"fmt"
	"net/url"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// MaxBytes bounds a kubeconfig: the largest in use hold a few certificates of some kilobytes each.
const MaxBytes = 256 << 10

// Names of the rules; they are part of the API.
const (
	RuleParses       = "kubeconfig-parses"
	RuleContext      = "kubeconfig-current-context"
	RuleServer       = "kubeconfig-server"
	RuleUser         = "kubeconfig-user"
	RuleNoExec       = "kubeconfig-no-exec"
	RuleNoAuthPlugin = "kubeconfig-no-auth-provider"
	RuleNoFiles      = "kubeconfig-no-file-references"
)

type config struct {
	Kind           string `json:"kind"`
	CurrentContext string `json:"current-context"`
	Clusters       []struct {
		Name    string  `json:"name"`
		Cluster cluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User user   `json:"user"`
	} `json:"users"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
}

type cluster struct {
	Server               string `json:"server"`
	CertificateAuthority string `json:"certificate-authority"`
	ProxyURL             string `json:"proxy-url"`
}

type user struct {
	Exec              any    `json:"exec"`
	AuthProvider      any    `json:"auth-provider"`
	ClientCertificate string `json:"client-certificate"`
	ClientKey         string `json:"client-key"`
	TokenFile         string `json:"tokenFile"`
}

// Check returns nil for a kubeconfig that Chandler can keep and use, and otherwise an error of kind
// errs.Invalid that names every rule broken. field is the place of the kubeconfig in the input.
func Check(field string, raw []byte) error {
	var v rule.Violations
	if len(raw) > MaxBytes {
		v.Addf(field, rule.MaxLength, "the kubeconfig has %d bytes, %d are allowed", len(raw), MaxBytes)
		return v.Err()
	}
	var c config
	// The parser's own text may quote the input; it is left out.
	if err := yaml.Unmarshal(raw, &c); err != nil {
		v.Addf(field, RuleParses, "the kubeconfig is not YAML or JSON of the expected form")
		return v.Err()
	}
	if c.Kind != "" && c.Kind != "Config" {
		v.Addf(field, RuleParses, "the document is not of kind Config")
		return v.Err()
	}
	c.checkContext(field, &v)
	c.checkClusters(field, &v)
	c.checkUsers(field, &v)
	return v.Err()
}

func (c config) checkContext(field string, v *rule.Violations) {
	if c.CurrentContext == "" {
		v.Addf(field, RuleContext, "the kubeconfig has no current-context")
		return
	}
	for _, x := range c.Contexts {
		if x.Name != c.CurrentContext {
			continue
		}
		if !c.hasServer(x.Context.Cluster) {
			v.Addf(field, RuleServer,
				"the cluster of the current context is missing or has no server with an https or http address")
		}
		if x.Context.User != "" && !c.hasUser(x.Context.User) {
			v.Addf(field, RuleUser, "the user of the current context is missing")
		}
		return
	}
	v.Addf(field, RuleContext, "the current-context is not among the contexts")
}

func (c config) hasServer(name string) bool {
	for _, x := range c.Clusters {
		if x.Name != name {
			continue
		}
		u, err := url.Parse(x.Cluster.Server)
		return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
	}
	return false
}

func (c config) hasUser(name string) bool {
	for _, x := range c.Users {
		if x.Name == name {
			return true
		}
	}
	return false
}

func (c config) checkClusters(field string, v *rule.Violations) {
	for i, x := range c.Clusters {
		if x.Cluster.CertificateAuthority != "" {
			v.Addf(field, RuleNoFiles,
				"clusters[%d] names a file in certificate-authority: the hub reads no files; put the content in "+
					"certificate-authority-data", i)
		}
	}
}

func (c config) checkUsers(field string, v *rule.Violations) {
	for i, x := range c.Users {
		if x.User.Exec != nil {
			v.Addf(field, RuleNoExec,
				"users[%d] has an exec plugin: the hub runs no programs; use a token or a client certificate", i)
		}
		if x.User.AuthProvider != nil {
			v.Addf(field, RuleNoAuthPlugin,
				"users[%d] has an auth-provider: the hub runs no plugins; use a token or a client certificate", i)
		}
		if files := x.User.files(); len(files) > 0 {
			v.Addf(field, RuleNoFiles,
				"users[%d] names a file in %s: the hub reads no files; put the content in the kubeconfig", i,
				strings.Join(files, ", "))
		}
	}
}

func (u user) files() []string {
	var out []string
	for _, f := range []struct{ name, value string }{
		{"client-certificate", u.ClientCertificate}, {"client-key", u.ClientKey}, {"tokenFile", u.TokenFile},
	} {
		if f.value != "" {
			out = append(out, f.name)
		}
	}
	return out
}

// String keeps values out of logs should a config ever be printed.
func (c config) String() string { return fmt.Sprintf("kubeconfig with %d contexts", len(c.Contexts)) }
