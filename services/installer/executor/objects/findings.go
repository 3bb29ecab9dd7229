package objects

import (
	"context"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/compare"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/sharedobject"
)

// Findings are the objects of a plan that other operators have, or bring with the same plan, in another form, with what
// was chosen of them.
func (w Writer) Findings(ctx context.Context, r scope.Plan) ([]protocol.SharedObject, error) {
	var out []protocol.SharedObject
	for _, o := range r.Objects {
		if !w.Found.Vacant.Common(scope.RefIn(o)) {
			continue
		}
		f, err := w.Finding(ctx, r, o)
		if err != nil {
			return nil, err
		}
		if f != nil {
			out = append(out, *f)
		}
	}
	among, err := w.among(ctx, r)
	return append(out, among...), err
}

// Finding is what a person is, or was, asked of one object; nil where nobody need be.
func (w Writer) Finding(ctx context.Context, r scope.Plan, o render.Object) (*protocol.SharedObject, error) {
	s, err := r.Target(nil, o.Resolving)
	if err != nil {
		return nil, err
	}
	part, err := overlay.ShareOf(w.Namespace, s, o)
	if err != nil || part == nil {
		return nil, err
	}
	part.Grant = r.Grant
	live, err := w.Env.Client.Get(ctx, o.GVK, o.Namespace, o.Name)
	if err != nil || !Owned(live) {
		return nil, err
	}
	_, f, err := w.weigh(ctx, live, &unstructured.Unstructured{Object: o.Clone().Body}, *part)
	return f, err
}

// among are the objects that several operators of one plan bring in different forms, with what was chosen of them: what
// the step of the second one would ask, asked before the first. Objects that are there already are those of findings;
// of such that nobody can try yet, as in a namespace that is to come, the step asks.
func (w Writer) among(ctx context.Context, r scope.Plan) ([]protocol.SharedObject, error) {
	var out []protocol.SharedObject
	for _, group := range broughtBySeveral(r.Objects) {
		live, err := w.Env.Client.Get(ctx, group[0].GVK, group[0].Namespace, group[0].Name)
		if err != nil {
			return nil, err
		}
		if live != nil {
			continue
		}
		found, err := w.try(ctx, r, group)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// try goes through the steps of one object as putShared will, with what the API server would make of each form. It ends
// where a person has to choose first.
func (w Writer) try(ctx context.Context, r scope.Plan, group []render.Object) ([]protocol.SharedObject, error) {
	var out []protocol.SharedObject
	var others []sharedobject.Owner
	var holder *sharedobject.Owner
	var has map[string]any // form of the object
	for _, o := range group {
		s, err := r.Target(nil, o.Resolving)
		if err != nil {
			return nil, err
		}
		part, err := overlay.ShareOf(w.Namespace, s, o)
		if err != nil || part == nil {
			return out, err
		}
		made, err := w.Env.Client.WouldMake(ctx, &unstructured.Unstructured{Object: o.Clone().Body})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err),
			apierrors.IsBadRequest(err):
			return out, nil // its step says why
		case err != nil:
			return nil, err
		}
		wants := sharedobject.Normalize(made.Object)
		in := sharedobject.Input{
			Writer: part.Owner, Holder: holder, Others: slices.Clone(others),
			Equal: holder == nil || reflect.DeepEqual(has, wants),
		}
		if sharedobject.Decide(in) == sharedobject.Ask {
			f, err := asked(in, *part, has, wants)
			if err != nil {
				return nil, err
			}
			if c := r.Grant.Chosen(part.Ref.ChoiceName(), f.Finding); c != nil {
				in.Choice = c.Choice
				f.Choice, f.By = c.Choice, c.By
			}
			out = append(out, f)
		}
		switch sharedobject.Decide(in) {
		case sharedobject.Ask:
			return out, nil
		case sharedobject.Hold:
			holder, has = &part.Owner, wants
		case sharedobject.Share:
		}
		others = append(others, part.Owner)
	}
	return out, nil
}

// asked is what a person is asked of an object that another operator of the plan makes in another form.
func asked(in sharedobject.Input, part overlay.Share, has, wants map[string]any) (protocol.SharedObject, error) {
	f := protocol.SharedObject{
		ObjectRef: part.Ref, Operator: part.Owner.String(), Holder: in.Holder.String(),
		Differences: compare.Fields(wants, has),
	}
	for _, o := range in.Others {
		f.Owners = append(f.Owners, o.String())
	}
	slices.Sort(f.Owners)
	var err error
	f.Finding, err = in.Finding(part.Ref.ChoiceName(), in.Holder.Wants)
	return f, err
}
