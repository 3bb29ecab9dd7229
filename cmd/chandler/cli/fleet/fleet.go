// Package fleet has the commands on fleet subscriptions and their rollouts beyond get, describe, apply and delete.
package fleet

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// Command is chandler fleet.
func Command(a *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "fleet", Short: "Show and steer rollouts of fleet subscriptions",
		Annotations: map[string]string{command.ListedBy: "chandler get fleetsubscriptions"},
		Long: `A fleet subscription brings an operator to all clusters that its placement chooses. Each change is a rollout, which
reaches them wave by wave, and halts by itself when more clusters fail than it allows. It is made by chandler apply of
a document of kind FleetSubscription, and shown and deleted by chandler get, describe and delete fleetsubscription.`,
	}
	c.AddCommand(statusCommand(a), rolloutsCommand(a), whyCommand(a), previewCommand(a), diffCommand(a),
		treeCommand(a), mapCommand(a), historyCommand(a),
		pauseCommand(a), resumeCommand(a), promoteCommand(a), passGateCommand(a), abortCommand(a), skipCommand(a),
		retryCommand(a), rollbackCommand(a), budgetCommand(a), matrixCommand(a))
	return c
}

// chosen are the flags of commands about one rollout.
type chosen struct {
	number int
	dry    command.DryRun
}

func (o *chosen) flag(c *cobra.Command) {
	c.Flags().IntVar(&o.number, "rollout", 0, "number of the rollout (default: the newest)")
}

func (o *chosen) flags(c *cobra.Command) {
	o.flag(c)
	command.DryRunFlag(c, &o.dry, "have the server make all checks and say what would happen, and change nothing",
		command.DryRunServer)
}

// ref is the rollout that is meant: without a number the newest one.
func (o *chosen) ref(ctx context.Context, c *client.Client, name string) (client.RolloutRef, error) {
	r := client.RolloutRef{FleetSubscription: name, Number: o.number}
	if o.number < 0 {
		return r, command.Usagef("--rollout %d: the first one is 1", o.number)
	}
	if o.number > 0 {
		return r, nil
	}
	newest, err := c.Rollouts(ctx, name, 1)
	if err != nil {
		return r, err
	}
	if len(newest) > 0 {
		r.Number = newest[0].Number
		return r, nil
	}
	f, err := c.FleetSubscription(ctx, name)
	if err != nil {
		return r, err
	}
	why := ""
	if text := kinds.WaitsText(f.Status.WaitsFor); text != "" {
		why = ": it waits for " + text
	}
	return r, &client.Problem{
		Status: http.StatusNotFound, Detail: fmt.Sprintf("fleet subscription %s has no rollout yet%s", name, why),
	}
}

// act is the RunE of a command that says something of a rollout; do says it, and did is what is told.
func (o *chosen) act(a *command.Env, did string,
	do func(ctx context.Context, c *client.Client, r client.RolloutRef, args []string) (fleetmodel.Rollout, error),
) func(*cobra.Command, []string) error {
	return a.Run(func(ctx context.Context, c *client.Client, args []string) error {
		r, err := o.ref(ctx, c, args[0])
		if err != nil {
			return err
		}
		writer := c
		if o.dry.Asked() {
			writer = c.DryRun()
		}
		now, err := do(ctx, writer, r, args)
		if err != nil {
			return err
		}
		return a.Say("rollout/%s/%d %s (%s; %s)%s", r.FleetSubscription, r.Number, fmt.Sprintf(did, rest(args)...),
			kinds.RolloutPhase(now), kinds.CountsText(now.Clusters), o.dry.Note())
	})
}

func rest(args []string) []any {
	var out []any
	for _, arg := range args[1:] {
		out = append(out, arg)
	}
	return out
}

func statusCommand(a *command.Env) *cobra.Command {
	var o chosen
	c := &cobra.Command{
		Use: "status [NAME]", Short: "Show where fleet subscriptions and their rollouts stand",
		Long: `Without a name, shows all fleet subscriptions with their newest rollout. With a name, shows the waves of its rollout,
what the gates of the open one say, and the clusters that have failed, are away, or are being changed. In the bar of a
wave # is a cluster that has what it should, ! one that failed or is away, > one that is being changed, and a point one
that waits.`,
		Example: "  chandler fleet status\n  chandler fleet status gauges",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 0 {
				k, err := kinds.Find(a, kinds.KindFleetSubscription)
				if err != nil {
					return err
				}
				items, err := k.List(ctx, c, client.Selection{})
				if err != nil {
					return err
				}
				return (&printer.Output{}).Show(a, k.Table(command.Scope{}), items, false)
			}
			return status(ctx, a, c, args[0], &o)
		}),
	}
	o.flag(c)
	return c
}

