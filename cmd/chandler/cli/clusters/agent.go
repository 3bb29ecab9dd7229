package clusters

import (
	"fmt"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
)

func agentConfigCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "agent-config NAME", Short: "Write what the agent of a cluster is to know",
		Long: `Writes the document that chandler-agent takes as CHANDLER_AGENT_CONFIG: the ids of the cluster and of this
installation, the public keys by which the agent believes the hub, and the key that opens configuration values of this
cluster and of no other. It is a secret: whoever has it reads those values on NATS. It comes encrypted to a key that
this command makes and forgets. Without the agent's user on NATS (chandler keys nats --agent) it connects nobody.

Whoever may register clusters may do this. After a rotation of the hub's keys write it again.`,
		Example: "  chandler cluster agent-config field-7 > agent.json",
		Args:    command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, name := cmd.Context(), args[0]
			c, err := a.Client()
			if err != nil {
				return err
			}
			own, err := age.GenerateX25519Identity()
			if err != nil {
				return fmt.Errorf("make a key: %w", err)
			}
			identity, err := seal.Of(own)
			if err != nil {
				return err
			}
			answer, err := c.AgentConfig(ctx, name, identity.Recipient.String())
			if err != nil {
				return command.OrNoCluster(ctx, c, name, err)
			}
			text, err := seal.Identities{identity}.Open(answer.Sealed, agentconfig.MaxBytes)
			if err != nil {
				return err
			}
			if _, err := agentconfig.Parse(text); err != nil {
				return err
			}
			_, err = a.Out.Write(text)
			return err
		},
	}
}
