package groups

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/render"
)

// Targets are the targets that an operator is notified of and has its rights in: those of its group without those that it may not
// be given. Where it may not have the whole cluster it is told so all the same, and does not come to it: it waits for its
// rights and stays as it was.
func (l *Limits) Targets(operator string, targets []string) []string {
	return slices.DeleteFunc(slices.Clone(targets), func(t string) bool { return t != wholeCluster && l.Of(operator, t) })
}

// Annotations tell an operator, and its pods, of its group and of targets (R-OG §7.3).
func Annotations(g operatorgroup.Group, targets []string) map[string]string {
	return map[string]string{
		render.AnnotationOperatorGroup:     g.Name,
		render.AnnotationOperatorNamespace: g.Namespace,
		render.AnnotationTargetNamespaces:  strings.Join(targets, ","),
	}
}

// AnnotatePods puts annotations on the pods of a Deployment, beside those that they have.
func AnnotatePods(deployment *unstructured.Unstructured, annotations map[string]string) error {
	path := []string{"spec", "template", "metadata", "annotations"}
	have, _, err := unstructured.NestedStringMap(deployment.Object, path...)
	if err != nil {
		return err
	}
	all := map[string]string{}
	maps.Copy(all, have)
	maps.Copy(all, annotations)
	return unstructured.SetNestedStringMap(deployment.Object, all, path...)
}
