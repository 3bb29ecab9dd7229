package admin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// InstallerCommand is chandler installer: where executors run, and how to take a replica out of service.
func InstallerCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "installer", Short: "Show the replicas of the installer, and drain one"}
	c.AddCommand(replicasCommand(a),
		drainCommand(a, true, "drain", "Move the clusters of a replica to the others", `Has a replica of the installer
give its clusters to the other replicas, and take none until chandler installer undrain. Each executor stops in order,
so that the next one begins within seconds. Do it before its node is taken out of service; a replica that is stopped
in order needs no drain. Clusters that no other replica has room for wait, with the state NoRoom.`),
		drainCommand(a, false, "undrain", "Have a drained replica take clusters again",
			"Has a drained replica take clusters again: those that it is the first choice for."))
	return c
}

func replicasCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "replicas", Short: "List replicas with what they run", Args: cobra.NoArgs,
		Long: `Lists the replicas of the installer: the clusters whose executors each runs, their weight (a cluster has 1, and 1
for each operator) and how much weight it takes, the clusters whose reports it records, and the executors that it has
given to other replicas. A replica that is not heard of for an hour is not listed any more.`,
		Example: `  chandler installer replicas
  chandler installer replicas -o yaml`,
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Replicas(ctx)
			return printer.List(a, &o, printer.Table{
				Plural: "replicas", Columns: printer.Columns("Name", "State", "Clusters", "Weight", "Capacity",
					"Records", "Moves"),
			}, all, err, func(r model.Replica) printer.Item {
				capacity := any(r.Capacity)
				if r.Capacity == 0 {
					capacity = "any"
				}
				return printer.Item{Name: r.Name, Value: r, Cells: []any{
					r.Name, replicaState(r), r.Clusters, r.Weight, capacity, r.Recorded, r.Moves,
				}}
			})
		}),
	}
	o.Flags(c)
	return c
}

func replicaState(r model.Replica) string {
	switch {
	case !r.Live && r.Draining:
		return "Gone,Draining"
	case !r.Live:
		return "Gone"
	case r.Draining:
		return "Draining"
	}
	return "Live"
}

func drainCommand(a *command.Env, draining bool, name, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: name + " REPLICA", Short: short, Long: long, Args: cobra.ExactArgs(1),
		Example: "  chandler installer " + name + " chandler-installer-6f7b9-x2kqp/:8081",
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.DrainReplica(ctx, model.DrainReplica{Replica: args[0], Draining: draining}); err != nil {
				return err
			}
			if draining {
				return a.Say("%s gives its clusters to the other replicas", args[0])
			}
			return a.Say("%s takes clusters again", args[0])
		}),
	}
}
