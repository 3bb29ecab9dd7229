package kube

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/sharedobject"
)

// annotationWants begins the annotations by which each operator that has an object notes the form that it wants, as
// "digest namespace/csv". The key is the operator's, whatever its version.
const annotationWants = ownPrefix + "wants-"

// componentPrefix begins the label of all parts of an operator.
const componentPrefix = "operators.coreos.com/"

func wantsKey(namespace, packageName string) string {
	return annotationWants + digest.Bytes([]byte(namespace+"/"+packageName)).Short()
}

// NoteWants notes in a body the form that an operator wants of it, and that the operator brought it.
func NoteWants(body *unstructured.Unstructured, o sharedobject.Owner) {
	a := body.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[wantsKey(o.Namespace, o.Package)] = o.Wants + " " + o.String()
	a[render.AlongsideKey(o.String())] = o.String()
	body.SetAnnotations(a)
}

// wanted is what an operator noted in an object, and which of its versions did.
func wanted(live metav1.Object, namespace, packageName string) (form, by string) {
	form, by, _ = strings.Cut(live.GetAnnotations()[wantsKey(namespace, packageName)], " ")
	return form, by
}

// wantedBy is the form that an operator, as namespace/csv, noted in an object.
func wantedBy(o metav1.Object, name string) string {
	for key, value := range o.GetAnnotations() {
		if form, by, _ := strings.Cut(value, " "); strings.HasPrefix(key, annotationWants) && by == name {
			return form
		}
	}
	return ""
}

// Shares are the objects that several operators have.
type Shares struct{ *Epoch }

// Sharers says who has an object that is there beside the writer: Holder, Others and Before of the input of
// sharedobject.Decide. Of owners that are gone, what they noted counts for nothing.
func (e Shares) Sharers(ctx context.Context, live metav1.Object, writer sharedobject.Owner) (
	sharedobject.Input, error,
) {
	in := sharedobject.Input{Writer: writer}
	held := OwnerOf(live)
	names := Alongside(live)
	if h, err := e.holder(ctx, held); err != nil {
		return in, err
	} else if h != nil {
		names = append(names, Operator{Namespace: h.GetNamespace(), Name: h.GetName()}.String())
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		o, err := e.installed(ctx, name)
		if err != nil {
			return in, err
		}
		if o == nil {
			continue
		}
		holds := Operator{Namespace: o.Namespace, Name: o.CSV}.Label() == held
		o.Wants, _ = wanted(live, o.Namespace, o.Package)
		if holds {
			in.Holder = o
		}
		if !o.Is(writer) && !slices.ContainsFunc(in.Others, o.Is) {
			in.Others = append(in.Others, *o)
		}
	}
	if in.Holder == nil && len(in.Others) > 0 {
		in.Holder = &in.Others[0]
	}
	form, by := wanted(live, writer.Namespace, writer.Package)
	if form == "" {
		return in, nil
	}
	o, err := e.installed(ctx, by)
	if o != nil {
		in.Before = form
	}
	return in, err
}

// installed is an operator that is installed, by namespace/csv; nil where it is not, or goes.
func (e Shares) installed(ctx context.Context, name string) (*sharedobject.Owner, error) {
	namespace, csv, ok := strings.Cut(name, "/")
	if !ok {
		return nil, nil //nolint:nilnil // no operator is an answer here
	}
	found, err := e.GetServedMetadata(ctx, GVKInstalledOperator, namespace, csv)
	if err != nil || found == nil || found.GetDeletionTimestamp() != nil {
		return nil, err
	}
	return &sharedobject.Owner{Namespace: namespace, Package: found.GetAnnotations()[AnnotationPackage], CSV: csv}, nil
}

