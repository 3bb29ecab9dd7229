// Package unready asks a cluster why Deployments are not ready (package readiness decides). Nothing is asked of those
// that are ready, nor of one that has not been unready for a while; after that, ever more rarely.
package unready

import (
	"context"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/readiness"
)

const (
	// again and atMost are the waits between two looks at one Deployment; they double.
	again  = 10 * time.Second
	atMost = time.Minute
	// maxPods bounds what is read of a Deployment's Pods: each shows the same trouble.
	maxPods = 10
	// maxReplicaSets bounds what is read of its ReplicaSets: the present one and, of operators, one former (R-CSV-21).
	maxReplicaSets = 20
	// maxEvents bounds what is read of one Pod's Events, and maxAsked of how many Pods.
	maxEvents, maxAsked = 50, 2
	// forgotten is how long a Deployment that nobody asks about is remembered.
	forgotten = 10 * time.Minute
)

// Cache is what is known of one cluster's Deployments that are not ready.
type Cache struct {
	client *kube.Epoch
	now    func() time.Time
	first  time.Duration

	mu    sync.Mutex
	notes map[string]note // by UID of the Deployment
}

type note struct {
	next  time.Time
	wait  time.Duration
	asked time.Time // when somebody wanted to know last
	cause readiness.Cause
}

// New returns a cache that asks nothing of a Deployment that has not been seen unready for the first while.
func New(client *kube.Epoch, now func() time.Time, first time.Duration) *Cache {
	return &Cache{client: client, now: now, first: first, notes: map[string]note{}}
}

// Ready forgets a Deployment that is ready.
func (c *Cache) Ready(d *appsv1.Deployment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.notes, string(d.UID))
}

// Cause says why a Deployment is not ready, the zero value while that is not known, and when to ask again. Where the
// cluster cannot be asked, what was known before stays.
func (c *Cache) Cause(ctx context.Context, d *appsv1.Deployment) (readiness.Cause, time.Duration, error) {
	if cause, ok := readiness.AdmissionRefusal(*d); ok { // the watch of Deployments tells when that ends
		c.Ready(d)
		return cause, 0, nil
	}
	n, due := c.due(d)
	if !due {
		return n.cause, n.next.Sub(c.now()), nil
	}
	seen, err := c.read(ctx, d)
	if err == nil {
		n.cause, _ = readiness.Explain(seen)
	}
	n.wait = min(max(again, 2*n.wait), atMost)
	n.next = c.now().Add(n.wait)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes[string(d.UID)] = n
	return n.cause, n.wait, err
}

// due notes that somebody wants to know about a Deployment, and reports whether it is to be looked at.
func (c *Cache) due(d *appsv1.Deployment) (note, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for uid, n := range c.notes {
		if now.Sub(n.asked) > forgotten {
			delete(c.notes, uid)
		}
	}
	n, known := c.notes[string(d.UID)]
	if !known {
		n = note{next: now.Add(c.first)}
	}
	n.asked = now
	c.notes[string(d.UID)] = n
	return n, !now.Before(n.next)
}

var gvkEvent = schema.GroupVersionKind{Version: "v1", Kind: "Event"}

// read reads what shows why a Deployment is not ready: Events only of Pods that do not say.
func (c *Cache) read(ctx context.Context, d *appsv1.Deployment) (readiness.Observed, error) {
	seen := readiness.Observed{Deployment: *d}
	selector := metav1.FormatLabelSelector(d.Spec.Selector)
	var err error
	if seen.ReplicaSets, err = kube.ListAs[appsv1.ReplicaSet](ctx, c.client, kube.GVKReplicaSet, d.Namespace,
		metav1.ListOptions{LabelSelector: selector, Limit: maxReplicaSets}); err != nil {
		return seen, err
	}
	if seen.Pods, err = kube.ListAs[corev1.Pod](ctx, c.client, kube.GVKPod, d.Namespace,
		metav1.ListOptions{LabelSelector: selector, Limit: maxPods}); err != nil {
		return seen, err
	}
	unsaid := readiness.Unexplained(seen)
	for _, uid := range unsaid[:min(len(unsaid), maxAsked)] {
		events, err := kube.ListAs[corev1.Event](ctx, c.client, gvkEvent, d.Namespace, metav1.ListOptions{
			FieldSelector: fields.Set{"involvedObject.uid": uid, "type": corev1.EventTypeWarning}.String(),
			Limit:         maxEvents,
		})
		if err != nil {
			return seen, err
		}
		seen.Events = slices.Concat(seen.Events, events)
	}
	return seen, nil
}
