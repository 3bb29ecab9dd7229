package watch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

// patience bounds every wait of a test on a busy machine.
const patience = time.Minute

var (
	definitions = schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition",
	}
	monitors   = schema.GroupVersionKind{Group: "monitoring.sea.test", Version: "v1", Kind: "Monitor"}
	namespaces = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
)

func object(gvk schema.GroupVersionKind, namespace, name string,
	labels map[string]string,
) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: "u-1",
		ResourceVersion: "1", Labels: labels,
	}}
	o.SetGroupVersionKind(gvk)
	return o
}

func client(t *testing.T, objects ...runtime.Object) *fake.FakeMetadataClient {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewSimpleMetadataClient(scheme, objects...)
}

// told gathers changes and lets a test wait for one.
type told struct {
	mu   sync.Mutex
	list []watch.Change
	more chan struct{}
}

func newTold() *told { return &told{more: make(chan struct{}, 100)} }

func (r *told) change(c watch.Change) {
	r.mu.Lock()
	r.list = append(r.list, c)
	r.mu.Unlock()
	r.more <- struct{}{}
}

func (r *told) await(t *testing.T, what string, ok func(watch.Change) bool) {
	t.Helper()
	late := time.After(patience)
	for {
		r.mu.Lock()
		found := slices.ContainsFunc(r.list, ok)
		r.mu.Unlock()
		if found {
			return
		}
		select {
		case <-r.more:
		case <-late:
			t.Fatalf("%s was not told; told: %+v", what, r.list)
		}
	}
}

func (r *told) count(ok func(watch.Change) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.list {
		if ok(c) {
			n++
		}
	}
	return n
}

func run(t *testing.T, w *watch.Watch) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
}

// TestOptionalKinds: a kind that is not always served is asked for once its definition is there, and not before.
func TestOptionalKinds(t *testing.T) {
	t.Parallel()
	c := client(t, object(monitors, "ops", "m", map[string]string{"owner": "sea"}))
	r := newTold()
	run(t, watch.New(c, []watch.Kind{
		{GVK: definitions, Resource: "customresourcedefinitions"},
		{GVK: monitors, Resource: "monitors", CRD: "monitors.monitoring.sea.test", Owner: "owner"},
		{GVK: namespaces, Resource: "namespaces"},
	}, r.change))
	crds := c.Resource(definitions.GroupVersion().WithResource("customresourcedefinitions"))
	await(t, "watch of namespaces", func() bool { return asked(c, "watch", "namespaces") })
	if asked(c, "list", "monitors") {
		t.Error("a kind was asked for that is not served")
	}
	creator, ok := crds.(fake.MetadataClient)
	if !ok {
		t.Fatal("the fake cannot create")
	}
	if _, err := creator.CreateFake(object(definitions, "", "monitors.monitoring.sea.test", nil),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.await(t, "the object of the kind", func(c watch.Change) bool {
		return c.GVK == monitors && c.Namespace == "ops" && c.Name == "m" && c.Owner == "sea" && c.Moved && !c.Gone
	})
}

// TestStandby: a kind that is put off is asked for once something is wanted, and not before; each whole list is
// reported, so that what nobody told of is known not to be there.
func TestStandby(t *testing.T) {
	t.Parallel()
	c := client(t, object(monitors, "ops", "m", nil))
	r := newTold()
	kinds := watch.Standby([]watch.Kind{
		{GVK: monitors, Resource: "monitors"},
		{GVK: definitions, Resource: "customresourcedefinitions"},
		{GVK: namespaces, Resource: "namespaces"},
	}, definitions, namespaces)
	w := watch.New(c, kinds, r.change)
	whole := make(chan schema.GroupVersionKind, 100)
	w.Listed = func(gvk schema.GroupVersionKind) { whole <- gvk }
	run(t, w)
	w.Await(t.Context(), namespaces)
	if asked(c, "list", "monitors") {
		t.Error("a kind was asked for of which nothing is wanted")
	}
	w.Demand()
	w.Demand()
	w.Await(t.Context(), monitors)
	r.await(t, "the object of the kind", func(c watch.Change) bool { return c.GVK == monitors && c.Name == "m" })
	if first, second, third := <-whole, <-whole, <-whole; first != definitions || second != namespaces ||
		third != monitors {
		t.Errorf("listed %s, %s, %s", first, second, third)
	}
}

func asked(c *fake.FakeMetadataClient, verb, resource string) bool {
	for _, a := range c.Actions() {
		if a.GetVerb() == verb && a.GetResource().Resource == resource {
			return true
		}
	}
	return false
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it did not come to the " + what)
		}
	}
}

