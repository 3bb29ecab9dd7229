package cluster

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

func unmarshal(raw []byte, into any) error { return utiljson.Unmarshal(raw, into) }

// Changed is one object that was made, changed or removed.
type Changed struct {
	Kind      string
	Namespace string
	Name      string
}

// Watch calls changed for every change of what Chandler manages, until ctx ends. Only metadata is
// watched, and of it next to nothing kept: a change is a hint to look.
func (e *Epoch) Watch(ctx context.Context, changed func(Changed)) error {
	var running sync.WaitGroup
	defer running.Wait()
	for _, gvk := range []schema.GroupVersionKind{GVKCSV, gvkCRD, {Group: "apps", Version: "v1", Kind: "Deployment"}} {
		informer := metadatainformer.NewFilteredMetadataInformer(e.Metadata, Resource(gvk), metav1.NamespaceAll, 0,
			cache.Indexers{}, func(o *metav1.ListOptions) { o.LabelSelector = LabelManaged + "=true" }).Informer()
		if err := informer.SetTransform(strip); err != nil {
			return fmt.Errorf("watch %s: %w", gvk.Kind, err)
		}
		if _, err := informer.AddEventHandler(handler(gvk.Kind, changed)); err != nil {
			return fmt.Errorf("watch %s: %w", gvk.Kind, err)
		}
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	<-ctx.Done()
	return nil
}

func handler(kind string, changed func(Changed)) cache.ResourceEventHandler {
	tell := func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if m, ok := o.(metav1.Object); ok {
			changed(Changed{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()})
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }, DeleteFunc: tell}
}

func strip(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
		m.SetAnnotations(nil)
		m.SetLabels(nil)
	}
	return o, nil
}
