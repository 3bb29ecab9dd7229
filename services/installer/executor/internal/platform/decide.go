// Package platform finds what a cluster is made of: its distribution, nodes, capacity and APIs. Nothing that Chandler
// does in the cluster hangs on it: what may not be read is left empty, with the reason.
package platform

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mark tells a distribution by one thing that no other one has.
type mark struct{ distribution, sign string }

// byGroup, byVersion, byLabel and byProvider are the signs of distributions: an API group, a part of the version that
// the API server names, the key of a label of a node, and the beginning of a node's provider id. The first that fits
// counts.
var (
	byGroup   = []mark{{"openshift", "config.openshift.io"}}
	byVersion = []mark{
		{"eks", "-eks-"},
		{"gke", "-gke."},
		{"k3s", "+k3s"},
		{"rke2", "+rke2"},
		{"k0s", "+k0s"},
		{"tanzu", "+vmware"},
		{"iks", "+iks"},
	}
	byLabel = []mark{
		{"aks", "kubernetes.azure.com/cluster"},
		{"eks", "eks.amazonaws.com/nodegroup"},
		{"gke", "cloud.google.com/gke-nodepool"},
		{"doks", "doks.digitalocean.com/node-id"},
		{"microk8s", "microk8s.io/cluster"},
		{"minikube", "minikube.k8s.io/name"},
	}
	byProvider = []mark{{"kind", "kind://"}}
)

// Distribution names the distribution of a cluster, "" where nothing tells it.
func Distribution(version string, groups []string, nodes *Nodes) string {
	named := func(marks []mark, fits func(sign string) bool) string {
		for _, m := range marks {
			if fits(m.sign) {
				return m.distribution
			}
		}
		return ""
	}
	if d := named(byGroup, func(sign string) bool { return slices.Contains(groups, sign) }); d != "" {
		return d
	}
	version = strings.ToLower(version)
	if d := named(byVersion, func(sign string) bool { return strings.Contains(version, sign) }); d != "" {
		return d
	}
	if nodes == nil {
		return ""
	}
	if d := named(byLabel, func(sign string) bool { return nodes.labels[sign] }); d != "" {
		return d
	}
	return named(byProvider, func(sign string) bool { return nodes.providers[sign] })
}

// Nodes is the sum over nodes.
type Nodes struct {
	Count         int
	Architectures map[string]int // nodes by architecture
	milliCPU      int64          // allocatable
	bytes         int64          // allocatable memory
	labels        map[string]bool
	providers     map[string]bool
}

// Add counts a node.
func (n *Nodes) Add(node *unstructured.Unstructured) {
	if n.Architectures == nil {
		n.Architectures, n.labels, n.providers = map[string]int{}, map[string]bool{}, map[string]bool{}
	}
	n.Count++
	if a := text(node, "status", "nodeInfo", "architecture"); a != "" {
		n.Architectures[a]++
	}
	if q, err := resource.ParseQuantity(text(node, "status", "allocatable", "cpu")); err == nil {
		n.milliCPU += q.MilliValue()
	}
	if q, err := resource.ParseQuantity(text(node, "status", "allocatable", "memory")); err == nil {
		n.bytes += q.Value()
	}
	for _, m := range byLabel {
		if _, there := node.GetLabels()[m.sign]; there {
			n.labels[m.sign] = true
		}
	}
	for _, m := range byProvider {
		if strings.HasPrefix(text(node, "spec", "providerID"), m.sign) {
			n.providers[m.sign] = true
		}
	}
}

// CPU is how many cores operators and others may use on all nodes together, rounded.
func (n *Nodes) CPU() int64 { return Round(n.milliCPU / 1000) }

// Memory is the same in GiB.
func (n *Nodes) Memory() int64 { return Round(n.bytes >> 30) }

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil { // of another form: it says nothing
		return ""
	}
	return s
}

// Round leaves two digits of a number: a node more or less of hundreds is no news.
func Round(n int64) int64 {
	if n < 100 {
		return max(n, 0)
	}
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit/2) / unit * unit
}
