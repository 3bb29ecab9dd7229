package clusters

import (
	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func taintCommand(a *command.Env) *cobra.Command {
	var overwrite bool
	c := &cobra.Command{
		Use: "taint NAME KEY=VALUE|KEY-...", Short: "Set or remove taints of a cluster",
		Long: `Sets taints (KEY=VALUE, the value may be empty) and removes them (KEY-); others stay. A taint that has another value
is changed with --overwrite only.

A taint keeps fleet subscriptions away from the cluster that do not tolerate it. It does not concern what people
subscribe to on the cluster itself. chandler describe cluster shows the taints.`,
		Example: `  chandler cluster taint east-1 dedicated=databases
  chandler cluster taint east-1 dedicated=queues on-probation- --overwrite`,
		Args: command.RequireArgs(command.Unlimited),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, name := cmd.Context(), args[0]
			changes, err := command.Changes("taint", args[1:])
			if err != nil {
				return err
			}
			if len(changes) == 0 {
				return command.Usagef("want a cluster, and then KEY=VALUE or KEY- of its taints")
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			have, err := c.Cluster(ctx, name)
			if err != nil {
				return command.OrNoCluster(ctx, c, name, err)
			}
			if !overwrite {
				if err := command.CheckOverwrite(have.Taints, changes); err != nil {
					return err
				}
			}
			out, err := c.ConfigureCluster(ctx, name, model.ConfigureCluster{Taints: changes})
			if err != nil {
				return command.OrNoCluster(ctx, c, name, err)
			}
			return a.Say("cluster/%s set: taints %s", name, printer.Labels(out.Taints))
		},
	}
	c.Flags().BoolVar(&overwrite, "overwrite", false, "change values that there are")
	return c
}
