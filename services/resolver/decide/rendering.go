package decide

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// What a release renders otherwise than the one before, it must not have people approve, nor leave waiting (DESIGN D5):
//
//	a plan that was not begun, by rules that this release does not have      → proposed anew
//	the same, by older rules, or an executor renders otherwise than it says  → rendered by the newest rules: kept where
//	                                                                           that gives the same steps, else proposed
//	                                                                           anew
//	the same, by rules of a later release                                    → kept: a resolver of that release decides;
//	                                                                           proposed anew where no executor has them
//	a plan that was begun and that no executor can go on with (it failed     → another plan takes over: the same bundles
//	for that), where this release renders its bundles otherwise                of the same resolution, rendered anew

// recheck is how it is found out whether a verdict that rests on a plan's steps holds.
type recheck int

const (
	holds       recheck = iota
	renderAgain         // where the newest rules give other steps it does not
	never               // nobody here can carry the plan out
)

func (v Verdict) recheck(have *render.Versions) recheck {
	if v.Again != nil && v.Kind == Proposed {
		if have.Presence(v.Again.State.Proposed.Rendering) == render.Present {
			return renderAgain
		}
		return never
	}
	if v.Kind != Kept || v.Plan.State.Begun {
		return holds
	}
	rendering, reason := v.Plan.State.Proposed.Rendering, v.Plan.State.Blocked.Reason
	switch have.Presence(rendering) {
	case render.Gone:
		return never
	case render.Ahead:
		if reason == events.RenderingAhead {
			return never
		}
	case render.Present:
		if rendering != have.Newest() || reason == events.RenderingGone || reason == events.RenderingDiffers {
			return renderAgain
		}
	}
	return holds
}

// NeedsSteps says whether the steps of a component are to be rendered by the newest rules before anything is decided.
func (v Verdict) NeedsSteps(have *render.Versions) bool {
	return v.Kind == Proposed || v.recheck(have) != holds
}

// WithSteps is the verdict once the steps of its component are known.
func (v Verdict) WithSteps(steps []installplan.Step, have *render.Versions) (Verdict, error) {
	of := v.Plan
	if v.Again != nil {
		of = v.Again
	}
	switch v.recheck(have) {
	case holds:
		return v, nil
	case renderAgain:
		same, err := rendersTo(*of, steps)
		if err != nil {
			return v, err
		}
		if same && v.Again != nil { // another try would end as the first one did
			v.Kind, v.Plan, v.Again = Ended, of, nil
			return v, nil
		}
		if same {
			return v, nil
		}
	case never:
	}
	if v.Kind == Kept {
		v.Kind, v.Stale, v.Plan = Proposed, v.Plan, nil
	}
	return v, nil
}

// rendersTo says whether a plan names exactly these steps: its digest says so, since all else of its document is known.
func rendersTo(p Plan, steps []installplan.Step) (bool, error) {
	e := p.State.Proposed
	d, err := installplan.Document{
		Namespace: e.Namespace, Component: e.Component, Input: digest.Digest(e.Input), Rendering: e.Rendering,
		Bundles: e.Bundles, Steps: steps, Base: e.Base,
	}.Digest()
	return string(d) == e.Digest, err
}

// abandoned is the plan of a component that had begun and that no executor can go on with; nil where there is none, or
// where something came after it.
func (s State) abandoned(c resolution.Component) *Plan {
	for i := range s.Plans {
		p := &s.Plans[i]
		if !shares(p.packages(), c.Packages) || p.State.Phase == installplan.Superseded || s.waitsFor(*p) {
			continue
		}
		reason := p.State.Failure.Reason
		if p.State.Phase == installplan.Failed && p.State.Begun &&
			(reason == events.RenderingGone || reason == events.RenderingDiffers) {
			return p
		}
		return nil
	}
	return nil
}

// waitsFor says whether a plan is one that is to take over, and has not begun.
func (s State) waitsFor(p Plan) bool {
	return p.State.Proposed.TakesOver != "" && p.State.Live() && !p.State.Begun
}

// takeOver has another plan bring what an abandoned one was to bring: what that one has left in the cluster is neither
// whole nor gone, and nothing else can be planned upon it. It rests on the resolution of the abandoned one.
func (s State) takeOver(c resolution.Component, p *Plan) (Verdict, error) {
	again := asComponent(*p, unplanned(p.State.Proposed.Bundles), []Verdict{{Component: c}})
	slices.Sort(again.Packages)
	again.Packages = slices.Compact(again.Packages)
	for _, b := range p.State.Proposed.Bundles {
		for _, name := range b.Subscriptions {
			again.Outcomes = append(again.Outcomes, resolution.Outcome{Subscription: name, CSV: b.CSV, Planned: true})
		}
	}
	v, err := s.withTerms(Verdict{Kind: Proposed, Component: again, Again: p})
	if err != nil {
		return v, err
	}
	for i := range s.Plans {
		q := &s.Plans[i]
		if q.State.Proposed.TakesOver == p.ID && s.waitsFor(*q) && q.Effect == v.Effect {
			v.Kind, v.Plan, v.Again = Kept, q, nil
			return v, nil
		}
	}
	return v, nil
}

// input is the resolution that the verdict rests on; that of a plan that takes over is recorded already.
func (v Verdict) input() (d digest.Digest, semantics string, err error) {
	if p := v.restsOn(); p != nil {
		return digest.Digest(p.Input), p.Semantics, nil
	}
	d, err = v.Component.Input.Digest()
	return d, v.Component.Input.Semantics, err
}

// restsOn is the plan whose resolution the verdict takes as its own; nil where it has one.
func (v Verdict) restsOn() *events.InstallPlanProposed {
	switch {
	case v.Again != nil:
		return &v.Again.State.Proposed
	case v.Component.Input.Semantics != "":
		return nil
	case v.Plan != nil:
		return &v.Plan.State.Proposed
	case v.Stale != nil:
		return &v.Stale.State.Proposed
	}
	return nil
}

// takesOver is the id of the plan that a proposal takes over from, "" for none.
func (v Verdict) takesOver() string {
	switch {
	case v.Again != nil:
		return v.Again.ID
	case v.Stale != nil:
		return v.Stale.State.Proposed.TakesOver
	}
	return ""
}
