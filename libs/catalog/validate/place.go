package validate

import (
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// Place is where something stands in a catalog: a file, in it a document, and in that a value (Spot).
type Place struct {
	File         string
	Line, Column int
	Spot         string
}

// In is the place of a value inside the document that stands at p; the path is that of docs.Spot. In a
// bundle directory, which has no line, it is a key of the CSV. Its line is looked up when it is reported.
func (p Place) In(path ...string) Place {
	p.Spot = strings.Join(path, spotSeparator)
	return p
}

const spotSeparator = "\n"

// SpotPath is the path to a value inside a document that In made a finding's Spot of.
func SpotPath(f catalog.Finding) []string { return strings.Split(f.Spot, spotSeparator) }

// Finding is what is wrong at p, by which rule and with which package.
func (p Place) Finding(s catalog.Severity, rule, pkg, format string, args ...any) catalog.Finding {
	return catalog.Finding{
		Rule: rule, Severity: s, File: p.File, Line: p.Line, Column: p.Column, Package: pkg,
		Message: fmt.Sprintf(format, args...), Spot: p.Spot,
	}
}

// ForAuthors marks a warning that is an error where authors ask.
func ForAuthors(f catalog.Finding) catalog.Finding {
	f.ForAuthors = true
	return f
}

// ScopeAll is the scope of a finding that ended the reading of the tree: anything may be missing.
const ScopeAll = "*"

// Text is the place for a message.
func (p Place) Text() string {
	return catalog.Finding{File: p.File, Line: p.Line}.Place()
}
