package clusters

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func cordonCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "cordon NAME...", Short: "Make no new install plans for clusters", Args: cobra.MinimumNArgs(1),
		Long: `Cordons clusters: nothing new is planned for them, neither installations nor upgrades, whoever asks. Plans that are
there already can be approved and are carried out; operators, drift correction and removals go on. Subscriptions that
would get a plan say so in the condition ClusterCordoned, and get it when the cluster is uncordoned.

chandler effects stop is for emergencies: it stops plans in the middle, too.`,
		Example: "  chandler cluster cordon east-1 east-2",
		RunE:    setCordoned(a, true),
	}
}

func uncordonCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "uncordon NAME...", Short: "Make install plans for clusters again", Args: cobra.MinimumNArgs(1),
		Long:    "Uncordons clusters: what was not planned while they were cordoned is planned now.",
		Example: "  chandler cluster uncordon east-1",
		RunE:    setCordoned(a, false),
	}
}

// setCordoned goes on with the other clusters where one cannot be changed.
func setCordoned(a *command.Env, cordoned bool) func(*cobra.Command, []string) error {
	done := "uncordoned"
	if cordoned {
		done = "cordoned"
	}
	return a.Run(func(ctx context.Context, c *client.Client, names []string) error {
		var failed []error
		for _, name := range names {
			_, err := c.ConfigureCluster(ctx, name, model.ConfigureCluster{Cordoned: &cordoned})
			if err != nil {
				failed = append(failed, command.OrNoCluster(ctx, c, name, err))
				continue
			}
			if err := a.Say("cluster/%s %s", name, done); err != nil {
				return err
			}
		}
		return errors.Join(failed...)
	})
}
