package rerender

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// rewrites reports an object that does not look as it is to look, rendered being the digest of that. Of an operator
// that waits behind its successor it is written as long as it is that one's own: what the successor has taken over, or
// is gone, is left.
func rewrites(live *unstructured.Unstructured, rendered string, own kube.Operator, waits bool) bool {
	if live == nil {
		return !waits
	}
	return live.GetAnnotations()[scope.AnnotationRendered] != rendered && (!waits || kube.OwnerOf(live) == own.Label())
}
