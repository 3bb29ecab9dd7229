package lint

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// report collects what checks find.
type report struct {
	pkg      string // package of the bundle
	findings catalog.Findings
}

// add adds a finding; the rule is completed to "R-CAT-59/rule".
func (r *report) add(s catalog.Severity, rule string, at place, format string, args ...any) {
	r.findings = append(r.findings, catalog.Finding{
		Rule: "R-CAT-59/" + rule, Severity: s, File: at.file, Line: at.line, Column: at.column,
		Package: r.pkg, Message: fmt.Sprintf(format, args...),
	})
}

func (r *report) errorf(rule string, at place, format string, args ...any) {
	r.add(catalog.SeverityError, rule, at, format, args...)
}

func (r *report) warnf(rule string, at place, format string, args ...any) {
	r.add(catalog.SeverityWarning, rule, at, format, args...)
}
