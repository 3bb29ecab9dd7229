package fleet

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

func budgetCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "budget", Short: "Show and set how many clusters may be changed within an hour",
		Long: `The budget of mass changes bounds how many clusters all fleet subscriptions together may change, and let go of,
within an hour. What is above it waits until the hour has passed, or until a person allows more: a slip in a selector
does not reach the whole fleet before somebody sees it.`,
	}
	c.AddCommand(budgetGetCommand(a), budgetSetCommand(a), budgetAllowCommand(a))
	return c
}

func budgetGetCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "get", Short: "Show the budget, what of it is used, and what waits for it", Args: cobra.NoArgs,
		Long: `Shows how many clusters may be changed and let go of within an hour, how many were, and which fleet subscriptions hold
clusters back.`,
		Example: "  chandler fleet budget get",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			b, err := c.FleetBudget(ctx)
			if err != nil {
				return err
			}
			p := printer.NewPage(a.Out, a.Now)
			p.Line("Changed", budgetText(b.Used.Changed, b.Changed, b.Allowed.Changed))
			p.Line("Leaving", budgetText(b.Used.Leaving, b.Leaving, b.Allowed.Leaving))
			if b.Default {
				p.Line("Set by", "nobody: these are the defaults")
			}
			if b.UpdatedAt != nil {
				p.When("Set", *b.UpdatedAt)
			}
			if len(b.Held) > 0 {
				p.Section("Held back")
				p.Row("FLEET SUBSCRIPTION", "WHAT", "CLUSTERS", "GOES ON")
				for _, h := range b.Held {
					p.Row(h.FleetSubscription, heldWhat(h), fmt.Sprint(h.Held), kinds.At(h.Until))
				}
			}
			return p.Flush()
		}),
	}
}

func heldWhat(h fleetmodel.FleetHeld) string {
	if h.Rollout == 0 {
		return "clusters that leave"
	}
	return fmt.Sprintf("rollout %d", h.Rollout)
}

// budgetText is one bound and what of it is used.
func budgetText(used, limit, allowed int) string {
	switch {
	case limit == 0:
		return fmt.Sprintf("%d clusters within the last hour, unbounded", used)
	case allowed > 0:
		return fmt.Sprintf("%d of %d clusters within the last hour (%d and %d more allowed once)", used, limit+allowed,
			limit, allowed)
	default:
		return fmt.Sprintf("%d of %d clusters within the last hour", used, limit)
	}
}

func budgetSetCommand(a *command.Env) *cobra.Command {
	var in fleetmodel.SetFleetBudget
	var dry command.DryRun
	c := &cobra.Command{
		Use: "set", Short: "Set how many clusters may be changed, and let go of, within an hour", Args: cobra.NoArgs,
		Long: `Sets how many clusters all fleet subscriptions together may change, and let go of, within an hour. What no flag names
stays. 0 is no bound. For administrators.`,
		Example: "  chandler fleet budget set --changed 200\n  chandler fleet budget set --leaving 5",
	}
	f := c.Flags()
	f.IntVar(&in.Changed, "changed", 0, "how many clusters rollouts may change within an hour; 0 is no bound")
	f.IntVar(&in.Leaving, "leaving", 0, "how many clusters may be let go of within an hour; 0 is no bound")
	command.DryRunFlag(c, &dry, "have the server make all checks and say what would happen, and change nothing",
		command.DryRunServer)
	c.RunE = a.Run(func(ctx context.Context, cl *client.Client, _ []string) error {
		if !f.Changed("changed") && !f.Changed("leaving") {
			return command.Usagef("give --changed or --leaving: nothing is set without them")
		}
		have, err := cl.FleetBudget(ctx)
		if err != nil {
			return err
		}
		want := fleetmodel.SetFleetBudget{Changed: have.Changed, Leaving: have.Leaving}
		if f.Changed("changed") {
			want.Changed = in.Changed
		}
		if f.Changed("leaving") {
			want.Leaving = in.Leaving
		}
		writer := cl
		if dry.Asked() {
			writer = cl.DryRun()
		}
		b, err := writer.SetFleetBudget(ctx, have.Tag(), want)
		if err != nil {
			return err
		}
		return sayBudget(a, b, dry)
	})
	return c
}

func sayBudget(a *command.Env, b fleetmodel.FleetBudget, dry command.DryRun) error {
	return a.Say("fleet budget: changed %s; leaving %s%s", budgetText(b.Used.Changed, b.Changed, b.Allowed.Changed),
		budgetText(b.Used.Leaving, b.Leaving, b.Allowed.Leaving), dry.Note())
}

func budgetAllowCommand(a *command.Env) *cobra.Command {
	var in fleetmodel.AllowFleetBudget
	var leaving bool
	var dry command.DryRun
	c := &cobra.Command{
		Use: "allow N --reason TEXT", Short: "Let so many clusters more be changed, once", Args: cobra.ExactArgs(1),
		Long: `Lets so many clusters more be changed within the hour that follows, or let go of with --leaving. What is held back goes
on at once. The reason is stored outside the event log, and can be erased. For administrators of the fleet.`,
		Example: "  chandler fleet budget allow 50 --reason 'the fix for the outage, CHG-4711'",
	}
	f := c.Flags()
	f.StringVar(&in.Reason, "reason", "", "why")
	f.BoolVar(&leaving, "leaving", false, "let clusters be let go of, instead of changed")
	_ = c.MarkFlagRequired("reason") // it was defined in the line before
	command.DryRunFlag(c, &dry, "have the server make all checks and say what would happen, and change nothing",
		command.DryRunServer)
	c.RunE = a.Run(func(ctx context.Context, cl *client.Client, args []string) error {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 {
			return command.Usagef("%q is no number of clusters", args[0])
		}
		if strings.TrimSpace(in.Reason) == "" {
			return command.Usagef("--reason is empty: say why, for whoever asks later")
		}
		in.Changed = n
		if leaving {
			in.Changed, in.Leaving = 0, n
		}
		if dry.Asked() {
			cl = cl.DryRun()
		}
		b, err := cl.AllowFleetBudget(ctx, in)
		if err != nil {
			return err
		}
		return sayBudget(a, b, dry)
	})
	return c
}
