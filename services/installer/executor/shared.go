package executor

import (
	"context"
	"hash/maphash"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/drift"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/sharedobject"
)

// shareLocks is how many objects that operators share may be written at a time.
const shareLocks = 64

// shares has one operator at a time look who holds an object and write it accordingly. Another executor is kept off by the
// fence.
type shares struct {
	seed  maphash.Seed
	locks [shareLocks]sync.Mutex
}

func newShares() *shares { return &shares{seed: maphash.MakeSeed()} }

// lock waits for an object and returns what gives it to the next.
func (s *shares) lock(ref protocol.ObjectRef) (unlock func()) {
	m := &s.locks[maphash.String(s.seed, ref.Group+"/"+ref.String())%shareLocks]
	m.Lock()
	return m.Unlock
}

// share is an operator's part in an object that others may bring, too.
type share struct {
	owner   sharedobject.Owner
	ref     protocol.ObjectRef
	plan    string
	manager string
	grant   protocol.Grant // of the plan, with what approvers chose
}

// shareIn is an operator's part in an object, nil where the object is its alone.
func (w *work) shareIn(s subject, o render.Object) (*share, error) {
	if !preflight.Formed(o) || s.bundle.Package == "" {
		return nil, nil //nolint:nilnil // it is nobody else's
	}
	form, err := sharedobject.Digest(o.Body)
	return &share{
		owner: sharedobject.Owner{Namespace: w.ns, Package: s.bundle.Package, CSV: o.Resolving, Wants: form},
		ref:   refIn(o), plan: s.plan, manager: w.manager(s.bundle.Package),
	}, err
}

// findings are the objects of a plan that other operators have, or bring with the same plan, in another form, with what was
// chosen of them.
func (w *work) findings(ctx context.Context, r ready) ([]protocol.SharedObject, error) {
	var out []protocol.SharedObject
	for _, o := range r.objects {
		if !w.vacant.Common(refIn(o)) {
			continue
		}
		f, err := w.finding(ctx, r, o)
		if err != nil {
			return nil, err
		}
		if f != nil {
			out = append(out, *f)
		}
	}
	among, err := w.within(ctx, r)
	return append(out, among...), err
}

// finding is what a person is, or was, asked of one object; nil where nobody need be.
func (w *work) finding(ctx context.Context, r ready, o render.Object) (*protocol.SharedObject, error) {
	s, err := r.subject(nil, o.Resolving)
	if err != nil {
		return nil, err
	}
	part, err := w.shareIn(s, o)
	if err != nil || part == nil {
		return nil, err
	}
	part.grant = r.Grant
	live, err := w.client.Get(ctx, o.GVK, o.Namespace, o.Name)
	if err != nil || !ownersOf(live) {
		return nil, err
	}
	_, f, err := w.weigh(ctx, live, &unstructured.Unstructured{Object: o.Clone().Body}, *part)
	return f, err
}

// ownersOf reports an object that operators have.
func ownersOf(live *unstructured.Unstructured) bool {
	return live != nil && live.GetLabels()[kube.LabelManaged] == "true" &&
		(kube.OwnerOf(live) != kube.Operator{} || len(kube.Alongside(live)) > 0)
}

// weigh says who has an object and what writing it comes to; f is what approvers are or were asked, nil where nothing.
func (w *work) weigh(ctx context.Context, live, body *unstructured.Unstructured, part share) (in sharedobject.Input, f *protocol.SharedObject, err error) {
	if in, err = w.client.Sharers(ctx, live, part.owner); err != nil || len(in.Others) == 0 {
		return in, nil, err
	}
	if in.Holder != nil && in.Holder.Wants == part.owner.Wants && part.owner.Wants != "" {
		in.Equal = true
		return in, nil, nil
	}
	have, fields, refused, err := w.forms(ctx, live, body)
	if err != nil {
		return in, nil, err
	}
	in.Equal = len(fields) == 0
	asked := sharedobject.Decide(in) == sharedobject.Ask
	finding, err := in.Finding(part.ref.ChoiceName(), have)
	if err != nil || !asked {
		return in, nil, err
	}
	f = &protocol.SharedObject{
		ObjectRef: part.ref, Operator: part.owner.String(), Holder: in.Writer.String(), Differences: fields, Refused: refused, Finding: finding,
	}
	if in.Holder != nil {
		f.Holder = in.Holder.String()
	}
	for _, o := range in.Others {
		f.Owners = append(f.Owners, o.String())
	}
	slices.Sort(f.Owners)
	if c := part.grant.Chosen(part.ref.ChoiceName(), finding); c != nil && (refused == "" || c.Choice == events.ChoiceKeep) {
		in.Choice = c.Choice
		if sharedobject.Decide(in) != sharedobject.Ask {
			f.Choice, f.By = c.Choice, c.By
		}
	}
	return in, f, nil
}

