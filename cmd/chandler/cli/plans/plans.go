// Package plans holds the commands about install plans: chandler approve, reject and rollback, previews of changes,
// checks in a cluster, and shadow runs.
package plans

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// ApproveCommand is chandler approve.
func ApproveCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	var digest string
	var valid time.Duration
	var say choiceFlags
	var dry command.DryRun
	c := &cobra.Command{
		Use:   "approve PLAN",
		Short: "Approve an install plan as it is now",
		Long: `Approves exactly the content that the plan has now: its digest, and the base that it was decided on. If one of them
changes before the first step, the approval is void and a new plan asks again. If approval policies require several
people, each approves once, and the plan starts after the last. PLAN is a name within --cluster and --namespace,
cluster/namespace/name, or an id.

Some obstacles that chandler plan check shows need a decision by an approver, also if the plan is Automatic or has
started. --keep and --take decide which content an object gets that several operators install: what the cluster has,
or what the plan has. --override-crd allows the change of a custom resource definition that makes existing objects
invalid, and needs --reason. These decisions hold for exactly what the cluster shows now; if that changes, they are
void.`,
		Example: `  chandler approve install-7x2kq --cluster east-1 -n ports
  chandler approve east-1/ports/install-7x2kq --digest sha256:3f0c…
  chandler approve east-1/ports/install-7x2kq --keep ClusterRole/metrics-reader
  chandler approve east-1/ports/install-7x2kq --override-crd gauges.sea.example.com --reason 'no gauge is used any more'`,
		Args: command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := say.check(); err != nil {
				return err
			}
			return approve(cmd.Context(), a, s, args[0], approval{digest: digest, valid: valid, say: say, dry: dry})
		},
	}
	say.flags(c)
	s.Flags(c)
	c.Flags().StringVar(&digest, "digest", "", "approve only if the plan still has this digest")
	c.Flags().DurationVar(&valid, "valid", 0, "how long the approval holds (default: the server's)")
	command.DryRunFlag(c, &dry, dryRunUsage, command.DryRunServer)
	return c
}

// dryRunUsage is of commands about one plan, which have no files that could be checked alone.
const dryRunUsage = "have the server make all checks and say what would happen, and change nothing"

// approval is what an approver says.
type approval struct {
	digest string
	valid  time.Duration
	say    choiceFlags
	dry    command.DryRun
}

func approve(ctx context.Context, a *command.Env, s command.Scope, name string, o approval) error {
	c, p, err := kinds.NamedPlan(ctx, a, s, name)
	if err != nil {
		return err
	}
	in := model.ApprovePlan{Digest: printer.Or(o.digest, p.Digest), Base: &p.Base}
	if o.say.empty() {
		in.Reason = o.say.reason
	}
	if in.Choices, err = o.say.resolve(ctx, c, p); err != nil {
		return err
	}
	if o.valid > 0 {
		until := a.Now().Add(o.valid).UTC()
		in.Expires = &until
	}
	now, err := writer(c, o.dry).Approve(ctx, p.ID, in)
	if err != nil {
		return err
	}
	did := kinds.ApprovedText(now)
	if len(in.Choices) > 0 {
		did += "; settled: " + o.say.String()
	}
	return a.Say("installplan/%s/%s/%s %s (%s, %d steps)%s", p.Cluster, p.Namespace, p.Name, did,
		printer.Short(in.Digest), p.Steps, o.dry.Note())
}

// writer is the client that writes, or has the server check what would be written.
func writer(c *client.Client, dry command.DryRun) *client.Client {
	if dry.Asked() {
		return c.DryRun()
	}
	return c
}

// RejectCommand is chandler reject.
func RejectCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	var digest, reason string
	var dry command.DryRun
	c := &cobra.Command{
		Use:   "reject PLAN",
		Short: "Reject an install plan",
		Long: `Rejects a plan for good: no further step of it is done. PLAN is a name within --cluster and --namespace,
cluster/namespace/name, or an id.`,
		Example: `  chandler reject install-7x2kq --cluster east-1 -n ports
  chandler reject east-1/ports/install-7x2kq --reason 'not before winter'`,
		Args: command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return reject(cmd.Context(), a, s, args[0], model.RejectPlan{Digest: digest, Reason: reason}, dry)
		},
	}
	s.Flags(c)
	c.Flags().StringVar(&reason, "reason", "", "why; it is stored outside the event log")
	c.Flags().StringVar(&digest, "digest", "", "reject only if the plan still has this digest")
	command.DryRunFlag(c, &dry, dryRunUsage, command.DryRunServer)
	return c
}

func reject(
	ctx context.Context, a *command.Env, s command.Scope, name string, in model.RejectPlan, dry command.DryRun,
) error {
	c, p, err := kinds.NamedPlan(ctx, a, s, name)
	if err != nil {
		return err
	}
	in.Digest = printer.Or(in.Digest, p.Digest)
	if _, err := writer(c, dry).Reject(ctx, p.ID, in); err != nil {
		return err
	}
	return a.Say("installplan/%s/%s/%s rejected%s", p.Cluster, p.Namespace, p.Name, dry.Note())
}

// RollbackCommand is chandler rollback.
func RollbackCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	var to string
	var dry command.DryRun
	c := &cobra.Command{
		Use:   "rollback SUBSCRIPTION",
		Short: "Go back to a version that was installed before; the plan for it waits for approval",
		Long: `Goes back from the installed version of a subscription to an earlier one. The plan always waits for approval, and is
refused in the cluster if going back is not safe, which chandler plan check shows. Afterwards the version that was
left is not installed again until the subscription is changed or applied again. SUBSCRIPTION is its name, its
package or the ClusterServiceVersion that it has.`,
		Example: `  chandler rollback tidegauge --cluster east-1 -n ports
  chandler rollback east-1/ports/tidegauge --to tidegauge.v1.1.0`,
		Args: command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return rollback(cmd.Context(), a, s, args[0], to, dry) },
	}
	s.Flags(c)
	c.Flags().StringVar(&to, "to", "", "CSV to go back to (default: the one before the installed one)")
	command.DryRunFlag(c, &dry, dryRunUsage, command.DryRunServer)
	return c
}

func rollback(ctx context.Context, a *command.Env, s command.Scope, name, to string, dry command.DryRun) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	ref, err := kinds.Subscriptions(a).InContext(a, s, name)
	if err != nil {
		return err
	}
	if ref, err = kinds.Resolve(ctx, c, kinds.KindSubscription, ref); err != nil {
		return err
	}
	sub, err := writer(c, dry).Rollback(ctx, ref, model.RollBack{To: to})
	if err != nil {
		return err
	}
	return a.Say("subscription/%s goes back from %s to %s when its plan is approved (chandler get installplans)%s", ref,
		sub.Status.Rollback.From, sub.Status.Rollback.To, dry.Note())
}
