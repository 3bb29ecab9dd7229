package installplan

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// MaxChoices bounds what one approval says: a plan rarely has more than a few obstacles that a person may settle, and
// each choice travels in the grant.
const MaxChoices = 50

// definitions is how choices name custom resource definitions.
const definitions = "CustomResourceDefinition/"

// bundles is how choices name bundles, by their ClusterServiceVersion.
const bundles = "ClusterServiceVersion/"

// Choice is what one approver said of one obstacle.
type Choice struct {
	events.PlanChoice
	By string // opaque id
}

// Settled is a choice that counts, with all who made it.
type Settled struct {
	Object, Choice, Finding string
	By                      []string // opaque ids, in the order in which they said so
}

// withChoices adds an approver's choices; what the same person said of the same object before is gone.
func withChoices(list []Choice, e events.InstallPlanObstaclesSettled) []Choice {
	list = slices.Clone(list)
	for _, c := range e.Choices {
		list = slices.DeleteFunc(list, func(o Choice) bool { return o.By == e.By && o.Object == c.Object })
		list = append(list, Choice{PlanChoice: c, By: e.By})
	}
	return list
}

// Settled are the choices that count, sorted by object: of each object the newest one, where as many people made it as
// must approve the plan. Of an Automatic plan one is enough.
func (s State) Settled() []Settled {
	var out []Settled
	seen := map[string]bool{}
	for _, newest := range slices.Backward(s.Choices) {
		if seen[newest.Object] {
			continue
		}
		seen[newest.Object] = true
		found := Settled{Object: newest.Object, Choice: newest.Choice, Finding: newest.Finding}
		for _, c := range s.Choices {
			if c.Object == newest.Object && c.Choice == newest.Choice && c.Finding == newest.Finding {
				found.By = append(found.By, c.By)
			}
		}
		if len(found.By) >= max(1, s.Approvers()) {
			out = append(out, found)
		}
	}
	slices.SortFunc(out, func(a, b Settled) int { return strings.Compare(a.Object, b.Object) })
	return out
}

// settle gives the event of what an approver says of obstacles, none where this person has said all of it.
func (c Approve) settle(s State) ([]events.Payload, error) {
	if err := c.checkChoices(s); err != nil {
		return nil, err
	}
	said := func(n events.PlanChoice) bool {
		return slices.ContainsFunc(s.Choices, func(o Choice) bool {
			return o.By == c.Actor && o.Object == n.Object && o.Choice == n.Choice && o.Finding == n.Finding
		})
	}
	if len(c.Choices) == 0 || !slices.ContainsFunc(c.Choices, func(n events.PlanChoice) bool { return !said(n) }) {
		return nil, nil
	}
	choices := slices.SortedFunc(slices.Values(c.Choices),
		func(a, b events.PlanChoice) int { return strings.Compare(a.Object, b.Object) })
	return one(events.InstallPlanObstaclesSettled{
		Digest: c.Digest, Base: s.Proposed.Base, By: c.Actor,
		Choices: choices,
	}), nil
}

// checkChoices refuses what cannot be said of an obstacle:
//
//	definitions      Override, with a reason
//	bundles          Allow, with a reason
//	other objects    Keep or Take
func (c Approve) checkChoices(s State) error {
	refuse := func(format string, args ...any) error {
		return errs.New(errs.Invalid, "approval of install plan %s: "+format,
			append([]any{s.Proposed.Name}, args...)...).At("choices", "plan-choices")
	}
	if len(c.Choices) > MaxChoices {
		return refuse("%d choices, %d are allowed", len(c.Choices), MaxChoices)
	}
	seen := map[string]bool{}
	for _, n := range c.Choices {
		kind, name, ok := strings.Cut(n.Object, "/")
		definition, ofBundle := strings.HasPrefix(n.Object, definitions), strings.HasPrefix(n.Object, bundles)
		switch {
		case !ok || kind == "" || name == "":
			return refuse("object %q: want Kind/name", n.Object)
		case seen[n.Object]:
			return refuse("%s is chosen twice", n.Object)
		case n.Finding == "":
			return refuse("the choice of %s names no finding: the check of the plan gives it", n.Object)
		case definition && n.Choice != events.ChoiceOverride:
			return refuse("%s: %q cannot be chosen of a definition, only %s", n.Object, n.Choice, events.ChoiceOverride)
		case definition && n.Reason == "":
			return refuse("%s is overridden without a reason", n.Object)
		case ofBundle && n.Choice != events.ChoiceAllow:
			return refuse("%s: %q cannot be chosen of a bundle, only %s", n.Object, n.Choice, events.ChoiceAllow)
		case ofBundle && n.Reason == "":
			return refuse("%s is allowed without a reason", n.Object)
		case !definition && !ofBundle && n.Choice != events.ChoiceKeep && n.Choice != events.ChoiceTake:
			return refuse("%s: choice is %q, want %s or %s", n.Object, n.Choice, events.ChoiceKeep, events.ChoiceTake)
		}
		seen[n.Object] = true
	}
	return nil
}
