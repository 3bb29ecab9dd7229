package credential

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
)

// Login is what a registry is shown.
type Login struct {
	Secret                       string // where it comes from
	Username, Password           string
	IdentityToken, RegistryToken string
}

// login is an entry of a docker configuration.
type login struct {
	Login

	host, path string
}

// addDocker merges a docker configuration into those from before. Where two name the same place, the
// secret that is named first holds.
func (s *Set) addDocker(secret source.Secret) error {
	var v struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Username      string `json:"username"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
	}
	if err := decode(secret, &v, func() bool { return len(v.Auths) > 0 }); err != nil {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(v.Auths), func(a, b string) int { // a host goes before a URL of it
		return cmp.Or(strings.Count(a, "://")-strings.Count(b, "://"), cmp.Compare(a, b))
	})
	for _, key := range keys {
		a := v.Auths[key]
		l := login{Login: Login{secret.Name, a.Username, a.Password, a.IdentityToken, a.RegistryToken}}
		l.host, l.path = place(key)
		if a.Auth != "" {
			var ok bool
			if l.Username, l.Password, ok = decodeAuth(a.Auth); !ok {
				return errs.New(errs.Invalid, "secret %q: auth of %q is not the base64 form of name:password",
					secret.Name, key)
			}
		}
		if !slices.ContainsFunc(s.docker, func(o login) bool { return o.host == l.host && o.path == l.path }) {
			s.docker = append(s.docker, l)
		}
	}
	s.names = append(s.names, secret.Name)
	return nil
}

func decodeAuth(auth string) (name, password string, ok bool) {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(auth), "="))
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(raw), ":")
}

// place splits a key such as "https://registry.dock.test/v1/" or "registry.dock.test/ops" into host and path.
func place(key string) (host, repository string) {
	if _, rest, ok := strings.Cut(key, "://"); ok {
		key = rest
	}
	host, repository, _ = strings.Cut(key, "/")
	repository = strings.Trim(repository, "/")
	if repository == "v1" || repository == "v2" { // the API's own path in old files
		repository = ""
	}
	return canonical(host), repository
}

// canonical gives one name to a registry that is known under several.
func canonical(host string) string {
	host = strings.ToLower(host)
	if host == "docker.io" || host == "registry-1.docker.io" {
		return "index.docker.io"
	}
	return host
}

// For returns the login for a repository: of those that fit, the one with the longest path, and of these
// an exact host before a pattern (R-DIS-5).
func (s *Set) For(host, repository string) (Login, bool) {
	host = canonical(host)
	var best *login
	for i := range s.docker {
		l := &s.docker[i]
		if !fits(l.host, host) || l.path != "" && l.path != repository && !strings.HasPrefix(repository, l.path+"/") {
			continue
		}
		if best == nil || len(l.path) > len(best.path) || len(l.path) == len(best.path) && l.host == host &&
			best.host != host {
			best = l
		}
	}
	if best == nil {
		return Login{}, false
	}
	return best.Login, true
}

// fits compares hosts; "*" matches one label, as the kubelet has it.
func fits(pattern, host string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == host
	}
	p, h := strings.Split(pattern, "."), strings.Split(host, ".")
	if len(p) != len(h) {
		return false
	}
	for i := range p {
		if ok, err := path.Match(p[i], h[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// MarshalJSON keeps a login out of logs and documents.
func (l Login) MarshalJSON() ([]byte, error) { return json.Marshal("login of secret " + l.Secret) }

// String does the same for printing.
func (l Login) String() string { return "login of secret " + l.Secret }
