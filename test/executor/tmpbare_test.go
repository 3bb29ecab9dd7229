package executor_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/render"
)

func TestTmpBare(t *testing.T) {
	set, contents := installSet(t)
	b := newBed(t)
	stop := b.start(b.config("one"))
	await(t, "the executor", func(ctx context.Context) error { return b.heldIn(ctx, 1) })
	stop()
	cfg := b.cluster.RESTConfig()
	cfg.QPS, cfg.Burst = 200, 400
	dyn, err := dynamic.NewForConfig(cfg)
	must(t, err)
	begin := time.Now()
	n := 0
	by := map[string]time.Duration{}
	defer func() { t.Log("bare: ", by) }()
	for _, e := range set[:wanted(t)] {
		content := contents[e.HeadDir]
		csv, err := content.CSV()
		must(t, err)
		targets := []string{e.Package}
		if render.CheckInstallModes(csv.Spec.InstallModes, e.Package, targets) != nil {
			targets = nil
		}
		_, _ = b.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Package}}, metav1.CreateOptions{})
		objects, err := render.Render(render.Input{Content: content, Namespace: e.Package, Group: render.OperatorGroup{Name: "g", Namespace: e.Package, Targets: targets}})
		must(t, err)
		for _, o := range objects {
			gvr, _ := meta.UnsafeGuessKindToResource(o.GVK)
			var ri dynamic.ResourceInterface = dyn.Resource(gvr)
			if o.Namespace != "" {
				ri = dyn.Resource(gvr).Namespace(o.Namespace)
			}
			var err error
			t1 := time.Now()
			if os.Getenv("SSA") != "" {
				_, err = ri.Apply(t.Context(), o.Name, &unstructured.Unstructured{Object: o.Body}, metav1.ApplyOptions{FieldManager: "bare"})
			} else {
				_, err = ri.Create(t.Context(), &unstructured.Unstructured{Object: o.Body}, metav1.CreateOptions{})
			}
			by[o.GVK.Kind] += time.Since(t1)
			if err != nil {
				t.Log(o, err)
			}
			n++
		}
	}
	t.Logf("bare: %d objects created in %s", n, time.Since(begin))
	await(t, "deployments", func(ctx context.Context) error {
		l, err := b.kube.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		bad := 0
		for _, d := range l.Items {
			if d.Status.AvailableReplicas < *d.Spec.Replicas {
				bad++
			}
		}
		if bad > 0 {
			return fmt.Errorf("%d not available", bad)
		}
		return nil
	})
	t.Logf("bare: all available in %s", time.Since(begin))
}
