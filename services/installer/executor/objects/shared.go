package objects

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
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/compare"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/sharedobject"
)

// shareLocks is how many objects that operators share may be written at a time.
const shareLocks = 64

// locks has one operator at a time look who holds an object and write it accordingly. Another executor is kept off by
// the fence.
type locks struct {
	seed maphash.Seed
	mu   [shareLocks]sync.Mutex
}

// lock waits for an object and returns what gives it to the next.
func (s *locks) lock(ref protocol.ObjectRef) (unlock func()) {
	m := &s.mu[maphash.String(s.seed, ref.Group+"/"+ref.String())%shareLocks]
	m.Lock()
	return m.Unlock
}

// weigh says who has an object and what writing it comes to; f is what approvers are or were asked, nil where nothing.
func (w Writer) weigh(ctx context.Context, live, body *unstructured.Unstructured, part overlay.Share) (
	in sharedobject.Input, f *protocol.SharedObject, err error,
) {
	if in, err = (kube.Shares{Epoch: w.Env.Client}).Sharers(ctx, live, part.Owner); err != nil || len(in.Others) == 0 {
		return in, nil, err
	}
	if in.Holder != nil && in.Holder.Wants == part.Owner.Wants && part.Owner.Wants != "" {
		in.Equal = true
		return in, nil, nil
	}
	have, fields, refused, err := w.forms(ctx, live, body)
	if err != nil {
		return in, nil, err
	}
	in.Equal = len(fields) == 0
	asked := sharedobject.Decide(in) == sharedobject.Ask
	finding, err := in.Finding(part.Ref.ChoiceName(), have)
	if err != nil || !asked {
		return in, nil, err
	}
	f = &protocol.SharedObject{
		ObjectRef: part.Ref, Operator: part.Owner.String(), Holder: in.Writer.String(), Differences: fields,
		Refused: refused, Finding: finding,
	}
	if in.Holder != nil {
		f.Holder = in.Holder.String()
	}
	for _, o := range in.Others {
		f.Owners = append(f.Owners, o.String())
	}
	slices.Sort(f.Owners)
	if c := part.Grant.Chosen(part.Ref.ChoiceName(), finding); c != nil &&
		(refused == "" || c.Choice == events.ChoiceKeep) {
		in.Choice = c.Choice
		if sharedobject.Decide(in) != sharedobject.Ask {
			f.Choice, f.By = c.Choice, c.By
		}
	}
	return in, f, nil
}

// forms compares an object with what would become of it if a body took its place: have is the digest of the form that
// it has, refused why the API server would not let it be replaced.
func (w Writer) forms(ctx context.Context, live, body *unstructured.Unstructured) (
	have string, fields []protocol.FieldDrift, refused string, err error,
) {
	if have, err = sharedobject.Digest(live.Object); err != nil {
		return "", nil, "", err
	}
	is := sharedobject.Normalize(live.Object)
	would, err := kube.Shares{Epoch: w.Env.Client}.Replaced(ctx, live, body)
	switch {
	case apierrors.IsInvalid(err):
		want := sharedobject.Normalize(body.Object)
		if compare.Holds(want, is) {
			return have, nil, "", nil
		}
		return have, compare.Fields(want, is), err.Error(), nil
	case err != nil:
		return have, nil, "", err
	}
	want := sharedobject.Normalize(would.Object)
	if reflect.DeepEqual(want, is) {
		return have, nil, "", nil
	}
	return have, compare.Fields(want, is), "", nil
}

// PutShared writes an object in its step where other operators may have it.
func (w Writer) PutShared(ctx context.Context, as *kube.Epoch, body *unstructured.Unstructured, part overlay.Share) (
	*unstructured.Unstructured, error,
) {
	unlock := w.locks.lock(part.Ref)
	defer unlock()
	live, err := w.Env.Client.Get(ctx, body.GroupVersionKind(), body.GetNamespace(), body.GetName())
	if err != nil {
		return nil, err
	}
	if !Owned(live) {
		if err := w.Adopt(ctx, body); err != nil {
			return nil, err
		}
		return w.Applying(func() (*unstructured.Unstructured, error) { return as.Apply(ctx, body, part.Manager) })
	}
	in, f, err := w.weigh(ctx, live, body, part)
	if err != nil {
		return nil, err
	}
	outcome := sharedobject.Decide(in)
	if outcome == sharedobject.Ask {
		return nil, failure.ChoiceNeededError{SharedObject: *f}
	}
	elected := in.Elected(outcome)
	if err := w.elect(ctx, live, elected, in, part); err != nil {
		return nil, err
	}
	if outcome == sharedobject.Share {
		return w.Applying(func() (*unstructured.Unstructured, error) {
			return kube.Shares{Epoch: as}.Join(ctx, live, kube.Share(body, part.Owner), part.Manager, *elected)
		})
	}
	if len(in.Others) == 0 {
		return w.Applying(func() (*unstructured.Unstructured, error) { return as.Apply(ctx, body, part.Manager) })
	}
	return w.Applying(func() (*unstructured.Unstructured, error) {
		return kube.Shares{Epoch: as}.ApplyWhole(ctx, body, part.Manager, in.Others)
	})
}

