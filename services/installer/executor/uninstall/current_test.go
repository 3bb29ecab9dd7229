package uninstall

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

// TestOf: of a step log only that goes which removing the operator would remove now, too (R-UNI-1).
func TestOf(t *testing.T) {
	t.Parallel()
	deployment := protocol.ObjectRef{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ops", Name: "tide"}
	crd := protocol.ObjectRef{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		Name: "gauges.sea.test",
	}
	f := Found{
		Plan: protocol.RemovalPlan{Steps: []protocol.RemovalStep{
			{Action: protocol.RemovalObjects, Objects: []protocol.ObjectRef{deployment}},
			{Action: protocol.RemovalCRDs, Objects: []protocol.ObjectRef{crd}},
		}},
		UIDs: map[protocol.ObjectRef]string{deployment: "1", crd: "2"},
	}
	step := func(action string, o protocol.ObjectRef, uid string) kube.Step {
		return kube.Step{
			Action: action, Group: o.Group, Version: o.Version, Kind: o.Kind, Namespace: o.Namespace,
			Name: o.Name, UID: uid,
		}
	}
	foreign := protocol.ObjectRef{
		Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding",
		Name: "admins",
	}
	for name, c := range map[string]struct {
		step kube.Step
		crds []string
		want bool
	}{
		"an object of the operator":               {step(protocol.RemovalObjects, deployment, "1"), nil, true},
		"its namesake, made since":                {step(protocol.RemovalObjects, deployment, "9"), nil, false},
		"an object whose identity nobody noted":   {step(protocol.RemovalObjects, deployment, ""), nil, false},
		"an object that was never the operator's": {step(protocol.RemovalObjects, foreign, "3"), nil, false},
		"a definition, by name":                   {step(protocol.RemovalCRDs, crd, "2"), []string{crd.Name}, true},
		"a definition, with all":                  {step(protocol.RemovalCRDs, crd, "2"), []string{removal.All}, true},
		"a definition that nobody asked for":      {step(protocol.RemovalCRDs, crd, "2"), nil, false},
		"a definition as a plain object":          {step(protocol.RemovalObjects, crd, "2"), nil, false},
	} {
		var want []kube.Step
		if c.want {
			want = append(want, c.step)
		}
		if got := f.of([]kube.Step{c.step}, c.crds); !cmp.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// TestBroughtEarlier: a definition that a version before brought, and the one that is there does not, is announced, too
// (R-UNI-2): nobody else would ever name it.
func TestBroughtEarlier(t *testing.T) {
	t.Parallel()
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "gauges.sea.test", ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kube-apiserver"}, {Manager: kube.Manager("ops", "tide")},
		},
	}}
	for name, c := range map[string]struct {
		namespace, packageName string
		want                   bool
	}{
		"a version of the package":          {"ops", "tide", true},
		"the package in another namespace":  {"coast", "tide", false},
		"another package":                   {"ops", "buoy", false},
		"one of which the package is gone":  {"ops", "", false},
		"a package whose name begins alike": {"ops", "tid", false},
	} {
		if got := broughtEarlier(o, c.namespace, c.packageName); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
