package rerender

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// TestRewrites: R-CSV-50: what is written again when an overlay has another input.
func TestRewrites(t *testing.T) {
	t.Parallel()
	own := kube.Operator{Namespace: "ports", Name: "tide.v1"}
	object := func(rendered, owner string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetAnnotations(map[string]string{scope.AnnotationRendered: rendered})
		o.SetLabels(map[string]string{
			render.LabelOwner:          render.OwnerLabelValue(owner),
			render.LabelOwnerNamespace: own.Namespace,
		})
		return o
	}
	for name, c := range map[string]struct {
		live  *unstructured.Unstructured
		waits bool
		want  bool
	}{
		"as it is to look":                     {object("new", own.Name), false, false},
		"otherwise":                            {object("old", own.Name), false, true},
		"gone":                                 {nil, false, true},
		"it waits, and looks as it is to look": {object("new", own.Name), true, false},
		"it waits, otherwise":                  {object("old", own.Name), true, true},
		"it waits, and the successor has taken it": {object("old", "tide.v2"), true, false},
		"it waits, and it is gone":                 {nil, true, false},
	} {
		if got := rewrites(c.live, "new", own, c.waits); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
