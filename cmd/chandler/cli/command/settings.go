package command

import (
	"cmp"
	"path/filepath"

	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/signin"
)

// DefaultURL is where chandler dev and the gateway listen without further settings.
const DefaultURL = "http://127.0.0.1:8080"

// Settings are what flags, environment and the current context say together.
type Settings struct {
	Context   string // its name; "" for none
	URL       string
	Token     string
	Exec      *clientcmd.ExecConfig // of the context
	Cluster   string                // where names are looked for without --cluster
	Namespace string                // where names are looked for without --namespace
	// Certificates are those of the context, for its address alone.
	Certificates client.Certificates
}

// Settings takes each value from its flag, else from the context that --context names, else the environment, else the
// current context. Who names a context means its address and its identity, whatever the environment is set up for.
func (a *Env) Settings() (Settings, error) {
	f, err := a.Contexts()
	if err != nil {
		return Settings{}, err
	}
	name := pick(a, a.Context, "CHANDLER_CONTEXT", f.Current)
	var of Context
	if name != "" {
		if of, err = f.Find(name); err != nil {
			return Settings{}, err
		}
	}
	var chosen Context
	if a.Context != "" {
		chosen = of
	}
	s := Settings{
		Context:   name,
		URL:       cmp.Or(pick(a, cmp.Or(a.URL, chosen.URL), "CHANDLER_URL", of.URL), DefaultURL),
		Token:     a.Token,
		Cluster:   pick(a, chosen.Cluster, "CHANDLER_CLUSTER", of.Cluster),
		Namespace: pick(a, chosen.Namespace, "CHANDLER_NAMESPACE", of.Namespace),
	}
	owned := s.URL == cmp.Or(of.URL, DefaultURL) &&
		(chosen.Token != "" || chosen.Exec != nil || chosen.ClientCertificate != "")
	if s.Token == "" && !owned {
		s.Token, _ = a.Env("CHANDLER_TOKEN")
	}
	if s.Token == "" && s.URL == cmp.Or(of.URL, DefaultURL) { // what is for one address is never sent to another
		s.Token, s.Exec = of.Token, of.Exec
	}
	if s.URL == cmp.Or(of.URL, DefaultURL) {
		s.Certificates = client.Certificates{
			Authority: of.CertificateAuthority, Client: of.ClientCertificate, Key: of.ClientKey,
		}
	}
	return s, nil
}

// pick is the first that says something: the flag, the variable, the file.
func pick(a *Env, flag, variable, file string) string {
	if flag != "" {
		return flag
	}
	if value, ok := a.Env(variable); ok && value != "" {
		return value
	}
	return file
}

// defaultFile is where contexts are kept; "" where the environment names no home.
func (a *Env) defaultFile() string {
	dir := a.home("XDG_CONFIG_HOME", ".config")
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "config.yaml")
}

// Credentials is the file of what chandler login got.
func (a *Env) Credentials() signin.Store {
	dir := a.home("XDG_CONFIG_HOME", ".config")
	if dir == "" {
		return signin.Store{}
	}
	return signin.Store{Path: filepath.Join(dir, "credentials.yaml")}
}

// DefaultState is where chandler dev keeps its data; without a home it keeps none.
func (a *Env) DefaultState() string { return a.home("XDG_STATE_HOME", ".local/state") }

// home is Chandler's own folder in one of the base directories.
func (a *Env) home(variable, below string) string {
	if dir, ok := a.Env(variable); ok && dir != "" {
		return filepath.Join(dir, "chandler")
	}
	if home, ok := a.Env("HOME"); ok && home != "" {
		return filepath.Join(home, below, "chandler")
	}
	return ""
}
