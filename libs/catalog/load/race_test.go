//go:build race

package load_test

import (
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
)

// sampled takes few packages: under the race detector all would take minutes and show no more.
func sampled(path string) bool {
	return fewPackages("/"+path) || strings.Contains(path, catalogtest.Okderators+"/")
}

// raceFactor is how much more the race detector may let a load allocate.
const raceFactor = 4
