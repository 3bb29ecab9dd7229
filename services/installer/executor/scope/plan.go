package scope

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Plan is a plan with everything that its steps need.
type Plan struct {
	protocol.Plan

	Document installplan.Document
	Objects  []render.Object
	CSVs     map[string]bundle.CSV // of its bundles, by name
}

// Open reads and checks a plan, once for a reconcile: its digest, before it is begun the operator group that it
// stands on, then what rendering by the rules that it names gives against its steps. A plan that was begun goes on with
// the configurations that it was begun with.
//
// What another release renders otherwise is told (DESIGN D5). Before the first step it stands in the way until the
// resolver has proposed anew. A plan that was begun ends by that reason where no executor of this release or of a later
// one can go on: the resolver has another plan take over what it has left.
func (sc *Scope) Open(ctx context.Context, p protocol.Plan, x *kube.Execution) (Plan, *failure.Failure) {
	if r, ok := sc.opened[p.ID]; ok {
		return r, nil
	}
	r, f := sc.parse(p)
	if f != nil {
		return r, f
	}
	switch {
	case x != nil && x.Status.Begun:
		r.Configs = x.Spec.Configs
	case !sc.standsOn(r.Document.Base.OperatorGroup):
		return r, &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonBase, Quick: true,
			Message: "the operator group is another one than the plan was made for",
		}
	}
	begun := x != nil && x.Status.Begun
	if f := failure.OfRendering(sc.Env.Rendering, r.Document.Rendering); f != nil {
		if begun && f.Reason == failure.ReasonRenderingGone {
			f.Class = failure.Permanent
		}
		return r, f
	}
	for _, b := range r.Document.Bundles {
		objects, f := sc.Render(ctx, r.Document.Rendering, b, r.Configs[b.CSV])
		if f != nil {
			return r, f
		}
		r.Objects = append(r.Objects, objects...)
	}
	if f := r.compare(); f != nil {
		if begun {
			f.Class = failure.Permanent
		}
		return r, f
	}
	for _, o := range r.Objects {
		if o.GVK != kube.GVKCSV {
			continue
		}
		m, err := ParseOperator(&unstructured.Unstructured{Object: o.Body})
		if err != nil {
			f := failure.OfContent(err)
			return r, &f
		}
		r.CSVs[o.Name] = m.CSV
	}
	sc.opened[p.ID] = r
	return r, nil
}

// standsOn compares the operator group with the one of a plan's base; a plan that names none stands on any.
func (sc *Scope) standsOn(want string) bool {
	if want == "" {
		return true
	}
	g := sc.Snapshot.Wanted.OperatorGroup
	have, err := installplan.BaseFacts{OperatorGroup: installplan.GroupFacts{Name: g.Name, Spec: g.Spec}}.Base()
	return err == nil && have.OperatorGroup == want
}

func (sc *Scope) parse(p protocol.Plan) (Plan, *failure.Failure) {
	r := Plan{Plan: p, CSVs: map[string]bundle.CSV{}}
	got, err := digest.JSON(installplan.DocumentType, p.Document)
	if err != nil || string(got) != p.Digest {
		return r, &failure.Failure{
			Class: failure.Permanent, Reason: failure.ReasonDigest,
			Message: "the plan's document has digest " + string(got) + ", not " + p.Digest,
		}
	}
	if err := json.Unmarshal(p.Document, &r.Document); err != nil {
		return r, &failure.Failure{Class: failure.Permanent, Reason: failure.ReasonDigest, Message: err.Error()}
	}
	return r, nil
}

// Render renders a bundle by the rules of a name. The configuration is sealed, and opened for the rendering alone.
func (sc *Scope) Render(ctx context.Context, semantics string, b events.PlannedBundle, config json.RawMessage) (
	[]render.Object, *failure.Failure,
) {
	var objects []render.Object
	err := failure.Guard(ctx, sc.Env.Log, "render of "+b.CSV, func() error {
		content, err := sc.Env.Contents.Get(ctx, digest.Digest(b.Content))
		if err != nil {
			return err
		}
		opened, err := sc.Env.Configs.Open(config)
		if err != nil {
			return err
		}
		objects, err = sc.Env.Rendering.Render(semantics,
			render.Input{Content: content, Namespace: sc.Namespace, Config: opened})
		return err
	})
	if err == nil {
		return objects, nil
	}
	f := failure.OfContent(errs.Wrap(errs.KindOf(err), err, "bundle %s", b.CSV))
	return nil, &f
}

