package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
)

// AnnotationPackage names the package of an InstalledOperator.
const AnnotationPackage = "chandler-fleet.io/package"

// managerPrefix begins every field manager of an operator (DESIGN D7); maxManager is what the API allows for its name.
const (
	managerPrefix = "chandler/"
	maxManager    = 128
)

// Manager names the field manager of an operator: its package in its namespace. Both stay the same from version to
// version; the set of operators that are planned together does not.
func Manager(namespace, packageName string) string {
	m := managerPrefix + namespace + "/" + packageName
	if len(m) > maxManager {
		short := digest.Bytes([]byte(m)).Short()
		m = m[:maxManager-len(short)] + short
	}
	return m
}

// Operator names an installed operator.
type Operator struct{ Namespace, Name string }

// String is namespace/csv, as in annotations.
func (o Operator) String() string { return o.Namespace + "/" + o.Name }

// Label is the operator as labels name it.
func (o Operator) Label() Operator {
	return Operator{Namespace: o.Namespace, Name: render.OwnerLabelValue(o.Name)}
}

// OwnerOf is who an object belongs to by its labels; the zero value is no operator.
func OwnerOf(o metav1.Object) Operator {
	l := o.GetLabels()
	return Operator{Namespace: l[render.LabelOwnerNamespace], Name: l[render.LabelOwner]}
}

// claim is what decides whether fields of an object may be taken over.
type claim struct {
	gvk     schema.GroupVersionKind
	live    metav1.Object
	by      Operator // who writes, by the labels of the body
	manager string
	// holder is the InstalledOperator that the live object belongs to, nil where it is gone.
	holder metav1.Object
}

// decided is a claim without regard to the holder: rows 1 to 4 of allowed. ok is false where the holder is to be known.
func (c claim) decided() (allowed, ok bool) {
	held := OwnerOf(c.live)
	switch {
	case c.live.GetLabels()[LabelManaged] != "true":
		return false, true
	case held == Operator{} && c.by == Operator{}, held != Operator{} && held == c.by:
		return true, true
	case held == Operator{}:
		return false, true
	}
	if slices.ContainsFunc(c.live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == c.manager && f.Operation == metav1.ManagedFieldsOperationApply
	}) {
		return true, true
	}
	return false, false
}

// allowed says whether the fields of others are taken over:
//
//	1  Chandler did not write the object                                  no
//	2  it is Chandler's own, and so is what is written                    yes
//	3  it is Chandler's own, and an operator's object is written          no
//	4  it is the same operator's, or its manager has applied it before    yes: a person's edit is reverted (R-CSV-24)
//	5  its operator is gone                                               yes
//	6  its operator is of the same package in another namespace, and      yes: the newest body counts, and each operator
//	   the kind is one that is shared; or it is an account that is        names itself in it
//	   shared in the namespace
//	7  it is another operator's                                           no
//
// Objects that several operators may want in different forms are decided by package shared first.
func (c claim) allowed() bool {
	if allowed, ok := c.decided(); ok {
		return allowed
	}
	held := OwnerOf(c.live)
	switch {
	case c.holder == nil:
		return true
	case !render.Shared(c.gvk) || c.by == Operator{}, render.Formed(c.gvk) && c.live.GetNamespace() != "":
		return false
	case c.live.GetNamespace() != "":
		return held.Namespace == c.by.Namespace
	}
	return Manager(c.by.Namespace, c.holder.GetAnnotations()[AnnotationPackage]) == c.manager
}

// MayTake refuses, as a conflict that names both, to take over an object that is another's. live is at least its
// metadata, body what is to be written by a manager.
func (e *Epoch) MayTake(ctx context.Context, live metav1.Object, body *unstructured.Unstructured,
	manager string,
) error {
	c := claim{gvk: body.GroupVersionKind(), live: live, by: OwnerOf(body), manager: manager}
	allowed, ok := c.decided()
	if !ok {
		var err error
		if c.holder, err = e.holder(ctx, OwnerOf(live)); err != nil {
			return err
		}
		allowed = c.allowed()
	}
	if allowed {
		return nil
	}
	return apierrors.NewConflict(Resource(body.GroupVersionKind()).GroupResource(), body.GetName(), c.refusal())
}

