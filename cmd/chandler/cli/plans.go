package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func (a *app) approveCommand() *cobra.Command {
	var s scope
	var digest string
	var valid time.Duration
	var say settling
	c := &cobra.Command{
		Use:   "approve PLAN",
		Short: "Approve an install plan as it is now",
		Long: `Approves exactly the content that the plan has now: its digest, on the base that it was decided on.
If anything of that changes before the first step, the approval is void and a new plan asks again.
Where approval policies want several people, each approves for one; the plan goes on after the last.
PLAN is a name within --cluster and --namespace, cluster/namespace/name, or an id.

Some obstacles that chandler plan check shows are for a person to settle, also where the plan is Automatic or has begun:
--keep and --take say which form of an object holds that other operators bring, too: the one that the cluster has, or
the plan's; --override-crd has a custom resource definition changed although that hurts what the cluster holds, and
wants --reason. They count for exactly what the cluster shows now; if that changes, they are void.`,
		Example: `  chandler approve install-7x2kq --cluster east-1 -n ports
  chandler approve east-1/ports/install-7x2kq --digest sha256:3f0c…
  chandler approve east-1/ports/install-7x2kq --keep ClusterRole/metrics-reader
  chandler approve east-1/ports/install-7x2kq --override-crd gauges.sea.example.com --reason 'no gauge is used any more'`,
		Args: needs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := say.check(); err != nil {
				return err
			}
			return a.approve(cmd.Context(), s, args[0], digest, valid, say)
		},
	}
	say.flags(c)
	s.flags(c)
	c.Flags().StringVar(&digest, "digest", "", "approve only if the plan still has this digest")
	c.Flags().DurationVar(&valid, "valid", 0, "how long the approval holds (the server's default without it)")
	return c
}

func (a *app) approve(ctx context.Context, s scope, name, digest string, valid time.Duration, say settling) error {
	c, p, err := a.planNamed(ctx, s, name)
	if err != nil {
		return err
	}
	in := model.ApprovePlan{Digest: or(digest, p.Digest), Base: &p.Base}
	if in.Choices, err = say.choices(ctx, c, p); err != nil {
		return err
	}
	if valid > 0 {
		until := a.Now().Add(valid).UTC()
		in.Expires = &until
	}
	now, err := c.Approve(ctx, p.ID, in)
	if err != nil {
		return err
	}
	did := approvedText(now)
	if len(in.Choices) > 0 {
		did += "; settled: " + say.String()
	}
	return a.say("installplan/%s/%s/%s %s (%s, %d steps)", p.Cluster, p.Namespace, p.Name, did, short(in.Digest), p.Steps)
}

func (a *app) rejectCommand() *cobra.Command {
	var s scope
	var digest string
	c := &cobra.Command{
		Use:   "reject PLAN",
		Short: "End an install plan",
		Long: `Ends a plan for good, so that nothing more of it is done. PLAN is a name within --cluster and --namespace,
cluster/namespace/name, or an id.`,
		Example: `  chandler reject install-7x2kq --cluster east-1 -n ports
  chandler reject east-1/ports/install-7x2kq --digest sha256:3f0c…`,
		Args: needs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.reject(cmd.Context(), s, args[0], digest) },
	}
	s.flags(c)
	c.Flags().StringVar(&digest, "digest", "", "reject only if the plan still has this digest")
	return c
}

func (a *app) reject(ctx context.Context, s scope, name, digest string) error {
	c, p, err := a.planNamed(ctx, s, name)
	if err != nil {
		return err
	}
	if _, err := c.Reject(ctx, p.ID, model.RejectPlan{Digest: or(digest, p.Digest)}); err != nil {
		return err
	}
	return a.say("installplan/%s/%s/%s rejected", p.Cluster, p.Namespace, p.Name)
}

func (a *app) rollbackCommand() *cobra.Command {
	var s scope
	var to string
	c := &cobra.Command{
		Use:   "rollback SUBSCRIPTION",
		Short: "Go back to a version that was installed before; the plan for it waits for approval",
		Long: `Go back from the installed version of a subscription to an earlier one. The plan for it always waits for approval and
is refused in the cluster where going back is not safe: chandler plan check tells. Afterwards the version that was
left is not taken again until the subscription is changed or applied again. SUBSCRIPTION is its name, its package or
the ClusterServiceVersion that it has.`,
		Example: `  chandler rollback tidegauge --cluster east-1 -n ports
  chandler rollback east-1/ports/tidegauge --to tidegauge.v1.1.0`,
		Args: needs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.rollback(cmd.Context(), s, args[0], to) },
	}
	s.flags(c)
	c.Flags().StringVar(&to, "to", "", "CSV to go back to; without it the one before the installed one")
	return c
}

