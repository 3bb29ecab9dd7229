package sources

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxFile is what the gateway takes of a credential.
const maxFile = 512 << 10

// Secret are the flags of a credential.
type Secret struct {
	dockerConfig, username, sshKey, knownHosts, ca, kubeconfig string
	passwordStdin, tokenStdin, passphraseStdin                 bool
}

// Register adds the flags to a command.
func (s *Secret) Register(c *cobra.Command) {
	set := c.Flags()
	set.StringVar(&s.dockerConfig, "docker-config", "", "docker configuration file with credentials of registries")
	set.StringVar(&s.username, "username", "", "user name for git and archives over HTTPS, with --password-stdin")
	set.BoolVar(&s.passwordStdin, "password-stdin", false, "read the password from standard input")
	set.BoolVar(&s.tokenStdin, "token-stdin", false,
		"read a bearer token for git, archives or a catalog server from standard input")
	set.StringVar(&s.sshKey, "ssh-key", "", "file with a private key for git over SSH, with --known-hosts")
	set.StringVar(&s.knownHosts, "known-hosts", "", "file with known host keys")
	set.BoolVar(&s.passphraseStdin, "passphrase-stdin", false,
		"read the passphrase of the private key from standard input")
	set.StringVar(&s.ca, "ca", "", "file with CA certificates, in PEM")
	set.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig for a catalog that is a config map")
}

// Value reads the credential that the flags name; exactly one is taken.
func (s *Secret) Value(in io.Reader) (model.SetCatalogSecret, error) {
	var out model.SetCatalogSecret
	ways := []struct {
		given bool
		kind  source.SecretKind
		value func() (any, error)
	}{
		{s.dockerConfig != "", source.DockerConfig, s.docker},
		{s.username != "" || s.passwordStdin, source.Basic, func() (any, error) { return s.basic(in) }},
		{s.tokenStdin, source.Token, func() (any, error) { return readStdin("token", in) }},
		{
			s.sshKey != "" || s.knownHosts != "" || s.passphraseStdin, source.SSH,
			func() (any, error) { return s.ssh(in) },
		},
		{s.ca != "", source.CA, func() (any, error) { return fromFile("certificates", s.ca) }},
		{s.kubeconfig != "", source.Kubeconfig, func() (any, error) { return fromFile("kubeconfig", s.kubeconfig) }},
	}
	for _, w := range ways {
		if !w.given {
			continue
		}
		if out.Kind != "" {
			return out, errors.New("exactly one credential is needed: the flags name several")
		}
		v, err := w.value()
		if err != nil {
			return out, err
		}
		out.Kind = w.kind
		if out.Value, err = json.Marshal(v); err != nil {
			return out, fmt.Errorf("the %s is not of the expected form", w.kind)
		}
	}
	if out.Kind == "" {
		return out, errors.New(
			"exactly one credential is needed: --docker-config, --username and --password-stdin, --token-stdin, " +
				"--ssh-key and --known-hosts, --ca or --kubeconfig")
	}
	return out, nil
}

func (s *Secret) docker() (any, error) {
	text, err := readFile(s.dockerConfig)
	if err == nil && !json.Valid([]byte(text)) {
		err = fmt.Errorf("%s is not JSON", s.dockerConfig)
	}
	return json.RawMessage(text), err
}

func (s *Secret) basic(in io.Reader) (any, error) {
	if s.username == "" || !s.passwordStdin {
		return nil, errors.New("--username and --password-stdin go together")
	}
	v, err := readStdin("password", in)
	if err == nil {
		v["username"] = s.username
	}
	return v, err
}

func (s *Secret) ssh(in io.Reader) (any, error) {
	if s.sshKey == "" || s.knownHosts == "" {
		return nil, errors.New(
			"--ssh-key and --known-hosts go together: without known host keys any server could answer")
	}
	v := map[string]string{}
	var err error
	if s.passphraseStdin {
		if v, err = readStdin("passphrase", in); err != nil {
			return nil, err
		}
	}
	if v["privateKey"], err = readFile(s.sshKey); err != nil {
		return nil, err
	}
	v["knownHosts"], err = readFile(s.knownHosts)
	return v, err
}

func fromFile(name, path string) (any, error) {
	text, err := readFile(path)
	return map[string]string{name: text}, err
}

// readStdin reads one value of standard input, without the line's end that people type behind it.
func readStdin(name string, in io.Reader) (map[string]string, error) {
	raw, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the %s from standard input: %w", name, err)
	}
	if len(raw) > maxFile {
		return nil, fmt.Errorf("the %s is larger than %d bytes", name, maxFile)
	}
	return map[string]string{name: strings.TrimRight(string(raw), "\r\n")}, nil
}

func readFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	raw, err := os.ReadFile(path)
	return string(raw), err
}
