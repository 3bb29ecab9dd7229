package preflight

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/render"
)

// TestReservedGroups compares the table of reserved groups with the types of Kubernetes, both ways.
func TestReservedGroups(t *testing.T) {
	t.Parallel()
	var known []string
	for gv := range scheme.Scheme.AllKnownTypes() {
		known = append(known, gv.Group)
	}
	// What client-go has no clients for: definitions, and aggregated APIs.
	known = append(known, apiextensions.GroupName, "apiregistration.k8s.io")
	slices.Sort(known)
	known = slices.DeleteFunc(slices.Compact(known), func(g string) bool {
		return strings.HasPrefix(g, "__") ||
			g == "meta.k8s.io"
	})
	have := bundle.ReservedGroups()
	slices.Sort(have)
	for _, g := range known {
		if !bundle.Reserved(g) {
			t.Errorf("group %q is Kubernetes' own and not reserved", g)
		}
	}
	for _, g := range have {
		if !slices.Contains(known, g) {
			t.Errorf("group %q is reserved and not Kubernetes' own", g)
		}
	}
}

// TestProtected: which definitions the API server asks an approval of.
func TestProtected(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]bool{
		"charts.helm.k8s.io": true, "x.kubernetes.io": true, "k8s.io": true,
		"sea.test": false, "cluster.x-k8s.io": false,
	} {
		if got := Protected(render.Object{GVK: gvkCRD, Name: "tides." + group}); got != want {
			t.Errorf("group %q: %v", group, got)
		}
	}
	if Protected(render.Object{GVK: render.GVKAPIService, Name: "tides.x.k8s.io"}) {
		t.Error("an API service is no definition")
	}
}