// ObjectsOf renders an operator at rest, or takes what was rendered for its plan in this reconcile; what its plan did
// not write is none of it.
func (sc *Scope) ObjectsOf(ctx context.Context, s RenderTarget) ([]render.Object, *failure.Failure) {
	other := func(o render.Object) bool { return o.Resolving != s.Bundle.CSV || !s.Wrote(o) }
	if r, ok := sc.opened[s.Plan]; ok && bytes.Equal(r.Configs[s.Bundle.CSV], s.Config) {
		return slices.DeleteFunc(slices.Clone(r.Objects), other), nil
	}
	if f := failure.OfRendering(sc.Env.Rendering, s.Rendering); f != nil {
		return nil, f // its objects stay as they are until a plan brings it again
	}
	key := s.Rendering + s.Bundle.Content + string(s.Config)
	objects, ok := sc.Slot.Find(key)
	if !ok {
		if err := sc.Slot.Acquire(ctx); err != nil {
			f := failure.OwnObject(err)
			return nil, &f
		}
		var f *failure.Failure
		if objects, f = sc.Render(ctx, s.Rendering, s.Bundle, s.Config); f != nil {
			return nil, f
		}
		sc.Slot.Keep(key, objects)
	}
	return slices.DeleteFunc(slices.Clone(objects), other), nil
}

// RenderedObjects are the objects of an operator that its plan has written, under way or ended; false while they are
// not known.
func (sc *Scope) RenderedObjects(ctx context.Context, m *Operator) (
	s RenderTarget, objects []render.Object, known bool,
) {
	x := sc.Snapshot.Executions.UnderWay(m.Name())
	if x == nil {
		s, known = sc.Snapshot.Target(m)
		if !known {
			return s, nil, false
		}
		objects, f := sc.ObjectsOf(ctx, s)
		return s, objects, f == nil
	}
	r, known := sc.opened[x.Spec.Plan]
	if !known {
		return s, nil, false
	}
	s, err := r.Target(x, m.Name())
	return s, slices.DeleteFunc(slices.Clone(r.Objects), func(o render.Object) bool {
		return o.Resolving != m.Name() || !x.Status.Wrote(o.GVK.Group, o.GVK.Kind, o.Namespace, o.Name)
	}), err == nil
}

// Frozen reports an operator whose plan is under way and cannot be read in this reconcile: what is still to come for it
// is not known, so that its phase stays as it is, and nothing that it replaces goes.
func (sc *Scope) Frozen(m *Operator) bool {
	x := sc.Snapshot.Executions.UnderWay(m.Name())
	if x == nil {
		return false
	}
	_, read := sc.opened[x.Spec.Plan]
	return !read
}

// ToCall reports an operator whose plan has yet to tell the API server of it.
func (sc *Scope) ToCall(m *Operator) bool {
	x := sc.Snapshot.Executions.UnderWay(m.Name())
	if x == nil {
		return len(sc.Snapshot.Executions.DeferredSteps(m)) > 0
	}
	for i, o := range sc.opened[x.Spec.Plan].Objects {
		if o.Resolving == m.Name() && render.Calls(o.GVK) &&
			(i >= len(x.Status.Steps) || x.Status.Steps[i].State != kube.StepDone) {
			return true
		}
	}
	return false
}

// compare refuses a plan whose steps are not what rendering gives here.
func (r Plan) compare() *failure.Failure {
	mismatch := func(text string) *failure.Failure {
		return &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonRenderingDiffers,
			Message: text + "; another plan takes its place where the resolver renders so, too",
		}
	}
	if len(r.Objects) != len(r.Document.Steps) {
		return mismatch("the plan has a different number of steps than its bundles give")
	}
	for i, o := range r.Objects {
		s := r.Document.Steps[i]
		d, err := o.Digest()
		if err != nil {
			return mismatch(err.Error())
		}
		if s.Group != o.GVK.Group || s.Version != o.GVK.Version || s.Kind != o.GVK.Kind || s.Namespace != o.Namespace ||
			s.Name != o.Name || s.Digest != d {
			return mismatch("step " + s.Kind + " " + s.Name + " is not what its bundle gives: " + o.String() +
				" with digest " + string(d))
		}
	}
	return nil
}
