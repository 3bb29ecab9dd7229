package suggestion_test

import (
	"github.com/chandler-fleet/chandler/services/resolver/internal/fixture"
)

// Short words of package fixture.
type (
	builder = fixture.Builder
)

var (
	newView   = fixture.New
	pkg       = fixture.Pkg
	chain     = fixture.Chain
	sub       = fixture.Sub
	installed = fixture.Installed
	input     = fixture.Input
)
