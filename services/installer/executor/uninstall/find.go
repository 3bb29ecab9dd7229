package uninstall

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/side"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

// sampled is how many custom resources of a definition are named.
const sampled = 5

// parallelLists is how many kinds are asked for at a time.
const parallelLists = 8

const selectManaged = kube.LabelManaged + "=true"

// GVKCRD is the kind of custom resource definitions.
var GVKCRD = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Found is what a cluster holds of an operator and what removing it would do.
type Found struct {
	Plan protocol.RemovalPlan
	// UIDs are those of the objects that were looked at.
	UIDs map[protocol.ObjectRef]string
	// Installed reports that the InstalledOperator is there.
	Installed bool
}

// Question is what is to be known.
type Question struct {
	Namespace string
	CSV       string
	CRDs      []string                  // names of definitions that are to go, or removal.All
	Kinds     []schema.GroupVersionKind // of which the operator may own objects
	// Dependants are operators that the hub knows to depend on it, as namespace/csv.
	Dependants []string
	Count      bool       // the objects of definitions that go are to be counted
	Named      bool       // its name is to be taken off what others own by now
	Operators  *Operators // what is known of installed operators
}

// Find says what removing an operator would do now.
func Find(ctx context.Context, c *kube.Epoch, q Question) (Found, error) {
	f := Found{UIDs: map[protocol.ObjectRef]string{}}
	in := removal.Input{
		Operator: removal.Operator{Namespace: q.Namespace, Name: q.CSV}, CRDs: q.CRDs,
		Dependants: q.Dependants,
	}
	packageName := ""
	operators, err := q.Operators.all(ctx, c)
	if err != nil {
		return f, err
	}
	for _, o := range operators {
		if o.Namespace != q.Namespace || o.Name != q.CSV {
			in.Others = append(in.Others, o.Operator)
			continue
		}
		in.Operator, in.Object, f.Installed = o.Operator, refOf(kube.GVKInstalledOperator, o.meta), true
		in.UID, packageName = string(o.meta.UID), o.meta.Annotations[kube.AnnotationPackage]
		f.UIDs[in.Object] = in.UID
	}
	objects, err := owned(ctx, c, q)
	if err != nil {
		return f, err
	}
	for _, o := range objects {
		if kube.Adopted(o.meta) {
			in.Before = append(in.Before, o.ref)
			continue
		}
		in.Objects = append(in.Objects, removal.Owned{ObjectRef: o.ref, Alongside: kube.Alongside(o.meta)})
		f.UIDs[o.ref] = string(o.meta.UID)
	}
	common, err := joined(ctx, c, q, packageName)
	if err != nil {
		return f, err
	}
	for _, o := range common {
		in.Common = append(in.Common, removal.Owned{ObjectRef: o.ref, Alongside: kube.Alongside(o.meta)})
	}
	if in.Definitions, err = definitions(ctx, c, search{in, packageName, q.Count}, f.UIDs); err != nil {
		return f, err
	}
	f.Plan, err = removal.Plan(in)
	return f, err
}

func refOf(gvk schema.GroupVersionKind, o metav1.Object) protocol.ObjectRef {
	return protocol.ObjectRef{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: o.GetNamespace(),
		Name: o.GetName(),
	}
}

// object is one object that an operator owns.
type object struct {
	ref  protocol.ObjectRef
	meta *metav1.ObjectMeta
}

func (o object) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: o.ref.Group, Version: o.ref.Version, Kind: o.ref.Kind}
}

// whole is the object with what is known of its metadata.
func (o object) whole() *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(o.gvk())
	out.SetNamespace(o.meta.Namespace)
	out.SetName(o.meta.Name)
	out.SetUID(o.meta.UID)
	out.SetLabels(o.meta.Labels)
	out.SetAnnotations(o.meta.Annotations)
	out.SetOwnerReferences(o.meta.OwnerReferences)
	return out
}

// owned are the objects that name an operator as their owner, in all namespaces.
func owned(ctx context.Context, c *kube.Epoch, q Question) ([]object, error) {
	selector := strings.Join([]string{
		selectManaged, render.LabelOwner + "=" + render.OwnerLabelValue(q.CSV), render.LabelOwnerNamespace + "=" +
			q.Namespace,
		render.LabelOwnerKind + "=" + kube.GVKCSV.Kind,
	}, ",")
	return chosen(ctx, c, q.Kinds, selector)
}