func (a *app) rollback(ctx context.Context, s scope, name, to string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	ref, err := a.subscriptions().ref(s, name)
	if err != nil {
		return err
	}
	if ref, err = named(ctx, c, kindSubscription, ref); err != nil {
		return err
	}
	sub, err := c.Rollback(ctx, ref, model.RollBack{To: to})
	if err != nil {
		return err
	}
	return a.say("subscription/%s goes back from %s to %s once its plan is approved (chandler get installplans)", ref, sub.Status.Rollback.From, sub.Status.Rollback.To)
}

func (a *app) planCheckCommand() *cobra.Command {
	var s scope
	var o output
	c := &cobra.Command{
		Use:   "check PLAN",
		Short: "Ask the cluster what stands in the way of an install plan",
		Long: `Asks the cluster now, and changes nothing: every right that the service account of the operator group lacks, for each
custom resource definition whether it may be changed with the objects that the cluster holds and whether that can be
undone, and anything else that would keep the plan from beginning. It ends with an error where something does.

PLAN is a name within --cluster and --namespace, cluster/namespace/name, or an id.`,
		Example: `  chandler plan check install-7x2kq --cluster east-1 -n ports
  chandler plan check east-1/ports/install-7x2kq -o json`,
		Args: needs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.check(cmd.Context(), s, o, args[0]) },
	}
	s.flags(c)
	documentFlag(c, &o)
	return c
}

func (a *app) check(ctx context.Context, s scope, o output, name string) error {
	if err := checkDocument(o); err != nil {
		return err
	}
	c, p, err := a.planNamed(ctx, s, name)
	if err != nil {
		return err
	}
	check, err := c.CheckPlan(ctx, p.ID)
	if err != nil {
		return err
	}
	if o.format != formatTable {
		err = o.write(a.Out, nil, []item{{value: check}}, true)
	} else {
		var t prose
		t.check(check)
		err = a.say("%s", t.String())
	}
	if err == nil && !check.Ready {
		err = refused(fmt.Errorf("install plan %s cannot begin as things are", p.Name))
	}
	return err
}

// describeCheck adds what stands in the way of a plan that has not begun. That nobody can say so now is no reason not to
// describe the rest.
func (a *app) describeCheck(ctx context.Context, c *client.Client, p *page, it item) error {
	v, ok := it.value.(model.InstallPlan)
	if !ok || v.Begun || v.EndedAt != nil {
		return nil
	}
	check, err := c.CheckPlan(ctx, v.ID)
	switch {
	case client.IsStatus(err, http.StatusServiceUnavailable), client.IsStatus(err, http.StatusNotFound), client.IsStatus(err, http.StatusConflict):
		p.line("In its cluster", fmt.Sprintf("(%v)", err))
		return nil
	case err != nil:
		return err
	}
	p.line("In its cluster", summary(check))
	for _, o := range check.Shared {
		for _, d := range o.Differences {
			p.line("Differs", fmt.Sprintf("%s %s: the cluster (%s) has %s, %s brings %s", o.Object, d.Path, o.Holder, formText(d.Has, d), o.Operator, formText(d.Wants, d)))
		}
	}
	return nil
}

// summary is a check in a line.
func summary(c model.PlanCheck) string {
	var parts []string
	for _, o := range c.Obstacles {
		parts = append(parts, o.Reason)
	}
	if n := len(c.Permissions); n > 0 {
		parts = append(parts, plural(n, "missing right"))
	}
	for _, o := range c.Shared {
		switch o.Choice {
		case "":
			parts = append(parts, o.Object+" of "+o.Holder+" differs from what "+o.Operator+" brings")
		default:
			parts = append(parts, o.Object+": "+strings.ToLower(o.Choice))
		}
	}
	for _, v := range c.CRDs {
		switch {
		case !v.Safe && len(v.OverriddenBy) > 0:
			parts = append(parts, v.CRD+" is changed although it hurts, as "+strings.Join(v.OverriddenBy, ", ")+" said")
		case !v.Safe:
			parts = append(parts, v.CRD+" may not be changed")
		case !v.Reversible:
			parts = append(parts, v.CRD+" cannot be changed back without loss")
		}
	}
	if n := len(c.RemovedAPIs); n > 0 {
		parts = append(parts, plural(n, "use")+" of APIs that the next version of Kubernetes drops")
	}
	switch {
	case len(parts) == 0:
		return "nothing stands in the way"
	case c.Ready:
		return "nothing stands in the way; " + strings.Join(parts, "; ")
	}
	return strings.Join(parts, "; ") + " (chandler plan check)"
}

