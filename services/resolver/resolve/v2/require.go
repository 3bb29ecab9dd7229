package v2

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// Legacy property types that the resolver still honours (§1.4).
const (
	typeLabel         = "olm.label"
	typeLabelRequired = "olm.label.required"
)

// maxConstraintBytes bounds one olm.constraint, against exhaustion by nesting (R-RES-29). The documents
// say 64 KB, the sources of OLM 128 KiB; real ones have some hundred bytes.
const maxConstraintBytes = 64 << 10

// requirement asks for one bundle that matches (R-RES-15, RESOLVER-NOTES 5.2). Exactly one of the fields
// after text says what is asked; parts belong to all, any and not.
type requirement struct {
	source  string // property type
	raw     json.RawMessage
	text    string // "package brinestore in range >=1.0.0", for sentences
	message string // the author's failureMessage (R-RES-25)

	op      requireOp
	api     catalog.GVK
	pkg     string
	inRange semver.Range
	label   string
	parts   []requirement
}

type requireOp int

const (
	needAPI requireOp = iota
	needPackage
	needLabel
	needAll
	needAny
	needNot
	needCEL // known and explained, not evaluated in this version: no bundle meets it
)

type labelValue struct {
	Label string `json:"label"`
}

// parseRequirement reads a property; ok is false for types that ask for nothing (R-RES-21).
func parseRequirement(p catalog.Property) (requirement, bool, error) {
	var r requirement
	var err error
	switch p.Type {
	case catalog.TypeGVKRequired:
		var v catalog.GVK
		if err = json.Unmarshal(p.Value, &v); err == nil {
			r = requireAPI(v)
		}
	case catalog.TypePackageRequired:
		var v catalog.PackageRequired
		if err = json.Unmarshal(p.Value, &v); err == nil {
			r, err = requirePackage(v.PackageName, v.VersionRange)
		}
	case typeLabelRequired:
		var v labelValue
		if err = json.Unmarshal(p.Value, &v); err == nil {
			r = requirement{op: needLabel, label: v.Label, text: fmt.Sprintf("with label %s", v.Label)}
		}
	case catalog.TypeConstraint:
		r, err = parseConstraint(p.Value)
	default:
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("%s: %w", p.Type, err)
	}
	r.source, r.raw = p.Type, p.Value
	return r, true, nil
}

func requireAPI(g catalog.GVK) requirement {
	return requirement{op: needAPI, api: g, text: "providing " + g.String()}
}

func requirePackage(name, versions string) (requirement, error) {
	in, err := catalog.ParseRange(versions)
	if err != nil {
		return requirement{}, err
	}
	return requirement{op: needPackage, pkg: name, inRange: in, text: fmt.Sprintf("of package %s in range %s", name, versions)}, nil
}

// constraint is the value of olm.constraint (R-RES §3.4).
type constraint struct {
	FailureMessage string       `json:"failureMessage"`
	GVK            *catalog.GVK `json:"gvk"`
	Package        *packageNeed `json:"package"`
	All            *compound    `json:"all"`
	Any            *compound    `json:"any"`
	Not            *compound    `json:"not"`
	CEL            *celNeed     `json:"cel"`
}

type packageNeed struct {
	PackageName  string `json:"packageName"`
	Name         string `json:"name"` // as the documents write it (§22-7)
	VersionRange string `json:"versionRange"`
}

type compound struct {
	Constraints []constraint `json:"constraints"`
}

type celNeed struct {
	Rule string `json:"rule"`
}

func parseConstraint(raw json.RawMessage) (requirement, error) {
	if len(raw) > maxConstraintBytes {
		return requirement{}, fmt.Errorf("%d bytes are more than the limit of %d (R-RES-29)", len(raw), maxConstraintBytes)
	}
	var c constraint
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return requirement{}, fmt.Errorf("%w (R-RES-30)", err)
	}
	return c.requirement()
}

// requirement turns a constraint into a requirement. Where several kinds are given the first of gvk,
// package, all, any, not, cel counts (RESOLVER-NOTES 5.3).
func (c constraint) requirement() (r requirement, err error) {
	switch {
	case c.GVK != nil:
		r = requireAPI(*c.GVK)
	case c.Package != nil:
		name := c.Package.PackageName
		if name == "" {
			name = c.Package.Name
		}
		r, err = requirePackage(name, c.Package.VersionRange)
	case c.All != nil:
		r, err = c.All.requirement(needAll, " and ")
	case c.Any != nil:
		r, err = c.Any.requirement(needAny, " or ")
	case c.Not != nil:
		r, err = c.Not.requirement(needNot, " or ")
	case c.CEL != nil:
		r = requirement{op: needCEL, text: fmt.Sprintf("for which the rule %q holds (rules are not evaluated by this version)", c.CEL.Rule)}
	default:
		err = errors.New("constraint is empty (R-RES-30)")
	}
	r.message = c.FailureMessage
	return r, err
}

func (c compound) requirement(op requireOp, join string) (requirement, error) {
	r := requirement{op: op}
	var texts []string
	for _, part := range c.Constraints {
		p, err := part.requirement()
		if err != nil {
			return r, err
		}
		r.parts = append(r.parts, p)
		texts = append(texts, p.text)
	}
	r.text = strings.Join(texts, join)
	if len(texts) > 1 {
		r.text = "(" + r.text + ")"
	}
	if op == needNot {
		r.text = "not " + r.text
	}
	return r, nil
}

// matches says whether one bundle meets the requirement by itself.
func (r *requirement) matches(op *operator) bool {
	switch r.op {
	case needAPI:
		return slices.Contains(op.provides, r.api)
	case needPackage:
		return slices.ContainsFunc(op.packages, func(p packageVersion) bool { return p.name == r.pkg }) &&
			slices.ContainsFunc(op.packages, func(p packageVersion) bool { return p.valid && r.inRange(p.version) })
	case needLabel:
		return slices.Contains(op.labels, r.label)
	case needAll:
		return !slices.ContainsFunc(r.parts, func(p requirement) bool { return !p.matches(op) })
	case needAny:
		return slices.ContainsFunc(r.parts, func(p requirement) bool { return p.matches(op) })
	case needNot:
		return !slices.ContainsFunc(r.parts, func(p requirement) bool { return p.matches(op) })
	case needCEL:
	}
	return false
}

// anchors are the APIs and packages of which a matching bundle must have one; ok is false where any
// bundle may match, so that all have to be looked at.
func (r *requirement) anchors() (apis []catalog.GVK, packages []string, ok bool) {
	switch r.op {
	case needAPI:
		return []catalog.GVK{r.api}, nil, true
	case needPackage:
		return nil, []string{r.pkg}, true
	case needAll:
		for i := range r.parts {
			if a, p, ok := r.parts[i].anchors(); ok {
				return a, p, true
			}
		}
		return nil, nil, false
	case needAny:
		for i := range r.parts {
			a, p, ok := r.parts[i].anchors()
			if !ok {
				return nil, nil, false
			}
			apis, packages = append(apis, a...), append(packages, p...)
		}
		return apis, packages, true
	case needCEL:
		return nil, nil, true // nothing meets it
	case needLabel, needNot:
	}
	return nil, nil, false
}

// reason is the code for a bundle that the requirement brought in.
func (r *requirement) reason() string {
	switch r.op {
	case needAPI:
		return ReasonRequiredAPI
	case needPackage:
		return ReasonRequiredPackage
	case needLabel, needAll, needAny, needNot, needCEL:
	}
	return ReasonRequiredConstraint
}
