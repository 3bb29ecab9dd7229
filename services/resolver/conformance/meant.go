package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Reason is why Chandler means to differ from OLM.
type Reason string

// The reasons; docs/olm-differences.md has each with its requirement.
const (
	ReasonIndependent Reason = "independent"
	ReasonAway        Reason = "away"
	ReasonIdentity    Reason = "identity"
	ReasonRandom      Reason = "random"
	ReasonThere       Reason = "there"
	ReasonKept        Reason = "kept"
	ReasonClaim       Reason = "claim"
)

// Text says a reason in a sentence.
func (r Reason) Text() string {
	return map[Reason]string{
		ReasonIndependent: "what is impossible is explained and left out, and the other operators of the namespace " +
			"go on",
		ReasonAway:     "a catalog that is away blocks only the subscriptions that name it",
		ReasonIdentity: "bundles are told apart by package, and names may hold a slash, where OLM's identifiers fail",
		ReasonRandom:   "OLM hardly made the same plan twice; the one that came is valid, and always the same",
		ReasonThere:    "a CSV that is there is not installed again, nor upgraded to itself",
		ReasonKept:     "a CSV that another subscription follows is not taken away by a bundle that replaces it",
		ReasonClaim: "a bundle counts for its own package only; a catalog that says otherwise is refused when it " +
			"is loaded",
	}[r]
}

// meant is the verdict on something that differs for a reason, if it is right by itself.
func (r Run) meant(reason Reason, wrong ...string) Judgement {
	if wrong = append(wrong, Faults(r)...); len(wrong) > 0 {
		return different(append([]string{"meant to differ, but wrong: " + reason.Text()}, wrong...)...)
	}
	return Judgement{Verdict: Meant, Reason: reason}
}

// Error classes that name limits of OLM; the others are those of resolve.
const (
	classAmbiguous  = "ambiguous-bundle"
	classIdentifier = "bad-identifier"
)

// beside says whether OLM's error is one that may be none here, and so may hide others.
func (e *ExpectedError) beside() bool {
	return e.Class == classAmbiguous || e.Class == classIdentifier ||
		e.Class == string(resolution.ClassCatalogUnavailable)
}

// judgeResolved judges where OLM failed and nothing of that is impossible here.
func judgeResolved(r Run) Judgement {
	e := r.Case.Expect.Error
	switch e.Class {
	case classAmbiguous, classIdentifier:
		return r.meant(ReasonIdentity)
	case string(resolution.ClassCatalogUnavailable):
		return judgeAway(r)
	}
	return different(append([]string{fmt.Sprintf("expected: error %s: %s", e.Class, e.Message)},
		planDifference(nil, r.Plan())...)...)
}

// judgeAway asserts that a catalog that is away makes no difference to subscriptions that do not name it.
func judgeAway(r Run) Judgement {
	v := r.Input.View
	here := slices.DeleteFunc(slices.Clone(v.Catalogs()), func(c resolution.Catalog) bool { return !c.Ready })
	if len(here) == len(v.Catalogs()) {
		return different("expected: error " + r.Case.Expect.Error.Class + ": " + r.Case.Expect.Error.Message)
	}
	without := r
	without.Input.View = narrowed{v, here}
	without.Result = resolve.Resolve(without.Input)
	return r.meant(ReasonAway, planDifference(without.Plan(), r.Plan())...)
}

// narrowed is a view of some of the catalogs of another one.
type narrowed struct {
	resolution.View

	catalogs []resolution.Catalog
}

func (n narrowed) Catalogs() []resolution.Catalog { return n.catalogs }

// judgeIsolated asserts that what goes on beside something impossible is what would be planned without it. The CSV
// of an impossible subscription stays, as one that nobody follows.
func judgeIsolated(r Run) Judgement {
	blamed := map[string]bool{}
	for _, f := range r.Failures() {
		for _, s := range f.Subscriptions {
			blamed[s] = true
		}
	}
	without := r
	without.Input.Subscriptions = slices.DeleteFunc(slices.Clone(r.Input.Subscriptions),
		func(s resolution.Subscription) bool { return blamed[s.Name] })
	without.Input.Installed = slices.Clone(r.Input.Installed)
	for i, csv := range without.Input.Installed {
		if blamed[csv.Subscription] {
			without.Input.Installed[i].Subscription = ""
		}
	}
	without.Result = resolve.Resolve(without.Input)
	return r.meant(ReasonIndependent, planDifference(r.kept(without.Plan()), r.Plan())...)
}

// kept is a plan in which no bundle takes away a CSV that another subscription than its own follows.
func (r Run) kept(plan []Install) []Install {
	own := map[string][]string{}
	for _, i := range r.Plan() {
		i.Upgrades = ""
		own[i.key()] = i.Subscriptions
	}
	out := slices.Clone(plan)
	for k, i := range out {
		i.Upgrades = ""
		at := slices.IndexFunc(r.Input.Installed,
			func(csv resolution.Installed) bool { return csv.CSV == out[k].Upgrades })
		if at < 0 {
			continue
		}
		if follower := r.Input.Installed[at].Subscription; follower != "" && !slices.Contains(own[i.key()], follower) {
			out[k] = i
		}
	}
	return out
}

// open says whether OLM may do yet another thing: a plan that it was seen to make once only is one of many.
func (e *Expectation) open() bool {
	return !e.Deterministic && slices.ContainsFunc(e.Alternatives, func(a Alternative) bool { return a.Count == 1 })
}

// claims says whether everything that is impossible asks for a package that a bundle of another package claims to be.
func (r Run) claims(failures []resolution.Explanation) bool {
	claimed := map[string]bool{}
	for _, k := range r.Case.Catalogs {
		for _, raw := range k.Inline {
			var d document
			if json.Unmarshal(raw, &d) != nil || d.Schema != catalog.SchemaBundle {
				continue
			}
			for _, p := range d.Properties {
				var v catalog.PackageProperty
				if p.Type == catalog.TypePackage && json.Unmarshal(p.Value, &v) == nil && v.PackageName != d.Package {
					claimed[v.PackageName] = true
				}
			}
		}
	}
	return !slices.ContainsFunc(failures, func(f resolution.Explanation) bool {
		return !slices.ContainsFunc(f.Statements, func(s resolution.Statement) bool {
			return s.Kind == resolution.UnmetRequirement &&
				slices.ContainsFunc(strings.Fields(s.Requirement), func(word string) bool { return claimed[word] })
		})
	})
}