// TestLostPermission: while a kind may not be listed nothing is known of it, and nothing is reported as gone.
func TestLostPermission(t *testing.T) {
	t.Parallel()
	c := client(t, object(namespaces, "", "a", map[string]string{"team": "sea"}))
	refused := make(chan struct{}, 100)
	c.PrependReactor("list", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		refused <- struct{}{}
		return true, nil, errors.New("namespaces is forbidden")
	})
	r := newTold()
	w := watch.New(c, []watch.Kind{{GVK: namespaces, Resource: "namespaces", Labels: true}}, r.change)
	run(t, w)
	<-refused
	if labels, known := w.Labels(namespaces); known || len(labels) > 0 || len(r.list) > 0 {
		t.Errorf("known: %v, %v, told %v", known, labels, r.list)
	}
}

// TestLabels: labels are there for those who select by them.
func TestLabels(t *testing.T) {
	t.Parallel()
	c := client(t, object(namespaces, "", "a", map[string]string{"team": "sea"}), object(namespaces, "", "b", nil))
	w := watch.New(c, []watch.Kind{{GVK: namespaces, Resource: "namespaces", Labels: true}}, newTold().change)
	run(t, w)
	await(t, "labels", func() bool { _, known := w.Labels(namespaces); return known })
	got, _ := w.Labels(namespaces)
	if diff := cmp.Diff(map[string]map[string]string{"a": {"team": "sea"}, "b": nil}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnnotations: those that an operator group may have set are there of namespaces with its label, and no others.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	annotated := func(name string, labels map[string]string) *metav1.PartialObjectMetadata {
		o := object(namespaces, "", name, labels)
		o.Annotations = map[string]string{"node-selector": "", "applied": strings.Repeat("x", 1025)}
		return o
	}
	c := client(t, annotated("a", map[string]string{"kept": "1"}), annotated("b", nil))
	w := watch.New(c, []watch.Kind{{GVK: namespaces, Resource: "namespaces", Annotations: "kept"}}, newTold().change)
	run(t, w)
	await(t, "namespaces", func() bool { there, _ := w.There(namespaces, "", "b"); return there })
	await(t, "namespaces", func() bool { there, _ := w.There(namespaces, "", "a"); return there })
	for name, want := range map[string]map[string]string{"a": {"node-selector": ""}, "b": nil, "c": nil} {
		if diff := cmp.Diff(want, w.Annotations(namespaces, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestMark: what people write gives another mark, what only the status or a controller of Kubernetes says does not.
func TestMark(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC))
	deployment := func(change func(*metav1.ObjectMeta)) uint64 {
		m := &metav1.ObjectMeta{
			UID: "u", ResourceVersion: "7", Generation: 2,
			ManagedFields: []metav1.ManagedFieldsEntry{
				{
					Manager: "chandler", Operation: metav1.ManagedFieldsOperationApply, Time: &at,
					FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
				},
			},
		}
		change(m)
		return watch.Mark(m)
	}
	same := deployment(func(*metav1.ObjectMeta) {})
	for name, c := range map[string]struct {
		change func(*metav1.ObjectMeta)
		moved  bool
	}{
		"version":                {func(m *metav1.ObjectMeta) { m.ResourceVersion = "8" }, false},
		"generation":             {func(m *metav1.ObjectMeta) { m.Generation = 3 }, true},
		"uid":                    {func(m *metav1.ObjectMeta) { m.UID = "v" }, true},
		"no kind of generations": {func(m *metav1.ObjectMeta) { m.Generation = 0 }, true},
		"status": {func(m *metav1.ObjectMeta) {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: "x", Subresource: "status"})
		}, false},
		"revision": {func(m *metav1.ObjectMeta) {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: watch.KubernetesManager})
		}, false},
		"label": {func(m *metav1.ObjectMeta) {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl-label", Time: &at})
		}, true},
		"a field less": {func(m *metav1.ObjectMeta) { m.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{}`) }, true},
	} {
		if got := deployment(c.change) != same; got != c.moved {
			t.Errorf("%s: moved %v, want %v", name, got, c.moved)
		}
	}
	role := func(version string) uint64 { return watch.Mark(&metav1.ObjectMeta{UID: "u", ResourceVersion: version}) }
	if first, again := role("1"), role("1"); first != again || first == role("2") {
		t.Error("of a kind without generations each version is told apart")
	}
}

// TestTrail: what Chandler wrote is not somebody else's, whichever comes first, the answer or the news of it.
func TestTrail(t *testing.T) {
	t.Parallel()
	trail := watch.NewTrail()
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	news := func(name string, mark uint64) watch.Change {
		return watch.Change{GVK: role, Namespace: "ops", Name: name, Mark: mark, Moved: true, Gone: mark == 0}
	}
	trail.Clean(news("a", 1).Ref(), 1)
	if trail.Seen("ops", news("a", 1)) {
		t.Error("our own write is told as somebody else's")
	}
	trail.Seen("ops", news("b", 2))
	trail.Clean(news("b", 2).Ref(), 2)
	if !trail.Seen("ops", news("c", 3)) || !trail.Seen("ops", news("a", 0)) {
		t.Error("an edit and a deletion were not told")
	}
	want := map[protocol.ObjectRef]uint64{news("c", 3).Ref(): 3, news("a", 0).Ref(): 0}
	if diff := cmp.Diff(want, trail.Take("ops")); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if again := trail.Take("ops"); len(again) > 0 {
		t.Errorf("taken twice: %v", again)
	}
	trail.Again("ops", news("c", 3).Ref(), 3)
	trail.Seen("ops", news("c", 4))
	trail.Again("ops", news("c", 4).Ref(), 3)
	if got := trail.Take("ops"); got[news("c", 4).Ref()] != 4 {
		t.Errorf("an older mark came over a newer one: %v", fmt.Sprint(got))
	}
}

// TestSignals: news is not lost while nobody reads, and is reported to those who listen only.
func TestSignals(t *testing.T) {
	t.Parallel()
	s := watch.NewSignals()
	a, b := protocol.ObjectRef{Kind: "CustomResourceDefinition", Name: "a"},
		protocol.ObjectRef{Kind: "CustomResourceDefinition", Name: "b"}
	first, stopFirst := s.Listen(a)
	second, stopSecond := s.Listen(a)
	defer stopSecond()
	other, stopOther := s.Listen(b)
	defer stopOther()
	s.Notify(a)
	s.Notify(a)
	<-first
	<-second
	stopFirst()
	s.Notify(a)
	<-second
	if len(first)+len(second)+len(other) != 0 {
		t.Errorf("news that nobody told: %d, %d, %d", len(first), len(second), len(other))
	}
}

// TestThere: what the watch has seen is known to exist, and whether it is on its way out; of anything else nothing is
// known.
func TestThere(t *testing.T) {
	t.Parallel()
	leaving := object(namespaces, "", "leaving", nil)
	now := metav1.Now()
	leaving.DeletionTimestamp, leaving.Finalizers = &now, []string{"sea.test/wait"}
	w := watch.New(client(t, object(namespaces, "", "stays", nil), leaving),
		[]watch.Kind{{GVK: namespaces, Resource: "namespaces"}}, newTold().change)
	run(t, w)
	w.Await(t.Context(), namespaces)
	for _, c := range []struct {
		gvk            schema.GroupVersionKind
		name           string
		there, leaving bool
	}{
		{namespaces, "stays", true, false},
		{namespaces, "leaving", true, true},
		{namespaces, "absent", false, false},
		{monitors, "stays", false, false},
	} {
		if there, leaving := w.There(c.gvk, "", c.name); there != c.there || leaving != c.leaving {
			t.Errorf("%s %s: there %v, leaving %v", c.gvk.Kind, c.name, there, leaving)
		}
	}
}

// TestAbsent: what a complete list does not show is absent as far as is known; of kinds that are not listed yet, that
// may not be listed, or of which only a part is listed, nothing is known to be absent.
func TestAbsent(t *testing.T) {
	t.Parallel()
	c := client(t, object(definitions, "", "there", nil))
	c.PrependReactor("list", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("namespaces is forbidden")
	})
	services := schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	w := watch.New(c, []watch.Kind{
		{GVK: definitions, Resource: "customresourcedefinitions"},
		{GVK: services, Resource: "services", Selector: "managed=true"},
		{GVK: namespaces, Resource: "namespaces"},
	}, newTold().change)
	if w.Absent(definitions, "", "other") {
		t.Error("something is absent before the first list")
	}
	run(t, w)
	w.Await(t.Context(), definitions)
	w.Await(t.Context(), services)
	await(t, "list of namespaces", func() bool { return asked(c, "list", "namespaces") })
	for _, a := range []struct {
		gvk    schema.GroupVersionKind
		name   string
		absent bool
	}{
		{definitions, "there", false},
		{definitions, "other", true},
		{services, "other", false},
		{namespaces, "other", false},
		{monitors, "other", false},
	} {
		if got := w.Absent(a.gvk, "", a.name); got != a.absent {
			t.Errorf("%s %s: absent %v", a.gvk.Kind, a.name, got)
		}
	}
}
