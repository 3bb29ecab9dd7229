package group

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
