package remedy_test

import (
	"github.com/chandler-fleet/chandler/services/resolver/internal/shelf"
)

// Short words of package shelf.
type (
	builder = shelf.Builder
)

var (
	newShelf  = shelf.New
	pkg       = shelf.Pkg
	chain     = shelf.Chain
	sub       = shelf.Sub
	installed = shelf.Installed
	input     = shelf.Input
)
