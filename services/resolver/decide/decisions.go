package decide

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Identity is drawn at random by the caller, one for each proposal.
type Identity struct {
	Plan string // UUID
	Name string // install-<5 characters> (R-IP-1)
}

// Proposal is a plan to be recorded.
type Proposal struct {
	Event    events.InstallPlanProposed
	Document []byte // canonical JSON of installplan.Document
	Effect   string
	// Properties of the bundles, by CSV: what the resolver will know of them once they are installed.
	Properties map[string][]catalog.Property
	Input      resolution.Record
	// Correlation of the subscription that led here.
	Correlation string
}

// Supersession ends a plan that was not begun.
type Supersession struct {
	Plan   Plan
	Events []events.Payload
}

// SubscriptionEvent is an event to be recorded of a subscription.
type SubscriptionEvent struct {
	Subscription Subscription
	Event        events.Payload
	Outcome      Outcome
	Input        resolution.Record
	Explanation  *resolution.Explanation // of a failure
}

// Decisions are what is to be recorded for a scope; an empty value is no news.
type Decisions struct {
	Proposals          []Proposal
	Superseded         []Supersession
	SubscriptionEvents []SubscriptionEvent
	// Wanted are bundle images that the scope waits for. They are no news.
	Wanted []Wanted
}

// Wanted is a bundle image that has to be fetched.
type Wanted struct {
	Catalog                resolution.CatalogKey
	Image, Package, Bundle string
}

// Empty says whether there is nothing to record.
func (d Decisions) Empty() bool {
	return len(d.Proposals)+len(d.Superseded)+len(d.SubscriptionEvents) == 0
}

// Rendered is what the steps of a proposal came to.
type Rendered struct {
	Steps     []installplan.Step
	Rendering string // rules by which they were rendered
	Identity  Identity
}

// Decide builds the events. rendered holds an entry for each Proposed verdict, by component name.
func Decide(s State, verdicts []Verdict, rendered map[string]Rendered) (Decisions, error) {
	var d Decisions
	by := map[string]string{} // component → plan that takes over
	for _, v := range verdicts {
		if v.Kind != Proposed {
			continue
		}
		r := rendered[v.Component.Name]
		p, err := s.propose(v, r, int64(len(d.Proposals)))
		if err != nil {
			return d, err
		}
		d.Proposals = append(d.Proposals, p)
		by[v.Component.Name] = r.Identity.Plan
	}
	if err := s.supersede(&d, verdicts, by); err != nil {
		return d, err
	}
	d.Wanted = wanted(verdicts)
	for _, v := range verdicts {
		if err := s.recordOutcomes(&d, v, by[v.Component.Name]); err != nil {
			return d, err
		}
	}
	return d, nil
}

// wanted are the images of chosen bundles that are not there, also those of steps that have to wait. One that
// could not be had is wanted still: who fetches knows when another try makes sense, and a catalog that names it
// again after a while has to be heard.
func wanted(verdicts []Verdict) []Wanted {
	var out []Wanted
	for _, v := range verdicts {
		for _, b := range v.Component.Bundles {
			image := resolution.BundleImage{Image: b.Image, Package: b.Package, Bundle: b.CSV}
			if b.Image != "" && b.Content == "" && image.Askable() {
				out = append(out, Wanted{Catalog: b.Catalog, Image: b.Image, Package: b.Package, Bundle: b.CSV})
			}
		}
	}
	return out
}

