package offer

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// Matches says whether one bundle meets the requirement by itself. It is safe for concurrent use.
func (r *Requirement) Matches(o *Operator) bool {
	matches, _ := r.Compare(o)
	return matches
}

// Compare says whether one bundle meets the requirement by itself, and what it costs to say so: one for each part
// that is asked, and for a rule beside that the cost of its evaluation. The cost is the same each time, also where the
// answer is remembered. It is safe for concurrent use.
func (r *Requirement) Compare(o *Operator) (matches bool, cost int) {
	cost = 1
	switch r.op {
	case needAPI:
		matches = slices.Contains(o.apis, r.api)
	case needPackage:
		matches = r.matchesPackage(o)
	case needLabel:
		matches = slices.Contains(o.labels, r.label)
	case needAll:
		return r.untilPart(o, false)
	case needAny:
		return r.untilPart(o, true)
	case needNot:
		matches, cost = r.untilPart(o, true)
		matches = !matches
	case needRule:
		matches, cost = o.judge(r.rule)
		cost++
	}
	return matches, cost
}

// untilPart asks the parts in order until one gives the answer that is searched for; where none does, it is the other.
func (r *Requirement) untilPart(o *Operator, want bool) (matches bool, cost int) {
	cost = 1
	for _, p := range r.parts {
		matches, c := p.Compare(o)
		if cost += c; matches == want {
			return want, cost
		}
	}
	return !want, cost
}

// matchesPackage asks for the name and for a version in the range; each may be met by another property
// (RESOLVER-NOTES 5.5).
func (r *Requirement) matchesPackage(o *Operator) bool {
	named := false
	for i := range o.packages {
		named = named || o.packages[i].name == r.pkg
	}
	if !named {
		return false
	}
	for i := range o.packages {
		if o.packages[i].valid && r.inRange(o.packages[i].version) {
			return true
		}
	}
	return false
}

// Anchors are the APIs and packages of which a matching bundle must have one; ok is false where any
// bundle may match, so that all have to be read.
func (r *Requirement) Anchors() (apis []catalog.GVK, packages []string, ok bool) {
	switch r.op {
	case needAPI:
		return []catalog.GVK{r.api.Value()}, nil, true
	case needPackage:
		return nil, []string{r.pkg}, true
	case needAll:
		for _, p := range r.parts {
			if a, n, ok := p.Anchors(); ok {
				return a, n, true
			}
		}
	case needAny:
		for _, p := range r.parts {
			a, n, ok := p.Anchors()
			if !ok {
				return nil, nil, false
			}
			apis, packages = append(apis, a...), append(packages, n...)
		}
		return apis, packages, true
	case needRule:
		return ruleAnchors(r.rule)
	case needLabel, needNot:
	}
	return nil, nil, false
}

// ruleAnchors are what the text of a rule names: most rules name a package or an API. One that does not compile is
// met by nobody.
func ruleAnchors(r *rule) (apis []catalog.GVK, packages []string, ok bool) {
	rule, err := r.compiled()
	if err != nil {
		return nil, nil, true
	}
	for _, p := range rule.Implied() {
		switch p.Type {
		case catalog.TypePackage:
			if name, ok := p.Fields["packageName"]; ok {
				return nil, []string{name}, true
			}
		case catalog.TypeGVK:
			group, okGroup := p.Fields["group"]
			version, okVersion := p.Fields["version"]
			kind, okKind := p.Fields["kind"]
			if okGroup && okVersion && okKind {
				return []catalog.GVK{{Group: group, Version: version, Kind: kind}}, nil, true
			}
		}
	}
	return nil, nil, false
}
