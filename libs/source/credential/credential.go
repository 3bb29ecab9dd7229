// Package credential reads the secrets that a source names, and finds the one that a host may see. A
// value is never in an error: an error about a secret has its name and kind.
package credential

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
)

// Set is what all secrets of a source hold together.
type Set struct {
	// Basic goes to the host of a URL.
	Basic *Basic
	// Token goes to the host of a URL, or to a catalog server.
	Token string
	// SSH is for git.
	SSH *SSH
	// Kubeconfig is for a config map.
	Kubeconfig []byte
	// Certificates are PEM, to be trusted beside those of the system.
	Certificates []byte

	names  []string // of the docker configurations
	docker []login
}

// Basic is a name with a password.
type Basic struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// SSH is a key, and the hosts that it may be shown to.
type SSH struct {
	PrivateKey string `json:"privateKey"`
	KnownHosts string `json:"knownHosts"`
	Passphrase string `json:"passphrase"`
}

// MaxValue bounds a secret: a docker configuration for a hundred registries has some 20 KB, the CA bundle
// of a Linux distribution 250 KB.
const MaxValue = 1 << 20

// Parse reads secrets. Several docker configurations become one (R-DIS-5), certificates are taken
// together; of the other kinds a source can use one each.
func Parse(list []source.Secret) (*Set, error) {
	s := &Set{}
	for _, secret := range list {
		if len(secret.Value) > MaxValue {
			return nil, errs.New(errs.TooLarge, "secret %q has %d bytes, more than %d", secret.Name, len(secret.Value),
				MaxValue)
		}
		if err := s.add(secret); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Set) add(secret source.Secret) error {
	switch secret.Kind {
	case source.DockerConfig:
		return s.addDocker(secret)
	case source.Basic:
		if s.Basic != nil {
			return twice(secret)
		}
		s.Basic = &Basic{}
		return decode(secret, s.Basic, func() bool { return s.Basic.Username != "" || s.Basic.Password != "" })
	case source.Token:
		if s.Token != "" {
			return twice(secret)
		}
		var v struct {
			Token string `json:"token"`
		}
		err := decode(secret, &v, func() bool { return v.Token != "" })
		s.Token = v.Token
		return err
	case source.SSH:
		if s.SSH != nil {
			return twice(secret)
		}
		s.SSH = &SSH{}
		return decode(secret, s.SSH, func() bool { return s.SSH.PrivateKey != "" && s.SSH.KnownHosts != "" })
	case source.CA:
		return s.addCertificates(secret)
	case source.Kubeconfig:
		if s.Kubeconfig != nil {
			return twice(secret)
		}
		var v struct {
			Kubeconfig string `json:"kubeconfig"`
		}
		err := decode(secret, &v, func() bool { return v.Kubeconfig != "" })
		s.Kubeconfig = []byte(v.Kubeconfig)
		return err
	default:
		return errs.New(errs.Invalid, "secret %q is of kind %q, which no source uses", secret.Name, secret.Kind)
	}
}

// fields says what a value looks like.
var fields = map[source.SecretKind]string{
	source.Basic:        "username and password",
	source.Token:        "token",
	source.SSH:          "privateKey and knownHosts (passphrase where the key has one)",
	source.CA:           "certificates, in PEM",
	source.Kubeconfig:   "kubeconfig",
	source.DockerConfig: "auths, as a docker configuration file",
}

func decode(secret source.Secret, into any, complete func() bool) error {
	// The decoder's own error could quote the value.
	if err := json.Unmarshal(secret.Value, into); err != nil || !complete() {
		return bad(secret)
	}
	return nil
}

func bad(secret source.Secret) error {
	return errs.New(errs.Invalid, "secret %q of kind %s cannot be used: its value must be a JSON object with %s",
		secret.Name, secret.Kind, fields[secret.Kind])
}

func twice(secret source.Secret) error {
	return errs.New(errs.Invalid, "secret %q is a second one of kind %s; a source uses one", secret.Name, secret.Kind)
}

func (s *Set) addCertificates(secret source.Secret) error {
	var v struct {
		Certificates string `json:"certificates"`
	}
	if err := decode(secret, &v, func() bool { return v.Certificates != "" }); err != nil {
		return err
	}
	n := 0
	for rest := []byte(v.Certificates); ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if n == 0 || len(bytes.TrimSpace(rest)) > 0 && bytes.Contains(rest, []byte("-----BEGIN")) {
				return bad(secret)
			}
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return errs.New(errs.Invalid, "certificate %d of secret %q cannot be read", n+1, secret.Name)
		}
	}
	s.Certificates = append(append(s.Certificates, v.Certificates...), '\n')
	return nil
}

// Pool are the authorities to trust; nil means those of the system alone.
func (s *Set) Pool() *x509.CertPool {
	if len(s.Certificates) == 0 {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // a system without any
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(s.Certificates)
	return pool
}

// DockerNames names the docker configurations, for messages.
func (s *Set) DockerNames() string { return strings.Join(s.names, ", ") }
