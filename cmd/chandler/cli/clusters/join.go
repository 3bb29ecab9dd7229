package clusters

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

//go:embed agent.yaml.tmpl
var agentManifest string

func joinTokenCommand(a *command.Env) *cobra.Command {
	var ttl time.Duration
	var automatic bool
	var image string
	c := &cobra.Command{
		Use: "join-token NAME [--ttl 1h]", Short: "Write a manifest by which an agent joins a cluster",
		Long: `Writes a manifest for kubectl that starts chandler-agent in a cluster that was registered with --agent. The agent
asks this installation to become the agent of the cluster, and a person accepts it: chandler cluster accept. Its secret
is a join token, which is made here and good for one agent; a newer token takes the place of the one before. It needs a
NATS server in operator mode (chandler keys nats --jwt).

Whoever may register clusters may do this.`,
		Example: "  chandler cluster join-token field-7 | kubectl apply -f -",
		Args:    command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			seed, err := natsconn.NewSeed()
			if err != nil {
				return err
			}
			in := model.IssueJoinToken{TTLSeconds: int64(ttl / time.Second)}
			if automatic {
				in.Accept = "Automatic"
			}
			if in.Key, err = natsconn.PublicKey(seed); err != nil {
				return err
			}
			made, err := c.IssueJoinToken(cmd.Context(), args[0], in)
			if err != nil {
				return command.OrNoCluster(cmd.Context(), c, args[0], err)
			}
			text, err := json.Marshal(agentconfig.Join{ //nolint:gosec // the agent is to have it: the user sees to that
				Version: agentconfig.JoinVersion, Tenant: made.Tenant, Cluster: made.Cluster, ClusterID: made.ClusterID,
				NATSURL: made.NATSURL, NATSCA: made.NATSCA, HubKeys: made.HubKeys, Seed: seed, JWT: made.JWT,
			})
			if err != nil {
				return err
			}
			manifest, err := template.New("agent").Parse(agentManifest)
			if err != nil {
				return err
			}
			return manifest.Execute(a.Out, struct{ Cluster, Join, Image string }{
				args[0], base64.StdEncoding.EncodeToString(text), image,
			})
		},
	}
	c.Flags().DurationVar(&ttl, "ttl", time.Hour, "for how long the token may be used first")
	c.Flags().BoolVar(&automatic, "accept", false, "accept who uses the token, without a person")
	c.Flags().StringVar(&image, "image", "chandler/chandler-agent:latest", "image of the agent")
	return c
}

func decideAgentCommand(a *command.Env, use, action, short, long, done string) *cobra.Command {
	return &cobra.Command{
		Use: use + " NAME", Short: short, Long: long, Args: command.RequireArgs(1),
		Example: "  chandler cluster " + use + " field-7",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, name := cmd.Context(), args[0]
			c, err := a.Client()
			if err != nil {
				return err
			}
			now, err := c.Agent(ctx, name)
			if err != nil {
				return command.OrNoCluster(ctx, c, name, err)
			}
			in := model.DecideAgent{Action: action}
			if action != cluster.RevokeAgent {
				if now.Asks == nil {
					return command.Usagef("nobody asks to become the agent of cluster %s: it is %s", name, now.Phase)
				}
				in.Instance = now.Asks.Instance
				if err := a.Say("instance %s asks, from API server %s with Kubernetes %s", now.Asks.Instance,
					now.Asks.ClusterUID, now.Asks.KubernetesVersion); err != nil {
					return err
				}
			}
			if _, err := c.DecideAgent(ctx, name, in); err != nil {
				return err
			}
			return a.Say("cluster/%s %s", name, done)
		},
	}
}

func agentDecisions(a *command.Env) []*cobra.Command {
	return []*cobra.Command{
		decideAgentCommand(a, "accept", cluster.AcceptAgent, "Accept who asks to become the agent of a cluster",
			`Lets the agent in that asks with a join token, and shows which one it is. An agent before it is cut off.`,
			"agent accepted"),
		decideAgentCommand(a, "reject", cluster.RejectAgent, "Reject who asks to become the agent of a cluster",
			`Does not let the agent in that asks with a join token. The token is used up; an agent before it stays.`,
			"agent rejected"),
		decideAgentCommand(a, "revoke", cluster.RevokeAgent, "Cut off the agent of a cluster, and its join token",
			`Cuts the agent of a cluster off within seconds, and makes its join token useless. Operators stay and keep running;
chandler cluster join-token lets another agent in.`,
			"agent and join token revoked"),
	}
}