// elect notes before the write who holds an object, where a person chose it, or chose otherwise before.
func (w Writer) elect(ctx context.Context, live *unstructured.Unstructured, elected *sharedobject.Owner,
	in sharedobject.Input, part overlay.Share,
) error {
	if len(in.Others) == 0 || elected == nil {
		return nil
	}
	if in.Choice == "" {
		was, err := kube.Shares{Epoch: w.Env.Client}.Election(ctx, live)
		if err != nil || was == nil || was.Namespace == elected.Namespace && was.Package == elected.Package {
			return err
		}
	}
	return w.Env.Points.Between("elect", func() error {
		return kube.Shares{Epoch: w.Env.Client}.Elect(ctx, live,
			kube.Election{
				Object: part.Ref.String(), Namespace: elected.Namespace, Package: elected.Package,
				Plan: part.Plan,
			})
	})
}

// HeldBy is who holds an object that an operator at rest has:
//
//	somebody was chosen and is installed      that one
//	it is gone                                the operator: it makes it again
//	the labels name one that is installed     that one
//	otherwise                                 the operator
//
// nil is the operator itself.
func (w Writer) HeldBy(ctx context.Context, live, body *unstructured.Unstructured, part overlay.Share) (
	*sharedobject.Owner, error,
) {
	if live != nil && (!Owned(live) || onlyOf(live, part.Owner)) {
		return nil, nil //nolint:nilnil // it is nobody's, or the operator's
	}
	chosen, err := kube.Shares{Epoch: w.Env.Client}.Election(ctx, body)
	if err != nil {
		return nil, err
	}
	if chosen != nil {
		o := sharedobject.Owner{Namespace: chosen.Namespace, Package: chosen.Package}
		if o.Is(part.Owner) {
			return nil, nil //nolint:nilnil // it is the operator's
		}
		if live == nil {
			return &o, nil
		}
	}
	if live == nil {
		return nil, nil //nolint:nilnil // see above
	}
	in, err := kube.Shares{Epoch: w.Env.Client}.Sharers(ctx, live, part.Owner)
	if err != nil {
		return nil, err
	}
	if chosen != nil {
		if i := slices.IndexFunc(in.Others, func(o sharedobject.Owner) bool {
			return o.Namespace == chosen.Namespace &&
				o.Package == chosen.Package
		}); i >= 0 {
			return &in.Others[i], nil
		}
	}
	if in.Holder == nil || in.Holder.Is(part.Owner) {
		return nil, nil //nolint:nilnil // it is the operator's
	}
	if held := (kube.Operator{Namespace: in.Holder.Namespace, Name: in.Holder.CSV}).Label(); kube.OwnerOf(
		live) != held {
		return nil, nil //nolint:nilnil // who held it is gone
	}
	return in.Holder, nil
}

// keepUp writes an object of an operator at rest that others may have, too. What another one holds is left as it is,
// but for the note that the operator has it; nil is an object that its holder is to make again.
func (w Writer) keepUp(ctx context.Context, body *unstructured.Unstructured, part overlay.Share) (
	*unstructured.Unstructured, error,
) {
	unlock := w.locks.lock(part.Ref)
	defer unlock()
	live, err := w.Env.Client.Get(ctx, body.GroupVersionKind(), body.GetNamespace(), body.GetName())
	if err != nil {
		return nil, err
	}
	holder, err := w.HeldBy(ctx, live, body, part)
	if err != nil {
		return nil, err
	}
	switch {
	case holder != nil && live == nil:
		return nil, nil //nolint:nilnil // its holder makes it
	case holder != nil:
		return kube.Shares{Epoch: w.Env.Client}.Join(ctx, live, kube.Share(body, part.Owner), part.Manager, *holder)
	case !Owned(live):
		applied, err := w.Env.Client.Apply(ctx, body, part.Manager)
		if err == nil && live == nil {
			w.madeAgain(part.Ref)
		}
		return applied, err
	}
	in, err := kube.Shares{Epoch: w.Env.Client}.Sharers(ctx, live, part.Owner)
	if err != nil {
		return nil, err
	}
	return kube.Shares{Epoch: w.Env.Client}.ApplyWhole(ctx, body, part.Manager, in.Others)
}

// madeAgain has the operators of other namespaces look at an object that was gone: with it went the notes that they
// have it.
func (w Writer) madeAgain(ref protocol.ObjectRef) {
	if ref.Namespace != "" {
		return
	}
	for _, p := range w.All() {
		if ns := p.Scope.Namespace; ns != w.Namespace {
			w.Env.Trail.Again(ns, ref, 0)
			w.Wake(ns)
		}
	}
}
