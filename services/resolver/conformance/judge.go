package conformance

import (
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Verdict is how what came compares with what OLM did.
type Verdict string

// The verdicts.
const (
	Equal     Verdict = "equal"
	OneOf     Verdict = "alternative" // another one of the plans that OLM was seen to make
	Meant     Verdict = "meant"       // to differ, for a Reason
	Different Verdict = "different"
)

// Judgement is a verdict with what it rests on.
type Judgement struct {
	Verdict Verdict `json:"verdict"`
	Reason  Reason  `json:"reason,omitempty"` // of Meant
	// Differences say what was expected and what came, a sentence each; none where nothing is wrong.
	Differences []string `json:"differences,omitempty"`
}

func different(lines ...string) Judgement { return Judgement{Verdict: Different, Differences: lines} }

// Judge compares what came of a case with what OLM did.
//
//	OLM planned, Chandler plans           the plans are the same, or OLM made this one, too
//	OLM planned, something is impossible  different; an error that OLM gave sometimes counts
//	OLM failed, something is impossible   the same class of error, explained as well
//	OLM failed, nothing is impossible     meant to differ by a rule, or different
//
// Whatever differs on purpose has to be right by itself: see Faults.
func Judge(r Run) Judgement {
	failures := r.Failures()
	e := r.Case.Expect
	switch {
	case len(failures) == 0 && (e.Result == ResultResolved || len(e.Install) > 0):
		return judgePlan(r)
	case len(failures) == 0:
		return judgeResolved(r)
	case e.Error == nil && r.claims(failures):
		return r.meant(ReasonClaim)
	case e.Error == nil:
		return different(unexpected(e, failures)...)
	}
	if lacks := explained(e.Error, failures); len(lacks) > 0 {
		if e.Error.beside() {
			return judgeResolved(r)
		}
		return different(lacks...)
	}
	if len(r.Plan()) > 0 {
		return judgeIsolated(r)
	}
	return Judgement{Verdict: Equal}
}

func judgePlan(r Run) Judgement {
	e, plan := r.Case.Expect, r.Plan()
	if same(plan, e.Install) {
		return Judgement{Verdict: Equal}
	}
	for _, a := range e.Alternatives {
		if same(plan, a.Install) {
			return Judgement{Verdict: OneOf}
		}
	}
	switch {
	case e.open():
		return r.meant(ReasonRandom)
	case same(plan, slices.DeleteFunc(slices.Clone(e.Install), r.there)):
		return r.meant(ReasonThere)
	case same(plan, r.kept(e.Install)):
		return r.meant(ReasonKept)
	}
	return different(planDifference(e.Install, plan)...)
}

// there says whether a bundle is installed already: its CSV has the name.
func (r Run) there(i Install) bool {
	return slices.ContainsFunc(r.Input.Installed, func(csv resolution.Installed) bool { return csv.CSV == i.Name })
}

// byKey are the bundles of a plan without those that are there already.
func byKey(plan []Install) map[string]Install {
	out := map[string]Install{}
	for _, i := range plan {
		if !i.AlreadyCurrent {
			out[i.key()] = i
		}
	}
	return out
}

func same(a, b []Install) bool { return len(planDifference(a, b)) == 0 }

func planDifference(want, came []Install) []string {
	var out []string
	left, right := byKey(want), byKey(came)
	for _, k := range slices.Sorted(maps.Keys(left)) {
		if _, ok := right[k]; !ok {
			out = append(out, "expected, but not planned: "+left[k].String())
		}
	}
	for _, k := range slices.Sorted(maps.Keys(right)) {
		if _, ok := left[k]; !ok {
			out = append(out, "planned, but not expected: "+right[k].String())
		}
	}
	return out
}

// unexpected names failures where OLM made a plan.
func unexpected(e *Expectation, failures []resolution.Explanation) []string {
	want := "nothing to do"
	if len(byKey(e.Install)) > 0 {
		var list []string
		for _, i := range e.Install {
			list = append(list, i.String())
		}
		want = strings.Join(list, ", ")
	}
	return append([]string{"expected: " + want}, told(failures)...)
}
