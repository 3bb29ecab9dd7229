package decide

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Difference is one way in which a decision that was made again is not what was recorded.
type Difference struct {
	What     string `json:"what"`
	Recorded string `json:"recorded,omitempty"`
	Again    string `json:"again,omitempty"`
}

// none is written where one side has nothing.
const none = "nothing"

// CompareOutcome compares what was recorded of a subscription with its component made again from the recorded
// input. explained is the recorded explanation; nil where it is not kept or there is none.
//
// That a bundle could not be rendered (ClassNotInstallable) was found after the resolution: it is the same where the
// component still plans that bundle.
func CompareOutcome(o Outcome, explained *resolution.Explanation, sub string, c resolution.Component) (
	[]Difference, error,
) {
	d := differences{}
	input, err := c.Input.Digest()
	if err != nil {
		return nil, err
	}
	d.add("input", o.Input, string(input))
	if o.Kind == OutcomeFailed {
		again, err := explanations(c)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(again, o.Explanation) && !stillPlans(c, explained) {
			d.add("explanation", o.Explanation, cmp.Or(strings.Join(again, ", "), none))
		}
		return d.list, nil
	}
	for _, got := range c.Outcomes {
		if got.Subscription != sub {
			continue
		}
		kind := OutcomeAtLatestKnown
		if got.Planned {
			kind = OutcomePlanned
		}
		d.add("outcome", o.Kind, kind)
		d.add("csv", o.CSV, got.CSV)
		return d.list, nil
	}
	d.add("outcome", o.Kind, OutcomeFailed)
	return d.list, nil
}

type differences struct{ list []Difference }

func (d *differences) add(what, recorded, again string) {
	if recorded != again {
		d.list = append(d.list, Difference{What: what, Recorded: recorded, Again: again})
	}
}

// explanations are the digests of every explanation that may have been recorded for a component.
func explanations(c resolution.Component) ([]string, error) {
	var out []string
	for _, e := range []*resolution.Explanation{c.Failure, unfetched(c), c.Blocked, cordoned(c)} {
		if e == nil {
			continue
		}
		d, err := e.Digest()
		if err != nil {
			return nil, err
		}
		out = append(out, string(d))
	}
	return out, nil
}

func stillPlans(c resolution.Component, e *resolution.Explanation) bool {
	if e == nil || e.Class != resolution.ClassNotInstallable {
		return false
	}
	return !slices.ContainsFunc(e.Statements, func(s resolution.Statement) bool {
		return !slices.ContainsFunc(c.Bundles, func(b resolution.Planned) bool { return b.CSV == s.Bundle })
	})
}

// ComparePlan compares a recorded plan with its component made again from the recorded input. Steps are those of the
// document: they follow from the bundles. doc is nil where the document is not kept; bundles are compared alone then.
// Catalog revisions are no part of the input, so that a catalog that moved elsewhere is the same input; they
// are taken from the record.
func ComparePlan(e events.InstallPlanProposed, doc *installplan.Document, c resolution.Component) (
	[]Difference, error,
) {
	d := differences{}
	input, err := c.Input.Digest()
	if err != nil {
		return nil, err
	}
	d.add("input", e.Input, string(input))
	d.add("component", e.Component, c.Name)
	again := planned(c.Bundles)
	for i := range again {
		for _, b := range e.Bundles {
			if b.CSV == again[i].CSV && b.Catalog == again[i].Catalog {
				again[i].Revision = b.Revision
			}
		}
	}
	d.add("bundles", names(e.Bundles), names(again))
	if doc == nil || len(d.list) > 0 {
		return d.list, nil
	}
	made := *doc
	made.Namespace, made.Component, made.Input, made.Bundles = c.Input.Scope.Namespace, c.Name, input, again
	digestAgain, err := made.Digest()
	if err != nil {
		return nil, err
	}
	d.add("digest", e.Digest, string(digestAgain))
	return d.list, nil
}

func names(bundles []events.PlannedBundle) string {
	out := make([]string, 0, len(bundles))
	for _, b := range bundles {
		out = append(out, b.Catalog+"/"+b.Channel+"/"+b.CSV)
	}
	return cmp.Or(strings.Join(out, ", "), none)
}
