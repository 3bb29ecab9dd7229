package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog/cel"
)

// Issue is something wrong with a value. What only wastes or puzzles is a warning.
type Issue struct {
	Warning bool
	Text    string
}

// MaxConstraintBytes is the raw size of one olm.constraint (R-RES-29). The documents say 64 KB, the
// sources of OLM 128 KiB; real ones have some hundred bytes.
const MaxConstraintBytes = 64 << 10

var majorMinor = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)$`)

// Property returns what is wrong with the value of a property of a known type (R-CAT-25). Types without
// a meaning are opaque.
func Property(typ string, raw json.RawMessage) []Issue {
	switch typ {
	case "olm.gvk", "olm.gvk.required":
		return apiIssues(raw)
	case "olm.package.required":
		return packageIssues(raw)
	case "olm.package":
		return form(raw, &struct{ PackageName, Version, Release string }{})
	case "olm.channel":
		return form(raw, &struct {
			Name     string
			Priority json.Number
		}{})
	case "olm.label", "olm.label.required":
		return labelIssues(raw)
	case "olm.maxOpenShiftVersion":
		return maxVersionIssues(raw)
	case "olm.csv.metadata":
		return metadataIssues(raw)
	case "olm.constraint":
		return Constraint(raw)
	}
	return nil
}

// form returns why raw does not decode into v by Go's rules: names of keys in any case.
func form(raw json.RawMessage, v any) []Issue {
	if err := json.Unmarshal(raw, v); err != nil {
		return fault("does not have the right form: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return fault("does not have the right form: it must be an object")
	}
	return nil
}

func fault(format string, args ...any) []Issue {
	return []Issue{{Text: fmt.Sprintf(format, args...)}}
}

func warning(format string, args ...any) []Issue {
	return []Issue{{Warning: true, Text: fmt.Sprintf(format, args...)}}
}

func apiIssues(raw json.RawMessage) []Issue {
	var v struct{ Group, Version, Kind string }
	if is := form(raw, &v); is != nil {
		return is
	}
	if why := GVK(v.Group, v.Version, v.Kind); why != "" {
		return fault("%s", why)
	}
	return nil
}

func packageIssues(raw json.RawMessage) []Issue {
	var v struct{ PackageName, VersionRange string }
	if is := form(raw, &v); is != nil {
		return is
	}
	return neededPackage(v.PackageName, v.VersionRange)
}

func neededPackage(name, versions string) []Issue {
	var out []Issue
	if name == "" {
		out = append(out, fault("packageName is empty; name the package that is needed")...)
	}
	if _, err := Range(versions); err != nil {
		out = append(out, fault("versionRange %s", err)...)
	}
	return out
}

func labelIssues(raw json.RawMessage) []Issue {
	var v struct{ Label string }
	if is := form(raw, &v); is != nil {
		return is
	}
	if v.Label == "" {
		return fault("label is empty")
	}
	return nil
}

// maxVersionIssues warns only: what cannot be read blocks a platform upgrade at worst (R-CSV-60).
func maxVersionIssues(raw json.RawMessage) []Issue {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(bytes.TrimSpace(raw)) // a bare number, as catalogs made of YAML have it
	}
	if !majorMinor.MatchString(s) {
		return warning("%s is not <major>.<minor> of a platform release, such as \"4.20\"; put it in quotes",
			cut(string(raw)))
	}
	return nil
}

func metadataIssues(raw json.RawMessage) []Issue {
	if plainMetadata(raw) {
		return nil
	}
	return form(raw, &struct {
		Annotations, Labels                              map[string]string
		APIServiceDefinitions, CRDDescriptions, Provider map[string]json.RawMessage
		InstallModes, Links, Maintainers, NativeAPIs     []map[string]json.RawMessage
		Description, DisplayName, Maturity               string
		MinKubeVersion                                   string
		Keywords                                         []string
	}{})
}

// constraint is the value of olm.constraint (§3.4). Its keys are recognised as the resolver has them.
type constraint struct {
	FailureMessage *string      `json:"failureMessage"`
	GVK            *gvkNeed     `json:"gvk"`
	Package        *packageNeed `json:"package"`
	CEL            *celNeed     `json:"cel"`
	All            *compound    `json:"all"`
	Any            *compound    `json:"any"`
	Not            *compound    `json:"not"`
}

type gvkNeed struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

type packageNeed struct {
	PackageName  string `json:"packageName"`
	Name         string `json:"name"` // as the documents write it (§22-7)
	VersionRange string `json:"versionRange"`
}

type celNeed struct {
	Rule string `json:"rule"`
}

type compound struct {
	Constraints []constraint `json:"constraints"`
}

// Constraint returns all that is wrong with an olm.constraint, each with its place inside it (§3.4).
func Constraint(raw json.RawMessage) []Issue {
	if len(raw) > MaxConstraintBytes {
		return fault("%d bytes are more than %d (R-RES-29); split it into several olm.constraint", len(raw),
			MaxConstraintBytes)
	}
	var c constraint
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return fault("%s (R-RES-30)", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fault("text behind the end of the constraint")
	}
	var out []Issue
	if c.Not != nil {
		out = append(out, warning(
			"not at the top chooses nothing (R-RES-27); put it inside all, beside what is wanted")...)
	}
	return append(out, c.issues("", 1)...)
}

// issues looks at one constraint and all inside; at is where it stands, such as "any[0].", and depth how many it is
// inside of, with itself.
func (c *constraint) issues(at string, depth int) []Issue {
	var out []Issue
	n := 0
	for _, part := range []struct {
		there bool
		look  func() []Issue
	}{
		{c.GVK != nil, func() []Issue { return inside(at+"gvk", GVK(c.GVK.Group, c.GVK.Version, c.GVK.Kind)) }},
		{c.Package != nil, func() []Issue { return c.Package.issues(at + "package") }},
		{c.CEL != nil, func() []Issue { return c.CEL.issues(at + "cel") }},
		{c.All != nil, func() []Issue { return c.All.issues(at+"all", depth) }},
		{c.Any != nil, func() []Issue { return c.Any.issues(at+"any", depth) }},
		{c.Not != nil, func() []Issue { return c.Not.issues(at+"not", depth) }},
	} {
		if part.there {
			n++
			out = append(out, part.look()...)
		}
	}
	where := strings.TrimSuffix(at, ".")
	if where == "" {
		where = "it"
	}
	switch {
	case n == 0:
		out = append(out, fault("constraint is empty: %s must have one of gvk, package, cel, all, any, not (R-RES-30)",
			where)...)
	case n > 1:
		out = append(out, fault("%s has %d kinds of constraint, but exactly one counts (R-RES-30); join them by all",
			where, n)...)
	}
	if c.FailureMessage != nil && strings.TrimSpace(*c.FailureMessage) == "" {
		out = append(out, warning(
			"the failureMessage of %s is empty, so that nothing is shown (R-RES-25); say what is needed", where)...)
	}
	return out
}

func inside(at, why string) []Issue {
	if why == "" {
		return nil
	}
	return fault("%s: %s", at, why)
}

func (p *packageNeed) issues(at string) []Issue {
	name := p.PackageName
	if name == "" {
		name = p.Name
	}
	out := neededPackage(name, p.VersionRange)
	for i := range out {
		out[i].Text = at + ": " + out[i].Text
	}
	return out
}

func (c *celNeed) issues(at string) []Issue {
	if strings.TrimSpace(c.Rule) == "" {
		return fault("%s: rule is empty; write an expression over properties (R-RES-26)", at)
	}
	if _, err := cel.Compile(c.Rule); err != nil {
		return fault("%s: %s (R-RES-26)", at, err)
	}
	return nil
}

func (c *compound) issues(at string, depth int) []Issue {
	if len(c.Constraints) == 0 {
		return warning("%s has no constraints, so that it says nothing", at)
	}
	if depth == MaxConstraintDepth {
		return fault(
			"more than %d constraints are inside each other (R-RES-29); split it into several olm.constraint, which "+
				"are joined by all", MaxConstraintDepth)
	}
	var out []Issue
	for i := range c.Constraints {
		out = append(out, c.Constraints[i].issues(fmt.Sprintf("%s[%d].", at, i), depth+1)...)
	}
	return out
}

// cut bounds what is quoted.
func cut(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
