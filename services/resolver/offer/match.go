package offer

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/cel"
)

// Matches says whether one bundle meets the requirement by itself. It is safe for concurrent use.
func (r *Requirement) Matches(o *Operator) bool {
	switch r.op {
	case needAPI:
		return slices.Contains(o.apis, r.api)
	case needPackage:
		return r.matchesPackage(o)
	case needLabel:
		return slices.Contains(o.labels, r.label)
	case needAll:
		for _, p := range r.parts {
			if !p.Matches(o) {
				return false
			}
		}
		return true
	case needAny:
		return r.somePart(o)
	case needNot:
		return !r.somePart(o)
	case needRule:
		return o.holds(r.rule)
	}
	return false
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

func (r *Requirement) somePart(o *Operator) bool {
	for _, p := range r.parts {
		if p.Matches(o) {
			return true
		}
	}
	return false
}

// Anchors are the APIs and packages of which a matching bundle must have one; ok is false where any
// bundle may match, so that all have to be looked at.
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

// ruleAnchors are what the text of a rule tells: most rules name a package or an API.
func ruleAnchors(rule *cel.Rule) (apis []catalog.GVK, packages []string, ok bool) {
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