// ApplyWhole applies an object of Chandler's and takes over the fields of all others. The managers of other operators
// keep no more than what notes them as owners: two that have different forms would else have the object mixed of both.
func (e Shares) ApplyWhole(ctx context.Context, body *unstructured.Unstructured, manager string,
	others []sharedobject.Owner,
) (*unstructured.Unstructured, error) {
	force := func(ctx context.Context, body *unstructured.Unstructured, manager string) (
		*unstructured.Unstructured, error,
	) {
		client := e.writer(body.GroupVersionKind(), body.GetNamespace())
		return client.Apply(ctx, body.GetName(), body, metav1.ApplyOptions{FieldManager: manager, Force: true})
	}
	live, err := e.known(ctx, body, func(body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return force(ctx, body, manager)
	})
	if err != nil {
		return nil, err
	}
	for _, f := range live.GetManagedFields() {
		if f.Operation != metav1.ManagedFieldsOperationApply || f.Manager == manager ||
			!strings.HasPrefix(f.Manager, managerPrefix) || onlyShare(f) {
			continue
		}
		rest := stub(live)
		if i := slices.IndexFunc(others, func(o sharedobject.Owner) bool {
			return Manager(
				o.Namespace, o.Package) == f.Manager
		}); i >= 0 {
			rest = shareOf(live, others[i])
		}
		if live, err = force(ctx, rest, f.Manager); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// stub is an object of which only the identity is said: applied, it gives up all that its manager has.
func stub(live *unstructured.Unstructured) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(live.GroupVersionKind())
	o.SetNamespace(live.GetNamespace())
	o.SetName(live.GetName())
	o.SetUID(live.GetUID()) // one that is gone is not made again by this
	return o
}

// shareOf is what an owner that does not hold an object has in it.
func shareOf(live *unstructured.Unstructured, o sharedobject.Owner) *unstructured.Unstructured {
	out := stub(live)
	annotations := map[string]string{}
	for key, value := range live.GetAnnotations() {
		if key == wantsKey(o.Namespace, o.Package) || strings.HasPrefix(key, render.AnnotationInstalledAlongside) &&
			value == o.String() {
			annotations[key] = value
		}
	}
	out.SetAnnotations(annotations)
	out.SetLabels(shareLabels(live, "."+o.Namespace, o.Package))
	out.SetOwnerReferences(slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()),
		func(r metav1.OwnerReference) bool { return r.Name != o.CSV }))
	return out
}

// shareLabels are those of an object that every owner has in it: that it is Chandler's, and of which component it is.
func shareLabels(o metav1.Object, suffix, packageName string) map[string]string {
	out := map[string]string{}
	for key, value := range o.GetLabels() {
		component, is := strings.CutPrefix(key, componentPrefix)
		if key == LabelManaged || key == render.LabelManaged || is && strings.HasPrefix(component, packageName) &&
			strings.HasSuffix(component, suffix) {
			out[key] = value
		}
	}
	return out
}

// Share is what of a body an owner writes that does not hold the object: labels of the component, and its annotations.
func Share(body *unstructured.Unstructured, o sharedobject.Owner) *unstructured.Unstructured {
	out := stub(body)
	out.SetAnnotations(map[string]string{})
	NoteWants(out, o)
	out.SetLabels(shareLabels(body, "", ""))
	out.SetOwnerReferences(body.GetOwnerReferences())
	return out
}

// HasShare reports an object that says all that Share gave.
func HasShare(live, share *unstructured.Unstructured) bool {
	for key, value := range share.GetAnnotations() {
		if live.GetAnnotations()[key] != value {
			return false
		}
	}
	for key, value := range share.GetLabels() {
		if live.GetLabels()[key] != value {
			return false
		}
	}
	return !slices.ContainsFunc(share.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return !slices.ContainsFunc(live.GetOwnerReferences(),
			func(o metav1.OwnerReference) bool { return o.UID == r.UID })
	})
}

// onlyShare reports a manager that has no more than Share gives it.
func onlyShare(f metav1.ManagedFieldsEntry) bool {
	var fields map[string]map[string]map[string]any
	if f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	for top, parts := range fields {
		if top != "f:metadata" {
			return false
		}
		for part, keys := range parts {
			for key := range keys {
				if key != "." && !sharedKey(part, strings.TrimPrefix(key, "f:")) {
					return false
				}
			}
		}
	}
	return true
}

func sharedKey(part, key string) bool {
	switch part {
	case "f:ownerReferences":
		return true
	case "f:labels":
		return key == LabelManaged || key == render.LabelManaged || strings.HasPrefix(key, componentPrefix)
	case "f:annotations":
		return strings.HasPrefix(key, annotationWants) || strings.HasPrefix(key, render.AnnotationInstalledAlongside)
	}
	return false
}

// Join notes an operator in an object of which the holder's form stands: share is what Share gave. Until the holder has
// written the object itself, the writer keeps the fields that it has there: without them the object would be empty.
func (e Shares) Join(ctx context.Context, live, share *unstructured.Unstructured, manager string,
	holder sharedobject.Owner,
) (*unstructured.Unstructured, error) {
	share = share.DeepCopy()
	share.SetUID(live.GetUID())
	by := Manager(holder.Namespace, holder.Package)
	whole := slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Operation == metav1.ManagedFieldsOperationApply && f.Manager == by && !onlyShare(f)
	})
	writer := e.writer(live.GroupVersionKind(), live.GetNamespace())
	held := Operator{Namespace: holder.Namespace, Name: holder.CSV}.Label()
	if whole && OwnerOf(live) == held {
		return writer.Apply(ctx, live.GetName(), share, metav1.ApplyOptions{FieldManager: manager, Force: true})
	}
	owners := slices.Clone(live.GetOwnerReferences())
	for _, r := range share.GetOwnerReferences() {
		if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == r.UID }) {
			owners = append(owners, r)
		}
	}
	annotations := map[string]any{}
	for key, value := range share.GetAnnotations() {
		annotations[key] = value
		if _, by, ok := strings.Cut(live.GetAnnotations()[key], " "); ok && strings.HasPrefix(key, annotationWants) {
			annotations[render.AlongsideKey(by)] = nil // its version before
		}
	}
	for key, value := range share.GetAnnotations() { // where that is the same one
		annotations[key] = value
	}
	labels := share.GetLabels()
	labels[render.LabelOwner], labels[render.LabelOwnerNamespace] = held.Name, held.Namespace
	meta := map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "labels": labels,
		"annotations": annotations,
	}
	if len(owners) > 0 {
		meta["ownerReferences"] = owners
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode")
	}
	return writer.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
}