// forms compares an object with what would become of it if a body took its place: have is the digest of the form that it
// has, refused why the API server would not let it be replaced.
func (w *work) forms(ctx context.Context, live, body *unstructured.Unstructured) (have string, fields []protocol.FieldDrift, refused string, err error) {
	if have, err = sharedobject.Digest(live.Object); err != nil {
		return "", nil, "", err
	}
	is := sharedobject.Normalize(live.Object)
	would, err := w.client.Replaced(ctx, live, body)
	switch {
	case apierrors.IsInvalid(err):
		want := sharedobject.Normalize(body.Object)
		if drift.Holds(want, is) {
			return have, nil, "", nil
		}
		return have, drift.Fields(want, is), err.Error(), nil
	case err != nil:
		return have, nil, "", err
	}
	want := sharedobject.Normalize(would.Object)
	if reflect.DeepEqual(want, is) {
		return have, nil, "", nil
	}
	return have, drift.Fields(want, is), "", nil
}

// checkShared wants a person's word where an object of the plan is another operator's in another form.
func (w *work) checkShared(ctx context.Context, r ready) (*failure.Failure, error) {
	found, err := w.findings(ctx, r)
	if err != nil {
		return failure.OfCheck(ctx, err)
	}
	var texts []string
	for _, f := range found {
		if f.Choice == "" {
			texts = append(texts, failure.ChoiceNeeded{SharedObject: f}.Error())
		}
	}
	if len(texts) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonShared, Message: spoken(texts)}, nil
}

// putShared writes an object in its step where other operators may have it.
func (w *work) putShared(ctx context.Context, as *kube.Epoch, body *unstructured.Unstructured, part share) (*unstructured.Unstructured, error) {
	unlock := w.shares.lock(part.ref)
	defer unlock()
	live, err := w.client.Get(ctx, body.GroupVersionKind(), body.GetNamespace(), body.GetName())
	if err != nil {
		return nil, err
	}
	if !ownersOf(live) {
		if err := w.adopt(ctx, body); err != nil {
			return nil, err
		}
		return w.applying(func() (*unstructured.Unstructured, error) { return as.Apply(ctx, body, part.manager) })
	}
	in, f, err := w.weigh(ctx, live, body, part)
	if err != nil {
		return nil, err
	}
	outcome := sharedobject.Decide(in)
	if outcome == sharedobject.Ask {
		return nil, failure.ChoiceNeeded{SharedObject: *f}
	}
	elected := in.Elected(outcome)
	if err := w.elect(ctx, live, elected, in, part); err != nil {
		return nil, err
	}
	if outcome == sharedobject.Share {
		return w.applying(func() (*unstructured.Unstructured, error) {
			return as.Join(ctx, live, kube.Share(body, part.owner), part.manager, *elected)
		})
	}
	if len(in.Others) == 0 {
		return w.applying(func() (*unstructured.Unstructured, error) { return as.Apply(ctx, body, part.manager) })
	}
	return w.applying(func() (*unstructured.Unstructured, error) { return as.ApplyWhole(ctx, body, part.manager, in.Others) })
}

func (w *work) applying(write func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if err := w.points.At("before apply"); err != nil {
		return nil, err
	}
	return write()
}

// elect notes before the write who holds an object, where a person chose it, or chose otherwise before.
func (w *work) elect(ctx context.Context, live *unstructured.Unstructured, elected *sharedobject.Owner, in sharedobject.Input, part share) error {
	if len(in.Others) == 0 || elected == nil {
		return nil
	}
	if in.Choice == "" {
		was, err := w.client.Election(ctx, live)
		if err != nil || was == nil || was.Namespace == elected.Namespace && was.Package == elected.Package {
			return err
		}
	}
	return w.points.Between("elect", func() error {
		return w.client.Elect(ctx, live, kube.Election{Object: part.ref.String(), Namespace: elected.Namespace, Package: elected.Package, Plan: part.plan})
	})
}