// uuidLength tells an id from a name: names of plans are shorter.
const uuidLength = 36

// planNamed finds the plan that a person names, and returns it with a client to go on with.
func (a *app) planNamed(ctx context.Context, s scope, name string) (*client.Client, model.InstallPlan, error) {
	c, err := a.client()
	if err != nil {
		return nil, model.InstallPlan{}, err
	}
	if len(name) == uuidLength {
		p, err := c.InstallPlan(ctx, name)
		return c, p, err
	}
	ref, err := a.installPlans().ref(s, name)
	if err != nil {
		return nil, model.InstallPlan{}, err
	}
	p, err := findPlan(ctx, c, ref)
	return c, p, orNoCluster(ctx, c, ref.Cluster, err)
}

func (a *app) effectsCommand() *cobra.Command {
	c := &cobra.Command{Use: "effects", Short: "Stop every plan at its next step, or let plans go on", Args: cobra.NoArgs, RunE: a.effectsStatus}
	var cluster string
	stop := &cobra.Command{
		Use: "stop", Short: "No plan takes another step", Args: cobra.NoArgs,
		Long: `Stops every plan at its next step, in the whole fleet or on one cluster. What is installed stays and runs; plans go on
where they were with chandler effects resume.`,
		Example: `  chandler effects stop
  chandler effects stop --cluster east-1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.setEffects(cmd.Context(), model.EffectsRequest{Action: "stop", Cluster: cluster})
		},
	}
	stop.Flags().StringVar(&cluster, "cluster", "", "only on this cluster")
	c.AddCommand(stop, a.resumeCommand(c.Name()))
	return c
}

// logCommand is the way on after a record that lost commits: the same as effects resume.
func (a *app) logCommand() *cobra.Command {
	c := &cobra.Command{Use: "log", Short: "Accept the record after a restored backup", Args: cobra.NoArgs, RunE: a.effectsStatus}
	c.AddCommand(a.resumeCommand(c.Name()))
	return c
}

func (a *app) resumeCommand(parent string) *cobra.Command {
	var in model.EffectsRequest
	c := &cobra.Command{
		Use: "resume", Short: "Let plans go on", Args: cobra.NoArgs,
		Long: `Lets plans take steps again. --epoch names the epoch of the record that you have looked at and accept;
chandler effects shows it. It is raised when the record has lost commits, as after a restored backup.`,
		Example: `  chandler ` + parent + ` resume --epoch 1
  chandler ` + parent + ` resume --epoch 2 --cluster east-1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Action = "resume"
			return a.setEffects(cmd.Context(), in)
		},
	}
	c.Flags().StringVar(&in.Cluster, "cluster", "", "only on this cluster")
	c.Flags().Int64Var(&in.Epoch, "epoch", 0, "epoch of the record that you accept")
	return c
}

func (a *app) setEffects(ctx context.Context, in model.EffectsRequest) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	if in.Action == "resume" && in.Epoch == 0 {
		e, err := c.Effects(ctx)
		if err != nil {
			return err
		}
		return errors.Join(a.sayEffects(e), usagef("to go on, accept the epoch with --epoch %d", e.Epoch))
	}
	e, err := c.SetEffects(ctx, in)
	if err != nil {
		return err
	}
	return a.sayEffects(e)
}

func (a *app) effectsStatus(cmd *cobra.Command, _ []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	e, err := c.Effects(cmd.Context())
	if err != nil {
		return err
	}
	return a.sayEffects(e)
}

func (a *app) sayEffects(e model.Effects) error {
	if !e.Stopped {
		return a.say("effects are allowed; epoch %d", e.Epoch)
	}
	since := ""
	if e.Since != nil {
		since = " for " + a.age(*e.Since)
	}
	text := fmt.Sprintf("effects are stopped%s: %s (%s); epoch %d", since, e.Reason, or(e.Scope, "fleet"), e.Epoch)
	if e.Detail != "" {
		text += "\n" + e.Detail
	}
	return a.say("%s", text)
}
