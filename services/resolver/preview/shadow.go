package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// WaitingOutcome is the kind of an outcome that would not be recorded yet.
const WaitingOutcome = "Waiting"

// RecordedState is the state that a recorded decision was made on, as far as its record says: operators at rest, no
// plans.
func RecordedState(r resolution.Record, labels map[string]string, policies []decide.Policy) decide.State {
	s := decide.State{Scope: r.Scope, Labels: labels, Policies: policies}
	for _, g := range r.OperatorGroups {
		group := decide.Group{Name: g.Name, Spec: events.OperatorGroupSpec{
			ExcludeGlobalCatalogs: g.ExcludeGlobalCatalogs,
		}}
		if g.Shared {
			group.Spec.Colocation = "shared"
		}
		s.Groups = append(s.Groups, group)
	}
	for _, x := range r.Subscriptions {
		if x.CatalogHidden {
			s.Private = append(s.Private, r.Scope.Cluster+"/"+x.CatalogNamespace+"/"+x.Catalog)
		}
		s.Subscriptions = append(s.Subscriptions, decide.Subscription{Name: x.Name, Spec: events.SubscriptionSpec{
			Package: x.Package, Channel: x.Channel, Catalog: x.Catalog, CatalogNamespace: x.CatalogNamespace,
			StartingCSV: x.StartingCSV, Approval: x.Approval, Config: x.Config,
		}})
	}
	for _, x := range r.Installed {
		s.Installed = append(s.Installed, decide.Installed{
			Name: x.CSV, Package: x.Package, Version: x.Version, Content: string(x.Content), Phase: "Succeeded",
			Replaces: x.Replaces, Properties: x.Properties,
		})
	}
	return s
}

// Bounds are those of a record with one policy in place of the one of its name; the policy counts where it may choose
// something in the scope.
func Bounds(r resolution.Record, p decide.Policy, labels map[string]string) []resolution.Bound {
	out := slices.DeleteFunc(slices.Clone(r.Policy.Bounds), func(b resolution.Bound) bool { return b.Policy == p.Name })
	s := decide.State{Scope: r.Scope, Labels: labels, Policies: []decide.Policy{p}}
	out = append(out, s.Input(nil).Policy.Bounds...)
	slices.SortStableFunc(out, func(a, b resolution.Bound) int { return strings.Compare(a.Policy, b.Policy) })
	return out
}

// RecordedOutcome gives what was recorded of a subscription the form of a shadow run; approval is that of the plan,
// where known.
func RecordedOutcome(o decide.Outcome, approval string) previewapi.ShadowOutcome {
	return previewapi.ShadowOutcome{Kind: o.Kind, CSV: o.CSV, Reason: o.Reason, Approval: approval}
}

// ShadowOutcome is what would be recorded of a subscription, and why, in sentences.
func ShadowOutcome(verdicts []decide.Verdict, subscription string) (previewapi.ShadowOutcome, []string) {
	for _, v := range verdicts {
		if slices.Contains(v.Component.Subscriptions, subscription) {
			return shadow(v, subscription)
		}
	}
	return previewapi.ShadowOutcome{Kind: WaitingOutcome}, []string{"nothing would be said of it"}
}

func shadow(v decide.Verdict, subscription string) (previewapi.ShadowOutcome, []string) {
	if v.Failure != nil {
		return previewapi.ShadowOutcome{Kind: decide.OutcomeFailed, Reason: v.Failure.Reason}, sentences(v.Failure)
	}
	if v.Kind == decide.Waiting {
		return previewapi.ShadowOutcome{Kind: WaitingOutcome},
			[]string{"a catalog that it needs is being loaded for the first time"}
	}
	out, why := previewapi.ShadowOutcome{Kind: decide.OutcomeAtLatestKnown}, []string{}
	for _, o := range v.Component.Outcomes {
		if o.Subscription != subscription {
			continue
		}
		out.CSV = o.CSV
		if o.Planned {
			out.Kind, out.Approval = decide.OutcomePlanned, v.Approval
		}
	}
	for _, b := range v.Component.Bundles {
		line := fmt.Sprintf("%s comes from channel %s of catalog %s (%s)", b.CSV, b.Channel, b.Catalog, b.Reason)
		if b.RequiredBy != "" {
			line += ", required by " + b.RequiredBy
		}
		why = append(why, line)
	}
	if out.Approval == installplan.Manual && len(v.Facts.Policy.ManualReasons) > 0 {
		why = append(why, fmt.Sprintf("policies want a person (%s): %s",
			strings.Join(v.Policies, ", "), strings.Join(v.Facts.Policy.ManualReasons, ", ")))
	}
	if len(why) == 0 {
		why = append(why, "there is nothing newer to go to")
	}
	return out, why
}

// SameOutcome says whether two outcomes are the same to a person. An approval that is not known is no difference.
func SameOutcome(a, b previewapi.ShadowOutcome) bool {
	if a.Approval == "" || b.Approval == "" {
		a.Approval, b.Approval = "", ""
	}
	return a == b
}
