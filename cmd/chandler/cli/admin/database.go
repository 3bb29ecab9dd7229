package admin

import (
	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/service"
)

// MigrateCommand is chandler migrate.
func MigrateCommand(a *command.Env) *cobra.Command {
	var conn connections
	c := &cobra.Command{
		Use:     "migrate",
		Short:   "Create or update the database; safe to repeat",
		Example: "  chandler migrate --database-url postgres://postgres@db.example.test/chandler",
		Long: `Creates roles, schemas and tables, or updates them to this version. It can be repeated, and repairs a run that failed.
The URL needs a role that may create roles.

CHANDLER_GATEWAY_PASSWORD, CHANDLER_RESOLVER_PASSWORD, CHANDLER_INSTALLER_PASSWORD and
CHANDLER_CATALOG_INDEXER_PASSWORD, if set, become the passwords of the services' roles;
CHANDLER_GATEWAY_API_PASSWORD that of the role that the gateway answers requests as.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fill(a, &conn, false); err != nil {
				return err
			}
			o := migrate.Options{Log: a.Logger(), Passwords: rolePasswords(a)}
			if err := migrate.Up(cmd.Context(), conn.database, o); err != nil {
				return err
			}
			return a.Say("the database is at version %s", service.Version())
		},
	}
	connectionFlags(c, &conn, false)
	return c
}

// rolePasswords are those that the environment names, by database role.
func rolePasswords(a *command.Env) map[string]string {
	found := map[string]string{}
	for _, w := range []events.Writer{events.Gateway, events.Indexer, events.Resolver, events.Installer} {
		if password, ok := a.Env(service.Env(string(w) + "-password")); ok && password != "" {
			found[migrate.Role(w)] = password
		}
	}
	if password, ok := a.Env(service.Env("gateway-api-password")); ok && password != "" {
		found[migrate.GatewayRequests] = password
	}
	return found
}
