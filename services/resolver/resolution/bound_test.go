package resolution_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// TestForbids: a bound keeps out versions of the packages and catalogs that it names, and everything of theirs where it
// cannot be parsed.
func TestForbids(t *testing.T) {
	t.Parallel()
	planned := resolution.Planned{
		CSV: "buoy.v1.2.0", Package: "buoy", Version: "1.2.0",
		Catalog: resolution.CatalogKey{Name: "own", Namespace: "ops"},
	}
	for name, c := range map[string]struct {
		bound resolution.Bound
		want  bool
	}{
		"nothing said":             {resolution.Bound{}, false},
		"beyond a ceiling":         {resolution.Bound{Ceiling: "1.1.9"}, true},
		"at the ceiling":           {resolution.Bound{Ceiling: "1.2.0"}, false},
		"outside of a range":       {resolution.Bound{Range: "<1.2.0"}, true},
		"inside of a range":        {resolution.Bound{Range: ">=1.2.0"}, false},
		"pinned to another CSV":    {resolution.Bound{Pin: "buoy.v1.1.0"}, true},
		"pinned to this CSV":       {resolution.Bound{Pin: "buoy.v1.2.0"}, false},
		"pinned to this version":   {resolution.Bound{Pin: "1.2.0"}, false},
		"another package":          {resolution.Bound{Packages: []string{"kelp", "gauge*"}, Ceiling: "1.0.0"}, false},
		"packages with its prefix": {resolution.Bound{Packages: []string{"kelp", "bu*"}, Ceiling: "1.0.0"}, true},
		"another catalog":          {resolution.Bound{Catalogs: []string{"own"}, Ceiling: "1.0.0"}, false},
		"its catalog":              {resolution.Bound{Catalogs: []string{"ops/own"}, Ceiling: "1.0.0"}, true},
		"a range that is none":     {resolution.Bound{Range: "later"}, true},
		"a ceiling that is none":   {resolution.Bound{Ceiling: "soon"}, true},
	} {
		if got := c.bound.Forbids(planned); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
