package fleet

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

func pauseCommand(a *command.Env) *cobra.Command {
	var o chosen
	c := &cobra.Command{
		Use: "pause NAME", Short: "Have a rollout change no further cluster",
		Long: `Pauses the rollout of a fleet subscription: no further cluster is changed. What was asked of clusters already goes on,
and its outcome is recorded. chandler fleet resume has it go on.`,
		Example: "  chandler fleet pause gauges", Args: command.RequireArgs(1),
		RunE: o.act(a, "paused",
			func(ctx context.Context, c *client.Client, r client.RolloutRef, _ []string) (fleetmodel.Rollout, error) {
				return c.PauseRollout(ctx, r)
			}),
	}
	o.flags(c)
	return c
}

func resumeCommand(a *command.Env) *cobra.Command {
	var o chosen
	c := &cobra.Command{
		Use: "resume NAME", Short: "Have a rollout go on that was paused or has halted",
		Long: `Has a rollout go on that a person paused or that halted by itself. The failures so far are forgiven: only those that
come count against its budgets. Clusters that failed stay as they are; chandler fleet retry tries them again.`,
		Example: "  chandler fleet resume gauges", Args: command.RequireArgs(1),
		RunE: o.act(a, "resumed",
			func(ctx context.Context, c *client.Client, r client.RolloutRef, _ []string) (fleetmodel.Rollout, error) {
				return c.ResumeRollout(ctx, r)
			}),
	}
	o.flags(c)
	return c
}

func promoteCommand(a *command.Env) *cobra.Command {
	var o chosen
	var wave string
	c := &cobra.Command{
		Use: "promote NAME", Short: "Let the next wave of a rollout begin",
		Long: `Lets the wave after the open one begin, when all of its clusters have settled. It stands for the promotion of a wave
that wants a person, and ends the soak of any other. With --wave nothing happens if another wave is open by now.`,
		Example: "  chandler fleet promote gauges --wave canary", Args: command.RequireArgs(1),
		RunE: o.act(a, "promoted",
			func(ctx context.Context, c *client.Client, r client.RolloutRef, _ []string) (fleetmodel.Rollout, error) {
				return c.PromoteRollout(ctx, r, fleetmodel.PromoteRollout{Wave: wave})
			}),
	}
	c.Flags().StringVar(&wave, "wave", "", "promote only if this wave is the open one")
	o.flags(c)
	return c
}

func abortCommand(a *command.Env) *cobra.Command {
	var o chosen
	c := &cobra.Command{
		Use: "abort NAME", Short: "End a rollout; nothing is undone",
		Long: `Ends a rollout for good. What was asked of clusters is finished, nothing is undone, and no further cluster is changed
until the next rollout: when the fleet subscription, its clusters or what the catalog offers changes.`,
		Example: "  chandler fleet abort gauges", Args: command.RequireArgs(1),
		RunE: o.act(a, "aborted",
			func(ctx context.Context, c *client.Client, r client.RolloutRef, _ []string) (fleetmodel.Rollout, error) {
				return c.AbortRollout(ctx, r)
			}),
	}
	o.flags(c)
	return c
}

func skipCommand(a *command.Env) *cobra.Command {
	var o chosen
	var reason string
	c := &cobra.Command{
		Use: "skip NAME CLUSTER --reason TEXT", Short: "Leave a cluster out of a rollout",
		Long: `Leaves a cluster out of a rollout: it holds nothing up, and counts neither as changed nor as failed. The reason is shown
to whoever asks why; it is stored outside the event log, and can be erased.`,
		Example: "  chandler fleet skip gauges east-3 --reason 'its storage is being replaced'", Args: cobra.ExactArgs(2),
		RunE: o.act(a, "leaves out cluster %s",
			func(
				ctx context.Context, c *client.Client, r client.RolloutRef, args []string,
			) (fleetmodel.Rollout, error) {
				if strings.TrimSpace(reason) == "" {
					return fleetmodel.Rollout{}, command.Usagef("--reason is empty: say why, for whoever asks later")
				}
				return c.SkipCluster(ctx, r, args[1], fleetmodel.SkipCluster{Reason: reason})
			}),
	}
	c.Flags().StringVar(&reason, "reason", "", "why")
	_ = c.MarkFlagRequired("reason") // it was defined in the line before
	o.flags(c)
	return c
}

func retryCommand(a *command.Env) *cobra.Command {
	var o chosen
	c := &cobra.Command{
		Use: "retry NAME CLUSTER", Short: "Try a cluster again that failed or was skipped",
		Long: `Has a rollout ask a cluster once more for the change that failed there, or that it was left out of. A rollout that has
halted does so when it is resumed.`,
		Example: "  chandler fleet retry gauges east-3", Args: cobra.ExactArgs(2),
		RunE: o.act(a, "tries cluster %s again",
			func(
				ctx context.Context, c *client.Client, r client.RolloutRef, args []string,
			) (fleetmodel.Rollout, error) {
				return c.RetryCluster(ctx, r, args[1])
			}),
	}
	o.flags(c)
	return c
}