// propose builds the document and the event of a plan; before counts proposals of the same decision.
func (s State) propose(v Verdict, r Rendered, before int64) (Proposal, error) {
	input, semantics, err := v.input()
	if err != nil {
		return Proposal{}, err
	}
	v.Facts.CRDs = slices.DeleteFunc(slices.Clone(r.Steps),
		func(st installplan.Step) bool { return st.Kind != "CustomResourceDefinition" })
	base, err := v.Facts.Base()
	if err != nil {
		return Proposal{}, err
	}
	doc := installplan.Document{
		Namespace: s.Scope.Namespace, Component: v.Component.Name, Input: input, Rendering: r.Rendering,
		Bundles: planned(v.Component.Bundles), Steps: r.Steps, Base: base,
	}
	body, err := digest.Canonical(doc)
	if err != nil {
		return Proposal{}, err
	}
	d, err := doc.Digest()
	if err != nil {
		return Proposal{}, err
	}
	p := Proposal{
		Document: body, Effect: v.Effect, Input: v.Component.Input,
		Properties: map[string][]catalog.Property{},
	}
	for _, b := range v.Component.Bundles {
		p.Properties[b.CSV] = b.Properties
	}
	p.Correlation = s.cause(v.Component)
	p.Event = events.InstallPlanProposed{
		Plan: r.Identity.Plan, Name: r.Identity.Name, Cluster: s.Scope.Cluster, Namespace: s.Scope.Namespace,
		Generation: s.Generation + 1 + before, Component: v.Component.Name, Approval: v.Approval,
		Digest: string(d), Document: string(d), Input: string(input), Semantics: semantics, Rendering: r.Rendering,
		Steps: len(r.Steps), Base: base, Bundles: doc.Bundles, Policies: v.Policies,
		ManualReasons: v.Facts.Policy.ManualReasons, Approvers: v.Facts.Policy.Approvers,
		ApprovalSeconds: v.Facts.Policy.ApprovalSeconds, Windows: v.Facts.Policy.Windows,
		TakesOver: v.takesOver(),
	}
	_, err = installplan.Decide(installplan.State{}, installplan.Propose{Plan: p.Event})
	return p, err
}

// cause is the correlation of a proposal: of the rollout that moves one of the operators, which hears of what it asked
// by nothing else (ADR 0071), or of the first subscription that has one.
func (s State) cause(c resolution.Component) (correlation string) {
	for _, o := range c.Outcomes {
		if sub := s.subscription(o.Subscription); o.Planned && sub != nil && sub.directive() != "" {
			return sub.directive()
		}
	}
	for _, name := range c.Subscriptions {
		if sub := s.subscription(name); sub != nil && correlation == "" {
			correlation = sub.Correlation
		}
	}
	return correlation
}

// supersede ends live plans that were not begun and that nothing keeps.
func (s State) supersede(d *Decisions, verdicts []Verdict, by map[string]string) error {
	for _, p := range s.Plans {
		if !p.State.Live() || p.State.Begun {
			continue
		}
		successor, keep, err := s.fate(p, verdicts, by)
		if err != nil {
			return err
		}
		if keep {
			continue
		}
		payloads, err := installplan.Decide(p.State, installplan.Supersede{By: successor, Reason: why(p, verdicts)})
		if err != nil {
			return err
		}
		d.Superseded = append(d.Superseded, Supersession{Plan: p, Events: payloads})
	}
	return nil
}

// fate says whether a plan that was not begun stays, and if not, which one takes its place.
//
//	another plan of its operators is begun        → that one: it was superseded by this, but began in that moment
//	the verdict keeps it                          → it stays
//	its component waits or is held, or a bundle   → it stays if what it rests on is as it was: what comes of it is
//	image or a catalog is awaited                   not known yet
//	a plan is proposed for its operators          → that one
//	otherwise                                     → none
func (s State) fate(p Plan, verdicts []Verdict, by map[string]string) (successor string, keep bool, err error) {
	for _, q := range s.Plans {
		if q.State.Live() && q.State.Begun && shares(p.packages(), q.packages()) {
			return q.ID, false, nil
		}
	}
	outdated, err := s.outdated(p, verdicts)
	if err != nil {
		return "", false, err
	}
	for _, v := range verdicts {
		if !shares(p.packages(), v.Component.Packages) {
			continue
		}
		if v.pending() && !outdated || v.Plan != nil && v.Plan.ID == p.ID {
			return "", true, nil
		}
		if successor == "" {
			successor = by[v.Component.Name]
		}
	}
	return successor, false, nil
}