// Replaced returns what would become of an object if this body took its place, as the API server completes it. It
// changes nothing.
func (e Shares) Replaced(ctx context.Context, live, body *unstructured.Unstructured) (
	*unstructured.Unstructured, error,
) {
	next := body.DeepCopy()
	next.SetResourceVersion(live.GetResourceVersion())
	next.SetUID(live.GetUID())
	client := e.objects(body.GroupVersionKind(), body.GetNamespace())
	return client.Update(ctx, next, metav1.UpdateOptions{
		DryRun:          []string{metav1.DryRunAll},
		FieldValidation: metav1.FieldValidationIgnore,
	})
}

// sharedConfigMap keeps, for each object of which a person said who holds it, who that is: the object itself can be
// deleted, and whoever makes it again must not thereby have its form hold.
const sharedConfigMap = "chandler-shared"

// Election is who holds an object, as a person chose: an operator, in whatever version.
type Election struct {
	Object    string `json:"object"` // for people
	Namespace string `json:"namespace"`
	Package   string `json:"package"`
	Plan      string `json:"plan"` // id of the one that was approved with it
}

func electionKey(o *unstructured.Unstructured) string {
	gvk := o.GroupVersionKind()
	name := strings.Join([]string{gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName()}, "\n")
	return strings.TrimPrefix(string(digest.Bytes([]byte(name))), "sha256:")
}

// Election returns who holds an object because a person chose so, nil where nobody did or who was chosen is gone.
func (e Shares) Election(ctx context.Context, of *unstructured.Unstructured) (*Election, error) {
	cm, err := e.Get(ctx, gvkConfigMap, SystemNamespace, sharedConfigMap)
	if err != nil || cm == nil {
		return nil, err
	}
	text, ok, err := unstructured.NestedString(cm.Object, "data", electionKey(of))
	if err != nil || !ok {
		return nil, err
	}
	var out Election
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "%s/%s: who holds %s %s", SystemNamespace, sharedConfigMap,
			of.GetKind(), of.GetName())
	}
	there, err := e.List(ctx, GVKInstalledOperator, out.Namespace, "")
	if err != nil || !slices.ContainsFunc(there, func(o unstructured.Unstructured) bool {
		return o.GetAnnotations()[AnnotationPackage] == out.Package && o.GetDeletionTimestamp() == nil
	}) {
		return nil, err
	}
	return &out, nil
}

// Elect notes who holds an object, before it is written.
func (e Shares) Elect(ctx context.Context, of *unstructured.Unstructured, by Election) error {
	text, err := json.Marshal(by)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode")
	}
	return e.setElections(ctx, map[string]any{electionKey(of): string(text)})
}

// ForgetElections forgets what was chosen for an operator that is uninstalled: one that is installed again is asked
// anew.
func (e Shares) ForgetElections(ctx context.Context, namespace, packageName string) error {
	cm, err := e.Get(ctx, gvkConfigMap, SystemNamespace, sharedConfigMap)
	if err != nil || cm == nil {
		return err
	}
	data, _, err := unstructured.NestedStringMap(cm.Object, "data")
	if err != nil {
		return err
	}
	gone := map[string]any{}
	for key, text := range data {
		var o Election
		if json.Unmarshal([]byte(text), &o) == nil && o.Namespace == namespace && o.Package == packageName {
			gone[key] = nil
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return e.setElections(ctx, gone)
}

func (e Shares) setElections(ctx context.Context, data map[string]any) error {
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode")
	}
	_, err = e.MergePatch(ctx, gvkConfigMap, SystemNamespace, sharedConfigMap, patch)
	if !apierrors.IsNotFound(err) {
		return err
	}
	cm := &unstructured.Unstructured{Object: map[string]any{"data": data}}
	cm.SetGroupVersionKind(gvkConfigMap)
	cm.SetNamespace(SystemNamespace)
	cm.SetName(sharedConfigMap)
	cm.SetLabels(ownLabels())
	_, err = e.objects(gvkConfigMap, SystemNamespace).Create(ctx, cm, metav1.CreateOptions{})
	return err
}
