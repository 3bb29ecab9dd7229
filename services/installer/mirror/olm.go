package mirror

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// OLMDeployments are the names of the Deployments that are OLM; each bears its name in the label app, too.
func OLMDeployments() []string { return []string{"catalog-operator", "olm-operator"} }

// OLMSelector selects them by their labels.
func OLMSelector() string { return "app in (" + strings.Join(OLMDeployments(), ",") + ")" }

// OLMRunning returns which of the Deployments are OLM at work, as namespace/name, sorted. One that is scaled to nothing
// or on its way out does not count; one whose pods are not ready does: it comes back by itself.
func OLMRunning(list []appsv1.Deployment) []string {
	var out []string
	for _, d := range list {
		wanted := d.Spec.Replicas == nil || *d.Spec.Replicas > 0
		if wanted && d.DeletionTimestamp == nil && slices.Contains(OLMDeployments(), d.Name) && d.Labels["app"] == d.Name {
			out = append(out, d.Namespace+"/"+d.Name)
		}
	}
	slices.Sort(out)
	return out
}
