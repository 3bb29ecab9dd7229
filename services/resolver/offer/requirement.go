package offer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unique"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// Legacy property types that the resolver still honours (§1.4).
const (
	typeLabel         = "olm.label"
	typeLabelRequired = "olm.label.required"
)

// maxText bounds the bytes of a sentence.
const maxText = 1000

// Why a bundle that a requirement brought in is in a plan.
const (
	ReasonRequiredPackage    = "RequiredPackage"    // olm.package.required
	ReasonRequiredAPI        = "RequiredAPI"        // olm.gvk.required
	ReasonRequiredConstraint = "RequiredConstraint" // olm.constraint
)

// Requirement asks for one bundle that matches (R-RES-15, RESOLVER-NOTES 5.2). It is immutable; the bundles of
// a package that ask the same share one.
type Requirement struct {
	Source  string // property type
	Raw     json.RawMessage
	Text    string // "of package brinestore in range >=1.0.0", for sentences
	Message string // the author's failureMessage (R-RES-25)

	// op says which of the fields below says what is asked; parts belong to all, any and not.
	op      operation
	api     unique.Handle[catalog.GVK]
	pkg     string
	inRange semver.Range
	label   string
	rule    *rule
	parts   []*Requirement
	key     string
}

type operation uint8

const (
	needAPI operation = iota
	needPackage
	needLabel
	needAll
	needAny
	needNot
	needRule
)

type labelValue struct {
	Label string `json:"label"`
}

// Key distinguishes requirements: those with the same ask the same.
func (r *Requirement) Key() string { return r.key }

// Reason is the code for a bundle that the requirement brought in.
func (r *Requirement) Reason() string {
	switch r.op {
	case needAPI:
		return ReasonRequiredAPI
	case needPackage:
		return ReasonRequiredPackage
	case needLabel, needAll, needAny, needNot, needRule:
	}
	return ReasonRequiredConstraint
}

// sharing keeps the requirements of the bundles of one package, most of which ask the same as the one before.
type sharing struct {
	known  map[string]reading // by key
	rules  int                // in known
	weight int
}

type reading struct {
	requirement *Requirement
	why         string // it cannot be read
}

func newSharing() *sharing { return &sharing{} }

// requirement reads a property of one of the types that ask for something (R-RES-21), or says why it cannot.
func (s *sharing) requirement(p catalog.Property) (r *Requirement, why string) {
	key := p.Type + " " + string(p.Value)
	if known, ok := s.known[key]; ok {
		return known.requirement, known.why
	}
	r, err := parse(p)
	if err == nil {
		err = s.countRules(r)
	}
	s.weight += requirementWeight + len(key)
	if err != nil {
		r, why = nil, fmt.Sprintf("%s: %s", p.Type, err)
	} else {
		r.Source, r.Raw, r.key, r.Text = p.Type, p.Value, key, r.sentence()
		s.weight += r.weight()
	}
	if s.known == nil {
		s.known = map[string]reading{}
	}
	s.known[key] = reading{r, why}
	return r, why
}

// countRules refuses a requirement with rules where the package has too many. The rules of a package are what it
// takes most time and memory for.
func (s *sharing) countRules(r *Requirement) error {
	for range r.rules {
		s.rules++
		if s.rules > catalog.MaxRules {
			return fmt.Errorf("the bundles of the package have more than %d rules together (R-RES-26)",
				catalog.MaxRules)
		}
	}
	return nil
}

func parse(p catalog.Property) (*Requirement, error) {
	switch p.Type {
	case catalog.TypeGVKRequired:
		var v catalog.GVK
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return nil, err
		}
		return requireAPI(v), nil
	case catalog.TypePackageRequired:
		var v catalog.PackageRequired
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return nil, err
		}
		return requirePackage(v.PackageName, v.VersionRange)
	case typeLabelRequired:
		var v labelValue
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return nil, err
		}
		return &Requirement{op: needLabel, label: v.Label, Text: "with label " + v.Label}, nil
	default:
		return parseConstraint(p.Value)
	}
}

func requireAPI(g catalog.GVK) *Requirement {
	return &Requirement{op: needAPI, api: unique.Make(g), Text: "providing " + g.String()}
}

func requirePackage(name, versions string) (*Requirement, error) {
	in, err := catalog.ParseRange(versions)
	if err != nil {
		return nil, err
	}
	return &Requirement{
		op: needPackage, pkg: name, inRange: in,
		Text: fmt.Sprintf("of package %s in range %s", name, versions),
	}, nil
}

func requireRule(text string) *Requirement {
	return &Requirement{op: needRule, rule: newRule(text), Text: fmt.Sprintf("for which the rule %q holds", text)}
}

// constraint is the value of olm.constraint (§3.4).
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

func parseConstraint(raw json.RawMessage) (*Requirement, error) {
	if len(raw) > catalog.MaxConstraintBytes {
		return nil, fmt.Errorf("%d bytes are more than the limit of %d (R-RES-29)", len(raw),
			catalog.MaxConstraintBytes)
	}
	var c constraint
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("%w (R-RES-30)", err)
	}
	return c.requirement(1)
}

// requirement turns a constraint into a requirement; depth is 1 at the top. Where several kinds are given the
// first of gvk, package, all, any, not, cel counts (RESOLVER-NOTES 5.3).
func (c constraint) requirement(depth int) (r *Requirement, err error) {
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
		r, err = c.All.requirement(needAll, depth)
	case c.Any != nil:
		r, err = c.Any.requirement(needAny, depth)
	case c.Not != nil:
		r, err = c.Not.requirement(needNot, depth)
	case c.CEL != nil:
		r = requireRule(c.CEL.Rule)
	default:
		err = errors.New("constraint is empty (R-RES-30)")
	}
	if err != nil {
		return nil, err
	}
	r.Message = c.FailureMessage
	return r, nil
}

func (c compound) requirement(op operation, depth int) (*Requirement, error) {
	if depth == catalog.MaxConstraintDepth {
		return nil, fmt.Errorf("more than %d constraints are inside each other (R-RES-29)", catalog.MaxConstraintDepth)
	}
	r := &Requirement{op: op}
	for _, part := range c.Constraints {
		p, err := part.requirement(depth + 1)
		if err != nil {
			return nil, err
		}
		r.parts = append(r.parts, p)
	}
	return r, nil
}
