package executor_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions",
}

// late does something at a point, once, while it is set.
type late struct {
	mu sync.Mutex
	at string
	do func() error
}

func (l *late) set(at string, do func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.do = at, do
}

func (l *late) point(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.do == nil || name != l.at {
		return nil
	}
	do := l.do
	l.do = nil
	return do()
}

// TestLateObjects: what somebody makes between the look before a plan and its steps is met as if it had been there:
// what fits stays theirs (R-UNI-3), what does not is a conflict, and a definition is judged before it is changed
// (R-CRD-3).
func TestLateObjects(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	var l late
	cfg := b.config("one")
	cfg.Hook = l.point
	b.start(cfg)

	theirs := func(name, version string, spec map[string]any) func() error {
		return func() error {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
				"metadata": map[string]any{"name": "gauges." + name}, "spec": map[string]any{
					"group": name, "scope": "Namespaced",
					"names": map[string]any{
						"kind": "Gauge", "listKind": "GaugeList", "plural": "gauges",
						"singular": "gauge",
					},
					"versions": []any{map[string]any{
						"name": version, "served": true, "storage": true,
						"schema": map[string]any{"openAPIV3Schema": spec},
					}},
				},
			}}
			_, err := dyn.Resource(definitions).Create(context.Background(), o,
				metav1.CreateOptions{FieldManager: "somebody"})
			return err
		}
	}
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	account := func(ns string) func() error {
		return func() error {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
				Name: ns, Labels: map[string]string{"team": "sea"},
			}}
			_, err := b.kube.CoreV1().ServiceAccounts(ns).Create(
				context.Background(), account, metav1.CreateOptions{FieldManager: "somebody"})
			return err
		}
	}
	begin := func(ns string, do func() error) (operator, protocol.Plan) {
		o, content := simple(t, ns)
		p := b.plan(ns, ns, content)
		l.set("opened", do)
		b.want(ns, p)
		return o, p
	}
	adopted := func(o metav1.Object) bool { return o.GetAnnotations()["chandler-fleet.io/adopted"] == "true" }

	o, p := begin("account", account("account"))
	b.finishes(t, "account", p, o.csv())
	sa, err := b.kube.CoreV1().ServiceAccounts("account").Get(t.Context(), "account", metav1.GetOptions{})
	must(t, err)
	if !adopted(sa) || sa.Labels["team"] != "sea" {
		t.Errorf("the account that somebody made: %v, %v", sa.Labels, sa.Annotations)
	}
	own, err := dyn.Resource(definitions).Get(t.Context(), "gauges.account.sea.test", metav1.GetOptions{})
	must(t, err)
	if adopted(own) {
		t.Error("a definition that the step made is marked as somebody else's")
	}

	o, p = begin("alike", theirs("alike.sea.test", "v1", open))
	b.finishes(t, "alike", p, o.csv())
	crd, err := dyn.Resource(definitions).Get(t.Context(), "gauges.alike.sea.test", metav1.GetOptions{})
	must(t, err)
	if !adopted(crd) {
		t.Errorf("the definition that somebody made just so: %v", crd.GetAnnotations())
	}

	_, p = begin("other", theirs("other.sea.test", "v1", map[string]any{"type": "object"}))
	if r := b.awaitPlan("other", p.ID, blocked("FieldManagerConflict")); !strings.Contains(r.Message, "somebody") {
		t.Errorf("message %q does not name the other manager", r.Message)
	}
	o, p = begin("older", theirs("older.sea.test", "v0", open))
	if r := b.awaitPlan("older", p.ID, blocked("CRDUpgradeUnsafe")); !strings.Contains(r.Message, "v0") {
		t.Errorf("message %q does not name the version", r.Message)
	}
	must(t, dyn.Resource(definitions).Delete(t.Context(), "gauges.older.sea.test", metav1.DeleteOptions{}))
	await(t, "end of the older definition", func(ctx context.Context) error {
		found, err := dyn.Resource(definitions).Get(ctx, "gauges.older.sea.test", metav1.GetOptions{})
		if err == nil && found.GetLabels()["chandler-fleet.io/managed"] != "true" {
			return fmt.Errorf("it is still %v", found.GetUID())
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	b.finishes(t, "older", p, o.csv())
}
