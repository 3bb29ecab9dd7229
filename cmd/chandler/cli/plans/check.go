package plans

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// writeRemovedAPIs warns of APIs that the next version drops (R-CSV-61).
func writeRemovedAPIs(t *printer.Text, list []model.RemovedAPI) {
	if len(list) == 0 {
		return
	}
	t.Heading(kinds.RemovedHeading)
	for _, r := range list {
		t.Put("  - ", fmt.Sprintf("%s, removed in %s, used by %s", kinds.RemovedKind(r), r.Removed, r.For))
	}
}

// writeCheck says everything, what is in the way first.
func writeCheck(t *printer.Text, c model.PlanCheck) {
	if c.Ready {
		t.Put("", "No obstacles.")
	}
	for _, o := range c.Obstacles {
		t.Put("", fmt.Sprintf("%s (%s): %s", o.Reason, o.Class, o.Message))
	}
	for _, a := range c.Allowances {
		writeAllowance(t, a)
	}
	for _, o := range c.Shared {
		writeShared(t, o)
	}
	writePermissions(t, c)
	for _, v := range c.CRDs {
		writeVerdict(t, v)
	}
	writeRemovedAPIs(t, c.RemovedAPIs)
}

func writePermissions(t *printer.Text, c model.PlanCheck) {
	switch {
	case c.Account == "":
	case len(c.Permissions) == 0:
		t.Put("", fmt.Sprintf("It runs as %s, which has all permissions that it needs.", c.Account))
	default:
		t.Heading(fmt.Sprintf("%s lacks these permissions:", c.Account))
	}
	for _, p := range c.Permissions {
		t.Put("  - ", right(p))
	}
}

// right is a missing right in one line.
func right(p model.MissingPermission) string {
	what := p.URL
	if what == "" {
		what = strings.TrimSuffix(p.Resource+"."+p.Group, ".")
	}
	if p.Name != "" {
		what += " " + p.Name
	}
	if p.URL == "" {
		what += " in " + printer.Or(p.Namespace, "the whole cluster")
	}
	return fmt.Sprintf("%s %s, for %s", p.Verb, what, p.For)
}

// writeVerdict says what changing a definition does; of one that is only created or the same there is nothing to say.
func writeVerdict(t *printer.Text, v model.CRDVerdict) {
	if v.Safe && v.Reversible && len(v.Warnings) == 0 {
		return
	}
	t.Heading(fmt.Sprintf("%s: %s", v.CRD, verdictText(v)))
	for _, list := range []struct {
		lead  string
		texts []string
	}{{"  ! ", v.Problems}, {"  - ", v.Warnings}, {"  - cannot be undone: ", v.Irreversible}} {
		for _, text := range list.texts {
			t.Put(list.lead, text)
		}
	}
	for _, s := range v.Sample {
		t.Put("    ", s)
	}
	switch {
	case v.Safe:
	case len(v.OverriddenBy) > 0:
		t.Put("  - ", "overridden by "+strings.Join(v.OverriddenBy, ", "))
	case v.Finding != "":
		t.Put("  - ", fmt.Sprintf("to override: chandler approve PLAN --override-crd %s --reason TEXT", v.CRD))
	default:
		t.Put("  - ", "this cannot be overridden")
	}
}

// writeAllowance says what a bundle may not have without an administrator's word, and how that is given.
func writeAllowance(t *printer.Text, a model.Allowance) {
	_, csv, _ := strings.Cut(a.Object, "/")
	t.Heading(csv + " gives away more than an operator needs:")
	for _, n := range a.Needed {
		t.Put("  ! ", n)
	}
	if len(a.By) > 0 {
		t.Put("  - ", "allowed by "+strings.Join(a.By, ", ")+", for bundle "+printer.Short(a.Content)+" only")
		return
	}
	t.Put("  - ", fmt.Sprintf("an administrator may allow it for this bundle (%s): chandler approve PLAN --allow %s "+
		"--reason TEXT", printer.Short(a.Content), csv))
}

// writeShared says whose an object is that another operator brings in another form, what differs, and what can be
// chosen.
func writeShared(t *printer.Text, o model.SharedObject) {
	where := ""
	if o.Namespace != "" {
		where = " in namespace " + o.Namespace
	}
	t.Heading(fmt.Sprintf("%s%s: installed by %s, and %s installs it with different content", o.Object, where, o.Holder,
		o.Operator))
	for _, d := range o.Differences {
		t.Put("  - ", fmt.Sprintf("%s: the cluster has %s, the plan has %s", d.Path, kinds.FormText(d.Has, d),
			kinds.FormText(d.Wants, d)))
	}
	if others := slices.DeleteFunc(slices.Clone(o.Owners), func(s string) bool { return s == o.Holder }); len(
		others) > 0 {
		t.Put("  - ", "shared with "+strings.Join(others, ", "))
	}
	switch {
	case o.Choice != "":
		t.Put("  - ", fmt.Sprintf("chosen: %s, by %s", strings.ToLower(o.Choice), strings.Join(o.By, ", ")))
	case o.Refused != "":
		t.Put("  ! ", "the plan's content cannot replace it: "+o.Refused)
		t.Put("  ! ", "chandler approve PLAN --keep "+o.Object+", or uninstall one of the two")
	default:
		t.Put("  ! ", "an approver has to choose: chandler approve PLAN --keep "+o.Object+
			" (what the cluster has) or --take "+o.Object+" (what the plan has)")
	}
}

func verdictText(v model.CRDVerdict) string {
	switch {
	case !v.Safe && len(v.OverriddenBy) > 0:
		return "it is changed: an approver has overridden the check"
	case !v.Safe:
		return "it cannot be changed safely"
	case !v.Reversible:
		return "it can be changed, but not changed back without data loss"
	}
	return "it can be changed, and changed back"
}

func planCheckCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use:   "check PLAN",
		Short: "Check an install plan in its cluster",
		Long: `Checks in the cluster what blocks an install plan, and changes nothing: every permission that the service account of
the operator group lacks; for each custom resource definition whether it can be changed with the existing objects,
and changed back; and anything else that would keep the plan from starting. It ends with an error if something does.

PLAN is a name within --cluster and --namespace, cluster/namespace/name, or an id.`,
		Example: `  chandler plan check install-7x2kq --cluster east-1 -n ports
  chandler plan check east-1/ports/install-7x2kq -o json`,
		Args: command.RequireArgs(1),
	}
	printer.DocumentFlag(c, &o)
	document := func() error { return printer.CheckDocument(o) }
	return aboutPlan(a, c, document, func(
		ctx context.Context, c *client.Client, p model.InstallPlan, _ []string,
	) error {
		return check(ctx, a, c, o, p)
	})
}

func check(ctx context.Context, a *command.Env, c *client.Client, o printer.Output, p model.InstallPlan) error {
	check, err := c.CheckPlan(ctx, p.ID)
	if err != nil {
		return err
	}
	if o.Format != printer.FormatTable {
		err = o.Write(a.Out, nil, []printer.Item{{Value: check}}, true)
	} else {
		var t printer.Text
		writeCheck(&t, check)
		err = a.Say("%s", t.String())
	}
	if err == nil && !check.Ready {
		err = command.Refused(fmt.Errorf("install plan %s cannot start now", p.Name))
	}
	return err
}
