package uninstall

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// TestAnother: a removal is of the operator that it began with, not of whatever bears its name (R-UNI-1).
func TestAnother(t *testing.T) {
	t.Parallel()
	live := func(uid string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetUID(types.UID(uid))
		return o
	}
	gvk := kube.GVKInstalledOperator
	log := []kube.Step{{Group: "apps", Kind: "Deployment", UID: "2"}, {Group: gvk.Group, Kind: gvk.Kind, UID: "1"}}
	for name, c := range map[string]struct {
		live  *unstructured.Unstructured
		steps []kube.Step
		want  bool
	}{
		"the one that was looked at":              {live("1"), log, false},
		"gone meanwhile":                          {nil, log, false},
		"installed anew meanwhile":                {live("3"), log, true},
		"another object's identity":               {live("2"), log, true},
		"gone before, and nothing is there":       {nil, log[:1], false},
		"gone before, and installed anew":         {live("3"), log[:1], true},
		"a log that says nothing of its identity": {live("3"), []kube.Step{{Group: gvk.Group, Kind: gvk.Kind}}, true},
	} {
		if got := Another(c.live, c.steps); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if got := Last(log); len(got) != 1 || got[0].UID != "1" {
		t.Errorf("the last to go is %v", got)
	}
}
