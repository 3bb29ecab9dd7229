package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var csvResource = schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "clusterserviceversions"}

// seen shows what the clusters' own API servers say, so that nobody has to believe Chandler.
func (p *play) seen(ctx context.Context, clusters ...string) error {
	p.title("What the clusters' own API servers say")
	for _, name := range clusters {
		if err := p.seenOn(ctx, name); err != nil {
			return fmt.Errorf("ask the API server of %s: %w", name, err)
		}
	}
	return nil
}

func (p *play) seenOn(ctx context.Context, cluster string) error {
	config, err := clientcmd.BuildConfigFromFlags("", p.state.Clusters[cluster].Kubeconfig)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	csvs, err := p.mirrored(ctx, dyn)
	if err != nil {
		return err
	}
	deployments, err := kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tKIND\tNAME\tSTATE")
	for _, csv := range csvs.Items {
		phase, _, err := unstructured.NestedString(csv.Object, "status", "phase")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\tClusterServiceVersion\t%s\t%s\n", cluster, csv.GetName(), phase)
	}
	for _, d := range deployments.Items {
		fmt.Fprintf(w, "%s\tDeployment\t%s\t%s\n", cluster, d.Name, availability(d))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.TrimSpace(table.String()), "\n") {
		p.say(line)
	}
	return nil
}

const (
	// mirrorLag bounds the wait for phases to be shown in the cluster: those that pass at once are not.
	mirrorLag  = 15 * time.Second
	mirrorPoll = 250 * time.Millisecond
)

// mirrored are the ClusterServiceVersions of the demo's namespace, once they show how the operators do.
func (p *play) mirrored(ctx context.Context, dyn dynamic.Interface) (csvs *unstructured.UnstructuredList, err error) {
	err = wait.PollUntilContextTimeout(ctx, mirrorPoll, mirrorLag, true, func(ctx context.Context) (bool, error) {
		csvs, err = dyn.Resource(csvResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, csv := range csvs.Items {
			if phase, _, _ := unstructured.NestedString(csv.Object, "status", "phase"); phase != "Succeeded" {
				return false, nil
			}
		}
		return len(csvs.Items) > 0, nil
	})
	return csvs, err
}

func availability(d appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("Available, %d of %d ready", d.Status.ReadyReplicas, d.Status.Replicas)
		}
	}
	return "not Available"
}
