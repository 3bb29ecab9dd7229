package bundles_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/render"
)

// floorWorkers is how many requests the loop has under way at a time.
const floorWorkers = 8

// floor is what an install is measured against: one loop with nothing but client-go that applies the same objects,
// custom resource definitions first, and waits until every Deployment is Available. It keeps no log, decides nothing,
// and could not go on after a crash.
type floor struct {
	kube kubernetes.Interface
	dyn  dynamic.Interface
}

func newFloor(config *rest.Config) (*floor, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(config)
	return &floor{kube: kube, dyn: dyn}, err
}

// install applies the objects of several namespaces.
func (f *floor) install(ctx context.Context, objects []render.Object) error {
	var crds, rest []render.Object
	namespaces := map[string]bool{}
	deployments := map[types.NamespacedName]bool{}
	for _, o := range objects {
		switch o.GVK.Kind {
		case "CustomResourceDefinition":
			crds = append(crds, o)
			continue
		case "ClusterServiceVersion":
			continue // stands for the operator in Chandler's own bookkeeping
		case "Deployment":
			deployments[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = true
		}
		if o.Namespace != "" {
			namespaces[o.Namespace] = true
		}
		rest = append(rest, o)
	}
	for ns := range namespaces {
		_, err := f.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}},
			metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if err := each(ctx, crds, f.apply); err != nil {
		return err
	}
	if err := each(ctx, crds, f.established); err != nil {
		return err
	}
	if err := each(ctx, rest, f.apply); err != nil {
		return err
	}
	return f.available(ctx, deployments)
}

func each(ctx context.Context, objects []render.Object, do func(context.Context, render.Object) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(floorWorkers)
	for _, o := range objects {
		g.Go(func() error {
			if err := do(ctx, o); err != nil {
				return fmt.Errorf("%s: %w", o, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (f *floor) objects(o render.Object) dynamic.ResourceInterface {
	gvr, _ := meta.UnsafeGuessKindToResource(o.GVK)
	if o.Namespace == "" {
		return f.dyn.Resource(gvr)
	}
	return f.dyn.Resource(gvr).Namespace(o.Namespace)
}

// apply falls back on a create where server-side apply refuses fields that the schema does not declare.
func (f *floor) apply(ctx context.Context, o render.Object) error {
	body := (&unstructured.Unstructured{Object: o.Body}).DeepCopy()
	_, err := f.objects(o).Apply(ctx, o.Name, body, metav1.ApplyOptions{FieldManager: "floor", Force: true})
	if err == nil || apierrors.IsNotFound(err) || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown &&
		!apierrors.IsInternalError(err) {
		return err
	}
	_, createErr := f.objects(o).Create(ctx, body, metav1.CreateOptions{FieldManager: "floor"})
	if apierrors.IsAlreadyExists(createErr) {
		return nil
	}
	return createErr
}

func (f *floor) established(ctx context.Context, o render.Object) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		crd, err := f.objects(o).Get(ctx, o.Name, metav1.GetOptions{ResourceVersion: "0"})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil && conditionIsTrue(crd, "Established") {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func conditionIsTrue(o *unstructured.Unstructured, want string) bool {
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	return err == nil && slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == want && m["status"] == "True"
	})
}

// available watches until all of the Deployments are Available in their newest generation.
func (f *floor) available(ctx context.Context, want map[types.NamespacedName]bool) error {
	list, err := f.kube.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		if isAvailable(&d) {
			delete(want, types.NamespacedName{Namespace: d.Namespace, Name: d.Name})
		}
	}
	if len(want) == 0 {
		return nil
	}
	w, err := f.kube.AppsV1().Deployments("").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		d, ok := e.Object.(*appsv1.Deployment)
		if !ok {
			return apierrors.FromObject(e.Object)
		}
		if isAvailable(d) {
			delete(want, types.NamespacedName{Namespace: d.Namespace, Name: d.Name})
		}
		if len(want) == 0 {
			return nil
		}
	}
	return fmt.Errorf("the watch ended before %d Deployments were Available: %w", len(want), ctx.Err())
}

func isAvailable(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == d.Status.Replicas &&
		slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
		})
}
