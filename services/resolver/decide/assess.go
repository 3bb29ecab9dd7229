package decide

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Kind is what is to be done about a component; the package comment has the rules.
type Kind string

// The kinds.
const (
	Waiting  Kind = "waiting"
	Held     Kind = "held"
	Failed   Kind = "failed"
	Settled  Kind = "settled"
	Kept     Kind = "kept"
	Ended    Kind = "ended"
	Proposed Kind = "proposed"
	Fetching Kind = "fetching"
	Blocked  Kind = "blocked"
)

// Verdict is what is to be done about one component.
type Verdict struct {
	Kind      Kind
	Component resolution.Component
	// Plan is the one that is kept, or the one that ended.
	Plan *Plan
	// Facts are the base of a proposal; its CRDs come with the steps.
	Facts installplan.BaseFacts
	// Approval is the plan's mode, and Policies are the approval policies that choose something of it.
	Approval string
	Policies []string
	// Effect is the digest of what the plan would do.
	Effect string
	// Again is a plan that had begun and that no executor can go on with: the proposal brings the same bundles.
	Again *Plan
	// Stale is a plan that was not begun and whose bundles are rendered to other objects by now.
	Stale *Plan
	// Failure of a Failed component.
	Failure *resolution.Explanation
}

// Assess gives a verdict on each component, in their order.
func Assess(s State, r resolution.Result) ([]Verdict, error) {
	out := make([]Verdict, 0, len(r.Components))
	taken := map[string]bool{} // plans that are taken over from
	for _, c := range r.Components {
		v, err := s.assess(c)
		if err != nil {
			return nil, err
		}
		if v.Again != nil {
			if taken[v.Again.ID] { // another component shares its packages
				v = Verdict{Kind: Held, Component: c}
			} else {
				taken[v.Again.ID] = true
			}
		}
		out = append(out, v)
	}
	s.named(out)
	return out, nil
}

func (s State) assess(c resolution.Component) (Verdict, error) {
	v := Verdict{Component: c, Failure: c.Failure}
	if p := s.abandoned(c); p != nil {
		return s.takeOver(c, p)
	}
	switch {
	case s.waits(c):
		v.Kind = Waiting
	case s.held(c):
		v.Kind = Held
	case c.Failure != nil:
		v.Kind = Failed
	case len(c.Bundles) == 0:
		v.Kind = Settled
	case unfetched(c) != nil:
		v.Kind, v.Failure = Fetching, unfetched(c)
	default:
		v, err := s.compare(v)
		if err == nil && v.Kind == Proposed {
			strict(&v)
		}
		if err == nil && v.Kind == Proposed && s.Cluster.Cordoned {
			v.Kind, v.Failure = Blocked, cordoned(c)
		}
		return v, err
	}
	return v, nil
}

// waits says whether the component only lacks a catalog that has not been loaded yet, and whose load has
// not failed: catalog and subscription may be applied together.
func (s State) waits(c resolution.Component) bool {
	if c.Failure == nil || c.Failure.Class != resolution.ClassCatalogUnavailable {
		return false
	}
	return slices.ContainsFunc(s.Catalogs, func(k Catalog) bool {
		return k.Revision == "" && !k.Failed && slices.ContainsFunc(
			c.Failure.Statements, func(st resolution.Statement) bool { return st.Catalog == k.Key.String() })
	})
}

// held says whether something of the component is under way.
func (s State) held(c resolution.Component) bool {
	for _, p := range s.Plans {
		if p.State.Live() && p.State.Begun && shares(p.packages(), c.Packages) {
			return true
		}
	}
	forward := len(s.Groups) == 1 && s.Groups[0].Spec.UpgradeStrategy == strategyFailForward
	for _, i := range s.Installed {
		if i.Phase == phaseSucceeded || forward && s.passedOver(i) || s.goesBack(i) ||
			!slices.Contains(c.Packages, i.Package) {
			continue
		}
		return true
	}
	return false
}

// goesBack says whether an operator failed that somebody wants to go back from, or is being replaced by such a one:
// waiting for its success would be waiting for what the rollback is to correct.
func (s State) goesBack(i Installed) bool {
	end, failed := s.failedEnd(i)
	return failed && slices.ContainsFunc(s.Subscriptions, func(sub Subscription) bool { return sub.leaves(end) })
}

// passedOver says whether fail-forward passes over an operator: it failed, or it is being replaced by one that, at
// the end of the chain, failed (R-RES-44).
func (s State) passedOver(i Installed) bool {
	_, failed := s.failedEnd(i)
	return failed
}

// failedEnd is the operator that failed at the end of the chain in which one is being replaced. What replaced itself in
// a ring has no end.
func (s State) failedEnd(i Installed) (end Installed, failed bool) {
	for range s.Installed {
		if i.Phase == phaseFailed {
			return i, true
		}
		next := slices.IndexFunc(s.Installed, func(o Installed) bool {
			return o.Replaces == i.Name &&
				o.Name != i.Name
		})
		if i.Phase != phaseReplacing || next < 0 {
			return i, false
		}
		i = s.Installed[next]
	}
	return i, false
}

