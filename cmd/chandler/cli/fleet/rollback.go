package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

func rollbackCommand(a *command.Env) *cobra.Command {
	var in fleetmodel.RollBackRollout
	var dry command.DryRun
	c := &cobra.Command{
		Use: "rollback NAME --reason TEXT", Short: "Take back what the newest rollout brought",
		Long: `Ends the newest rollout of a fleet subscription, if it goes on, and has the clusters that it asked go back: the next
rollout brings what an earlier one brought, in one wave. Clusters on which that never succeeded are left alone. What was
rolled back from is not brought again until the fleet subscription is set again, or its channel offers another version.
The reason is shown to whoever asks why; it is stored outside the event log, and can be erased.`,
		Example: "  chandler fleet rollback gauges --reason 'it loses readings'\n" +
			"  chandler fleet rollback gauges --to 3 --reason 'so does the one before'",
		Args: command.RequireArgs(1),
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			switch {
			case in.To < 0:
				return command.Usagef("--to %d: the first rollout is 1", in.To)
			case strings.TrimSpace(in.Reason) == "":
				return command.Usagef("--reason is empty: say why, for whoever asks later")
			}
			if dry.Asked() {
				c = c.DryRun()
			}
			r, err := c.RollBackRollout(ctx, args[0], in)
			if err != nil {
				return err
			}
			return a.Say("rollout/%s/%d is taken back: its clusters get what rollout %d brought%s", r.FleetSubscription,
				r.Number, r.RolledBack.To, dry.Note())
		}),
	}
	c.Flags().IntVar(&in.To, "to", 0, "number of the earlier rollout that brought what the clusters are to have again\n"+
		"(default: the newest one that succeeded with something else)")
	c.Flags().StringVar(&in.Reason, "reason", "", "why")
	_ = c.MarkFlagRequired("reason") // it was defined in the line before
	command.DryRunFlag(c, &dry, "have the server make all checks and say what would happen, and change nothing",
		command.DryRunServer)
	return c
}

// leftAlone are codes of why a rollback leaves a cluster as it is.
var leftAlone = map[string]string{
	"NothingBefore": "what the others go back to never succeeded there",
	"NotChosen":     "the placement chooses it no more",
}

// describeRollback says what a rollout takes back, and that it is taken back itself.
func describeRollback(p *printer.Page, r fleetmodel.Rollout) {
	if b := r.RolledBack; b != nil {
		p.Section("Taken back")
		p.Line("  To", fmt.Sprintf("what rollout %d brought", b.To))
		p.Line("  By", b.By)
		p.Line("  Reason given", printer.Or(b.Words, "it was erased"))
	}
	if r.Rollback == nil {
		return
	}
	p.Section("Takes back")
	p.Line("  Rollout", fmt.Sprintf("%d, which brought %s", r.Rollback.Of, r.Rollback.From))
	p.Line("  To", fmt.Sprintf("what rollout %d brought", r.Rollback.To))
	byReason := map[string][]string{}
	for _, c := range r.Rollback.LeftAlone {
		byReason[c.Reason] = append(byReason[c.Reason], c.Name)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		p.Line("  Left alone", fmt.Sprintf("%s: %s (%s)", someNames(byReason[reason]), leftAlone[reason], reason))
	}
}

// whyLeftAlone says that a rollback leaves a cluster as it is; "" where it does not.
func whyLeftAlone(r fleetmodel.Rollout, cluster string) string {
	if r.Rollback == nil {
		return ""
	}
	for _, c := range r.Rollback.LeftAlone {
		if c.Name == cluster {
			return fmt.Sprintf("rollout %d of %s, which takes back %s, leaves cluster %s as it is: %s (%s)", r.Number,
				r.FleetSubscription, r.Rollback.From, cluster, leftAlone[c.Reason], c.Reason)
		}
	}
	return ""
}

// afterRollback says what a person may do about what was rolled back from.
func afterRollback(f fleetmodel.FleetSubscription) string {
	if f.Status.WaitsFor != kinds.WaitsRolledBack {
		return ""
	}
	return "chandler apply of a changed " + f.Name + " begins it anew; otherwise the next version of its channel does"
}
