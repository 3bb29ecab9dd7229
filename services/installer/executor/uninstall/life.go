package uninstall

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Last are the entries of a log for the InstalledOperator itself: none where it was gone when the removal began.
func Last(steps []kube.Step) []kube.Step {
	var out []kube.Step
	for _, s := range steps {
		if s.Group == kube.GVKInstalledOperator.Group && s.Kind == kube.GVKInstalledOperator.Kind {
			out = append(out, s)
		}
	}
	return out
}

// Another reports an InstalledOperator that is not the one which a removal with this log began with. nil is none at
// all: what is left of that one goes.
func Another(live *unstructured.Unstructured, steps []kube.Step) bool {
	return live != nil && !slices.ContainsFunc(Last(steps),
		func(s kube.Step) bool { return s.UID == string(live.GetUID()) })
}
