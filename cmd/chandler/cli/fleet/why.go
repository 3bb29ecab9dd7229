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
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

func whyCommand(a *command.Env) *cobra.Command {
	var o chosen
	c := &cobra.Command{
		Use: "why NAME CLUSTER", Short: "Say where a cluster stands in a rollout, and why",
		Long: `Says where a cluster stands in a rollout of a fleet subscription and what that rests on: the outcome and its reason, who
left it out, and the subscription and the install plan in the cluster.`,
		Example: "  chandler fleet why gauges east-3", Args: cobra.ExactArgs(2),
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return why(ctx, a, c, args[0], args[1], &o)
		}),
	}
	o.flag(c)
	return c
}

func why(ctx context.Context, a *command.Env, c *client.Client, name, cluster string, o *chosen) error {
	ref, err := o.ref(ctx, c, name)
	if err != nil {
		return err
	}
	r, err := c.Rollout(ctx, ref)
	if err != nil {
		return err
	}
	wave, member, found := memberOf(r, cluster)
	if text := whyLeftAlone(r, cluster); text != "" {
		return a.Say("%s", text)
	}
	if !found {
		return command.OrNoCluster(ctx, c, cluster, &client.Problem{
			Status: http.StatusNotFound, Detail: fmt.Sprintf("cluster %s is in no wave of rollout %d of %s: the placement did "+
				"not choose it, or it had what it should", cluster, r.Number, name),
		})
	}
	p := printer.NewPage(a.Out, a.Now)
	p.Line("Cluster", cluster)
	p.Line("Rollout", fmt.Sprintf("%s/%d, %s, brings %s", name, r.Number, kinds.RolloutPhase(r), r.Target.CSV))
	p.Line("Wave", wave.Name+", "+wave.State)
	p.Line("State", member.State)
	p.Line("Override", printer.Or(member.Override, strings.Join(member.Conflict, " and ")))
	p.Line("Because", because(r, wave, member))
	p.When("Since", member.Since)
	if member.SkippedBy != "" {
		p.Line("Skipped by", member.SkippedBy)
		p.Line("Reason given", printer.Or(member.Words, "it was erased"))
	}
	if member.Attempt > 0 {
		p.Line("Attempt", fmt.Sprint(member.Attempt))
	}
	p.Line("Directive", member.Directive)
	if err := there(ctx, c, p, name, cluster); err != nil {
		return err
	}
	return p.Flush()
}

func memberOf(r fleetmodel.Rollout, cluster string) (fleetmodel.RolloutWave, fleetmodel.RolloutCluster, bool) {
	for _, w := range r.Waves {
		for _, m := range w.Members {
			if m.Name == cluster {
				return w, m, true
			}
		}
	}
	return fleetmodel.RolloutWave{}, fleetmodel.RolloutCluster{}, false
}

// reasons are codes of outcomes that no event of the cluster names.
var reasons = map[string]string{
	"DeadlineExceeded":   "the change took longer than the rollout gives a cluster",
	"Away":               "the cluster does not answer or is cordoned; it is changed when it is back",
	"OtherContent":       "the cluster says that it runs another content than the rollout brings",
	"SubscriptionExists": "another subscription has the name or the package there; adopt takes over one of the name",
	"OverrideConflict":   "the overrides are as particular for it, and differ: name it in one of them",
	"ClusterRemoved":     "Chandler has let go of the cluster",
	"NoUpgradePath":      "nothing leads to the target from what is installed there, as where something newer is",
	"PlanRejected":       "somebody rejected the install plan",
	"Removed":            "the operator was removed while it was being changed",
}

// because says what a state rests on.
func because(r fleetmodel.Rollout, w fleetmodel.RolloutWave, m fleetmodel.RolloutCluster) string {
	switch m.State {
	case fleetmodel.ClusterWaiting:
		switch {
		case w.State == fleetmodel.WaveWaiting:
			return "its wave has not begun: the one before has not passed"
		case r.Phase == "RolledBack":
			return "the rollout is taken back"
		case r.Phase != "Progressing":
			return "the rollout is " + strings.ToLower(r.Phase)
		default:
			return fmt.Sprintf("at most %d clusters are being changed at a time", r.MaxConcurrent)
		}
	case fleetmodel.ClusterChanging:
		return "the change was asked of it, and nothing that it led to says yet what came of it"
	case "Succeeded":
		return "an event that this attempt led to says that the operator runs"
	}
	if text := reasons[m.Reason]; text != "" {
		return text + " (" + m.Reason + ")"
	}
	return m.Reason
}

// there shows the subscription in the cluster, and its plan.
func there(ctx context.Context, c *client.Client, p *printer.Page, name, cluster string) error {
	f, err := c.FleetSubscription(ctx, name)
	if client.IsStatus(err, http.StatusNotFound) {
		p.Line("Fleet subscription", "is deleted; what is on the cluster stays")
		return nil
	}
	if err != nil {
		return err
	}
	ref := client.Ref{Cluster: cluster, Namespace: f.Spec.Namespace, Name: name}
	s, err := c.Subscription(ctx, ref)
	if client.IsStatus(err, http.StatusNotFound) {
		p.Line("Subscription", "none of this name in namespace "+ref.Namespace)
		return nil
	}
	if err != nil {
		return err
	}
	p.Section("In the cluster")
	p.Line("  Subscription", ref.String()+", "+ownerText(s, name))
	p.Line("  Installed", s.Status.InstalledCSV)
	p.Line("  Phase", s.Status.Phase)
	if plan := s.Status.InstallPlan; plan != nil {
		p.Line("  Install plan", fmt.Sprintf("%s, %s", plan.Name, plan.Phase))
	}
	for _, cond := range s.Status.Conditions {
		if cond.Status == "True" && cond.Message != "" {
			p.Line("  "+cond.Type, cond.Message)
		}
	}
	return nil
}

func ownerText(s model.Subscription, name string) string {
	switch {
	case s.Owner == name && s.Target != nil:
		return fmt.Sprintf("as rollout %d asked", s.Target.Rollout)
	case s.Owner != "":
		return "which fleet subscription " + s.Owner + " owns"
	default:
		return "which no fleet subscription owns"
	}
}
