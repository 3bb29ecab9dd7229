package operatorgroup

import (
	"fmt"
	"slices"
	"strings"
)

// Standing is a group of the cluster with what it serves and provides now. A static group provides what its
// spec says (R-OG-30), any other what its members have claimed.
type Standing struct {
	Group
	Targets  []string
	Provided []string // Kind.version.group, sorted
}

// Action is what the table of R-OG §7.7 asks for.
type Action string

// The actions.
const (
	Proceed  Action = "Proceed"  // the member may provide its APIs
	Claim    Action = "Claim"    // the APIs are nobody's: they become the group's
	Withdraw Action = "Withdraw" // the group gives up the member's APIs, and is looked at again
	Refuse   Action = "Refuse"   // the member fails and loses its Deployments
)

// Reasons of a refusal (R-OG §7.7, R-CSV §6.3).
const (
	ReasonStatic        = "CannotModifyStaticOperatorGroupProvidedAPIs"
	ReasonOwnerConflict = "InterOperatorGroupOwnerConflict"
)

// Verdict is what becomes of the APIs of one member.
type Verdict struct {
	Action  Action
	Reason  string // of a refusal
	Message string // of a refusal, for people: the field's words, then whose and which
}

// Intersect reports whether two groups have a target in common. Its own namespace is a target of each (R-OG §7.7).
func Intersect(a, b Standing) bool {
	if Global(a.Targets) || Global(b.Targets) {
		return true
	}
	return slices.ContainsFunc(a.withOwn(), func(ns string) bool { return slices.Contains(b.withOwn(), ns) })
}

func (s Standing) withOwn() []string { return append(slices.Clone(s.Targets), s.Namespace) }

// Judge is the table of R-OG-35. I are the member's APIs that other, intersecting groups provide; S holds when all
// of its APIs are among those of its own group.
//
//	I empty | S   | static | action
//	yes     | yes | any    | proceed
//	yes     | no  | no     | the group claims the member's APIs
//	yes     | no  | yes    | refused: CannotModifyStaticOperatorGroupProvidedAPIs
//	no      | no  | any    | refused: InterOperatorGroupOwnerConflict
//	no      | yes | no     | the group withdraws the member's APIs, look again
//	no      | yes | yes    | refused: CannotModifyStaticOperatorGroupProvidedAPIs
//
// A refusal ends by itself once the other group is gone or provides the API no more (R-OG-36).
func Judge(own Standing, apis []string, others []Standing) Verdict {
	contested := contested(own, apis, others)
	contained := !slices.ContainsFunc(apis, func(a string) bool { return !slices.Contains(own.Provided, a) })
	static := own.Spec.StaticProvidedAPIs
	switch {
	case len(contested) == 0 && contained:
		return Verdict{Action: Proceed}
	case len(contested) == 0 && !static:
		return Verdict{Action: Claim}
	case len(contested) == 0:
		return refuse(ReasonStatic,
			"static provided api operatorgroup cannot be modified by these apis: %s are not among the APIs of "+
				"operator group %s",
			strings.Join(missing(apis, own.Provided), ", "), own)
	case !contained:
		return refuse(ReasonOwnerConflict, "intersecting operatorgroups provide the same apis: %s",
			strings.Join(contested, ", "))
	case !static:
		return Verdict{Action: Withdraw}
	}
	return refuse(ReasonStatic, "static provided api operatorgroup cannot be modified by these apis: %s",
		strings.Join(contested, ", "))
}

func refuse(reason, format string, args ...any) Verdict {
	return Verdict{Action: Refuse, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// contested are the member's APIs that others provide, each as "API of operator group namespace/name".
func contested(own Standing, apis []string, others []Standing) []string {
	var out []string
	for _, o := range others {
		if o.Namespace == own.Namespace || !Intersect(own, o) {
			continue
		}
		for _, a := range apis {
			if slices.Contains(o.Provided, a) {
				out = append(out, a+" of operator group "+o.String())
			}
		}
	}
	slices.Sort(out)
	return out
}

func missing(apis, provided []string) []string {
	return slices.DeleteFunc(slices.Clone(apis), func(a string) bool { return slices.Contains(provided, a) })
}
