package preflight

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Protected reports a definition of a group of the Kubernetes community, which an API server takes only with the
// annotation api-approved.kubernetes.io.
func Protected(o render.Object) bool {
	return o.GVK == gvkCRD && apihelpers.IsProtectedCommunityGroup(bundle.GroupOf(o.Name))
}

// Definition reports a custom resource definition.
func Definition(o render.Object) bool { return o.GVK == gvkCRD }

// Refused asks the API server, by a trial that changes nothing, for each object of the plan that is asked about,
// whether it would take it, and returns in its words why it would not. The error is a trial that says nothing about an
// object.
func Refused(ctx context.Context, c *kube.Epoch, q Question, asked func(render.Object) bool) ([]string, error) {
	var out []string
	for _, o := range q.Objects {
		if !asked(o) {
			continue
		}
		body := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.Body)}
		_, err := c.WouldApply(ctx, body, q.Managers[o.Resolving])
		switch {
		case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), kube.IsUntypable(err):
			out = append(out, o.String()+": the API server refuses it: "+err.Error())
		case err != nil:
			return nil, err
		}
	}
	return out, nil
}
