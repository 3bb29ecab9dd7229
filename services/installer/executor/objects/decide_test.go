package objects

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/sharedobject"
)

// live is an object of the cluster that an operator owns, with others alongside.
func live(owner string, alongside ...sharedobject.Owner) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	labels := map[string]string{kube.LabelManaged: "true"}
	if owner != "" {
		labels[render.LabelOwner] = render.OwnerLabelValue(owner)
		labels[render.LabelOwnerNamespace] = "ports"
	}
	o.SetLabels(labels)
	for _, other := range alongside {
		kube.NoteWants(o, other)
	}
	return o
}

// TestOwned: ADR 0021: an object is operators' where Chandler manages it and one of them owns it or has it, too.
func TestOwned(t *testing.T) {
	t.Parallel()
	somebody := live("tide.v1")
	somebody.SetLabels(map[string]string{render.LabelOwner: render.OwnerLabelValue("tide.v1")})
	for name, c := range map[string]struct {
		o    *unstructured.Unstructured
		want bool
	}{
		"gone":                 {nil, false},
		"an operator's":        {live("tide.v1"), true},
		"Chandler's own":       {live(""), false},
		"not managed any more": {somebody, false},
	} {
		if got := Owned(c.o); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestOnlyOf: of an object that names its owner alone nobody else is asked.
func TestOnlyOf(t *testing.T) {
	t.Parallel()
	owner := sharedobject.Owner{Namespace: "ports", Package: "tide", CSV: "tide.v1"}
	if !onlyOf(live("tide.v1"), owner) {
		t.Error("it is the operator's alone")
	}
	if onlyOf(live("wind.v1"), owner) {
		t.Error("it is another operator's")
	}
}

// TestBroughtBySeveral: objects that several operators of a plan bring under one name, in the order of the plan. A
// version of a kind is no name of its own; what no form can differ in is left out.
func TestBroughtBySeveral(t *testing.T) {
	t.Parallel()
	object := func(version, kind, name, by string) render.Object {
		return render.Object{
			GVK:  schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: version, Kind: kind},
			Name: name, Resolving: by,
			Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{render.LabelOwner: by}}},
		}
	}
	got := broughtBySeveral([]render.Object{
		object("v1", "PriorityClass", "harbour", "tide.v1"),
		object("v1", "PriorityClass", "tide", "tide.v1"),
		object("v1beta1", "PriorityClass", "harbour", "wind.v1"),
		object("v1", "PriorityClass", "wind", "wind.v1"),
	})
	if len(got) != 1 || len(got[0]) != 2 || got[0][0].Resolving != "tide.v1" || got[0][1].Resolving != "wind.v1" {
		t.Errorf("got %v", got)
	}
}
