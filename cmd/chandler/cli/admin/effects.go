package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// EffectsCommand is chandler effects.
func EffectsCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "effects", Short: "Stop all plans at their next step, or resume them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return effectsStatus(cmd.Context(), a) },
	}
	var cluster string
	stop := &cobra.Command{
		Use: "stop", Short: "Stop all plans at their next step", Args: cobra.NoArgs,
		Long: `Stops every plan at its next step, in the whole fleet or on one cluster. Installed operators keep running. chandler
effects resume continues the plans where they stopped.`,
		Example: `  chandler effects stop
  chandler effects stop --cluster east-1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setEffects(cmd.Context(), a, model.EffectsRequest{Action: "stop", Cluster: cluster})
		},
	}
	stop.Flags().StringVar(&cluster, "cluster", "", "only on this cluster")
	c.AddCommand(stop, resumeCommand(a, c.Name()))
	return c
}

// LogCommand is the way on after a record that lost commits, the same as effects resume, and for events that a consumer
// could not take.
func LogCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "log", Short: "Accept the event log after a restored backup; parked events", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return effectsStatus(cmd.Context(), a) },
	}
	c.AddCommand(resumeCommand(a, c.Name()), parkedCommand(a), rebuildCommand(a), accessCommand(a),
		eraseCommand(a))
	return c
}

func resumeCommand(a *command.Env, parent string) *cobra.Command {
	var in model.EffectsRequest
	c := &cobra.Command{
		Use: "resume", Short: "Resume plans", Args: cobra.NoArgs,
		Long: `Resumes stopped plans. --epoch is the epoch of the event log that you have checked and accept; chandler effects
shows it. The epoch is raised when the log has lost commits, for example after a restored backup.`,
		Example: `  chandler ` + parent + ` resume --epoch 1
  chandler ` + parent + ` resume --epoch 2 --cluster east-1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Action = "resume"
			return setEffects(cmd.Context(), a, in)
		},
	}
	c.Flags().StringVar(&in.Cluster, "cluster", "", "only on this cluster")
	c.Flags().Int64Var(&in.Epoch, "epoch", 0, "epoch of the event log that you accept")
	return c
}

func setEffects(ctx context.Context, a *command.Env, in model.EffectsRequest) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	if in.Cluster != "" {
		if err := command.CheckCluster(ctx, c, in.Cluster); err != nil {
			return err
		}
	}
	if in.Action == "resume" && in.Epoch == 0 {
		e, err := c.Effects(ctx)
		if err != nil {
			return err
		}
		return errors.Join(sayEffects(a, e), command.Usagef("accept the epoch with --epoch %d to resume", e.Epoch))
	}
	e, err := c.SetEffects(ctx, in)
	if err != nil {
		return err
	}
	return sayEffects(a, e)
}

func effectsStatus(ctx context.Context, a *command.Env) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	e, err := c.Effects(ctx)
	if err != nil {
		return err
	}
	return sayEffects(a, e)
}

func sayEffects(a *command.Env, e model.Effects) error {
	if !e.Stopped {
		return a.Say("effects are allowed; epoch %d", e.Epoch)
	}
	since := ""
	if e.Since != nil {
		since = " for " + printer.Age(a.Now(), *e.Since)
	}
	text := fmt.Sprintf("effects are stopped%s: %s (%s); epoch %d", since, e.Reason, printer.Or(e.Scope, "fleet"),
		e.Epoch)
	if e.Detail != "" {
		text += "\n" + e.Detail
	}
	return a.Say("%s", text)
}
