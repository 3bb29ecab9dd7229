package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// maxMessage bounds what a condition says in the words of others.
const maxMessage = 2048

// TargetsMissing says that listed targets do not exist; the operators wait for the rights that they lack there.
func TargetsMissing(namespaces []string) protocol.GroupCondition {
	return protocol.GroupCondition{
		Type: protocol.GroupTargetsMissing, Reason: "NamespaceNotFound",
		Message: fmt.Sprintf(
			"target namespaces that do not exist: %s; create them, or take them out of the operator group",
			strings.Join(namespaces, ", ")),
	}
}

// AccountMissing says that the account that the group names does not exist (R-OG §7.1).
func AccountMissing(g operatorgroup.Group) protocol.GroupCondition {
	return protocol.GroupCondition{
		Type: protocol.GroupServiceAccount, Reason: "ServiceAccountNotFound",
		Message: fmt.Sprintf("service account %s/%s does not exist; create it, or take it out of the operator group",
			g.Namespace, g.Spec.ServiceAccountName),
	}
}

// TargetsForbidden says which targets operators are not given, since their accounts lack what is to be given there;
// lacks says what, more is how much beside (R-OG-60).
func TargetsForbidden(denied map[string][]string, lacks string, more int) protocol.GroupCondition {
	var whom []string
	for _, operator := range slices.Sorted(maps.Keys(denied)) {
		targets := slices.Clone(denied[operator])
		if i := slices.Index(targets, ""); i >= 0 {
			targets[i] = "all namespaces"
		}
		whom = append(whom, operator+" ("+strings.Join(targets, ", ")+")")
	}
	if more > 0 {
		lacks += fmt.Sprintf("; and %d more", more)
	}
	return protocol.GroupCondition{
		Type: protocol.GroupForbidden, Reason: "Forbidden",
		Message: cut("operators are not given target namespaces that their service account has no such rights in: " +
			strings.Join(whom, "; ") +
			". It lacks: " + lacks + ". Grant that, or take the namespaces out of the operator group"),
	}
}

// UpkeepFailed says what cannot be done for operators of the group, or is undone by others again and again.
func UpkeepFailed(texts []string) protocol.GroupCondition {
	return protocol.GroupCondition{
		Type: protocol.GroupUnattended, Reason: "TriedAgain",
		Message: cut("tried again until it succeeds: " + strings.Join(texts, "; ")),
	}
}

func cut(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
