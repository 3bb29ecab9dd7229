package deferred

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// objectOf is the object that a step of the log is about; nil where its bundle renders to it no more, since what it is
// configured with may have changed since.
func objectOf(step *kube.Step, objects []render.Object) *render.Object {
	i := slices.IndexFunc(objects, func(o render.Object) bool {
		return o.GVK.Group == step.Group && o.GVK.Kind == step.Kind && o.Namespace == step.Namespace &&
			o.Name == step.Name
	})
	if i < 0 {
		return nil
	}
	return &objects[i]
}

// carriedOut notes in the log that a step that was left is done.
func carriedOut(step *kube.Step, epoch int64, now time.Time) {
	step.State, step.Epoch, step.Time, step.Warnings = kube.StepDone, epoch, now.UTC(), nil
}

// established reports a definition of which the API server says that it serves the kind.
func established(definition *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return err == nil && slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Established" && m["status"] == "True"
	})
}
