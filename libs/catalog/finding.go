package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Severity says what a finding does to the load.
type Severity string

// The severities. An error is what a later step relies on: the revision before stays in service. A
// warning is served as it is, without the part that the message names. An info is worth a look.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Finding is one thing that is wrong with a catalog, where, by which rule, and how to mend it.
// Rule is the number of the requirement, such as R-CAT-35, and never changes.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Package  string   `json:"package,omitempty"`
	Message  string   `json:"message"`
}

// Place is "file:line:column" as far as it is known.
func (f Finding) Place() string {
	s := f.File
	if f.Line > 0 {
		s += ":" + strconv.Itoa(f.Line)
		if f.Column > 0 {
			s += ":" + strconv.Itoa(f.Column)
		}
	}
	return s
}

// String is "file:line:column: severity R-CAT-35: message".
func (f Finding) String() string {
	s := string(f.Severity) + " " + f.Rule + ": " + f.Message
	if p := f.Place(); p != "" {
		return p + ": " + s
	}
	return s
}

// Findings is a report, sorted: errors first, then by file and line.
type Findings []Finding

// Errors returns how many findings forbid to serve the catalog.
func (f Findings) Errors() int {
	n := 0
	for i := range f {
		if f[i].Severity == SeverityError {
			n++
		}
	}
	return n
}

// Err returns nil where nothing forbids to serve the catalog, else an error of kind Invalid that
// names the first finding and counts the others.
func (f Findings) Err() error {
	n := f.Errors()
	if n == 0 {
		return nil
	}
	more := ""
	if n > 1 {
		more = fmt.Sprintf(" (and %d more errors)", n-1)
	}
	return errs.New(errs.Invalid, "%s%s", f[0], more).At(f[0].Place(), f[0].Rule)
}

func (f Findings) sort() {
	rank := map[Severity]int{SeverityError: 0, SeverityWarning: 1, SeverityInfo: 2}
	slices.SortFunc(f, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(rank[a.Severity], rank[b.Severity]),
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Package, b.Package),
		)
	})
}

// bounded cuts long texts, sorts, drops repetitions and keeps at most MaxFindings.
func (f Findings) bounded() Findings {
	for i := range f {
		f[i].Message, f[i].Package = cut(f[i].Message), cut(f[i].Package)
	}
	f.sort()
	f = slices.Compact(f)
	if len(f) <= MaxFindings {
		return f
	}
	left := len(f) - MaxFindings + 1
	last := Finding{
		Rule: f[MaxFindings-1].Rule, Severity: SeverityInfo,
		Message: fmt.Sprintf("%d more findings are not listed; mend these and look again", left),
	}
	return append(f[:MaxFindings-1:MaxFindings-1], last)
}

// cut bounds a text that may quote a hostile document.
func cut(s string) string {
	if len(s) <= MaxMessageBytes {
		return s
	}
	return strings.ToValidUTF8(s[:MaxMessageBytes], "") + " …"
}

// place is where something stands in a catalog.
type place struct {
	file         string
	line, column int
}

func (p place) finding(s Severity, rule, pkg, format string, args ...any) Finding {
	return Finding{
		Rule: rule, Severity: s, File: p.file, Line: p.line, Column: p.column, Package: pkg,
		Message: fmt.Sprintf(format, args...),
	}
}