// heldBy is who holds an object that an operator at rest has:
//
//	somebody was chosen and is installed      that one
//	it is gone                                the operator: it makes it again
//	the labels name one that is installed     that one
//	otherwise                                 the operator
//
// nil is the operator itself.
func (w *work) heldBy(ctx context.Context, live, body *unstructured.Unstructured, part share) (*sharedobject.Owner, error) {
	if live != nil && (!ownersOf(live) || onlyOf(live, part.owner)) {
		return nil, nil //nolint:nilnil // it is nobody's, or the operator's
	}
	chosen, err := w.client.Election(ctx, body)
	if err != nil {
		return nil, err
	}
	if chosen != nil {
		o := sharedobject.Owner{Namespace: chosen.Namespace, Package: chosen.Package}
		if o.Is(part.owner) {
			return nil, nil //nolint:nilnil // it is the operator's
		}
		if live == nil {
			return &o, nil
		}
	}
	if live == nil {
		return nil, nil //nolint:nilnil // see above
	}
	in, err := w.client.Sharers(ctx, live, part.owner)
	if err != nil {
		return nil, err
	}
	if chosen != nil {
		if i := slices.IndexFunc(in.Others, func(o sharedobject.Owner) bool { return o.Namespace == chosen.Namespace && o.Package == chosen.Package }); i >= 0 {
			return &in.Others[i], nil
		}
	}
	if in.Holder == nil || in.Holder.Is(part.owner) {
		return nil, nil //nolint:nilnil // it is the operator's
	}
	if held := (kube.Operator{Namespace: in.Holder.Namespace, Name: in.Holder.CSV}).Label(); kube.OwnerOf(live) != held {
		return nil, nil //nolint:nilnil // who held it is gone
	}
	return in.Holder, nil
}

// onlyOf reports an object that no other operator has.
func onlyOf(live *unstructured.Unstructured, owner sharedobject.Owner) bool {
	if kube.OwnerOf(live) != (kube.Operator{Namespace: owner.Namespace, Name: owner.CSV}).Label() {
		return false
	}
	return !slices.ContainsFunc(kube.Alongside(live), func(name string) bool { return name != owner.String() })
}

// keepUp writes an object of an operator at rest that others may have, too. What another one holds is left as it is, but
// for the note that the operator has it; nil is an object that its holder is to make again.
func (w *work) keepUp(ctx context.Context, body *unstructured.Unstructured, part share) (*unstructured.Unstructured, error) {
	unlock := w.shares.lock(part.ref)
	defer unlock()
	live, err := w.client.Get(ctx, body.GroupVersionKind(), body.GetNamespace(), body.GetName())
	if err != nil {
		return nil, err
	}
	holder, err := w.heldBy(ctx, live, body, part)
	if err != nil {
		return nil, err
	}
	switch {
	case holder != nil && live == nil:
		return nil, nil //nolint:nilnil // its holder makes it
	case holder != nil:
		return w.client.Join(ctx, live, kube.Share(body, part.owner), part.manager, *holder)
	case !ownersOf(live):
		applied, err := w.client.Apply(ctx, body, part.manager)
		if err == nil && live == nil {
			w.madeAgain(part.ref)
		}
		return applied, err
	}
	in, err := w.client.Sharers(ctx, live, part.owner)
	if err != nil {
		return nil, err
	}
	return w.client.ApplyWhole(ctx, body, part.manager, in.Others)
}

// madeAgain has the operators of other namespaces look at an object that was gone: with it went the notes that they have it.
func (w *work) madeAgain(ref protocol.ObjectRef) {
	if ref.Namespace != "" {
		return
	}
	for _, p := range w.inbox.All() {
		if ns := p.Scope.Namespace; ns != w.ns {
			w.trail.Again(ns, ref, 0)
			w.wake(ns)
		}
	}
}

// compareShare compares an object of an operator at rest that another operator holds: no more than the note is to be there
// that the operator has it. Of one that fell to the operator, since who held it is gone, its form is written, whatever the
// cluster's settings say of drift. done is false where the operator holds it.
func (w *work) compareShare(ctx context.Context, s subject, o render.Object, live, want *unstructured.Unstructured) (done bool, err error) {
	part, err := w.shareIn(s, o)
	if err != nil || part == nil {
		return false, err
	}
	holder, err := w.heldBy(ctx, live, want, *part)
	if err != nil {
		return false, err
	}
	if holder == nil {
		fell := live != nil && ownersOf(live) && live.GetAnnotations()[annotationPlan] == s.plan && live.GetAnnotations()[annotationDigest] != want.GetAnnotations()[annotationDigest]
		if !fell || w.stopped() != nil {
			return false, nil
		}
		_, err := w.reapply(ctx, s, o)
		return err == nil, err
	}
	if live == nil {
		return true, nil // its holder makes it again
	}
	if kube.HasShare(live, kube.Share(want, part.owner)) {
		return true, w.steady(live)
	}
	_, err = w.reapply(ctx, s, o)
	return err == nil, err
}
