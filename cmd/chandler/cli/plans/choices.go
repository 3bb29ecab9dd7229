package plans

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// choiceFlags is what somebody says of obstacles with an approval.
type choiceFlags struct {
	keep, take, crds, allow []string
	reason                  string
}

func (s *choiceFlags) flags(c *cobra.Command) {
	c.Flags().StringArrayVar(&s.keep, "keep", nil,
		"keep the content that this object (Kind/name), which several operators install, has in the cluster; can be "+
			"repeated")
	c.Flags().StringArrayVar(&s.take, "take", nil,
		"take the plan's content of this object (Kind/name), which several operators install; can be repeated")
	c.Flags().StringArrayVar(&s.crds, "override-crd", nil,
		"change this custom resource definition although existing objects become invalid; needs --reason; can be "+
			"repeated")
	c.Flags().StringArrayVar(&s.allow, "allow", nil,
		"let this bundle (the name of its ClusterServiceVersion) have what `chandler plan check` lists, such as "+
			"cluster-admin; needs --reason; can be repeated")
	c.Flags().StringVar(&s.reason, "reason", "", "why; it is stored outside the event log")
}

// String says what was chosen.
func (s *choiceFlags) String() string {
	var out []string
	for _, l := range []struct {
		word string
		of   []string
	}{{"keep", s.keep}, {"take", s.take}, {"override", s.crds}, {"allow", s.allow}} {
		for _, o := range l.of {
			out = append(out, l.word+" "+o)
		}
	}
	return strings.Join(out, ", ")
}

// check refuses flags that say nothing together.
func (s *choiceFlags) check() error {
	switch {
	case len(s.crds) > 0 && strings.TrimSpace(s.reason) == "":
		return command.Usagef("--override-crd needs a --reason")
	case len(s.allow) > 0 && strings.TrimSpace(s.reason) == "":
		return command.Usagef("--allow needs a --reason")
	}
	for _, o := range s.keep {
		if slices.Contains(s.take, o) {
			return command.Usagef("%s is given with --keep and with --take", o)
		}
	}
	return nil
}

func (s *choiceFlags) empty() bool { return len(s.keep)+len(s.take)+len(s.crds)+len(s.allow) == 0 }

// resolve asks the cluster what is in the way of a plan, and names with each choice exactly that.
func (s *choiceFlags) resolve(ctx context.Context, c *client.Client, p model.InstallPlan) (
	[]model.SettleObstacle, error,
) {
	if s.empty() {
		return nil, nil
	}
	check, err := c.CheckPlan(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	return s.choices(check, p)
}

// choices makes the choices of what a check says.
func (s *choiceFlags) choices(check model.PlanCheck, p model.InstallPlan) ([]model.SettleObstacle, error) {
	var out []model.SettleObstacle
	for _, l := range []struct {
		choice string
		of     []string
	}{{events.ChoiceKeep, s.keep}, {events.ChoiceTake, s.take}} {
		for _, object := range l.of {
			finding, err := sharedFinding(check, p, object)
			if err != nil {
				return nil, err
			}
			out = append(out, model.SettleObstacle{
				Object: object, Choice: l.choice, Finding: finding,
				Reason: s.reason,
			})
		}
	}
	for _, name := range s.crds {
		finding, err := crdFinding(check, p, name)
		if err != nil {
			return nil, err
		}
		out = append(out, model.SettleObstacle{
			Object: "CustomResourceDefinition/" + name,
			Choice: events.ChoiceOverride, Finding: finding, Reason: s.reason,
		})
	}
	for _, csv := range s.allow {
		finding, err := allowanceFinding(check, p, csv)
		if err != nil {
			return nil, err
		}
		out = append(out, model.SettleObstacle{
			Object: "ClusterServiceVersion/" + csv, Choice: events.ChoiceAllow, Finding: finding, Reason: s.reason,
		})
	}
	return out, nil
}

func allowanceFinding(check model.PlanCheck, p model.InstallPlan, csv string) (string, error) {
	var names []string
	for _, a := range check.Allowances {
		_, name, _ := strings.Cut(a.Object, "/")
		if name == csv {
			return a.Finding, nil
		}
		names = append(names, name)
	}
	return "", command.Refusedf("%s of install plan %s needs no allowance; bundles that do: %s", csv, p.Name,
		printer.Or(strings.Join(names, ", "), "none"))
}

func sharedFinding(check model.PlanCheck, p model.InstallPlan, object string) (string, error) {
	i := slices.IndexFunc(check.Shared, func(o model.SharedObject) bool { return o.Object == object })
	if i >= 0 {
		return check.Shared[i].Finding, nil
	}
	var names []string
	for _, o := range check.Shared {
		names = append(names, o.Object)
	}
	return "", command.Refusedf(
		"%s is not an object of install plan %s that conflicts with other operators; conflicting objects: %s", object,
		p.Name, printer.Or(strings.Join(names, ", "), "none"))
}

func crdFinding(check model.PlanCheck, p model.InstallPlan, name string) (string, error) {
	var names []string
	for _, v := range check.CRDs {
		switch {
		case v.CRD == name && v.Finding != "":
			return v.Finding, nil
		case v.CRD == name && !v.Safe:
			return "", command.Refusedf("the change of %s cannot be overridden: %s", name,
				strings.Join(v.Problems, "; "))
		case v.Finding != "":
			names = append(names, v.CRD)
		}
	}
	return "", command.Refusedf("the change of %s by install plan %s needs no override; changes that do: %s", name,
		p.Name, printer.Or(strings.Join(names, ", "), "none"))
}
