package objects

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/sharedobject"
)

// Owned reports an object that operators have.
func Owned(live *unstructured.Unstructured) bool {
	return live != nil && live.GetLabels()[kube.LabelManaged] == "true" &&
		(kube.OwnerOf(live) != kube.Operator{} || len(kube.Alongside(live)) > 0)
}

// onlyOf reports an object that no other operator has.
func onlyOf(live *unstructured.Unstructured, owner sharedobject.Owner) bool {
	if kube.OwnerOf(live) != (kube.Operator{Namespace: owner.Namespace, Name: owner.CSV}).Label() {
		return false
	}
	return !slices.ContainsFunc(kube.Alongside(live), func(name string) bool { return name != owner.String() })
}

// broughtBySeveral are the objects that several operators bring under one name, in the order of the plan.
func broughtBySeveral(objects []render.Object) [][]render.Object {
	type name struct{ group, kind, namespace, name string }
	at := map[name]int{}
	var out [][]render.Object
	for _, o := range objects {
		if !preflight.Formed(o) {
			continue
		}
		key := name{o.GVK.Group, o.GVK.Kind, o.Namespace, o.Name}
		i, met := at[key]
		if !met {
			i, at[key] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], o)
	}
	return slices.DeleteFunc(out, func(group []render.Object) bool { return len(group) < 2 })
}