// chosen are the objects of several kinds that a label selector chooses, in the order of the kinds, which are asked for
// at once.
func chosen(ctx context.Context, c *kube.Epoch, kinds []schema.GroupVersionKind, selector string) ([]object, error) {
	found, failed := make([][]object, len(kinds)), make([]error, len(kinds))
	side.Each(len(kinds), parallelLists, func(n int) {
		list, err := metadata(ctx, c, kube.Resource(kinds[n]), metav1.ListOptions{LabelSelector: selector})
		if failed[n] = err; err != nil {
			return
		}
		for i := range list.Items {
			o := &list.Items[i]
			found[n] = append(found[n], object{refOf(kinds[n], o), &o.ObjectMeta})
		}
	})
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// joined are the objects that an operator has and another one holds. They bear the label of its component; where the
// package is not known, since somebody deleted the InstalledOperator, all that Chandler wrote is looked at.
func joined(ctx context.Context, c *kube.Epoch, q Question, packageName string) ([]object, error) {
	selector := selectManaged
	if packageName != "" {
		selector += "," + mirror.ComponentLabel(packageName, q.Namespace)
	}
	kinds := slices.DeleteFunc(slices.Clone(q.Kinds),
		func(gvk schema.GroupVersionKind) bool { return !render.Shared(gvk) })
	list, err := chosen(ctx, c, kinds, selector)
	own := kube.Operator{Namespace: q.Namespace, Name: q.CSV}
	return slices.DeleteFunc(list, func(o object) bool {
		return !slices.Contains(kube.Alongside(o.meta), own.String()) || kube.OwnerOf(o.meta) == own.Label() ||
			o.meta.DeletionTimestamp != nil
	}), err
}

// metadata lists metadata of all namespaces; an API that is not served has none.
func metadata(ctx context.Context, c *kube.Epoch, of schema.GroupVersionResource, o metav1.ListOptions) (
	*metav1.PartialObjectMetadataList, error,
) {
	ctx, cancel := c.Limit(ctx)
	defer cancel()
	list, err := c.Metadata.Resource(of).List(ctx, o)
	if apierrors.IsNotFound(err) {
		return &metav1.PartialObjectMetadataList{}, nil
	}
	return list, err
}

// search is what definitions are looked for with.
type search struct {
	removal.Input
	packageName string
	count       bool
}

// definitions are the custom resource definitions that an operator owns, or that it or a version before it has brought.
func definitions(ctx context.Context, c *kube.Epoch, in search, uids map[protocol.ObjectRef]string) (
	[]removal.Definition, error,
) {
	list, err := metadata(ctx, c, kube.Resource(GVKCRD), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	owned := map[string]bool{}
	for _, a := range in.Operator.Owned {
		owned[a.CRD] = true
	}
	var out []removal.Definition
	for i := range list.Items {
		o := &list.Items[i]
		earlier := broughtEarlier(o, in.Operator.Namespace, in.packageName)
		d := removal.Definition{ObjectRef: refOf(GVKCRD, o), Managed: o.Labels[kube.LabelManaged] == "true" &&
			!kube.Adopted(o), Alongside: kube.Alongside(o)}
		brought := slices.Contains(d.Alongside, in.Operator.String())
		if !brought && !owned[o.Name] && !earlier {
			continue
		}
		d.Converts = brought && o.Labels[certs.LabelConverted] == in.Operator.Namespace
		d.Loss.CRD = o.Name
		if in.count && (slices.Contains(in.CRDs, o.Name) || slices.Contains(in.CRDs, removal.All)) {
			if d.Loss, err = loss(ctx, c, o.Name); err != nil {
				return nil, err
			}
		}
		uids[d.ObjectRef] = string(o.UID)
		out = append(out, d)
	}
	return out, nil
}

// broughtEarlier reports a definition that a version of the package in the namespace wrote, and perhaps the one that is
// there does not bring: definitions outlive the versions that drop them.
func broughtEarlier(o *metav1.PartialObjectMetadata, namespace, packageName string) bool {
	return packageName != "" && slices.ContainsFunc(o.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == kube.Manager(namespace, packageName)
	})
}

// loss counts the objects of a definition.
func loss(ctx context.Context, c *kube.Epoch, crd string) (protocol.Loss, error) {
	l := protocol.Loss{CRD: crd}
	of, ok, err := resource(ctx, c, crd)
	if err != nil || !ok {
		return l, err
	}
	list, err := metadata(ctx, c, of, metav1.ListOptions{Limit: sampled})
	if err != nil {
		return l, err
	}
	for i := range list.Items {
		l.Sample = append(l.Sample, name(&list.Items[i]))
	}
	l.Objects = len(list.Items)
	if n := list.RemainingItemCount; n != nil {
		l.Objects += int(*n)
	} else {
		l.More = list.Continue != ""
	}
	return l, nil
}

func name(o metav1.Object) string { return strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/") }

// resource is where the objects of a definition are served; ok is false where there is no such definition, or it
// serves nothing.
func resource(ctx context.Context, c *kube.Epoch, crd string) (of schema.GroupVersionResource, ok bool, err error) {
	o, err := c.Get(ctx, GVKCRD, "", crd)
	if err != nil || o == nil {
		return of, false, err
	}
	var d struct {
		Spec struct {
			Group    string `json:"group"`
			Names    struct{ Plural string }
			Versions []struct {
				Name   string `json:"name"`
				Served bool   `json:"served"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := kube.Decode(o, &d); err != nil {
		return of, false, errs.Wrap(errs.Internal, err, "decode CustomResourceDefinition %s", crd)
	}
	for _, v := range d.Spec.Versions {
		if v.Served {
			return schema.GroupVersionResource{Group: d.Spec.Group, Version: v.Name, Resource: d.Spec.Names.Plural},
				true, nil
		}
	}
	return of, false, nil
}
