package platform_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/platform"
)

func node(arch, cpu, memory, label, provider string) *unstructured.Unstructured {
	n := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"providerID": provider},
		"status": map[string]any{
			"nodeInfo":    map[string]any{"architecture": arch},
			"allocatable": map[string]any{"cpu": cpu, "memory": memory},
		},
	}}
	n.SetLabels(map[string]string{"kubernetes.io/arch": arch, label: ""})
	return n
}

// TestDistribution: each sign tells its distribution, and nothing is guessed.
func TestDistribution(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ version, group, label, provider, want string }{
		{"v1.34.4", "apps", "x", "", ""},
		{"v1.31.6", "config.openshift.io", "x", "", "openshift"},
		{"v1.33.5-eks-3025e55", "", "x", "", "eks"},
		{"v1.33.4-gke.1172000", "", "x", "", "gke"},
		{"v1.33.4+k3s1", "", "x", "", "k3s"},
		{"v1.33.4+rke2r1", "", "x", "", "rke2"},
		{"v1.33.4+k0s", "", "x", "", "k0s"},
		{"v1.33.4+IKS", "", "x", "", "iks"},
		{"v1.33.4", "", "kubernetes.azure.com/cluster", "", "aks"},
		{"v1.33.4", "", "eks.amazonaws.com/nodegroup", "aws:///eu/i-1", "eks"},
		{"v1.33.4", "", "minikube.k8s.io/name", "", "minikube"},
		{"v1.33.4", "", "x", "kind://docker/kind/kind-control-plane", "kind"},
	} {
		var nodes platform.Nodes
		nodes.Add(node("amd64", "1", "1Gi", c.label, c.provider))
		if got := platform.Distribution(c.version, []string{c.group}, &nodes); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if got := platform.Distribution("v1.33.4", nil, nil); got != "" {
		t.Errorf("nothing is known: %q", got)
	}
}

func TestRound(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]int64{
		-1: 0, 0: 0, 7: 7, 99: 99, 100: 100, 104: 100, 105: 110, 996: 1000, 1249: 1200, 123456: 120000,
	} {
		if got := platform.Round(n); got != want {
			t.Errorf("%d is rounded to %d, want %d", n, got, want)
		}
	}
}

// fakeCluster serves nodes in pages, or an error.
type fakeCluster struct {
	nodes            []unstructured.Unstructured
	nodesErr, uidErr error
}

func (f fakeCluster) Page(_ context.Context, _ schema.GroupVersionResource, limit int64, from string) (
	[]unstructured.Unstructured, string, error,
) {
	if f.nodesErr != nil {
		return nil, "", f.nodesErr
	}
	at := 0
	if from != "" {
		if _, err := fmt.Sscan(from, &at); err != nil {
			return nil, "", err
		}
	}
	end := at + int(limit)
	if end >= len(f.nodes) {
		return f.nodes[at:], "", nil
	}
	return f.nodes[at:end], fmt.Sprint(end), nil
}

func (f fakeCluster) GetMetadata(context.Context, schema.GroupVersionKind, string, string) (
	*metav1.PartialObjectMetadata, error,
) {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}}, f.uidErr
}

// TestRead: nodes of several pages are summed up; what is forbidden or too much is left empty with the reason; another
// error is one.
func TestRead(t *testing.T) {
	t.Parallel()
	var nodes []unstructured.Unstructured
	for range 150 {
		nodes = append(nodes, *node("amd64", "3920m", "15Gi", "x", ""))
	}
	nodes = append(nodes, *node("arm64", "what?", "", "x", ""))
	apis := func() ([]string, error) { return []string{"v1", "apps/v1", "config.openshift.io/v1"}, nil }
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "x", nil)
	many := make([]unstructured.Unstructured, 5001)
	for i := range many {
		many[i] = nodes[0]
	}
	whole := events.ClusterFacts{
		ClusterUID: "u-1", Distribution: "openshift", Nodes: 150, CPUCores: 590, MemoryGiB: 2300,
		Architectures: map[string]int64{"amd64": 150, "arm64": 1},
	}
	for name, c := range map[string]struct {
		fakeCluster
		apis func() ([]string, error)
		want events.ClusterFacts
	}{
		"all": {fakeCluster{nodes: nodes}, apis, whole},
		"none": {
			fakeCluster{nodesErr: forbidden, uidErr: forbidden},
			func() ([]string, error) { return nil, forbidden },
			events.ClusterFacts{Missing: map[string]string{
				"nodes": "Forbidden", "apis": "Forbidden", "clusterUID": "Forbidden",
			}},
		},
		"too many": {fakeCluster{nodes: many}, apis, events.ClusterFacts{
			ClusterUID: "u-1", Distribution: "openshift", Missing: map[string]string{"nodes": "TooMany"},
		}},
	} {
		got, err := platform.Read(t.Context(), c.fakeCluster, "v1.34.4", c.apis)
		if diff := cmp.Diff(c.want, got.Facts); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	away := errors.New("connection refused")
	if _, err := platform.Read(t.Context(), fakeCluster{nodesErr: away}, "", apis); !errors.Is(err, away) {
		t.Errorf("a cluster that is away: %v", err)
	}
}
