package kube

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations on the Lease that say for which registration of a hub the cluster is held.
const (
	annotationOwner     = "chandler-fleet.io/cluster-id" // <tenant>/<id of the cluster's stream>
	annotationOwnerName = "chandler-fleet.io/cluster"
)

// Registration is a cluster as a hub has registered it. An API server is held for one of them: two registrations of the
// same one would each undo what the other does.
type Registration struct {
	Tenant, ID, Name string
}

func (r Registration) key() string { return r.Tenant + "/" + r.ID }

// ElsewhereError says that an API server is held for another registration.
type ElsewhereError struct {
	Name, Key string // of the other one
	UID       string // of namespace kube-system, by which an API server is known
}

func (e ElsewhereError) Error() string {
	return fmt.Sprintf(
		"the API server (kube-system %s) is served as cluster %q already (%s): remove one of the two registrations; "+
			"where that one is gone for good and could not give the cluster back, take annotation %s off Lease %s/%s",
		e.UID, e.Name, e.Key, annotationOwner, SystemNamespace, LeaseName)
}

// IsElsewhere reports an API server that is held for another registration.
func IsElsewhere(err error) bool {
	_, ok := errors.AsType[ElsewhereError](err)
	return ok
}

// elsewhere is an ElsewhereError where a Lease is another registration's. One that says nothing is anybody's.
func (b *Base) elsewhere(ctx context.Context, lease *coordinationv1.Lease, mine Registration) error {
	key := lease.Annotations[annotationOwner]
	if key == "" || key == mine.key() {
		return nil
	}
	system, err := b.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return ElsewhereError{Name: lease.Annotations[annotationOwnerName], Key: key, UID: string(system.UID)}
}

// CheckOwner wants the cluster not to be held for another registration. It reads only, so that whoever is refused has
// written nothing.
func (b *Base) CheckOwner(ctx context.Context, mine Registration) error {
	lease, err := b.Kube.CoordinationV1().Leases(SystemNamespace).Get(ctx, LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the lease: %w", err)
	}
	return b.elsewhere(ctx, lease, mine)
}

// disown takes the registration off the Lease, so that the cluster may be registered under another name.
func (b *Base) disown(ctx context.Context) error {
	leases := b.Kube.CoordinationV1().Leases(SystemNamespace)
	lease, err := leases.Get(ctx, LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && lease.Annotations[annotationOwner] != "" {
		delete(lease.Annotations, annotationOwner)
		delete(lease.Annotations, annotationOwnerName)
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("take the registration off Lease %s/%s: %w", SystemNamespace, LeaseName, err)
	}
	return nil
}
