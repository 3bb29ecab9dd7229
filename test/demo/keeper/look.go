package main

import (
	"context"
	"fmt"
	"io"
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

	"github.com/chandler-fleet/chandler/test/demo/internal/handover"
)

var csvResource = schema.GroupVersionResource{
	Group: "operators.coreos.com", Version: "v1alpha1",
	Resource: "clusterserviceversions",
}

// look shows what the API server of a cluster itself says, so that nobody has to believe Chandler.
func look(ctx context.Context, out io.Writer, cluster, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
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
	csvs, err := mirrored(ctx, dyn)
	if err != nil {
		return err
	}
	deployments, err := kube.AppsV1().Deployments(handover.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, columnGap, ' ', 0)
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
	return w.Flush()
}

// columnGap is what lies between two columns.
const columnGap = 3

const (
	// mirrorLag bounds the wait for phases to be shown in the cluster: those that pass at once are not.
	mirrorLag  = 15 * time.Second
	mirrorPoll = 250 * time.Millisecond
)

// mirrored are the ClusterServiceVersions of the demo's namespace, once they show how the operators do.
func mirrored(ctx context.Context, dyn dynamic.Interface) (csvs *unstructured.UnstructuredList, err error) {
	err = wait.PollUntilContextTimeout(ctx, mirrorPoll, mirrorLag, true, func(ctx context.Context) (bool, error) {
		csvs, err = dyn.Resource(csvResource).Namespace(handover.Namespace).List(ctx, metav1.ListOptions{})
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
