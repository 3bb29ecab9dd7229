package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// settling is what somebody says of obstacles with an approval.
type settling struct {
	keep, take, crds []string
	reason           string
}

func (s *settling) flags(c *cobra.Command) {
	c.Flags().StringArrayVar(&s.keep, "keep", nil, "leave this object (Kind/name), which other operators bring, too, as the cluster has it; can be repeated")
	c.Flags().StringArrayVar(&s.take, "take", nil, "have the plan's form of this object (Kind/name) hold, which other operators bring, too; can be repeated")
	c.Flags().StringArrayVar(&s.crds, "override-crd", nil, "change this custom resource definition although that hurts what the cluster holds; wants --reason; can be repeated")
	c.Flags().StringVar(&s.reason, "reason", "", "why, for those who ask later; kept outside the record")
}

// String says what was chosen.
func (s *settling) String() string {
	var out []string
	for _, l := range []struct {
		word string
		of   []string
	}{{"keep", s.keep}, {"take", s.take}, {"override", s.crds}} {
		for _, o := range l.of {
			out = append(out, l.word+" "+o)
		}
	}
	return strings.Join(out, ", ")
}

// check refuses flags that say nothing together.
func (s *settling) check() error {
	switch {
	case s.empty() && s.reason != "":
		return usagef("--reason goes with --keep, --take or --override-crd")
	case len(s.crds) > 0 && strings.TrimSpace(s.reason) == "":
		return usagef("--override-crd wants a --reason")
	}
	for _, o := range s.keep {
		if slices.Contains(s.take, o) {
			return usagef("%s is given with --keep and with --take", o)
		}
	}
	return nil
}

func (s *settling) empty() bool { return len(s.keep)+len(s.take)+len(s.crds) == 0 }

// choices asks the cluster what is in the way of a plan, and names with each choice exactly that.
func (s *settling) choices(ctx context.Context, c *client.Client, p model.InstallPlan) ([]model.SettleObstacle, error) {
	if s.empty() {
		return nil, nil
	}
	check, err := c.CheckPlan(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	return s.of(check, p)
}

// of makes the choices of what a check says.
func (s *settling) of(check model.PlanCheck, p model.InstallPlan) ([]model.SettleObstacle, error) {
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
			out = append(out, model.SettleObstacle{Object: object, Choice: l.choice, Finding: finding, Reason: s.reason})
		}
	}
	for _, name := range s.crds {
		finding, err := crdFinding(check, p, name)
		if err != nil {
			return nil, err
		}
		out = append(out, model.SettleObstacle{Object: "CustomResourceDefinition/" + name, Choice: events.ChoiceOverride, Finding: finding, Reason: s.reason})
	}
	return out, nil
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
	return "", refusedf("%s is no object of install plan %s that other operators have in another form; such are: %s", object, p.Name, or(strings.Join(names, ", "), "none"))
}

func crdFinding(check model.PlanCheck, p model.InstallPlan, name string) (string, error) {
	var names []string
	for _, v := range check.CRDs {
		switch {
		case v.CRD == name && v.Finding != "":
			return v.Finding, nil
		case v.CRD == name && !v.Safe:
			return "", refusedf("nobody can override the change of %s: %s", name, strings.Join(v.Problems, "; "))
		case v.Finding != "":
			names = append(names, v.CRD)
		}
	}
	return "", refusedf("the change of %s by install plan %s is in the way of nothing; to be overridden are: %s", name, p.Name, or(strings.Join(names, ", "), "none"))
}

// refusedf is an error of what the present state forbids.
func refusedf(format string, args ...any) error {
	return &author.ExitError{Code: exitRefused, Err: fmt.Errorf(format, args...)}
}
