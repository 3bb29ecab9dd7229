package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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

// Finding is one thing that is wrong with a catalog, where, by which rule, and how to fix it.
// Rule is the number of the requirement, such as R-CAT-35, and never changes.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Package  string   `json:"package,omitempty"`
	Message  string   `json:"message"`

	// ForAuthors is a warning that Strict makes an error: who installs is served all the same, or without the bundle.
	ForAuthors bool `json:"-"`

	// What follows is between packages: validate and load write it, load reads it, and it is empty once a load has
	// ended. Spot leads to a value inside the document, whose line is found last; Scope is what the finding makes
	// unreliable, where that is more than its file: a directory, or everything.
	Spot  string `json:"-"`
	Scope string `json:"-"`
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

// Strict returns the findings as authors are told of them: what is served to those who install as OLM takes it, and
// what leaves a bundle out, is an error.
func (f Findings) Strict() Findings {
	out := slices.Clone(f)
	for i := range out {
		if out[i].ForAuthors {
			out[i].Severity = SeverityError
		}
	}
	out.Sort()
	return out
}

// Sort sorts by severity, then by place.
func (f Findings) Sort() {
	rank := map[Severity]int{SeverityError: 0, SeverityWarning: 1, SeverityInfo: 2}
	slices.SortFunc(f, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(rank[a.Severity], rank[b.Severity]),
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Package, b.Package),
		)
	})
}

// Report returns the findings as reports show them: texts storable and of bounded length, sorted, without repetitions,
// and at most MaxFindings.
func (f Findings) Report() Findings {
	for i := range f {
		f[i] = f[i].Bounded()
	}
	f.Sort()
	f = slices.Compact(f)
	if len(f) <= MaxFindings {
		return f
	}
	left := len(f) - MaxFindings + 1
	last := Finding{
		Rule: f[MaxFindings-1].Rule, Severity: SeverityInfo,
		Message: fmt.Sprintf("%d more findings are not listed; fix these and look again", left),
	}
	return append(f[:MaxFindings-1:MaxFindings-1], last)
}

// Bounded returns the finding with storable texts, which may quote a hostile document or name a file of it.
func (f Finding) Bounded() Finding {
	f.File, f.Message, f.Package = Storable(f.File), Storable(f.Message), Storable(f.Package)
	return f
}

// Storable makes of a text what every reader and database takes: UTF-8 of at most MaxMessageBytes, without NUL.
func Storable(s string) string {
	whole := len(s) <= MaxMessageBytes
	if !whole {
		s = s[:MaxMessageBytes]
		for range utf8.UTFMax - 1 { // a character cut in two
			if r, n := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && n == 1 {
				s = s[:len(s)-1]
			}
		}
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, string(utf8.RuneError)), "\x00", string(utf8.RuneError))
	if !whole {
		s += " …"
	}
	return s
}
