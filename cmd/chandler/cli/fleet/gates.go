package fleet

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

func passGateCommand(a *command.Env) *cobra.Command {
	var o chosen
	var reason string
	c := &cobra.Command{
		Use: "pass-gate NAME GATE --reason TEXT", Short: "Let a wave go on without one of its gates",
		Long: `Lets the open wave of a rollout go on without one of its gates, whatever it says. A rollout that the gate has halted
goes on when it is resumed, which has all other gates of the wave evaluated anew. The reason is shown with the gate; it
is stored outside the event log, and can be erased.`,
		Example: "  chandler fleet pass-gate gauges errors --reason 'the alert is about another service'",
		Args:    cobra.ExactArgs(2),
		RunE: o.act(a, "goes on without gate %s",
			func(
				ctx context.Context, c *client.Client, r client.RolloutRef, args []string,
			) (fleetmodel.Rollout, error) {
				if strings.TrimSpace(reason) == "" {
					return fleetmodel.Rollout{}, command.Usagef("--reason is empty: say why, for whoever asks later")
				}
				return c.PassGate(ctx, r, args[1], fleetmodel.PassGate{Reason: reason})
			}),
	}
	c.Flags().StringVar(&reason, "reason", "", "why")
	_ = c.MarkFlagRequired("reason") // it was defined in the line before
	o.flags(c)
	return c
}
