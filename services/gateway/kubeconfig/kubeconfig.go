// Package kubeconfig refuses kubeconfigs as requests are refused: with every rule broken and its place. The rules are
// those of libs/kubeconfig. The package is pure.
package kubeconfig

import (
	"fmt"
	"time"

	"github.com/chandler-fleet/chandler/libs/kubeconfig"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Cluster is the kubeconfig of a cluster.
type Cluster struct {
	Canonical []byte   // as it is to be stored
	Waived    []string // the waivers that it needs
	Ends      time.Time
}

// CheckCluster returns the kubeconfig of a cluster, or an error of kind errs.Invalid that names every rule broken.
// field is the place of the kubeconfig in the input, waive what an administrator allows.
func CheckCluster(field string, raw []byte, waive []string) (out Cluster, err error) {
	waived := make([]kubeconfig.Waiver, len(waive))
	for i, w := range waive {
		waived[i] = kubeconfig.Waiver(w)
	}
	c, faults := kubeconfig.Read(raw, waived...)
	if err := violations(field, faults, instead); err != nil {
		return out, err
	}
	for _, w := range c.Waived {
		out.Waived = append(out.Waived, string(w))
	}
	out.Ends = c.Ends()
	out.Canonical, err = c.Canonical()
	return out, err
}

// Check refuses a kubeconfig that is no cluster's: nothing can be waived for it.
func Check(field string, raw []byte) error {
	_, faults := kubeconfig.Read(raw)
	return violations(field, faults, func(kubeconfig.Fault) string { return "" })
}

// instead is what helps beside what a fault says itself.
func instead(f kubeconfig.Fault) string {
	switch {
	case f.Waiver != "":
		return fmt.Sprintf("; an administrator may waive this for the cluster with waive %q", f.Waiver)
	case f.Rule == kubeconfig.RuleNoExec || f.Rule == kubeconfig.RuleNoAuthPlugin:
		return "; give the token of a service account of the cluster instead"
	}
	return ""
}

func violations(field string, faults []kubeconfig.Fault, instead func(kubeconfig.Fault) string) error {
	var v rule.Violations
	for _, f := range faults {
		v.Addf(field, f.Rule, "%s%s", f, instead(f))
	}
	return v.Err()
}
