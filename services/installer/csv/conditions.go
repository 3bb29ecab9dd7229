package csv

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// maxKindsNamed is how many optional kinds a condition names: monitoring has about that many.
const maxKindsNamed = 10

// Conditions are what is out of the ordinary with an operator whatever its phase. waiting are its objects that are left
// out since the cluster does not serve their kinds, since when the first of them was.
func Conditions(waiting []protocol.Component, since time.Time) []protocol.Condition {
	if len(waiting) == 0 {
		return nil
	}
	var kinds []string
	for _, c := range waiting {
		kinds = append(kinds, c.Kind+" ("+c.Group+")")
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	named := strings.Join(kinds[:min(len(kinds), maxKindsNamed)], ", ")
	if more := len(kinds) - maxKindsNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	objects := "1 object is"
	if len(waiting) > 1 {
		objects = fmt.Sprintf("%d objects are", len(waiting))
	}
	return []protocol.Condition{{
		Type: protocol.OptionalKindsNotServed, Status: "True", Reason: protocol.ReasonNotServed, Since: since.UTC(),
		Message: "the cluster does not serve " + named + ": " + objects +
			" left out, which the operator runs without, and written when it does",
	}}
}
