package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// DefaultURL is where chandler dev and the gateway listen without further settings.
const DefaultURL = "http://127.0.0.1:8080"

// Settings are the address and the token, as they stand in the file.
type Settings struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// Settings takes each value from its flag, else the environment, else the file.
func (a *Env) Settings() (Settings, error) {
	s, err := a.readSettings()
	if err != nil {
		return s, err
	}
	for _, v := range []struct {
		into *string
		flag string
		env  string
	}{{&s.URL, a.URL, "CHANDLER_URL"}, {&s.Token, a.Token, "CHANDLER_TOKEN"}} {
		if value, ok := a.Env(v.env); ok {
			*v.into = value
		}
		if v.flag != "" {
			*v.into = v.flag
		}
	}
	if s.URL == "" {
		s.URL = DefaultURL
	}
	return s, nil
}

// readSettings reads the file; only a file that was named must exist.
func (a *Env) readSettings() (s Settings, err error) {
	path := a.Config
	if path == "" {
		if path = a.defaultFile(); path == "" {
			return s, nil
		}
	}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && a.Config == "":
		return s, nil
	case err != nil:
		return s, fmt.Errorf("cannot read the settings: %w", err)
	}
	if err := yaml.UnmarshalStrict(raw, &s); err != nil {
		return s, fmt.Errorf("settings %s must hold url and token only: %w", path, err)
	}
	return s, nil
}

// defaultFile is "" where the environment names no home.
func (a *Env) defaultFile() string {
	dir := a.home("XDG_CONFIG_HOME", ".config")
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "config.yaml")
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
