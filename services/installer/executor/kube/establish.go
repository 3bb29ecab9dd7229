package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/errs"
)

const (
	// crdTimeout bounds the wait for a CRD; past it the step is tried again with back-off.
	crdTimeout = 30 * time.Second
	// crdSettle is how long the second piece of news of a CRD is waited for.
	crdSettle = 100 * time.Millisecond
	// crdPoll and crdPollMax are how long to wait for news before asking without it.
	crdPoll    = 2 * time.Second
	crdPollMax = 8 * time.Second
	// crdForgotten is how long an API server may take to establish a CRD whose names it accepted. One of several waits
	// for five seconds on purpose.
	crdForgotten = 10 * time.Second
)

// AwaitEstablished waits until a CRD is served under its names (R-IP-20), and returns it. A CRD can be large: it is
// read when there is news of it, and once in a while in case news is lost or nobody sends any (nil).
func (e Definitions) AwaitEstablished(ctx context.Context, crd *unstructured.Unstructured, news <-chan struct{}) (
	*unstructured.Unstructured, error,
) {
	return establishment{client: e.objects(GVKCRD, ""), news: news}.await(ctx, crd)
}

// establishment is how a CRD comes to be served.
type establishment struct {
	client dynamic.ResourceInterface
	news   <-chan struct{} // of changes of the CRD; nil where nobody sends any
}

func (e establishment) await(ctx context.Context, crd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, crdTimeout)
	defer cancel()
	wait := crdPoll
	if e.news == nil {
		wait = pollInterval
	}
	forgotten := time.Now().Add(crdForgotten)
	for ; !established(crd); wait = min(2*wait, crdPollMax) {
		late := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-e.news:
			settle(ctx, e.news)
		case <-late.C:
		}
		late.Stop()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s is not established: %w", crd.GetName(), ctx.Err())
		}
		if why := namesRefused(crd); why != "" {
			return nil, errs.New(errs.Unavailable,
				"CustomResourceDefinition %s is not established: %s; remove or rename the definition that has the name",
				crd.GetName(), why)
		}
		next, err := e.client.Get(ctx, crd.GetName(), metav1.GetOptions{ResourceVersion: "0"})
		if apierrors.IsNotFound(err) { // what the API server reads from its cache may be behind
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s: %w", crd.GetName(), err)
		}
		crd = next
		if time.Now().After(forgotten) && !established(crd) {
			forgotten = time.Now().Add(crdForgotten)
			if err := e.remind(ctx, crd); err != nil {
				return nil, fmt.Errorf("CustomResourceDefinition %s is not established: %w", crd.GetName(), err)
			}
		}
	}
	return crd, nil
}

// remind writes the status of a CRD whose names are accepted. An API server establishes a CRD when it sees it change
// with its names accepted. If it ended between that change and what it did then, nothing changes any more, and its
// successor establishes the CRD only when it goes through all of them, every five minutes. What is written here is
// replaced when the CRD is established.
func (e establishment) remind(ctx context.Context, crd *unstructured.Unstructured) error {
	crd = crd.DeepCopy()
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return nil //nolint:nilerr // a status of another shape is left alone; the wait ends with its own error
	}
	accepted, forgotten := condition(conditions, "NamesAccepted"), condition(conditions, "Established")
	if accepted["status"] != "True" || forgotten == nil {
		return nil // it has not come that far
	}
	forgotten["message"] = fmt.Sprintf("the names are accepted; asked again to establish it at %s",
		time.Now().UTC().Format(time.RFC3339))
	if err := unstructured.SetNestedSlice(crd.Object, conditions, "status", "conditions"); err != nil {
		return err
	}
	_, err = e.client.UpdateStatus(ctx, crd, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // it changed, which is what was missing; or it is gone, which the next read tells
	}
	return err
}

// settle waits a little for a second piece of news: names are accepted right before a CRD is established, and each is
// news.
func settle(ctx context.Context, news <-chan struct{}) {
	late := time.NewTimer(crdSettle)
	defer late.Stop()
	select {
	case <-news:
	case <-late.C:
	case <-ctx.Done():
	}
}

// established reports whether a CRD is Established with accepted names (R-IP-20).
func established(crd *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return false
	}
	return condition(conditions, "Established")["status"] == "True" &&
		condition(conditions, "NamesAccepted")["status"] == "True"
}

// namesRefused is the API server's word on a CRD whose names another one has; "" where they are free.
func namesRefused(crd *unstructured.Unstructured) string {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return ""
	}
	if c := condition(conditions, "NamesAccepted"); c["status"] == "False" {
		return fmt.Sprint(c["message"])
	}
	return ""
}

// condition is the condition of a type; nil if there is none.
func condition(conditions []any, typ string) map[string]any {
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == typ {
			return m
		}
	}
	return nil
}
