package platform

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/events"
)

const (
	// nodesPage is how many nodes are read at a time: one has 10 to 50 KiB.
	nodesPage = 100
	// maxNodes bounds the nodes that are read: 5,000 is what Kubernetes is made for.
	maxNodes = 5000
)

var (
	gvrNodes     = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	gvkNamespace = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
)

// Cluster is what is asked of a cluster.
type Cluster interface {
	Page(ctx context.Context, r schema.GroupVersionResource, limit int64, from string) (
		items []unstructured.Unstructured, next string, err error)
	GetMetadata(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (
		*metav1.PartialObjectMetadata, error)
}

// Found is what was found. Facts have no digest of the APIs: whoever records them makes it.
type Found struct {
	Facts events.ClusterFacts
	APIs  []string // as group/version, v1 for the core group; in no order
}

// Read asks a cluster whose API server says that it is of a version. apis lists the API groups with their versions, for
// which the client has a method of its own. What may not be read, or is too much, is in Facts.Missing; any other error
// says nothing about the cluster, and the whole is to be tried again.
func Read(ctx context.Context, c Cluster, version string, apis func() ([]string, error)) (Found, error) {
	var f Found
	missing := map[string]string{}
	steps := []struct {
		part string
		do   func() (reason string, err error)
	}{
		{events.FactClusterUID, func() (string, error) {
			system, err := c.GetMetadata(ctx, gvkNamespace, "", metav1.NamespaceSystem)
			if err == nil && system != nil {
				f.Facts.ClusterUID = string(system.UID)
			}
			return "", err
		}},
		{events.FactAPIs, func() (_ string, err error) {
			f.APIs, err = apis()
			return "", err
		}},
		{events.FactNodes, func() (string, error) {
			nodes, reason, err := readNodes(ctx, c)
			if nodes != nil {
				f.Facts.Nodes = Round(int64(nodes.Count))
				f.Facts.CPUCores, f.Facts.MemoryGiB = nodes.CPU(), nodes.Memory()
				f.Facts.Architectures = map[string]int64{}
				for a, n := range nodes.Architectures {
					f.Facts.Architectures[a] = Round(int64(n))
				}
			}
			f.Facts.Distribution = Distribution(version, groups(f.APIs), nodes)
			return reason, err
		}},
	}
	for _, s := range steps {
		reason, err := s.do()
		switch {
		case apierrors.IsForbidden(err):
			reason = events.FactForbidden
		case err != nil:
			return Found{}, err
		}
		if reason != "" {
			missing[s.part] = reason
		}
	}
	if len(missing) > 0 {
		f.Facts.Missing = missing
	}
	return f, nil
}

// readNodes is nil, with the reason, where there are too many.
func readNodes(ctx context.Context, c Cluster) (nodes *Nodes, reason string, err error) {
	nodes = &Nodes{}
	for from, more := "", true; more; more = from != "" {
		var page []unstructured.Unstructured
		if page, from, err = c.Page(ctx, gvrNodes, nodesPage, from); err != nil {
			return nil, "", err
		}
		for i := range page {
			nodes.Add(&page[i])
		}
		if nodes.Count > maxNodes {
			return nil, events.FactTooMany, nil
		}
	}
	return nodes, "", nil
}

// groups are the groups of APIs.
func groups(apis []string) []string {
	out := make([]string, 0, len(apis))
	for _, a := range apis {
		if group, _, ok := strings.Cut(a, "/"); ok {
			out = append(out, group)
		}
	}
	return out
}
