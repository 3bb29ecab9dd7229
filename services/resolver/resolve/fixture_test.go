package resolve_test

import (
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/internal/fixture"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Short words of package fixture.
type (
	catalogs = fixture.View
	builder  = fixture.Builder
)

var (
	newView   = fixture.New
	api       = fixture.API
	property  = fixture.Property
	pkg       = fixture.Pkg
	chain     = fixture.Chain
	sub       = fixture.Sub
	installed = fixture.Installed
	input     = fixture.Input
)

// lines tell a result: one line for each component.
func lines(r resolution.Result) []string {
	out := []string{}
	for _, c := range r.Components {
		switch {
		case c.Failure != nil:
			out = append(out, fmt.Sprintf("%s: failed %s", c.Name, c.Failure.Class))
		case len(c.Bundles) == 0:
			out = append(out, fmt.Sprintf("%s: nothing", c.Name))
		default:
			var parts []string
			for _, b := range c.Bundles {
				parts = append(parts, b.CSV+" "+b.Channel+" "+b.Reason)
			}
			out = append(out, c.Name+": "+strings.Join(parts, ", "))
		}
	}
	return out
}

// texts are the sentences of the only failure.
func texts(r resolution.Result) string {
	var out []string
	for _, c := range r.Components {
		if c.Failure != nil {
			for _, s := range c.Failure.Statements {
				out = append(out, s.Text)
			}
		}
	}
	return strings.Join(out, "\n")
}