// read is the rollout that is meant, and its fleet subscription, which may be deleted: its rollouts are there still.
// Where none has begun it says what is waited for, and the rollout has no number.
func (o *chosen) read(ctx context.Context, a *command.Env, c *client.Client, name string) (
	f fleetmodel.FleetSubscription, r fleetmodel.Rollout, err error,
) {
	f, err = c.FleetSubscription(ctx, name)
	deleted := client.IsStatus(err, http.StatusNotFound)
	if err != nil && !deleted {
		return f, r, err
	}
	if f.Status.Rollout == nil && o.number == 0 && !deleted {
		text := kinds.WaitsText(f.Status.WaitsFor)
		if text == "" {
			return f, r, a.Say("fleetsubscription/%s: no rollout has begun yet", name)
		}
		return f, r, a.Say("fleetsubscription/%s: no rollout has begun: it waits for %s", name, text)
	}
	ref, err := o.ref(ctx, c, name)
	if err != nil {
		return f, r, err
	}
	r, err = c.Rollout(ctx, ref)
	return f, r, err
}

// maxListed bounds the clusters that status names: a wave of a thousand that fails has one reason.
const maxListed = 20

func status(ctx context.Context, a *command.Env, c *client.Client, name string, o *chosen) error {
	f, now, err := o.read(ctx, a, c, name)
	if err != nil || now.Number == 0 {
		return err
	}
	p := printer.NewPage(a.Out, a.Now)
	p.Line("Fleet subscription", name)
	p.Line("Waits for", kinds.WaitsText(f.Status.WaitsFor))
	p.Line("Held back", kinds.HeldText(f.Status.HeldBack))
	kinds.DescribeRollout(p, now)
	describeRollback(p, now)
	kinds.DescribeGates(p, now)
	listClusters(p, now)
	p.Line("Next", printer.Or(nextStep(now), afterRollback(f)))
	return p.Flush()
}

// listClusters names the clusters that somebody may want to look at.
func listClusters(p *printer.Page, r fleetmodel.Rollout) {
	listed, more := 0, 0
	for _, state := range []string{"Failed", "Unreachable", "Changing"} {
		for _, w := range r.Waves {
			for _, m := range w.Members {
				switch {
				case m.State != state:
					continue
				case listed == maxListed:
					more++
					continue
				case listed == 0:
					p.Section("Clusters")
					p.Row("NAME", "WAVE", "STATE", "SINCE", "ATTEMPT", "REASON")
				}
				listed++
				p.Row(m.Name, w.Name, m.State, p.Age(m.Since), fmt.Sprint(m.Attempt), m.Reason)
			}
		}
	}
	if more > 0 {
		p.Line("And", fmt.Sprintf("%d more clusters", more))
	}
}

// nextStep says what a person may do who is waited for.
func nextStep(r fleetmodel.Rollout) string {
	switch r.Phase {
	case "Halted":
		if strings.HasPrefix(r.Reason, "Gate") {
			return "chandler fleet resume " + r.FleetSubscription + " has the gates evaluated anew; pass-gate goes on without one"
		}
		return "chandler fleet why " + r.FleetSubscription + " CLUSTER says why; retry, skip, resume, rollback or abort"
	case "Paused":
		return "chandler fleet resume " + r.FleetSubscription
	}
	for _, w := range r.Waves {
		if w.State == fleetmodel.WavePromotion && r.Phase == "Progressing" {
			return "chandler fleet promote " + r.FleetSubscription + " lets the wave after " + w.Name + " begin"
		}
	}
	return ""
}

func rolloutsCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "rollouts NAME", Short: "List the rollouts of a fleet subscription, newest first",
		Long:    "Lists the rollouts of a fleet subscription, newest first, with what each brought and what came of it.",
		Example: "  chandler fleet rollouts gauges", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := c.Rollouts(cmd.Context(), args[0], 0)
			if err == nil && len(list) == 0 { // there may be none of this name
				_, err = c.FleetSubscription(cmd.Context(), args[0])
			}
			return printer.List(a, &o, printer.Table{
				Plural: "rollouts",
				Columns: []printer.Column{
					{Name: "Number"},
					{Name: "CSV"},
					{Name: "Phase"},
					{Name: "Clusters"},
					{Name: "Failed", Cut: 2},
					{Name: "Age", Cut: 3},
					{Name: "Change", Cut: 4},
					{Name: "Waves", Wide: true},
					{Name: "Content", Wide: true},
				},
			}, list, err, func(r fleetmodel.Rollout) printer.Item {
				name := "rollout/" + fleetmodel.RolloutSubject(r.FleetSubscription, r.Number)
				return printer.Item{Name: name, Value: r, Cells: []any{
					r.Number, r.Target.CSV, kinds.RolloutPhase(r), kinds.Done(r.Clusters), r.Clusters.Failed,
					printer.Age(a.Now(), r.StartedAt), r.Change, len(r.Waves), printer.Short(r.Target.Content),
				}}
			})
		},
	}
	o.Flags(c)
	return c
}