// withTerms says what a plan of the component rests on, and what it would do.
func (s State) withTerms(v Verdict) (Verdict, error) {
	t := s.terms(v.Component)
	v.Facts = s.facts(v.Component)
	v.Facts.Policy, v.Approval, v.Policies = t.Facts, t.Approval, t.Policies
	effect, err := s.effect(v)
	v.Effect = effect
	return v, err
}

// compare searches for a plan that does the same already.
func (s State) compare(v Verdict) (Verdict, error) {
	v, err := s.withTerms(v)
	if err != nil {
		return v, err
	}
	v.Kind = Proposed
	newest := true // of the plans of this component
	for i := range s.Plans {
		p := &s.Plans[i]
		if !shares(p.packages(), v.Component.Packages) {
			continue
		}
		same := p.Effect == v.Effect
		if same && p.State.Live() {
			v.Kind, v.Plan = Kept, p
			return v, nil
		}
		if same && newest && p.endedForGood() {
			v.Kind, v.Plan = Ended, p
		}
		newest = newest && p.State.Phase == installplan.Superseded
	}
	return v, nil
}

// reasonGone is why a plan failed whose operator somebody deleted in the cluster while it ran. An executor gives a plan
// that failed this reason for nothing else.
const reasonGone = "BaseChanged"

// endedForGood says that a plan that does the same would end alike, or that a person does not want it. One whose
// operator was deleted while it ran is no such plan: what is deleted is planned again, as after a plan that finished.
// That goes on only as long as somebody goes on deleting.
func (p Plan) endedForGood() bool {
	return p.State.Phase == installplan.Rejected ||
		p.State.Phase == installplan.Failed && p.State.Failure.Reason != reasonGone
}

// facts are what the plan rests on, without the CRDs.
func (s State) facts(c resolution.Component) installplan.BaseFacts {
	f := installplan.BaseFacts{Configs: map[string]string{}, Approvals: map[string]string{}}
	for _, i := range s.Installed {
		if slices.Contains(c.Packages, i.Package) {
			f.Installed = append(f.Installed, installplan.InstalledBundle{CSV: i.Name, Content: i.Content})
		}
	}
	if len(s.Groups) == 1 {
		f.OperatorGroup = installplan.GroupFacts{Name: s.Groups[0].Name, Spec: s.Groups[0].Spec}
	}
	for _, name := range c.Subscriptions {
		if sub := s.subscription(name); sub != nil {
			f.Configs[name], f.Approvals[name] = sub.Spec.Config, sub.Spec.Approval
		}
	}
	return f
}

// effectType is the type prefix of an effect's digest.
const effectType = "chandler.plan-effect.v1"

// effect names what a plan would do and rest on: bundles by content, not the revision that they were
// found in nor the input, so that a catalog that moved elsewhere does not replace a plan that people
// have read. The lives of the subscriptions count: who deletes one and creates it again asks for
// another try of a plan that failed or was rejected.
func (s State) effect(v Verdict) (string, error) {
	bundles := planned(v.Component.Bundles)
	for i := range bundles {
		bundles[i].Revision = ""
	}
	base, err := v.Facts.Base()
	if err != nil {
		return "", err
	}
	lives, directives := map[string]int{}, map[string]string{}
	for _, name := range v.Component.Subscriptions {
		if sub := s.subscription(name); sub != nil {
			lives[name] = sub.Incarnation
			if asked := sub.directive(); asked != "" {
				directives[name] = asked
			}
		}
	}
	d, err := digest.JSON(effectType, struct {
		Namespace string                 `json:"namespace"`
		Component string                 `json:"component"`
		Approval  string                 `json:"approval"`
		Bundles   []events.PlannedBundle `json:"bundles"`
		Base      events.PlanBase        `json:"base"`
		Lives     map[string]int         `json:"lives"`
		// Directives of rollouts: each has a plan of its own, so that what comes of it can be told from what came
		// before, and a second try is one.
		Directives map[string]string `json:"directives,omitempty"`
	}{s.Scope.Namespace, v.Component.Name, v.Approval, bundles, base, lives, directives})
	return string(d), err
}

// planned gives bundles the form of events.
func planned(bundles []resolution.Planned) []events.PlannedBundle {
	out := make([]events.PlannedBundle, 0, len(bundles))
	for _, b := range bundles {
		out = append(out, events.PlannedBundle{
			CSV: b.CSV, Package: b.Package, Version: b.Version, Channel: b.Channel, Catalog: b.Catalog.String(),
			Revision: b.Revision, Content: string(b.Content), Replaces: b.Replaces, Reason: b.Reason,
			RequiredBy: b.RequiredBy, Subscriptions: b.Subscriptions,
		})
	}
	return out
}

func shares(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

func contentDigest(s string) digest.Digest { return digest.Digest(s) }
