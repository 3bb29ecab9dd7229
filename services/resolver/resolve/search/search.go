package search

import (
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// State is what is asked of a root. A root that cannot have it fails, and goes one state down.
type State uint8

const (
	// Wanted means that one of the candidates of the subscription is to be chosen.
	Wanted State = iota
	// Staying means that the installed CSV stays, with everything that it requires.
	Staying
	// Held means that it stays although it may not: it clashes with another one, is deprecated, or lacks something.
	// What is met of its requirements today stays so.
	Held
	// Fixed means that it stays, and nothing is asked for it.
	Fixed
	// Absent means that nothing is installed, and the subscription gets nothing.
	Absent
)

// Failure is roots that cannot have what is asked of them, and why.
type Failure struct {
	Class resolution.Class
	Roots []int // indexes in the partition, in order
	// States are those of all roots of the partition before this failure.
	States []State
	// Statements are what was found wrong or missing before the search.
	Statements []resolution.Statement
	// Reasons contradict each other. Without any one of them the others do not, unless Coarse is set.
	Reasons []Reason
	// Coarse says that some of the reasons may not be needed: to find out took more than a bound allows.
	Coarse bool
	// Kept are requirements that only the roots meet today. They belong to operators that stay although they may not,
	// and that must not lose what they have (R-RES-2).
	Kept []Reason
	// Undecided is set where the budget ended before an answer.
	Undecided *Undecided
}

// Undecided says for which roots no answer was found beside which others.
type Undecided struct {
	Limit         int // of conflicts
	Roots, Beside []int
}

// Solution is what a partition comes to.
type Solution struct {
	// Choices are those that were made, in order; of a root only where its state is Wanted.
	Choices []Choice
	// Taken are the chosen nodes, in the order of choosing.
	Taken []graph.NodeID
	// TakenOver are installed CSVs that no subscription follows, and what replaces them.
	TakenOver map[graph.NodeID]graph.NodeID
	// States are those of the roots in the end.
	States   []State
	Failures []Failure

	chooser *chooser
}

// Has says whether a node is chosen.
func (s *Solution) Has(n graph.NodeID) bool { return s.chooser.has(n) }

// problem is a partition during its search.
type problem struct {
	*graph.Partition

	states []State    // by root
	apart  []takeover // that are forbidden, since they would take something from somebody
	failed []Failure
}

// Solve finds what a partition can have, with at most limit conflicts in each search. Roots that reach a fault, or
// have no candidate, fail by themselves. Where the rest contradicts itself, a minimal contradiction is found, its
// subscriptions are left out, and the others are solved again. Likewise where a solution takes from somebody what it
// requires (keepApart). It ends: in every round some root gets less or some bundle is forbidden, and where nothing is
// asked there is always an answer.
func Solve(part *graph.Partition, limit int) Solution {
	p := newProblem(part)
	p.failFaulty()
	for i, r := range p.Roots {
		if p.states[i] == Wanted && len(r.Candidates) == 0 {
			p.fail(Failure{Class: resolution.ClassUnsatisfiable, Roots: []int{i}, Statements: r.Missing})
			p.demote(i)
		}
	}
	for {
		before := p.given()
		h, status := p.choose(limit)
		switch status {
		case sat.Sat:
			if !p.keepApart(h) {
				return Solution{
					Choices: h.queue, Taken: h.taken, TakenOver: h.takeovers(), States: p.states, Failures: p.failed,
					chooser: h,
				}
			}
		case sat.Unsat:
			p.explainContradictions(limit)
		default:
			p.giveUp(limit)
		}
		if p.given() == before {
			panic("search: a round changed nothing") // the same would come again for ever
		}
	}
}

func newProblem(part *graph.Partition) *problem {
	p := &problem{Partition: part, states: make([]State, len(part.Roots))}
	for i, r := range part.Roots {
		if r.Sub == nil {
			p.states[i] = Staying
		}
	}
	return p
}

// fail adds a failure, with the states before it.
func (p *problem) fail(f Failure) {
	f.States = slices.Clone(p.states)
	p.failed = append(p.failed, f)
}

// demote lowers what is asked of a root that cannot have it.
func (p *problem) demote(root int) {
	switch {
	case p.states[root] == Wanted && p.Roots[root].Installed == nil:
		p.states[root] = Absent
	case p.states[root] < Fixed:
		p.states[root]++
	}
}

// given counts what was given up so far.
func (p *problem) given() int {
	n := len(p.apart)
	for _, s := range p.states {
		n += int(s)
	}
	return n
}

// in are the roots in a state.
func (p *problem) in(s State) []int {
	var out []int
	for i := range p.states {
		if p.states[i] == s {
			out = append(out, i)
		}
	}
	return out
}

// stays says whether the installed CSV of a root is not to be moved.
func (p *problem) stays(root int) bool {
	s := p.states[root]
	return s == Staying || s == Held || s == Fixed
}

// decider is the root that decides about an installed CSV, -1 for a bundle: of several, the one that is furthest
// down. A CSV that stays whatever speaks against it does so for all who follow it.
func (p *problem) decider(n graph.NodeID) int {
	out := -1
	for _, r := range p.RootsOf[n] {
		if out < 0 || p.states[r] > p.states[out] {
			out = r
		}
	}
	return out
}

// stateOf is the state of the root that decides about a node; Wanted for a bundle.
func (p *problem) stateOf(n graph.NodeID) State {
	if !p.IsInstalled(n) {
		return Wanted
	}
	if r := p.decider(n); r >= 0 {
		return p.states[r]
	}
	return Wanted
}

// rigid says whether a CSV in this state is there whatever speaks against it.
func (s State) rigid() bool { return s == Held || s == Fixed }

// counts says whether a requirement of a node in this state has to be met. Of a rigid CSV that is only one which
// something installed meets today.
func (p *problem) counts(s State, requirement int32) bool {
	if !s.rigid() {
		return true
	}
	cands := p.Requirements[requirement].Candidates // what is installed comes first
	return s == Held && len(cands) > 0 && p.IsInstalled(cands[0])
}

// literal is the variable of a node in the partition's rules; these variables are the first ones.
func (p *problem) literal(n graph.NodeID) sat.Lit { return sat.Var(p.Place[n] + 1).Lit() }

// failFaulty fails the roots that reach a fault.
func (p *problem) failFaulty() {
	if !p.HasFaults() && !slices.ContainsFunc(p.Roots,
		func(r *graph.Root) bool { return len(r.Faults)+len(r.InstalledFaults) > 0 }) {
		return
	}
	for i, r := range p.Roots {
		own := append(slices.Clone(r.InstalledFaults), p.Faults(r.Node)...)
		faults := append(slices.Clone(r.Faults), p.Faults(r.Candidates...)...)
		if faults = append(faults, own...); len(faults) == 0 {
			continue
		}
		f := Failure{Class: faults[0].Class, Roots: []int{i}}
		for _, x := range faults {
			f.Statements = append(f.Statements, x.Statement)
		}
		p.fail(f)
		p.demote(i)
		if len(own) > 0 && p.states[i] == Staying {
			p.demote(i)
		}
	}
}

// giveUp fails the subscriptions of a partition that make it too hard: one after the other is added to those that can
// be had together, and those for which no answer is found within their share of the budget are left out.
// Where all could be added, and the preferred answer is too hard nevertheless, all fail. Where no subscription is
// left, what stays is only held.
func (p *problem) giveUp(limit int) {
	all := len(p.in(Wanted))
	undecided, beside := p.addOneByOne(limit)
	if len(undecided) == 0 && len(beside) < all {
		return // somebody has failed, which makes it another question
	}
	for s := Wanted; s < Fixed && len(undecided) == 0; s++ {
		undecided, beside = p.in(s), nil
	}
	p.fail(Failure{
		Class: resolution.ClassTooHard, Roots: undecided,
		Undecided: &Undecided{Limit: limit, Roots: undecided, Beside: beside},
	})
	for _, r := range undecided {
		p.demote(r)
	}
}

// addOneByOne returns the subscriptions for which no answer is found beside the others. Those that are found to be
// impossible fail for that.
func (p *problem) addOneByOne(limit int) (undecided, beside []int) {
	f := newFinder(p, limit)
	for i, s := range p.states {
		f.left[int32(i)] = s == Wanted
	}
	for i := range p.Roots {
		if p.states[i] != Wanted || f.stale {
			continue
		}
		f.left[int32(i)] = false
		f.rules.s.Budget(limit / len(p.Roots))
		switch f.rules.s.Solve(f.assumed()...) {
		case sat.Sat:
			beside = append(beside, i)
		case sat.Unsat:
			f.failContradiction(f.shrink(slices.Clone(f.rules.s.Core())))
			beside = slices.DeleteFunc(beside, func(o int) bool { return p.states[o] != Wanted })
		default:
			f.left[int32(i)] = true
			undecided = append(undecided, i)
		}
	}
	return undecided, beside
}

// explainContradictions finds contradictions among the reasons of a partition, each minimal, until what is left of
// the roots can be solved. Where a CSV is installed for a root that fails, the reasons of others change with it, and
// the partition has to be solved afresh.
func (p *problem) explainContradictions(limit int) {
	f := newFinder(p, limit)
	before := len(p.failed)
	for !f.stale {
		switch f.rules.s.Solve(f.assumed()...) {
		case sat.Sat:
			return
		case sat.TooHard:
			if len(p.failed) == before { // else somebody has failed, which makes it another question
				p.giveUp(limit)
			}
			return
		case sat.Unsat:
		}
		f.failContradiction(f.shrink(slices.Clone(f.rules.s.Core())))
	}
}
