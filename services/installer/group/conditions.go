package group

import (
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TargetsMissing says that listed targets do not exist; the operators wait for the rights that they lack there.
func TargetsMissing(namespaces []string) protocol.GroupCondition {
	return protocol.GroupCondition{
		Type: protocol.GroupTargetsMissing, Reason: "NamespaceNotFound",
		Message: fmt.Sprintf("target namespaces that do not exist: %s; create them, or take them out of the operator group", strings.Join(namespaces, ", ")),
	}
}

// AccountMissing says that the account that the group names does not exist (R-OG §7.1).
func AccountMissing(g Group) protocol.GroupCondition {
	return protocol.GroupCondition{
		Type: protocol.GroupServiceAccount, Reason: "ServiceAccountNotFound",
		Message: fmt.Sprintf("service account %s/%s does not exist; create it, or take it out of the operator group", g.Namespace, g.Spec.ServiceAccountName),
	}
}