func (c claim) refusal() error {
	who := "Chandler itself"
	if c.by != (Operator{}) {
		who = "operator " + c.by.String()
	}
	held := OwnerOf(c.live)
	switch {
	case c.live.GetLabels()[LabelManaged] != "true":
		return fmt.Errorf("it is there and Chandler did not write it; %s would take it over: remove or rename it", who)
	case held == Operator{}:
		return fmt.Errorf("it is Chandler's own; %s must give its object another name", who)
	}
	return fmt.Errorf(
		"it belongs to operator %s, and %s would take it over: uninstall one of the two, or have one of them name "+
			"its object otherwise", held, who)
}

// holder is the InstalledOperator that labels name, nil where it is gone.
func (e *Epoch) holder(ctx context.Context, o Operator) (metav1.Object, error) {
	ctx, cancel := e.Limit(ctx)
	defer cancel()
	all, err := e.Metadata.Resource(Resource(GVKInstalledOperator)).Namespace(o.Namespace).
		List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("the operator that an object belongs to: %w", err)
	}
	for i := range all.Items {
		if render.OwnerLabelValue(all.Items[i].GetName()) == o.Name {
			return &all.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // absence is an answer here, not an error
}

// Heir is another installed operator that an object names as one that brought it, nil without one. One that wants the
// form which the object has comes before others.
func (e *Epoch) Heir(ctx context.Context, of Operator, o metav1.Object) (*unstructured.Unstructured, error) {
	names := Alongside(o)
	slices.SortStableFunc(names, func(a, b string) int {
		same := func(name string) int {
			if wantedBy(o, name) == wantedBy(o, of.String()) {
				return 0
			}
			return 1
		}
		return same(a) - same(b)
	})
	for _, name := range names {
		namespace, csv, ok := strings.Cut(name, "/")
		if !ok || name == of.String() {
			continue
		}
		found, err := e.GetServed(ctx, GVKInstalledOperator, namespace, csv)
		if err != nil {
			return nil, err
		}
		if found != nil && found.GetDeletionTimestamp() == nil {
			return found, nil
		}
	}
	return nil, nil //nolint:nilnil // absence is an answer here, not an error
}

// annotationPlan names the plan whose body an object has.
const annotationPlan = "chandler-fleet.io/plan"

// HandOver takes an operator's name off an object, and gives the object to another one; nil leaves it to who has it. It
// changes exactly what was looked at: what has changed since is a conflict, to be looked at again.
func (e *Epoch) HandOver(ctx context.Context, gvk schema.GroupVersionKind, o metav1.Object, from Operator,
	to metav1.Object,
) error {
	annotations := map[string]any{}
	for key, value := range o.GetAnnotations() {
		brought := strings.HasPrefix(key, render.AnnotationInstalledAlongside) && value == from.String()
		if brought || strings.HasPrefix(key, annotationWants) && strings.HasSuffix(value, " "+from.String()) {
			annotations[key] = nil
		}
	}
	meta := map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "annotations": annotations}
	if to != nil {
		heir := Operator{Namespace: to.GetNamespace(), Name: to.GetName()}.Label()
		meta["labels"] = map[string]any{render.LabelOwner: heir.Name, render.LabelOwnerNamespace: heir.Namespace}
		annotations[annotationPlan] = to.GetAnnotations()[annotationPlan] // so that it compares the body with its own
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode")
	}
	_, err = e.objects(gvk, o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Alongside are the operators that an object names as those that brought it, as namespace/csv, sorted.
func Alongside(o metav1.Object) []string {
	var out []string
	for key, value := range o.GetAnnotations() {
		if strings.HasPrefix(key, render.AnnotationInstalledAlongside) {
			out = append(out, value)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
