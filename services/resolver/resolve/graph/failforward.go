package graph

import (
	"fmt"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Phases that fail-forward depends on.
const (
	phaseFailed    = "Failed"
	phaseReplacing = "Replacing"
)

// FailForward leaves out installed CSVs that are being replaced by one that failed, so that a newer bundle can
// take the place of the failed one (R-RES-44). It applies with the group's fail-forward strategy only.
//
//	Replacing ← … ← Replacing ← Failed    the Replacing ones are left out
//	Replacing ← anything else at the end  stays
//	another phase in between, or a loop   an error: the state makes no sense (RESOLVER-NOTES 7.4)
func FailForward(installed []resolution.Installed) ([]resolution.Installed, error) {
	successor := map[string]resolution.Installed{}
	for _, i := range installed {
		if i.Replaces != "" {
			successor[i.Replaces] = i
		}
	}
	var out []resolution.Installed
	for _, i := range installed {
		gone, err := overtaken(i, successor)
		if err != nil {
			return nil, err
		}
		if !gone {
			out = append(out, i)
		}
	}
	return out, nil
}

// overtaken follows the chain of successors of a CSV and says whether it ends in another one that failed.
func overtaken(i resolution.Installed, successor map[string]resolution.Installed) (bool, error) {
	seen := map[string]bool{i.CSV: true}
	for at := i; ; {
		next, ok := successor[at.CSV]
		if !ok {
			return at.CSV != i.CSV && at.Phase == phaseFailed, nil
		}
		if at.Phase != phaseReplacing {
			return false, fmt.Errorf("csv %s in phase %s instead of %s, though %s replaces it", at.CSV, at.Phase,
				phaseReplacing, next.CSV)
		}
		if seen[next.CSV] {
			return false, fmt.Errorf("csv %s has already been seen among those that replace %s", next.CSV, i.CSV)
		}
		seen[next.CSV] = true
		at = next
	}
}
