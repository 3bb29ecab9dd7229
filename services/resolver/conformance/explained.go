package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// explained says what the explanations lack of the error that OLM gave; nothing where they say as much.
func explained(e *ExpectedError, failures []resolution.Explanation) []string {
	var alike []resolution.Explanation
	for _, f := range failures {
		if string(f.Class) == e.Class {
			alike = append(alike, f)
		}
	}
	if len(alike) == 0 {
		return append([]string{"expected: error " + e.Class + ": " + e.Message}, told(failures)...)
	}
	if e.Class != string(resolution.ClassUnsatisfiable) {
		return nil
	}
	var out []string
	if !namesCore(e.CoreSubscriptions, alike) {
		out = append(out, "expected an explanation that names the subscriptions "+cores(e.CoreSubscriptions))
	}
	for _, p := range e.Packages {
		if !slices.ContainsFunc(alike, func(f resolution.Explanation) bool { return mentions(f, p) }) {
			out = append(out, "expected an explanation that names package "+p)
		}
	}
	for _, f := range e.Facts {
		if f.Kind == string(resolution.UnmetRequirement) &&
			!slices.ContainsFunc(alike, func(x resolution.Explanation) bool { return requires(x, f) }) {
			out = append(out, "expected an explanation that says that "+f.Text)
		}
	}
	if len(out) > 0 {
		out = append(out, told(alike)...)
	}
	return out
}

// told are explanations, a line each.
func told(failures []resolution.Explanation) []string {
	var out []string
	for _, f := range failures {
		var sentences []string
		for _, s := range f.Statements {
			sentences = append(sentences, s.Text)
		}
		out = append(out, fmt.Sprintf("came: error %s for %s: %s", f.Class, names(f), strings.Join(sentences, "; ")))
	}
	return out
}

// names are who an explanation blames.
func names(f resolution.Explanation) string {
	all := append(slices.Clone(f.Subscriptions), f.CSVs...)
	if len(all) == 0 {
		return "the namespace"
	}
	return strings.Join(all, ", ")
}

// namesCore says whether some explanation names all subscriptions of some core.
func namesCore(cores [][]string, failures []resolution.Explanation) bool {
	if len(cores) == 0 {
		return true
	}
	return slices.ContainsFunc(failures, func(f resolution.Explanation) bool {
		return slices.ContainsFunc(cores, func(core []string) bool {
			return !slices.ContainsFunc(core, func(s string) bool { return !slices.Contains(f.Subscriptions, s) })
		})
	})
}

func cores(list [][]string) string {
	var out []string
	for _, core := range list {
		out = append(out, strings.Join(core, ", "))
	}
	return strings.Join(out, " or ")
}

// mentions says whether an explanation names a package.
func mentions(f resolution.Explanation, pkg string) bool {
	return slices.ContainsFunc(f.Statements, func(s resolution.Statement) bool {
		return s.Package == pkg || slices.Contains(
			strings.FieldsFunc(s.Text, func(r rune) bool { return strings.ContainsRune(" ,;:", r) }), pkg)
	})
}

// requires says whether an explanation names an unmet requirement of a bundle, in whatever words.
func requires(f resolution.Explanation, fact Fact) bool {
	parts := essence(fact.Requirement)
	return slices.ContainsFunc(f.Statements, func(s resolution.Statement) bool {
		return s.Kind == resolution.UnmetRequirement && strings.HasSuffix(s.Bundle, fact.Bundle) &&
			!slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(s.Requirement, part) })
	})
}

// The forms in which OLM words a requirement (RESOLVER-NOTES §10).
var (
	asksAPI     = regexp.MustCompile(`providing an API with group: (\S*), version: (\S*), kind: (\S*)`)
	asksPackage = regexp.MustCompile(`with package: (\S+)`)
	asksRange   = regexp.MustCompile(
		`with version in range: (.+?)(?: and (?:with|providing|not) | or (?:with|providing|not) |$)`)
	asksLabel = regexp.MustCompile(`with label: (\S+)`)
	asksRule  = regexp.MustCompile(`with constraint: "(.*?)" and message: "[^"]*"`)
)

// essence are the names, ranges and rules in a requirement that OLM worded.
func essence(text string) []string {
	var out []string
	for _, m := range asksRule.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	text = asksRule.ReplaceAllString(text, "")
	for _, m := range asksAPI.FindAllStringSubmatch(text, -1) {
		out = append(out, fmt.Sprintf("%s (%s/%s)", m[3], m[1], m[2]))
	}
	for _, form := range []*regexp.Regexp{asksPackage, asksRange, asksLabel} {
		for _, m := range form.FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
	}
	return out
}
