package resolve_test

import (
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/internal/shelf"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Short words of package shelf.
type (
	catalogs = shelf.Shelf
	builder  = shelf.Builder
)

var (
	newShelf   = shelf.New
	api        = shelf.API
	property   = shelf.Property
	properties = shelf.Properties
	pkg        = shelf.Pkg
	chain      = shelf.Chain
	sub        = shelf.Sub
	installed  = shelf.Installed
	input      = shelf.Input
)

// lines tell a result: one line for each component.
func lines(r resolve.Result) []string {
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
func texts(r resolve.Result) string {
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
