// Package rules explains every rule that a message of Chandler can name: what it demands, why, and how to fix a
// violation. It is pure. docs/rules.md is generated from it, the gateway serves it, chandler rules prints it; a test
// checks that every rule that a message names is here.
package rules

import (
	"regexp"
	"slices"
	"strings"
)

// Document is the path of the generated document in the repository.
const Document = "docs/rules.md"

// Kind is the subject of a rule. It also decides how strict the rule is.
type Kind string

// The kinds, in the order of the document.
const (
	Catalog Kind = "catalog" // documents, channels and bundles of a catalog
	Source  Kind = "source"  // where a catalog comes from, and its credentials
	Author  Kind = "author"  // tools for authors: lint, templates, images
	Install Kind = "install" // what a bundle may bring into a cluster
	Plan    Kind = "plan"    // install plans, operator groups, subscriptions
	Request Kind = "request" // form of requests and settings
	Limit   Kind = "limit"   // bounds of sizes and counts; what is stored, and the keys of the installation
)

// Rule is one rule.
type Rule struct {
	ID      string `json:"id"`
	Kind    Kind   `json:"kind"`
	Demands string `json:"demands"`
	Why     string `json:"why,omitempty"`
	Fix     string `json:"fix,omitempty"`
	// Strictness says when a violation is refused and when it is only a warning.
	Strictness string `json:"strictness"`
}

// strictness of the rules of a kind that have none of their own.
var strictness = map[Kind]string{
	Catalog: "Each finding has a severity. With an error, `chandler catalog validate` fails; a catalog in service keeps " +
		"its previous revision (setting strict), or only the package with the error does (setting lenient). A " +
		"warning blocks nothing, but its message may say that something is left out.",
	Source: "The source is not read. The revision in service stays, and what is installed is not changed.",
	Author: "Only the tools for authors check it, and it prevents no installation; with errors the command fails, with " +
		"warnings it does not.",
	Install: "The bundle cannot be rendered into objects: plans with it are not proposed, or fail before their first " +
		"step. Nothing else is affected.",
	Plan:    "The request, or the plan, is refused; nothing was changed.",
	Request: "The request is refused with status 400, 404, 409 or 422; nothing was changed.",
	Limit:   "What is too large or damaged is refused; the message contains the limit.",
}

// headings of the kinds in the document, in its order.
var headings = []struct {
	kind  Kind
	title string
}{
	{Catalog, "Catalogs and what is in them"},
	{Source, "Sources of catalogs"},
	{Author, "Tools for authors"},
	{Install, "What a bundle may contain"},
	{Plan, "Plans, groups and subscriptions"},
	{Request, "Requests and settings"},
	{Limit, "Limits, and what is stored"},
}

// All returns every rule, by kind and in the order of the document.
func All() []Rule {
	var out []Rule
	for _, h := range headings {
		for _, r := range slices.Concat(catalogRules, sourceRules, lintRules, installRules, planRules, requestRules,
			limitRules) {
			if r.Kind == h.kind {
				if r.Strictness == "" {
					r.Strictness = strictness[r.Kind]
				}
				out = append(out, r)
			}
		}
	}
	return out
}

// bound is the form of the rules of one package's constants, such as bundle.MaxBytes.
var bound = regexp.MustCompile(`^[a-z]+\.Max[A-Za-z]+$`)

// Find returns the rule that a message names, whatever the case of its letters.
func Find(id string) (Rule, bool) {
	for _, r := range All() {
		if strings.EqualFold(r.ID, id) {
			return r, true
		}
	}
	if bound.MatchString(id) {
		r, ok := Find(anyBound)
		r.ID = id
		return r, ok
	}
	return Rule{}, false
}

// named finds rules by number in a text: R-CAT-43, R-CAT-59/csv-name.
var named = regexp.MustCompile(`\bR-[A-Z]{2,4}-\d+(?:/[a-z][a-z-]*[a-z])?\b`)

// Named returns the rules by number that a text names, each once, in the order of the text.
func Named(text string) []string {
	var out []string
	for _, id := range named.FindAllString(text, -1) {
		if _, ok := Find(id); ok && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// Hint returns the command that explains the rules that a text names by number, "" if it names none.
func Hint(text string) string {
	ids := Named(text)
	if len(ids) == 0 {
		return ""
	}
	word := "demands"
	if len(ids) > 1 {
		word = "demand"
	}
	return "What " + strings.Join(ids, ", ") + " " + word + ": chandler rules " + strings.Join(ids, " ")
}

// Link returns the place in the document that explains a rule: path and anchor.
func Link(id string) string {
	if bound.MatchString(id) {
		id = anyBound
	}
	anchor := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		default:
			return -1
		}
	}, strings.ToLower(id))
	return Document + "#" + anchor
}

// Markdown is the document.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Rules

Every rule that a message of Chandler can name: what it demands, why, and how to fix a violation. Rules with a number
come from the requirements that Chandler is built from; rules in words belong to its API. ` + "`chandler rules ID`" + ` prints the same
without a server, and ` + "`/api/v1/rules`" + ` serves it.

This file is generated from the code (libs/rules) by tools/generate.sh.
`)
	for _, h := range headings {
		b.WriteString("\n## " + h.title + "\n\n" + strictness[h.kind] + "\n")
		for _, r := range All() {
			if r.Kind == h.kind {
				b.WriteString("\n### " + r.ID + "\n\n" + r.text())
			}
		}
	}
	return b.String()
}

// text is the part of the document below the heading of a rule.
func (r Rule) text() string {
	var b strings.Builder
	b.WriteString(r.Demands + "\n")
	for _, part := range []struct{ name, text string }{{"Why", r.Why}, {"Fix", r.Fix}} {
		if part.text != "" {
			b.WriteString("\n*" + part.name + ":* " + part.text + "\n")
		}
	}
	if r.Strictness != strictness[r.Kind] {
		b.WriteString("\n*Strict or lenient:* " + r.Strictness + "\n")
	}
	return b.String()
}
