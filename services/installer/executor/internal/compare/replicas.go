package compare

import (
	"bytes"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scale is the subresource through which autoscalers set replicas. People use it with kubectl, too; what they set so is
// an edit as any other (R-CSV-24).
const (
	scale   = "scale"
	kubectl = "kubectl"
)

// LeaveReplicas takes the number of replicas out of what is to be written of a Deployment that an autoscaler scales:
// in live that holds the number since Chandler wrote it.
func LeaveReplicas(want, live *unstructured.Unstructured) {
	if live == nil {
		return
	}
	for _, f := range live.GetManagedFields() {
		if f.Subresource == scale && !strings.HasPrefix(f.Manager, kubectl) && f.FieldsV1 != nil &&
			bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:replicas"`)) {
			unstructured.RemoveNestedField(want.Object, "spec", "replicas")
			return
		}
	}
}