// why is a code for what became of a plan that was not begun, "" where what it rests on has changed.
func why(p Plan, verdicts []Verdict) string {
	if slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Stale != nil && v.Stale.ID == p.ID }) {
		return events.SupersededRendering
	}
	return ""
}

// pending says whether it is not known yet what comes next of the component.
func (v Verdict) pending() bool {
	return v.Kind == Waiting || v.Kind == Held || v.Kind == Fetching || v.Kind == Blocked
}

// recordOutcomes records what became of the component's subscriptions where it is news.
func (s State) recordOutcomes(d *Decisions, v Verdict, plan string) error {
	switch v.Kind {
	case Waiting, Held:
		return nil
	case Failed, Fetching, Blocked:
		return s.recordFailure(d, v)
	case Kept, Ended:
		plan = v.Plan.ID
	case Settled, Proposed:
	}
	for _, o := range v.Component.Outcomes {
		now := Outcome{Kind: OutcomeAtLatestKnown, CSV: o.CSV}
		if o.Planned {
			now.Kind, now.Plan = OutcomePlanned, plan
		}
		sub := s.subscription(o.Subscription)
		if sub == nil {
			continue
		}
		now.Directive = sub.directive()
		content := s.running(now)
		if now.Kind == OutcomeAtLatestKnown && now.CSV == sub.Target.CSV && content == "" {
			now.Directive = "" // what does not run answers no rollout: it is answered when it does
		}
		if sub.Outcome.same(now) {
			continue
		}
		input, semantics, err := v.input()
		if err != nil {
			return err
		}
		now.Input = string(input)
		d.SubscriptionEvents = append(d.SubscriptionEvents,
			SubscriptionEvent{
				Subscription: *sub, Outcome: now, Input: v.Component.Input,
				Event: events.ResolutionSucceeded{
					Semantics: semantics, Input: now.Input, Outcome: now.Kind, CSV: now.CSV,
					Plan: now.Plan, Content: content,
				},
			})
	}
	return nil
}

// running is the content of what a subscription of a rollout has; "" for all others, and while it does not run: an
// operator that failed is there, too, where its group lets it be passed over.
func (s State) running(now Outcome) string {
	if now.Directive == "" || now.Kind != OutcomeAtLatestKnown {
		return ""
	}
	for _, i := range s.Installed {
		if i.Name == now.CSV && i.Phase == phaseSucceeded {
			return i.Content
		}
	}
	return ""
}

func (s State) recordFailure(d *Decisions, v Verdict) error {
	explanation, err := v.Failure.Digest()
	if err != nil {
		return err
	}
	for _, name := range v.Failure.Subscriptions {
		now := Outcome{Kind: OutcomeFailed, Reason: v.Failure.Reason, Explanation: string(explanation)}
		sub := s.subscription(name)
		if sub == nil {
			continue
		}
		now.Directive = sub.directive()
		told, err := sub.alreadyRecorded(now, v.Failure)
		if err != nil {
			return err
		}
		if told {
			continue
		}
		input, semantics, err := v.input()
		if err != nil {
			return err
		}
		now.Input = string(input)
		d.SubscriptionEvents = append(d.SubscriptionEvents,
			SubscriptionEvent{
				Subscription: *sub, Outcome: now, Input: v.Component.Input, Explanation: v.Failure,
				Event: events.ResolutionFailed{
					Semantics: semantics, Input: now.Input, Reason: now.Reason,
					Explanation: now.Explanation,
				},
			})
	}
	return nil
}

// NotInstallable turns a proposal that cannot be rendered into a failure that says why.
func NotInstallable(v Verdict, bundle, why string) Verdict {
	v.Kind = Failed
	v.Failure = &resolution.Explanation{
		Reason: resolution.ReasonPrevented, Class: resolution.ClassNotInstallable,
		Subscriptions: v.Component.Subscriptions, Statements: []resolution.Statement{
			{Kind: resolution.NotInstallable, Bundle: bundle, Text: why},
		},
	}
	return v
}
