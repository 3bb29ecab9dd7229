package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// phaseSucceeded is the phase in which an operator may be upgraded (R-GRA-6).
const phaseSucceeded = "Succeeded"

// reasonNotUpgradeable is the reason of a plan's block by the operator itself (R-COND-3).
const reasonNotUpgradeable = "OperatorConditionNotUpgradeable"

// classStopped is the class of a plan's block by the stop switch.
const classStopped = "stopped"

// waits says what the step waits for that the namespace is about to take.
func (s *subject) waits() []Reason {
	v := s.verdict
	if v == nil {
		return []Reason{{Code: Planned, Text: "it is what is planned"}}
	}
	switch v.Kind {
	case decide.Waiting:
		return []Reason{{
			Code: CatalogLoading,
			Text: "a catalog that the namespace sees is being loaded for the first time",
		}}
	case decide.Held:
		if held := s.underWay(); len(held) > 0 {
			return held
		}
		return []Reason{{Code: UnderWay, Text: "something of its operators is under way"}}
	case decide.Failed, decide.Fetching, decide.Blocked:
		return because(v.Failure, s.planned.CSV)
	case decide.Kept:
		return []Reason{s.plan(*v.Plan)}
	case decide.Ended:
		return []Reason{ended(*v.Plan)}
	default:
		return []Reason{{Code: Planned, Text: "an install plan for it is being made"}}
	}
}

// underWay names plans that are begun and of operators of the component that are not Succeeded.
func (s *subject) underWay() []Reason {
	if s.verdict == nil || s.verdict.Kind != decide.Held {
		return nil
	}
	var out []Reason
	for _, p := range s.f.State.Plans {
		if p.State.Live() && p.State.Begun && slices.ContainsFunc(p.State.Proposed.Bundles, s.ours) {
			out = append(out, Reason{
				Code: UnderWay, Plan: p.State.Proposed.Name,
				Text: fmt.Sprintf("install plan %s is being carried out%s", p.State.Proposed.Name, blocked(p)),
			})
		}
	}
	for _, i := range s.f.State.Installed {
		if i.Phase != phaseSucceeded && slices.Contains(s.component.Packages, i.Package) {
			out = append(out, Reason{
				Code: NotSucceeded, Bundle: i.Name,
				Text: fmt.Sprintf("operator %s is %s; the next step comes when it is Succeeded", i.Name,
					shown(i.Phase)),
			})
		}
	}
	return out
}

func shown(phase string) string {
	if phase == "" {
		return "not reported yet"
	}
	return phase
}

func blocked(p decide.Plan) string {
	if p.State.Blocked.Reason == "" {
		return ""
	}
	return ", and waits: " + p.State.Blocked.Reason
}

// plan says what a live plan waits for.
func (s *subject) plan(p decide.Plan) Reason {
	name, now := p.State.Proposed.Name, s.f.Now
	switch {
	case p.State.PhaseAt(now) == installplan.RequiresApproval:
		return approval(p.State, now)
	case p.State.Blocked.Reason == reasonNotUpgradeable:
		return Reason{Code: Condition, Plan: name, Text: fmt.Sprintf(
			"install plan %s waits: what is installed does not let itself be upgraded (its OperatorCondition says "+
				"Upgradeable=False)", name)}
	case p.State.Blocked.Class == classStopped:
		return Reason{Code: Stopped, Plan: name, Text: fmt.Sprintf("the stop switch holds install plan %s up", name)}
	case !p.State.Executable(now):
		return window(p.State, now)
	default:
		return Reason{Code: UnderWay, Plan: name, Text: fmt.Sprintf("install plan %s is on its way to the cluster%s",
			name, blocked(p))}
	}
}

// approval says who is missing and why a person is wanted.
func approval(p installplan.State, now time.Time) Reason {
	r := Reason{Code: Approval, Plan: p.Proposed.Name}
	people := "a person"
	if n := p.Missing(now); n > 1 || len(p.Given(now)) > 0 {
		people = fmt.Sprintf("%d more of %d people", n, p.Approvers())
	}
	r.Text = fmt.Sprintf("install plan %s waits until %s approved it", p.Proposed.Name, people)
	if len(p.Proposed.ManualReasons) > 0 || p.Approvers() > 1 {
		r.Policy = strings.Join(p.Proposed.Policies, ",")
		r.Text += fmt.Sprintf(", as approval policy %s wants", strings.Join(p.Proposed.Policies, ", "))
	}
	if len(p.Proposed.ManualReasons) > 0 {
		r.Text += " for " + strings.Join(p.Proposed.ManualReasons, ", ")
	}
	return r
}

// window says when the maintenance windows open.
func window(p installplan.State, now time.Time) Reason {
	var policies []string
	for _, g := range p.Proposed.Windows {
		policies = append(policies, g.Policy)
	}
	r := Reason{Code: Window, Plan: p.Proposed.Name, Policy: strings.Join(policies, ",")}
	opens, ok := p.NextOpening(now)
	if !ok {
		r.Text = fmt.Sprintf("install plan %s waits for maintenance windows (%s) that never open together",
			p.Proposed.Name, strings.Join(policies, ", "))
		return r
	}
	opens = opens.UTC()
	r.Opens = &opens
	r.Text = fmt.Sprintf("install plan %s waits for the maintenance window of approval policy %s, which opens at %s",
		p.Proposed.Name, strings.Join(policies, ", "), opens.Format(time.RFC3339))
	return r
}

// ended names a plan that did the same and is not tried again until something changes (R-IP-43).
func ended(p decide.Plan) Reason {
	name := p.State.Proposed.Name
	if p.State.Phase == installplan.Rejected {
		return Reason{Code: PlanRejected, Plan: name, Text: fmt.Sprintf(
			"install plan %s, which would have brought it, was rejected", name)}
	}
	return Reason{Code: PlanFailed, Plan: name, Text: fmt.Sprintf(
		"install plan %s, which would have brought it, failed (%s); it is tried again when something changes", name,
		p.State.Failure.Reason)}
}
