package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"

	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/ownfile"
	"github.com/chandler-fleet/chandler/libs/spelling"
)

// Contexts is the file of contexts, in the manner of a kubeconfig (ADR 0052).
type Contexts struct {
	Current  string    `json:"current-context,omitempty"`
	Contexts []Context `json:"contexts,omitempty"`
}

// Context is one Chandler, how one is known there, and where names are looked for.
type Context struct {
	Name      string                `json:"name"`
	URL       string                `json:"url,omitempty"`
	Cluster   string                `json:"cluster,omitempty"`
	Namespace string                `json:"namespace,omitempty"`
	Token     string                `json:"token,omitempty"`
	Exec      *clientcmd.ExecConfig `json:"exec,omitempty"`
	// Files in PEM, by absolute paths.
	CertificateAuthority string `json:"certificate-authority,omitempty"`
	ClientCertificate    string `json:"client-certificate,omitempty"`
	ClientKey            string `json:"client-key,omitempty"`
}

// CheckCredentials refuses a context by which one is known in several ways.
func (of *Context) CheckCredentials() error {
	if of.Token != "" && of.Exec != nil {
		return Usagef("a context has a token or a program that gives one, not both")
	}
	if of.ClientCertificate != "" && (of.Token != "" || of.Exec != nil) {
		return Usagef("a context has a client certificate, or a token or a program that gives one, not both")
	}
	return nil
}

// Find returns the context of a name.
func (f Contexts) Find(name string) (Context, error) {
	known := make([]string, len(f.Contexts))
	for i, c := range f.Contexts {
		if c.Name == name {
			return c, nil
		}
		known[i] = c.Name
	}
	return Context{}, Usagef("there is no context %q%s: see chandler config get-contexts", name,
		spelling.DidYouMean(name, known))
}

// Contexts reads the file; only one that was named must exist.
func (a *Env) Contexts() (f Contexts, err error) {
	path := a.contextsFile()
	if path == "" {
		return f, nil
	}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && a.Config == "":
		return f, nil
	case err != nil:
		return f, fmt.Errorf("cannot read the contexts: %w", err)
	}
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		return f, fmt.Errorf("%s: want current-context and contexts, as chandler config set-context writes them: %w",
			path, err)
	}
	if err := a.warnOfReaders(path, f); err != nil {
		return f, err
	}
	var seen []string
	for _, c := range f.Contexts {
		if c.Name == "" || slices.Contains(seen, c.Name) {
			return f, fmt.Errorf("%s: the context %q: want each with a name of its own", path, c.Name)
		}
		if c.Exec != nil && c.Exec.Command == "" {
			return f, fmt.Errorf("%s: the context %q: exec has no command", path, c.Name)
		}
		seen = append(seen, c.Name)
	}
	return f, nil
}

// othersRead are the bits of a file's mode that let others read it.
const othersRead fs.FileMode = 0o044

// warnOfReaders says once that others may read a file with tokens in it. Windows has no such bits.
func (a *Env) warnOfReaders(path string, f Contexts) error {
	secret := slices.ContainsFunc(f.Contexts, func(c Context) bool {
		return c.Token != "" || c.Exec != nil && len(c.Exec.Env) > 0
	})
	if a.warned || !secret || runtime.GOOS == "windows" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&othersRead == 0 {
		return err
	}
	a.warned = true
	_, err = fmt.Fprintf(a.Err, "warning: others may read %s, which holds a token or variables of a program: chmod 600 %s\n",
		path, path)
	return err
}

// ChangeContexts changes the file, which several commands may do at once.
func (a *Env) ChangeContexts(do func(*Contexts) error) error {
	path := a.contextsFile()
	if path == "" {
		return Usagef("there is no place for contexts: give --config, or set HOME or XDG_CONFIG_HOME")
	}
	unlock, err := ownfile.Lock(path)
	if err != nil {
		return fmt.Errorf("lock the contexts: %w", err)
	}
	defer unlock()
	f, err := a.Contexts()
	if errors.Is(err, fs.ErrNotExist) {
		f, err = Contexts{}, nil
	}
	if err == nil {
		err = do(&f)
	}
	if err != nil {
		return err
	}
	raw, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	return ownfile.Write(path, raw)
}

func (a *Env) contextsFile() string {
	if a.Config != "" {
		return a.Config
	}
	return a.defaultFile()
}
