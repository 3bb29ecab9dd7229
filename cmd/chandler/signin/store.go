// Package signin gets tokens of a house's identity provider for the command line, keeps them in a file of the user's
// own, and gets new ones before they end.
package signin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/ownfile"
)

// Credential is what somebody signed in with at one Chandler.
type Credential struct {
	Provider     string    `json:"provider"`
	Issuer       string    `json:"issuer"`
	ClientID     string    `json:"clientID"`
	ClientSecret string    `json:"clientSecret,omitempty"`
	Subject      string    `json:"subject,omitempty"` // who it is, as the provider says
	Token        string    `json:"token"`             // the ID token, which Chandler takes
	Refresh      string    `json:"refresh,omitempty"`
	Ends         time.Time `json:"ends"`
}

// Store is the file of credentials, by address of Chandler: a token for one is never sent to another.
type Store struct{ Path string }

// Agreed is where somebody has agreed to sign in for one Chandler. It stays when they sign out.
type Agreed struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientID"`
}

type file struct {
	Credentials map[string]Credential `json:"credentials"`
	Agreed      map[string]Agreed     `json:"agreed,omitempty"`
}

// Get returns the credential for an address; found is false where there is none.
func (s Store) Get(url string) (c Credential, found bool, err error) {
	f, err := s.read()
	c, found = f.Credentials[key(url)]
	return c, found, err
}

// Agreed returns where somebody has agreed to sign in for an address; found is false where nobody has.
func (s Store) Agreed(url string) (a Agreed, found bool, err error) {
	f, err := s.read()
	a, found = f.Agreed[key(url)]
	return a, found, err
}

// Agree keeps that somebody has agreed.
func (s Store) Agree(url string, a Agreed) error {
	return s.change(func(f *file) {
		if f.Agreed == nil {
			f.Agreed = map[string]Agreed{}
		}
		f.Agreed[key(url)] = a
	})
}

// Put keeps a credential for an address; nil forgets the one that is there.
func (s Store) Put(url string, c *Credential) error {
	return s.change(put(url, c))
}

func put(url string, c *Credential) func(*file) {
	return func(f *file) {
		if f.Credentials == nil {
			f.Credentials = map[string]Credential{}
		}
		delete(f.Credentials, key(url))
		if c != nil {
			f.Credentials[key(url)] = *c
		}
	}
}

func (s Store) change(do func(*file)) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.changeLocked(do)
}

// lock keeps other commands from changing the file.
func (s Store) lock() (unlock func(), err error) {
	if s.Path == "" {
		return nil, errors.New("there is no place for credentials: neither HOME nor XDG_CONFIG_HOME is set")
	}
	if unlock, err = ownfile.Lock(s.Path); err != nil {
		return nil, fmt.Errorf("lock the credentials: %w", err)
	}
	return unlock, nil
}

func (s Store) changeLocked(do func(*file)) error {
	f, err := s.read()
	if err != nil {
		return err
	}
	do(&f)
	raw, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	if err := ownfile.Write(s.Path, raw); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}

func key(url string) string { return strings.TrimSuffix(url, "/") }

// forOthers are the rights that nobody but the user may have.
const forOthers fs.FileMode = 0o077

func (s Store) read() (f file, err error) {
	if s.Path == "" {
		return f, nil
	}
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("cannot read the credentials: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&forOthers != 0 {
		return f, fmt.Errorf("others may read the credentials in %s: chmod 600 it, and sign in again if others did", s.Path)
	}
	raw, err := os.ReadFile(s.Path)
	if err != nil {
		return f, fmt.Errorf("cannot read the credentials: %w", err)
	}
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		return f, fmt.Errorf("the credentials in %s cannot be read; remove it and sign in again: %w", s.Path, err)
	}
	return f, nil
}
