package serving

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func (w worker) overlay() overlay.Overlay {
	g, certificates := w.Snapshot.Wanted.OperatorGroup, w.Found.Certificates
	selector := certs.Namespaces(scope.LabelNamespacePrefix+g.ID, g.Spec)
	secret := func(deployment string) string { return render.SecretName(render.ServiceName(deployment)) }
	return overlay.Overlay{
		About: func(s scope.RenderTarget, kind, name string) bool {
			_, held := w.Found.Former[name]
			switch {
			case kind == kube.GVKCRD.Kind:
				return held || slices.Contains(certs.Converted(s.CSV), name)
			case !scope.Serves(s.CSV):
				return false
			case kind == kube.GVKDeployment.Kind:
				return slices.ContainsFunc(w.Called(s.CSV), func(c render.Serving) bool { return c.Deployment == name })
			}
			return slices.ContainsFunc([]schema.GroupVersionKind{
				render.GVKAPIService, render.GVKValidatingWebhook,
				render.GVKMutatingWebhook,
			},
				func(gvk schema.GroupVersionKind) bool { return gvk.Kind == kind })
		},
		Input: func(s scope.RenderTarget) any {
			if !scope.Serves(s.CSV) {
				return nil
			}
			hashes := map[string]string{}
			for _, c := range w.Called(s.CSV) {
				hashes[c.Secret] = certificates[c.Secret].Hash()
			}
			return map[string]any{"certificates": hashes, "namespaces": selector, "conditions": certs.Conditions}
		},
		Apply: func(_ scope.RenderTarget, body *unstructured.Unstructured) error {
			switch former, held := w.Found.Former[body.GetName()]; {
			case body.GetKind() == kube.GVKDeployment.Kind:
				return certs.Restart(body, certificates[secret(body.GetName())])
			case body.GetKind() == kube.GVKCRD.Kind && held:
				if err := former.Keep(body); err != nil {
					return err
				}
			}
			return certs.Trust(body, certificates, selector)
		},
	}
}
