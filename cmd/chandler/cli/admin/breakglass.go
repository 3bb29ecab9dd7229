package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func breakGlassCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "break-glass", Short: "Keep and use the token that works while nobody can sign in",
		Long: `One token of the tenant has the rights of admin and no end, for the day when the identity provider is away or the last
binding is lost. It lets in for an hour at a time, for a reason; each time is an event, and everybody is told of it.`,
	}
	c.AddCommand(breakGlassCreateCommand(a), breakGlassOpenCommand(a), breakGlassShowCommand(a),
		breakGlassRevokeCommand(a))
	return c
}

func breakGlassCreateCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "create", Short: "Create the token; it is shown once", Args: cobra.NoArgs,
		Long: `Creates the break-glass token of the tenant, in the place of the one before, which is refused from then on. Keep it
where it can be had without Chandler and without the identity provider, such as on paper in a safe.`,
		Example: "  chandler auth break-glass create",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			made, err := c.CreateBreakGlass(ctx)
			if err != nil {
				return err
			}
			return a.Say("id: %s\ntoken: %s", made.ID, made.Secret)
		}),
	}
}

func breakGlassOpenCommand(a *command.Env) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "open", Short: "Have the token let in for an hour", Args: cobra.NoArgs,
		Long: `Opens a session of the break-glass token that the command is given (CHANDLER_TOKEN), for a reason. Opened again before
its end, it goes on.`,
		Example: `  chandler auth break-glass open --reason "INC-4711: nobody can sign in"`,
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			if reason == "" {
				return command.Usagef("--reason is missing: say why the break-glass token has to be used")
			}
			use, err := c.OpenBreakGlass(ctx, model.OpenBreakGlass{Reason: reason})
			if err != nil {
				return err
			}
			return a.Say("open until: %s", use.Until.UTC().Format(time.RFC3339))
		}),
	}
	c.Flags().StringVar(&reason, "reason", "", "why it has to be used, in a line")
	return c
}

func breakGlassShowCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show the token's id, and when and why it was used last", Args: cobra.NoArgs,
		Long:    "Shows the break-glass token without its secret. Earlier uses: chandler events --type access.break-glass-used.v1",
		Example: "  chandler auth break-glass show",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			t, err := c.BreakGlass(ctx)
			if err != nil {
				return err
			}
			state, used := "good", "never"
			if !t.Good {
				state = "revoked"
			}
			if t.Use != nil {
				used = command.UseText(*t.Use)
				if t.Reason != "" {
					used += ": " + plain.Text(t.Reason)
				}
			}
			return a.Say("id: %s\nstate: %s\ncreated: %s\nused: %s", t.ID, state,
				t.CreatedAt.UTC().Format(time.RFC3339), used)
		}),
	}
}

func breakGlassRevokeCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "revoke", Short: "Revoke the token", Args: cobra.NoArgs,
		Long:    "Has the break-glass token refused from now on, also in a session that is open.",
		Example: "  chandler auth break-glass revoke",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			if err := c.RevokeBreakGlass(ctx); err != nil {
				return err
			}
			return a.Say("break-glass token revoked")
		}),
	}
}
