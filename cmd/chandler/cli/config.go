package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// DefaultURL is where chandler dev and the gateway listen without further settings.
const DefaultURL = "http://127.0.0.1:8080"

// settings are the address and the token, as they stand in the file.
type settings struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// settings takes each value from its flag, else the environment, else the file.
func (a *app) settings() (settings, error) {
	s, err := a.readSettings()
	if err != nil {
		return s, err
	}
	for _, v := range []struct {
		into *string
		flag string
		env  string
	}{{&s.URL, a.url, "CHANDLER_URL"}, {&s.Token, a.token, "CHANDLER_TOKEN"}} {
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
func (a *app) readSettings() (s settings, err error) {
	path := a.config
	if path == "" {
		if path = a.defaultFile(); path == "" {
			return s, nil
		}
	}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && a.config == "":
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
func (a *app) defaultFile() string {
	dir := a.home("XDG_CONFIG_HOME", ".config")
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "config.yaml")
}

// defaultState is where chandler dev keeps its data; without a home it keeps none.
func (a *app) defaultState() string { return a.home("XDG_STATE_HOME", ".local/state") }

// home is Chandler's own folder in one of the base directories.
func (a *app) home(variable, below string) string {
	if dir, ok := a.Env(variable); ok && dir != "" {
		return filepath.Join(dir, "chandler")
	}
	if home, ok := a.Env("HOME"); ok && home != "" {
		return filepath.Join(home, below, "chandler")
	}
	return ""
}

// tokenCommand makes and revokes the tokens that settings name. A secret is shown once, on standard output.
func (a *app) tokenCommand() *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Give people and programs tokens, and take them away"}
	c.AddCommand(a.tokenAddCommand(), a.tokenListCommand(), a.tokenRevokeCommand())
	return c
}

func (a *app) tokenAddCommand() *cobra.Command {
	var role, actor string
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token, which is shown once",
		Long: `Makes a token for a person or a program. The name is for people and stands in no event; what a person does is
recorded under the actor. Each token is somebody new, unless --actor says that it is one more of a person's.`,
		Example: `  chandler token add "Ingrid, laptop" --role admin
  chandler token add "Ingrid, phone" --role viewer --actor person-4tz2kq7mw3xa`,
		Args: needs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			t, err := c.AddToken(cmd.Context(), model.AddToken{Name: args[0], Role: model.Role(role), Actor: actor})
			if err != nil {
				return err
			}
			return a.say("id: %s\nactor: %s\ntoken: %s", t.ID, t.Actor, t.Secret)
		},
	}
	c.Flags().StringVar(&role, "role", string(model.RoleViewer), "admin: everything; viewer: reads")
	c.Flags().StringVar(&actor, "actor", "", "actor of a token that the same person has or had")
	return c
}

func (a *app) tokenListCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "list", Short: "Show whose tokens there are, revoked ones included", Args: cobra.NoArgs,
		Long:    "Lists tokens by id, with the actor under whom events record what was done with them. Secrets are never shown.",
		Example: "  chandler token list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.Tokens(cmd.Context())
			items, err := all(list, err, func(t model.Token) item {
				state := "Active"
				if t.Ended(a.Now()) {
					state = "Ended"
				}
				return item{name: "token/" + t.ID, value: t, cells: []any{t.ID, or(t.Name, none), string(t.Role), t.Actor, state, a.age(t.CreatedAt)}}
			})
			if err != nil {
				return err
			}
			columns := []column{{name: "ID"}, {name: "Name"}, {name: "Role"}, {name: "Actor"}, {name: "State"}, {name: "Age"}}
			return a.show(o, resource{names: []string{"token", "tokens"}, columns: columns}, items, false)
		},
	}
	o.flags(c)
	return c
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Refuse a token from now on", Args: needs(1),
		Long:    "Refuses a token from now on, for good. The last one of an administrator is not revoked. chandler token list shows ids.",
		Example: "  chandler token revoke 0b0e2f5c-5d1c-4f6e-9a55-8f0c9d6f1e21",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if err := c.RevokeToken(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.say("token/%s revoked", args[0])
		},
	}
}
