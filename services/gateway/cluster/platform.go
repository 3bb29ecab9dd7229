package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/removedapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Reasons of a guarded platform upgrade (R-CSV-60), and of one that is only warned of (R-CSV-61).
const (
	ReasonIncompatible  = "IncompatibleOperatorsInstalled"
	ReasonErrorChecking = "ErrorCheckingOperatorCompatibility"
	ReasonRemovedAPIs   = "RemovedAPIsInUse"
)

// Limit is one property olm.maxOpenShiftVersion of an installed operator, as it was written.
type Limit struct {
	Namespace string
	CSV       string
	Value     json.RawMessage
}

// PlatformUpgrade says up to which minor version of the platform the installed operators let themselves be carried,
// which of them set that limit (R-CSV-60), and which APIs they use that the next version no longer serves (R-CSV-61);
// nil where there is nothing to say.
//
//	an operator says it twice, or not as <major>.<minor>  ErrorCheckingOperatorCompatibility, naming it
//	any operator sets a limit                             IncompatibleOperatorsInstalled beyond the lowest
//	otherwise                                             RemovedAPIsInUse, which is a warning
func PlatformUpgrade(limits []Limit, removed []model.RemovedAPI) *model.PlatformUpgrade {
	switch {
	case len(limits) > 0:
		out := limited(limits)
		out.RemovedAPIs = removed
		return out
	case len(removed) > 0:
		return &model.PlatformUpgrade{
			Reason: ReasonRemovedAPIs, Operators: []model.PlatformLimit{}, RemovedAPIs: removed,
			Message: "installed operators use APIs that the next version of Kubernetes no longer serves: replace " +
				"them before the upgrade",
		}
	}
	return nil
}

func limited(limits []Limit) *model.PlatformUpgrade {
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
			out.Operators = append(out.Operators, model.PlatformLimit{
				Namespace: l.Namespace, Name: l.CSV,
				MaxVersion: text,
			})
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

// Installed is an installed operator with what is known of it.
type Installed struct {
	Namespace    string
	CSV          string
	Components   []protocol.Component
	Requirements []model.Requirement
}

// RemovedAPIs are the kinds of Kubernetes that installed operators brought or require and that the cluster no longer
// serves once it is upgraded by one minor version (R-CSV-61): for each operator, each kind once.
func RemovedAPIs(kubernetesVersion string, installed []Installed) []model.RemovedAPI {
	var out []model.RemovedAPI
	for _, i := range installed {
		var used []removedapi.Kind
		for _, c := range i.Components {
			used = append(used, removedapi.Kind{Group: c.Group, Version: c.Version, Kind: c.Kind})
		}
		for _, r := range i.Requirements { // native APIs stand there by their kind
			used = append(used, removedapi.Kind{Group: r.Group, Version: r.Version, Kind: r.Kind})
		}
		for _, k := range removedapi.Gone(kubernetesVersion, used) {
			version, _ := removedapi.In(k)
			out = append(out, model.RemovedAPI{
				Group: k.Group, Version: k.Version, Kind: k.Kind,
				Removed: version.String(), For: i.Namespace + "/" + i.CSV,
			})
		}
	}
	return out
}

// RemovedByPlan are the kinds of Kubernetes that a plan's document writes and that the cluster no longer serves once it
// is upgraded by one minor version (R-CSV-61). The cluster itself, checking the plan, reads
// the objects, too. A document of another form says nothing here.
func RemovedByPlan(kubernetesVersion string, document json.RawMessage) []model.RemovedAPI {
	var d installplan.Document
	if len(document) == 0 || json.Unmarshal(document, &d) != nil {
		return nil
	}
	var out []model.RemovedAPI
	for _, s := range d.Steps {
		for _, k := range removedapi.Gone(kubernetesVersion,
			[]removedapi.Kind{{Group: s.Group, Version: s.Version, Kind: s.Kind}}) {
			version, _ := removedapi.In(k)
			of := protocol.ObjectRef{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
			out = append(out, model.RemovedAPI{
				Group: k.Group, Version: k.Version, Kind: k.Kind,
				Removed: version.String(), For: of.String(),
			})
		}
	}
	return out
}
