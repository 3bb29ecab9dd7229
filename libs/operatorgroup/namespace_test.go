package operatorgroup_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/operatorgroup"
)

// TestReservedAnnotation: issue 13 §4, ADR 0063: settings of namespaces are kept, and not what clusters and programs
// note there.
func TestReservedAnnotation(t *testing.T) {
	t.Parallel()
	for key, reserved := range map[string]bool{
		"openshift.io/node-selector":                                   false,
		"openshift.io/requester":                                       true,
		"openshift.io/requester-team":                                  false,
		"openshift.io/sa.scc.uid-range":                                true,
		"scheduler.alpha.kubernetes.io/defaultTolerations":             false,
		"linkerd.io/inject":                                            false,
		"kubectl.kubernetes.io/last-applied-configuration":             true,
		"security.openshift.io/MinimallySufficientPodSecurityStandard": true,
		"meta.helm.sh/release-name":                                    true,
		"argocd.argoproj.io/tracking-id":                               true,
		"argocd.argoproj.io/sync-wave":                                 false,
		"objectset.rio.cattle.io/applied":                              true,
		"lifecycle.cattle.io/create.namespace-auth":                    true,
		"cattle.io/status":                                             true,
		"field.cattle.io/projectId":                                    false,
		"chandler-fleet.io/plan":                                       true,
		"olm.operatorgroup.uid/x":                                      true,
	} {
		if why := operatorgroup.ReservedAnnotation(key); (why != "") != reserved {
			t.Errorf("%s: reserved %q, want %v", key, why, reserved)
		}
	}
}
