package fleet

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// Marks of clusters in a map.
const (
	markDone    = '#'
	markFailed  = '!'
	markAway    = '?'
	markChanged = '>'
	markSkipped = '-'
	markWaiting = '.'
	markOther   = '='
)

// mapLegend says what the marks mean.
const mapLegend = "# has it   ! failed   ? away   > being changed   - skipped   . waits   = not asked"

const (
	// mapWidth is what is drawn where nobody knows how wide the screen is: it fits into most.
	mapWidth = 100
	// mapGroup is how many marks stand together, so that a person can count them.
	mapGroup = 10
)

func mapCommand(a *command.Env) *cobra.Command {
	var o chosen
	c := &cobra.Command{
		Use: "map NAME", Short: "Draw each cluster of a rollout as one mark, wave by wave",
		Long: `Draws the rollout of a fleet subscription: a block for each wave, and in it a mark for each cluster, by name, in groups
of ten. What the marks mean stands below. Clusters that the fleet subscription is on and that this rollout does not ask,
such as those that had the version already, are one more block. It is text, without colours, on a terminal as well.`,
		Example: "  chandler fleet map gauges\n  watch -n 2 chandler fleet map gauges", Args: command.RequireArgs(1),
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			f, r, err := o.read(ctx, a, c, args[0])
			if err != nil || r.Number == 0 {
				return err
			}
			others, err := notAsked(ctx, c, f, r)
			if err != nil {
				return err
			}
			return a.Say("%s", strings.Join(mapLines(r, others, a.Columns), "\n"))
		}),
	}
	o.flag(c)
	return c
}

// notAsked is on how many clusters a fleet subscription is that are in no wave of its rollout. One that was deleted is
// on none.
func notAsked(
	ctx context.Context, c *client.Client, f fleetmodel.FleetSubscription, r fleetmodel.Rollout,
) (n int, err error) {
	if f.Name == "" {
		return 0, nil
	}
	on, err := c.Subscriptions(ctx, client.Selection{Namespace: f.Spec.Namespace, Package: f.Spec.Package})
	if err != nil {
		return 0, err
	}
	asked := map[string]bool{}
	for _, w := range r.Waves {
		for _, m := range w.Members {
			asked[m.Name] = true
		}
	}
	for _, s := range on {
		if s.Owner == f.Name && !asked[s.Cluster] {
			n++
		}
	}
	return n, nil
}

// mapLines draw a rollout. columns are those of the screen, 0 where they are not known; others are clusters that it
// does not ask.
func mapLines(r fleetmodel.Rollout, others, columns int) []string {
	name := 0
	for _, w := range r.Waves {
		name = max(name, utf8.RuneCountInString(w.Name))
	}
	lines := []string{fmt.Sprintf("%s  rollout %d  %s, %s: %s", r.FleetSubscription, r.Number, kinds.RolloutPhase(r),
		kinds.Done(r.Clusters), r.Target.CSV)}
	for _, w := range r.Waves {
		marks := make([]rune, len(w.Members))
		for i, m := range w.Members {
			marks[i] = markOf(m.State)
		}
		lines = append(lines, fmt.Sprintf("%-*s  %s: %s", name, w.Name, w.State, kinds.CountsText(w.Clusters)))
		lines = append(lines, blocks(marks, columns)...)
	}
	if others > 0 {
		lines = append(lines, fmt.Sprintf("not asked by this rollout: %d", others))
		lines = append(lines, blocks([]rune(strings.Repeat(string(markOther), others)), columns)...)
	}
	return append(lines, mapLegend)
}

// markOf is the mark of a cluster in a state. A state that this version does not know waits to be explained, too.
func markOf(state string) rune {
	switch state {
	case events.ClusterSucceeded:
		return markDone
	case events.ClusterFailed:
		return markFailed
	case events.ClusterUnreachable:
		return markAway
	case events.ClusterSkipped:
		return markSkipped
	case fleetmodel.ClusterChanging:
		return markChanged
	default:
		return markWaiting
	}
}

// blocks puts marks into groups, and groups into lines.
func blocks(marks []rune, columns int) (lines []string) {
	const indent = "  "
	if columns <= 0 {
		columns = mapWidth
	}
	perLine := mapGroup * max(1, (min(columns, mapWidth)-len(indent)+1)/(mapGroup+1))
	for begin := 0; begin < len(marks); begin += perLine {
		var groups []string
		for rest := marks[begin:min(begin+perLine, len(marks))]; len(rest) > 0; {
			n := min(mapGroup, len(rest))
			groups = append(groups, string(rest[:n]))
			rest = rest[n:]
		}
		lines = append(lines, indent+strings.Join(groups, " "))
	}
	return lines
}
