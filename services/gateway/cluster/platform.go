package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Reasons of a guarded platform upgrade (R-CSV-60).
const (
	ReasonIncompatible  = "IncompatibleOperatorsInstalled"
	ReasonErrorChecking = "ErrorCheckingOperatorCompatibility"
)

// Limit is one property olm.maxOpenShiftVersion of an installed operator, as it was written.
type Limit struct {
	Namespace string
	CSV       string
	Value     json.RawMessage
}

// PlatformUpgrade says up to which minor version of the platform the installed operators let themselves be carried, and
// which of them set that limit (R-CSV-60); nil where none says anything.
//
//	an operator says it twice, or not as <major>.<minor>  ErrorCheckingOperatorCompatibility, naming it
//	otherwise                                             IncompatibleOperatorsInstalled beyond the lowest
func PlatformUpgrade(limits []Limit) *model.PlatformUpgrade {
	if len(limits) == 0 {
		return nil
	}
	out := &model.PlatformUpgrade{Reason: ReasonIncompatible}
	var lowest [2]int
	var wrong []string
	seen := map[string]bool{}
	for _, l := range limits {
		name := l.Namespace + "/" + l.CSV
		v, text, ok := minor(l.Value)
		switch {
		case seen[name]:
			wrong = append(wrong, name+" has several of them")
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s has %s, which is not <major>.<minor>", name, l.Value))
		default:
			out.Operators = append(out.Operators, model.PlatformLimit{Namespace: l.Namespace, Name: l.CSV, MaxVersion: text})
			if out.MaxVersion == "" || slices.Compare(v[:], lowest[:]) < 0 {
				lowest, out.MaxVersion = v, text
			}
		}
		seen[name] = true
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		out.Reason = ReasonErrorChecking
		out.Message = "property olm.maxOpenShiftVersion cannot be read: " + strings.Join(slices.Compact(wrong), "; ")
		return out
	}
	out.Message = fmt.Sprintf("the platform must not be upgraded beyond %s before these operators are", out.MaxVersion)
	return out
}

// minor reads "4.15"; bundles write it as a string or as a number.
func minor(raw json.RawMessage) (v [2]int, text string, ok bool) {
	text = strings.TrimPrefix(strings.Trim(string(raw), `"`), "v")
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return v, text, false
	}
	for i := range v {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return v, text, false
		}
		v[i] = n
	}
	return v, parts[0] + "." + parts[1], true
}
