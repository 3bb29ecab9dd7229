package why_test

import (
	"github.com/chandler-fleet/chandler/services/resolver/internal/shelf"
)

// Short words of package shelf.
type (
	catalogs = shelf.Shelf
	builder  = shelf.Builder
)

var (
	newShelf   = shelf.New
	properties = shelf.Properties
	pkg        = shelf.Pkg
	chain      = shelf.Chain
)
