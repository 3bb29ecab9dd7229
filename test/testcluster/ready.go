package testcluster

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where the first deployment runs; users look at "default" and want to find it empty.
const (
	probeNamespace = metav1.NamespaceSystem
	probeName      = "testcluster-probe"
)

func (p *plane) apiServerReady(ctx context.Context) error {
	return p.admin.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// bringUpNodes creates the nodes and waits until they can be used.
func (p *plane) bringUpNodes(ctx context.Context) error {
	for i := range p.opts.Nodes {
		_, err := p.admin.client.CoreV1().Nodes().Create(ctx, newNode(fmt.Sprintf("node-%d", i+1)),
			metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	return p.await(ctx, p.nodesReady)
}

// newNode describes a node that takes every pod. It says amd64 wherever it runs: operators choose their nodes by
// architecture, and this is the one that all of them know.
func newNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			corev1.LabelHostname:             name,
			corev1.LabelOSStable:             "linux",
			corev1.LabelArchStable:           "amd64",
			"node-role.kubernetes.io/worker": "",
			"type":                           "kwok",
		},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}, Status: corev1.NodeStatus{Capacity: plenty(), Allocatable: plenty()}}
}

// plenty is more of everything than any operator asks for; what kwok gives by itself has no ephemeral storage.
func plenty() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1k"),
		corev1.ResourceMemory:           resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("100k"),
	}
}

func (p *plane) nodesReady(ctx context.Context) error {
	nodes, err := p.admin.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if !nodeReady(node) {
			return fmt.Errorf("node %s is not ready", node.Name)
		}
	}
	return nil
}

func nodeReady(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0
		}
	}
	return false
}

// proveFlow runs a deployment through all components and removes it again. The service account of the default namespace
// is waited for too: a pod there is refused without it.
func (p *plane) proveFlow(ctx context.Context) error {
	deployments := p.admin.client.AppsV1().Deployments(probeNamespace)
	if _, err := deployments.Create(ctx, probe(), metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := p.await(ctx, p.probeAvailable); err != nil {
		return err
	}
	if err := p.await(ctx, p.serviceAccountPresent); err != nil {
		return err
	}
	policy := metav1.DeletePropagationForeground
	if err := deployments.Delete(ctx, probeName, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		return err
	}
	return p.await(ctx, p.probeGone)
}

func probe() *appsv1.Deployment {
	labels := map[string]string{"app": probeName}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: probeName},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
			},
		},
	}
}

func (p *plane) probeAvailable(ctx context.Context) error {
	deployment, err := p.admin.client.AppsV1().Deployments(probeNamespace).Get(ctx, probeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("deployment %s is not available", probeName)
}

func (p *plane) serviceAccountPresent(ctx context.Context) error {
	_, err := p.admin.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

// probeGone holds when the garbage collector has removed the deployment with all that belongs to it.
func (p *plane) probeGone(ctx context.Context) error {
	_, err := p.admin.client.AppsV1().Deployments(probeNamespace).Get(ctx, probeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = errors.New("deployment " + probeName + " is still there")
	}
	return err
}
