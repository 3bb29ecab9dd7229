package catalog

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
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

	forAuthors bool // an error where authors ask (Strict), since who installs is served all the same, or without the bundle

	spot  string // of a value inside the document: see place.in
	scope string // what the finding makes unreliable, where that is more than the file: a directory, or scopeAll
}

// scopeAll is the scope of a finding that ended the reading of the tree: anything may be missing.
const scopeAll = "*"

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

// strict marks a warning that is an error where authors ask.
func (f Finding) strict() Finding {
	f.forAuthors = true
	return f
}

// Strict returns the findings as authors are told of them: what is served to those who install as OLM takes it, and what
// leaves a bundle out, is an error. Findings that a Memory kept are as they were.
func (f Findings) Strict() Findings {
	out := slices.Clone(f)
	for i := range out {
		if out[i].forAuthors {
			out[i].Severity = SeverityError
		}
	}
	out.sort()
	return out
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

// Report returns the findings as reports show them: sorted, without repetitions, and at most MaxFindings.
func (f Findings) Report() Findings { return f.bounded() }

// bounded makes texts storable, cuts long ones, sorts, drops repetitions and keeps at most MaxFindings.
func (f Findings) bounded() Findings {
	for i := range f {
		bound(&f[i])
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

// bound makes the texts of the finding, which may quote a hostile document or name a file of it, such as
// every reader and database takes: UTF-8 of bounded length, without NUL.
func bound(f *Finding) {
	f.File, f.Message, f.Package = cut(f.File), cut(f.Message), cut(f.Package)
}

func cut(s string) string {
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

// place is where something stands in a catalog.
type place struct {
	file         string
	line, column int
	spot         string
}

// in is the place of a value inside the document that stands at p; the path is that of docs.Spot. In a
// bundle directory, which has no line, it is a key of the CSV. Where it is, is found once it is told.
func (p place) in(path ...string) place {
	p.spot = strings.Join(path, spotSeparator)
	return p
}

const spotSeparator = "\n"

func (p place) finding(s Severity, rule, pkg, format string, args ...any) Finding {
	return Finding{
		Rule: rule, Severity: s, File: p.file, Line: p.line, Column: p.column, Package: pkg,
		Message: fmt.Sprintf(format, args...), spot: p.spot,
	}
}

// locate gives findings about values inside documents their line and column. Only documents that have
// such findings are read again; one that has changed meanwhile leaves the place of the document.
func (f Findings) locate(fsys fs.FS) {
	byFile := map[string][]*Finding{}
	for i := range f {
		switch {
		case f[i].spot == "":
		case f[i].Line == 0:
			locateInCSV(fsys, &f[i])
		default:
			byFile[f[i].File] = append(byFile[f[i].File], &f[i])
		}
		f[i].scope = ""
	}
	for name, findings := range byFile {
		spots := make([]*docs.Spot, 0, len(findings))
		for _, at := range findings {
			spots = append(spots, &docs.Spot{Line: at.Line, Column: at.Column, Path: strings.Split(at.spot, spotSeparator)})
			at.spot = ""
		}
		file, err := fsys.Open(name)
		if err != nil {
			continue // it was there a moment ago: the place of the document must do
		}
		err = docs.Locate(file, docLimits(), spots)
		if cerr := file.Close(); err != nil || cerr != nil {
			continue
		}
		for i, at := range findings {
			at.Line, at.Column = spots[i].Line, spots[i].Column
		}
	}
}

// locate gives all findings of the catalog their places.
func (c *Catalog) locate(fsys fs.FS) {
	c.Findings.locate(fsys)
	c.Findings.sort()
	c.blocking.locate(fsys)
	firsts := make(Findings, 0, len(c.Quarantined))
	for _, q := range c.Quarantined {
		firsts = append(firsts, q.First)
	}
	firsts.locate(fsys)
	for i := range c.Quarantined {
		c.Quarantined[i].First = firsts[i]
	}
}

// locateInCSV finds the file, line and column of a key of the CSV in a bundle directory, or of a property
// of one of the files of metadata.
func locateInCSV(fsys fs.FS, f *Finding) {
	key := f.spot
	f.spot = ""
	if strings.HasPrefix(key, "olm.") && locateProperty(fsys, f, key) {
		return
	}
	manifests := path.Join(f.File, dirManifests)
	entries, err := fs.ReadDir(fsys, manifests)
	if err != nil || len(entries) > MaxBundleFiles {
		return
	}
	for _, e := range entries {
		name := path.Join(manifests, e.Name())
		if e.IsDir() {
			continue
		}
		text, err := readFile(fsys, name, MaxBundleBytes)
		if err != nil || !bytes.Contains(text, []byte("ClusterServiceVersion")) || bytes.Contains(text, []byte("CustomResourceDefinition\n")) {
			continue
		}
		f.File = name
		if f.Line, f.Column = docs.LocateKey(text, key); f.Line == 0 {
			f.Line, f.Column = docs.LocateKey(text, "name")
		}
		return
	}
}

// locateProperty finds the first property of a type in the files of metadata that bring some; as a
// dependency it is written without the ending (R-CAT-56).
func locateProperty(fsys fs.FS, f *Finding, typ string) bool {
	for _, file := range []string{fileDependencies, fileProperties} {
		name := path.Join(f.File, dirMetadata, file)
		text, err := readFile(fsys, name, MaxBundleBytes)
		if err != nil {
			continue
		}
		wanted := typ
		if file == fileDependencies {
			wanted = strings.TrimSuffix(typ, ".required")
		}
		if at := bytes.Index(text, []byte(wanted)); at >= 0 {
			f.File = name
			f.Line = 1 + bytes.Count(text[:at], []byte("\n"))
			f.Column = at - bytes.LastIndexByte(text[:at], '\n')
			return true
		}
	}
	return false
}
