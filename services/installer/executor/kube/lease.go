package kube

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// LeaseName is the Lease in SystemNamespace that says who the holder is.
const LeaseName = "chandler-executor"

// annotationEpoch on the Lease is the holder's epoch; it only ever grows.
const annotationEpoch = "chandler-fleet.io/epoch"

// Lease is one candidate's view of the lease. Its clock is its own: another holder is taken to be
// gone when its lease has not changed for Duration as measured here, so no clock of another machine
// is trusted. It is not safe for concurrent use.
type Lease struct {
	base     *Base
	holder   string
	owner    Registration
	Duration time.Duration
	now      func() time.Time

	epoch    int64  // ours, 0 while we hold nothing
	tried    bool   // we have looked before
	version  string // resourceVersion that we saw last
	observed time.Time
}

// NewLease returns a candidate for a registration. holder names a process slot, unique among those that live at a time.
func NewLease(base *Base, owner Registration, holder string, duration time.Duration, now func() time.Time) *Lease {
	return &Lease{base: base, owner: owner, holder: holder, Duration: duration, now: now}
}

// Acquire tries once to become the holder. It returns the epoch, or 0 while somebody else holds.
//
// The holder's own lease is taken over at once by a process that has just started under the same
// name: what keeps its former self out is the fence, not the wait. That is done once in a process'
// life, so that two processes that were given one name by mistake do not push each other out for ever.
//
// An epoch is above every lease's and the fence's: a lease may be lost, or restored as it once was, and the fence would
// keep out whoever began anew below it.
func (l *Lease) Acquire(ctx context.Context) (int64, error) {
	fence, err := l.base.fenceEpoch(ctx)
	if err != nil {
		return 0, err
	}
	lease, err := l.base.Kube.CoordinationV1().Leases(SystemNamespace).Get(ctx, LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return l.create(ctx, fence+1)
	}
	if err != nil {
		return 0, fmt.Errorf("read the lease: %w", err)
	}
	if err := l.base.elsewhere(ctx, lease, l.owner); err != nil { // however long nobody has been heard of
		l.epoch = 0
		return 0, err
	}
	epoch, err := epochOf(lease)
	if err != nil {
		return 0, err
	}
	first := !l.tried
	l.tried = true
	if l.version != lease.ResourceVersion {
		l.version, l.observed = lease.ResourceVersion, l.now()
	}
	held := holderOf(lease)
	switch {
	case held == l.holder && l.epoch == epoch && fence <= epoch:
		return epoch, l.write(ctx, lease, epoch) // still ours after a time without contact
	case held == "", held == l.holder && (first || l.epoch == epoch), l.now().Sub(l.observed) >= l.Duration:
		return l.take(ctx, lease, max(epoch, fence)+1)
	}
	l.epoch = 0
	return 0, nil
}

// Left is how long another one still holds the lease if nothing more is heard of it: who looks again then loses no
// time.
func (l *Lease) Left() time.Duration { return l.Duration - l.now().Sub(l.observed) }

// Raise gives the lease that is held an epoch above a number, and returns it; 0 where somebody else holds the lease by
// now. The hub knew of a higher epoch than the lease had: the cluster was restored from a backup, and epochs must not
// begin again.
func (l *Lease) Raise(ctx context.Context, above int64) (int64, error) {
	lease, err := l.base.Kube.CoordinationV1().Leases(SystemNamespace).Get(ctx, LeaseName, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("read the lease: %w", err)
	}
	epoch, err := epochOf(lease)
	if err != nil {
		return 0, err
	}
	if holderOf(lease) != l.holder || epoch != l.epoch {
		l.epoch = 0
		return 0, nil
	}
	return l.take(ctx, lease, max(epoch, above)+1)
}

func (l *Lease) create(ctx context.Context, epoch int64) (int64, error) {
	l.tried = true
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeaseName, Labels: ownLabels()}}
	l.fill(lease, epoch)
	made, err := l.base.Kube.CoordinationV1().Leases(SystemNamespace).Create(ctx, lease, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return 0, nil // somebody was quicker; look again
	}
	if err != nil {
		return 0, fmt.Errorf("create the lease: %w", err)
	}
	l.epoch, l.version, l.observed = epoch, made.ResourceVersion, l.now()
	return epoch, nil
}

func (l *Lease) take(ctx context.Context, lease *coordinationv1.Lease, epoch int64) (int64, error) {
	if err := l.write(ctx, lease, epoch); err != nil {
		if apierrors.IsConflict(err) {
			return 0, nil
		}
		return 0, err
	}
	return epoch, nil
}

// Renew tells the others that we live. Losing the lease is errs.Conflict. Without an answer
// connections that are dead are closed, so that the next attempt does not go over one.
func (l *Lease) Renew(ctx context.Context) error {
	return l.base.attentive(func() error { return l.renew(ctx) })
}

func (l *Lease) renew(ctx context.Context) error {
	lease, err := l.base.Kube.CoordinationV1().Leases(SystemNamespace).Get(ctx, LeaseName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the lease: %w", err)
	}
	epoch, err := epochOf(lease)
	if err != nil {
		return err
	}
	if holderOf(lease) != l.holder || epoch != l.epoch {
		l.epoch = 0
		return errs.New(errs.Conflict, "the lease was taken by %q in epoch %d", holderOf(lease), epoch)
	}
	return l.write(ctx, lease, epoch)
}

// Release lets another candidate in at once. Only an orderly stop does so.
func (l *Lease) Release(ctx context.Context) error {
	if l.epoch == 0 {
		return nil
	}
	lease, err := l.base.Kube.CoordinationV1().Leases(SystemNamespace).Get(ctx, LeaseName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the lease: %w", err)
	}
	if epoch, err := epochOf(lease); err != nil || holderOf(lease) != l.holder || epoch != l.epoch {
		return err
	}
	nobody := ""
	lease.Spec.HolderIdentity = &nobody
	l.epoch = 0
	_, err = l.base.Kube.CoordinationV1().Leases(SystemNamespace).Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func (l *Lease) write(ctx context.Context, lease *coordinationv1.Lease, epoch int64) error {
	next := lease.DeepCopy()
	l.fill(next, epoch)
	written, err := l.base.Kube.CoordinationV1().Leases(SystemNamespace).Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write the lease: %w", err)
	}
	l.epoch, l.version, l.observed = epoch, written.ResourceVersion, l.now()
	return nil
}

func (l *Lease) fill(lease *coordinationv1.Lease, epoch int64) {
	seconds := int32(l.Duration / time.Second)
	renewed := metav1.NewMicroTime(l.now())
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	if lease.Annotations[annotationEpoch] != strconv.FormatInt(epoch, 10) {
		transitions := int32(min(epoch, math.MaxInt32))
		lease.Spec.AcquireTime, lease.Spec.LeaseTransitions = &renewed, &transitions
	}
	lease.Annotations[annotationEpoch] = strconv.FormatInt(epoch, 10)
	lease.Annotations[annotationOwner], lease.Annotations[annotationOwnerName] = l.owner.key(), l.owner.Name
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &l.holder, &seconds, &renewed
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func epochOf(lease *coordinationv1.Lease) (int64, error) {
	text, ok := lease.Annotations[annotationEpoch]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, errs.New(errs.Invalid, "lease %s/%s: annotation %s is %q, want a number", SystemNamespace, LeaseName,
			annotationEpoch, text)
	}
	return n, nil
}
