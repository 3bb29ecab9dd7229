package admin

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
)

// natsCommand is chandler keys nats.
func natsCommand(a *command.Env) *cobra.Command {
	var file, jwts, accounts string
	var agents []string
	c := &cobra.Command{
		Use:   "nats",
		Short: "Write the users of NATS for the configuration of its server",
		Long: `Writes the block "accounts" for the configuration of nats-server: an account of Chandler with a user for each
service and for the administrator, an account for each agent, and what each of them may publish and subscribe to. It
holds public keys only, which it takes from the environment or from the file that chandler keys has written.

With --jwt DIR it makes a server in operator mode instead, where agents get in by join tokens while it runs: DIR gets
the block for the server's configuration (nats.conf), a creds file for each service and the administrator, and
agents.json, which the installer takes as CHANDLER_NATS_AGENTS. Keys are made once, in keys.json: keep that file
apart, no service needs it. With it the command writes all else anew, which a release asks for that changes who may do
what.`,
		Example: `  chandler keys nats --env-file .env > chandler-accounts.conf
  chandler keys nats --jwt nats-keys
  chandler keys nats --env-file .env --agent 5b5f3e0e-6d0a-5b5c-9d0e-1f1a6f0c9a11=UAGENTSPUBLICKEY`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if jwts != "" {
				if file != "" || len(agents) > 0 {
					return command.Usagef("--jwt makes keys of its own: leave out --env-file and --agent")
				}
				return writeOperatorMode(a, jwts, accounts)
			}
			users, err := natsUsers(a, file)
			if err != nil {
				return err
			}
			for _, text := range agents {
				u, err := agentUser(text)
				if err != nil {
					return err
				}
				users = append(users, u)
			}
			_, err = fmt.Fprint(a.Out, natsauth.Config(users))
			return err
		},
	}
	c.Flags().StringVar(&file, "env-file", "", "environment file that chandler keys has written (default the environment)")
	c.Flags().StringVar(&jwts, "jwt", "", "folder of a server in operator mode, new or as this command has written it")
	c.Flags().StringVar(&accounts, "accounts-dir", "/data/accounts", "where that server keeps the accounts that it is given")
	c.Flags().StringArrayVar(&agents, "agent", nil, "an agent, as [TENANT/]CLUSTER-ID=PUBLIC-KEY; may be repeated")
	return c
}

// natsUsers are the users of the installation with their public keys.
func natsUsers(a *command.Env, file string) ([]natsauth.User, error) {
	lookup := a.Env
	if file != "" {
		values, err := readEnvFile(file)
		if err != nil {
			return nil, err
		}
		lookup = func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	}
	users := natsauth.ServiceUsers()
	for i := range users {
		name := natsauth.Variable(users[i].Name)
		users[i].NKey, _ = lookup(name)
		if !natsconn.IsPublicKey(users[i].NKey) {
			return nil, command.Usagef("%s is not the public key of a user of NATS; chandler keys makes one", name)
		}
	}
	return users, nil
}

// readEnvFile reads lines of NAME=VALUE.
func readEnvFile(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			values[name] = value
		}
	}
	return values, nil
}

// agentUser reads [TENANT/]CLUSTER-ID=PUBLIC-KEY.
func agentUser(text string) (natsauth.User, error) {
	name, key, _ := strings.Cut(text, "=")
	tenant, cluster, ok := strings.Cut(name, "/")
	if !ok {
		tenant, cluster = events.DefaultTenant, name
	}
	id, err := uuid.Parse(cluster)
	if err != nil || tenant == "" || strings.ContainsAny(tenant, ".*> \t\"") || !natsconn.IsPublicKey(key) {
		return natsauth.User{}, command.Usagef("--agent %q: want [TENANT/]CLUSTER-ID=PUBLIC-KEY", text)
	}
	u := natsauth.AgentUser(tenant, id.String())
	u.NKey = key
	return u, nil
}

// agentCommand is chandler keys agent.
func agentCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "agent CLUSTER-ID",
		Short: "Create the key of an agent on NATS",
		Long: `Writes the seed of a new user of NATS for the agent of one cluster, which the agent takes as
CHANDLER_NATS_NKEY_SEED, and the argument of chandler keys nats with its public key. Once the server has that
(a running one reads its configuration twice), the agent may read what is wanted of its cluster, fetch bundles, write
its reports and answer questions about its cluster, and nothing else.`,
		Example: "  chandler keys agent 5b5f3e0e-6d0a-5b5c-9d0e-1f1a6f0c9a11",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return command.Usagef("%q is not the id of a cluster: want a UUID", args[0])
			}
			seed, err := natsconn.NewSeed()
			if err != nil {
				return err
			}
			public, err := natsconn.PublicKey(seed)
			if err != nil {
				return err
			}
			return errors.Join(
				a.Say("# chandler keys nats --agent %s=%s", id, public), a.Say("CHANDLER_NATS_NKEY_SEED=%s", seed))
		},
	}
}
