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
	c := &cobra.Command{Use: "effects", Short: "Stop every plan at its next step, or let plans go on", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return effectsStatus(cmd.Context(), a) }}
	var cluster string
	stop := &cobra.Command{
		Use: "stop", Short: "No plan takes another step", Args: cobra.NoArgs,
		Long: `Stops every plan at its next step, in the whole fleet or on one cluster. What is installed stays and runs; plans go on
where they were with chandler effects resume.`,
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

// LogCommand is the way on after a record that lost commits: the same as effects resume.
func LogCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "log", Short: "Accept the record after a restored backup", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return effectsStatus(cmd.Context(), a) }}
	c.AddCommand(resumeCommand(a, c.Name()))
	return c
}

func resumeCommand(a *command.Env, parent string) *cobra.Command {
	var in model.EffectsRequest
	c := &cobra.Command{
		Use: "resume", Short: "Let plans go on", Args: cobra.NoArgs,
		Long: `Lets plans take steps again. --epoch names the epoch of the record that you have looked at and accept;
chandler effects shows it. It is raised when the record has lost commits, as after a restored backup.`,
		Example: `  chandler ` + parent + ` resume --epoch 1
  chandler ` + parent + ` resume --epoch 2 --cluster east-1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Action = "resume"
			return setEffects(cmd.Context(), a, in)
		},
	}
	c.Flags().StringVar(&in.Cluster, "cluster", "", "only on this cluster")
	c.Flags().Int64Var(&in.Epoch, "epoch", 0, "epoch of the record that you accept")
	return c
}

func setEffects(ctx context.Context, a *command.Env, in model.EffectsRequest) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	if in.Action == "resume" && in.Epoch == 0 {
		e, err := c.Effects(ctx)
		if err != nil {
			return err
		}
		return errors.Join(sayEffects(a, e), command.Usagef("to go on, accept the epoch with --epoch %d", e.Epoch))
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
	text := fmt.Sprintf("effects are stopped%s: %s (%s); epoch %d", since, e.Reason, printer.Or(e.Scope, "fleet"), e.Epoch)
	if e.Detail != "" {
		text += "\n" + e.Detail
	}
	return a.Say("%s", text)
}
