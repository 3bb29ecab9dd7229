package why_test

import (
	"github.com/chandler-fleet/chandler/services/resolver/internal/fixture"
)

// Short words of package fixture.
type (
	catalogs = fixture.View
	builder  = fixture.Builder
)

var (
	newView    = fixture.New
	properties = fixture.Properties
	pkg        = fixture.Pkg
	chain      = fixture.Chain
)
