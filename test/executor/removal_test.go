package executor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/removal"
	"github.com/chandler-fleet/chandler/test/internal/chaos"
)

// TestRemoval: what is removed, what stays, and what stands in the way, on a real API server (R-UNI, P14).
//
//nolint:tparallel // one executor is the subject; what it is busy with at a time is to be known
func TestRemoval(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	for name, test := range map[string]func(*testing.T, *removed){
		"un-default": testRemovalLeavesData, "un-crds": testRemovalWithData, "un-needed": testRemovalOfWhatIsNeeded,
		"un-changed": testRemovalChanged, "un-anew": testRemovalOfAnother, "un-shared": testRemovalSpares,
		"un-unknown": testRemovalOfUnknown, "un-stop": testRemovalStops, "un-hand": testRemovalByHand,
		"un-before": testRemovalSparesBefore, "un-terminating": testRemovalTerminating,
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // see above
			r := &removed{bed: b.on(t), t: t, ns: name, dyn: dyn}
			test(t, r)
		})
	}
}

// removed is a namespace with an operator that is to go.
type removed struct {
	*bed
	t       *testing.T
	ns      string
	dyn     dynamic.Interface
	plan    protocol.Plan
	content planned
}

func (r *removed) group() string { return r.ns + ".sea.test" }
func (r *removed) crd() string   { return "gauges." + r.group() }
func (r *removed) csv() string   { return r.ns + ".v1.0.0" }

// install installs the operator of the namespace.
func (r *removed) install() protocol.CSVReport {
	r.t.Helper()
	o := operator{name: r.ns, version: "1.0.0", group: r.group(), configMap: "settings", webhook: r.ns + "-controller"}
	r.content = planned{content: o.content(r.t)}
	r.plan = r.bed.plan(r.ns, r.ns, r.content)
	r.want(r.ns, r.plan)
	return r.finishes(r.t, r.ns, r.plan, r.csv())
}

// ask asks for the removal of the operator, and returns the request.
func (r *removed) ask(shown string, crds ...string) protocol.Removal {
	r.t.Helper()
	s := r.scope(r.ns)
	x := r.Removal(r.ns, protocol.Removal{ID: uuid.NewString(), CSV: r.csv(), CRDs: crds, Plan: shown})
	s.Plans, s.Removals = nil, []protocol.Removal{x}
	s.Installed = []protocol.Installed{{CSV: r.csv(), Content: r.plan.Digest, Plan: r.plan.ID}}
	r.publish(s)
	return x
}

// show asks the executor what a removal would do.
func (r *removed) show(crds ...string) protocol.RemovalPlan {
	r.t.Helper()
	p, err := r.shown(r.csv(), crds...)
	must(r.t, err)
	return p
}

func (r *removed) shown(csv string, crds ...string) (p protocol.RemovalPlan, err error) {
	q := protocol.RemovalQuestion{Namespace: r.ns, CSV: csv, CRDs: crds}
	err = r.Ask(r.t.Context(), protocol.RPCRemoval, q, &p)
	return p, err
}

// ends waits until a removal has ended, and the record would have heard of both.
func (r *removed) ends(x protocol.Removal) (protocol.RemovalReport, protocol.CSVReport) {
	r.t.Helper()
	report := r.AwaitRemoval(r.ns, x.ID,
		func(m protocol.RemovalReport) bool { return m.Phase == protocol.PlanFinished })
	words := r.awaitCSV(r.ns, x.CSV, func(c protocol.CSVReport) bool { return c.Removed })
	return report, words
}

func (r *removed) waits(x protocol.Removal, reason string) protocol.RemovalReport {
	r.t.Helper()
	return r.AwaitRemoval(r.ns, x.ID, func(m protocol.RemovalReport) bool {
		return m.Phase == protocol.PlanBlocked &&
			m.Reason == reason
	})
}

func (r *removed) refused(x protocol.Removal, reason string) protocol.RemovalReport {
	r.t.Helper()
	m := r.AwaitRemoval(r.ns, x.ID, func(m protocol.RemovalReport) bool { return m.Phase == protocol.RemovalRefused })
	if m.Reason != reason || m.Message == "" {
		r.t.Errorf("refused for %s (%s), want %s", m.Reason, m.Message, reason)
	}
	return m
}

// testRemovalOfAnother: what was shown was to go; its namesake that was installed since is not (R-UNI-1).
func testRemovalOfAnother(t *testing.T, r *removed) {
	r.install()
	before := r.show()
	shown, err := removal.Digest(before)
	must(t, err)
	must(t, r.dyn.Resource(installedOperators()).Namespace(r.ns).Delete(t.Context(), r.csv(), metav1.DeleteOptions{}))
	s := r.scope(r.ns)
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: r.csv(), Plan: r.plan.ID}}
	r.publish(s)
	r.awaitCSV(r.ns, r.csv(), func(c protocol.CSVReport) bool { return c.Removed })
	again := r.install()
	if now := r.show(); now.UID == before.UID || now.UID != again.UID {
		t.Errorf("shown of %s, then of %s; the one that is there is %s", before.UID, now.UID, again.UID)
	}
	r.refused(r.ask(string(shown)), removal.RefusedChanged)
	r.awaitCSV(r.ns, r.csv(), reached("Succeeded"))
}

func (r *removed) gauges() dynamic.ResourceInterface {
	return r.dyn.Resource(schema.GroupVersionResource{Group: r.group(), Version: "v1", Resource: "gauges"}).Namespace(
		r.ns)
}

// gauge makes an object of the operator's.
func (r *removed) gauge(name string, finalizers ...string) {
	r.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.group() + "/v1", "kind": "Gauge"}}
	o.SetName(name)
	o.SetFinalizers(finalizers)
	await(r.t, "object "+name, func(ctx context.Context) error {
		_, err := r.gauges().Create(ctx, o, metav1.CreateOptions{})
		return err
	})
}

// withoutWebhook lets objects be made though nothing answers behind the webhook.
func (r *removed) withoutWebhook() {
	r.t.Helper()
	o := operator{name: r.ns, version: "1.0.0", group: r.group()}
	r.content = planned{content: o.content(r.t)}
	r.plan = r.bed.plan(r.ns, r.ns, r.content)
	r.want(r.ns, r.plan)
	r.finishes(r.t, r.ns, r.plan, r.csv())
}

func (r *removed) crdExists() bool {
	r.t.Helper()
	list, err := r.dyn.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions",
	}).
		List(r.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + r.crd()})
	must(r.t, err)
	return len(list.Items) > 0
}

// nothing checks that no object of the operator is left, in its namespace or outside; those of its group stay.
func (r *removed) nothing() {
	r.t.Helper()
	await(r.t, "objects of the operator", func(context.Context) error {
		left := slices.DeleteFunc(r.objects(r.t, r.ns),
			func(o string) bool { return strings.HasSuffix(o, " of group") })
		if len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}

// testRemovalLeavesData: R-UNI-1, R-UNI-2 and R-UNI-5: the operator goes with all that belongs to it, its definition
// stays and is announced, and it can be installed again at once.
func testRemovalLeavesData(t *testing.T, r *removed) {
	t.Helper()
	c := r.install()
	p := r.show()
	want := []protocol.Leftover{{
		ObjectRef: protocol.ObjectRef{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
			Name: r.crd(),
		}, Reason: protocol.LeftNotAsked,
	}}
	if diff := cmp.Diff(want, p.Stays); diff != "" {
		t.Errorf("shown to stay: %s", diff)
	}
	d, err := removal.Digest(p)
	must(t, err)
	x := r.ask(string(d))
	report, words := r.ends(x)
	if diff := cmp.Diff(want, report.Left); diff != "" {
		t.Errorf("left: %s", diff)
	}
	if words.RemovedReason != "Uninstalled" || words.Removal != x.ID || words.UID != c.UID ||
		!slices.Equal(history(words), fresh) {
		t.Errorf("last words: %+v", words)
	}
	r.nothing()
	if !r.crdExists() {
		t.Error("the definition is gone")
	}
	s := r.scope(r.ns)
	again := r.bed.plan(r.ns, r.ns, r.content)
	s.Plans, s.Removals, s.Installed = []protocol.Plan{again}, nil, nil
	r.publish(s)
	r.awaitPlan(r.ns, again.ID, phase(protocol.PlanFinished))
	r.awaitCSV(r.ns, r.csv(), func(n protocol.CSVReport) bool { return n.UID != c.UID && reached("Succeeded")(n) })
}

// testRemovalSparesBefore: an object that was there before Chandler is told to stay, and bears no word of the operator
// in the end; a new version does not make it Chandler's (R-UNI-3).
func testRemovalSparesBefore(t *testing.T, r *removed) {
	t.Helper()
	_, err := r.kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.ns}}, metav1.CreateOptions{})
	must(t, err)
	mine := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "settings", Labels: map[string]string{"mine": "yes"},
			Annotations: map[string]string{"mine": "too"},
		},
		Data: map[string]string{"own": "word"},
	}
	mine, err = r.kube.CoreV1().ConfigMaps(r.ns).Create(t.Context(), mine, metav1.CreateOptions{})
	must(t, err)
	r.install()
	again := r.bed.plan(r.ns, r.ns, r.content)
	r.want(r.ns, again)
	r.awaitPlan(r.ns, again.ID, phase(protocol.PlanFinished))
	stays := protocol.Leftover{ObjectRef: protocol.ObjectRef{
		Version: "v1", Kind: "ConfigMap", Namespace: r.ns,
		Name: "settings",
	}, Reason: protocol.LeftNotOurs}
	if p := r.show(); !slices.ContainsFunc(p.Stays,
		func(l protocol.Leftover) bool { return l.ObjectRef == stays.ObjectRef && l.Reason == stays.Reason }) {
		t.Errorf("shown to stay: %+v", p.Stays)
	}
	r.ends(r.ask(""))
	r.nothing()
	left, err := r.kube.CoreV1().ConfigMaps(r.ns).Get(t.Context(), "settings", metav1.GetOptions{})
	must(t, err)
	if left.UID != mine.UID || left.Data["own"] != "word" || len(left.OwnerReferences) > 0 {
		t.Errorf("left: %+v", left)
	}
	if diff := cmp.Diff(mine.Labels, left.Labels); diff != "" {
		t.Errorf("labels: %s", diff)
	}
	if diff := cmp.Diff(mine.Annotations, left.Annotations); diff != "" {
		t.Errorf("annotations: %s", diff)
	}
}

// testRemovalWithData: custom resources go while the operator runs, which ends their finalizers; what hangs is named,
// and the operator is kept as it is meanwhile; nothing is installed over it.
func testRemovalWithData(t *testing.T, r *removed) {
	t.Helper()
	r.withoutWebhook()
	r.gauge("north", "sea.test/drain")
	r.gauge("south")
	p := r.show(removal.All)
	if diff := cmp.Diff([]protocol.Loss{{CRD: r.crd(), Objects: 2, Sample: []string{r.ns + "/north", r.ns + "/south"}}},
		p.Losses); diff != "" {
		t.Errorf("shown to be lost: %s", diff)
	}
	x := r.ask("", r.crd())
	m := r.waits(x, "FinalizersPending")
	for _, part := range []string{r.crd() + " " + r.ns + "/north (finalizers sea.test/drain, since ", "see its log"} {
		if !strings.Contains(m.Message, part) {
			t.Errorf("%q does not say %q", m.Message, part)
		}
	}
	must(t, r.kube.AppsV1().Deployments(r.ns).Delete(t.Context(), r.ns+"-controller", metav1.DeleteOptions{}))
	await(t, "the operator, which has finalizers to end", func(ctx context.Context) error {
		_, err := r.kube.AppsV1().Deployments(r.ns).Get(ctx, r.ns+"-controller", metav1.GetOptions{})
		return err
	})
	over := r.bed.plan(r.ns, r.ns, r.content)
	s := r.scope(r.ns)
	s.Plans = []protocol.Plan{over}
	r.publish(s)
	r.awaitPlan(r.ns, over.ID, blocked("BeingUninstalled"))
	_, err := r.gauges().Patch(t.Context(), "north", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`),
		metav1.PatchOptions{})
	must(t, err)
	report, _ := r.ends(x)
	if len(report.Left) > 0 {
		t.Errorf("left %v", report.Left)
	}
	// The plan that waited goes on by itself.
	r.finishes(t, r.ns, over, r.csv())
}

// testRemovalOfWhatIsNeeded: R-UNI-4: who needs an API is named, and it goes only when that was shown.
func testRemovalOfWhatIsNeeded(t *testing.T, r *removed) {
	t.Helper()
	r.install()
	user := operator{name: "user", version: "1.0.0", requires: r.crd()}
	p := r.bed.plan(r.ns, "user", planned{content: user.content(t)})
	r.want(r.ns, p)
	r.finishes(t, r.ns, p, user.csv())
	m := r.refused(r.ask(""), removal.RefusedNeeded)
	if !strings.Contains(m.Message, r.ns+"/"+user.csv()) {
		t.Errorf("%q does not name who needs it", m.Message)
	}
	if _, err := r.dyn.Resource(installedOperators()).Namespace(r.ns).Get(
		t.Context(), r.csv(), metav1.GetOptions{}); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
	shown := r.show()
	if !slices.Equal(shown.Needed, []string{r.ns + "/" + user.csv()}) {
		t.Errorf("needed by %v", shown.Needed)
	}
	d, err := removal.Digest(shown)
	must(t, err)
	r.ends(r.ask(string(d)))
}

// testRemovalChanged: what is not what was shown is not done (R-UNI-3).
func testRemovalChanged(t *testing.T, r *removed) {
	t.Helper()
	r.install()
	d, err := removal.Digest(r.show())
	must(t, err)
	r.refused(r.ask(string(d), r.crd()), removal.RefusedChanged)
	if !r.crdExists() {
		t.Error("the definition is gone")
	}
	r.refused(r.ask("", "guages.sea.test"), "Invalid")
	r.ends(r.ask(string(d)))
}

// testRemovalSpares: a definition that an operator owns which was installed since the removal began stays, with its
// objects.
func testRemovalSpares(t *testing.T, r *removed) {
	t.Helper()
	r.withoutWebhook()
	r.gauge("north", "sea.test/drain")
	x := r.ask("", r.crd())
	r.waits(x, "FinalizersPending")
	_, err := r.gauges().Patch(t.Context(), "north", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`),
		metav1.PatchOptions{})
	must(t, err)
	await(t, "the object", func(ctx context.Context) error {
		_, err := r.gauges().Get(ctx, "north", metav1.GetOptions{})
		return wantNotFound(err)
	})
	r.ends(x)

	r.withoutWebhookAgain()
	r.gauge("east", "sea.test/drain")
	y := r.ask("", r.crd())
	r.waits(y, "FinalizersPending")
	heir := operator{name: "heir", version: "1.0.0", group: r.group()}
	s := r.scope(r.ns)
	p := r.bed.plan(r.ns, "heir", planned{content: heir.content(t)})
	s.Plans = []protocol.Plan{p}
	r.publish(s)
	report, _ := r.ends(y)
	if len(report.Left) != 1 || report.Left[0].Name != r.crd() || report.Left[0].Reason != protocol.LeftOtherOwners ||
		!slices.Equal(report.Left[0].Owners, []string{r.ns + "/" + heir.csv()}) {
		t.Errorf("left %+v", report.Left)
	}
	r.finishes(t, r.ns, p, heir.csv())
	if !r.crdExists() {
		t.Error("the definition is gone, and another operator owns it")
	}
	_, err = r.gauges().Patch(t.Context(), "east", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`),
		metav1.PatchOptions{})
	must(t, err)
}

// withoutWebhookAgain installs once more what was removed.
func (r *removed) withoutWebhookAgain() {
	r.t.Helper()
	s := r.scope(r.ns)
	r.plan = r.bed.plan(r.ns, r.ns, r.content)
	s.Plans, s.Removals, s.Installed = []protocol.Plan{r.plan}, nil, nil
	r.publish(s)
	r.finishes(r.t, r.ns, r.plan, r.csv())
}

// testRemovalOfUnknown: what is not installed cannot be shown, and a request for it ends at once.
func testRemovalOfUnknown(t *testing.T, r *removed) {
	t.Helper()
	r.namespace(t, r.ns)
	s := r.scope(r.ns)
	r.publish(s)
	await(t, "an answer", func(context.Context) error {
		if _, err := r.shown("nobody.v1"); !errs.Is(err, errs.NotFound) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	x := r.Removal(r.ns, protocol.Removal{ID: uuid.NewString(), CSV: "nobody.v1"})
	s.Removals = []protocol.Removal{x}
	s.Installed = []protocol.Installed{{CSV: x.CSV, Plan: "p"}}
	r.publish(s)
	_, words := r.ends(x)
	if words.RemovedReason != "Uninstalled" || words.Removal != x.ID || words.UID != "" {
		t.Errorf("last words %+v", words)
	}
}

// testRemovalStops: the stop switch holds a removal, which goes on by itself.
func testRemovalStops(t *testing.T, r *removed) {
	t.Helper()
	r.install()
	s := r.scope(r.ns)
	s.Stopped = true
	r.publish(s)
	x := r.ask("")
	r.waits(x, "EffectsStopped")
	if _, err := r.dyn.Resource(installedOperators()).Namespace(r.ns).Get(
		t.Context(), r.csv(), metav1.GetOptions{}); err != nil {
		t.Errorf("while effects are stopped: %v", err)
	}
	s = r.scope(r.ns)
	s.Stopped = false
	r.publish(s)
	r.ends(x)
	r.nothing()
}

// testRemovalByHand: somebody deletes the InstalledOperator while its removal waits; that goes on to its end.
func testRemovalByHand(t *testing.T, r *removed) {
	t.Helper()
	r.withoutWebhook()
	r.gauge("north", "sea.test/drain")
	x := r.ask("", r.crd())
	r.waits(x, "FinalizersPending")
	must(t, r.dyn.Resource(installedOperators()).Namespace(r.ns).Delete(t.Context(), r.csv(), metav1.DeleteOptions{}))
	_, err := r.gauges().Patch(t.Context(), "north", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`),
		metav1.PatchOptions{})
	must(t, err)
	_, words := r.ends(x)
	if words.RemovedReason != "Uninstalled" || words.Removal != x.ID {
		t.Errorf("last words %+v", words)
	}
	r.nothing()
	if r.crdExists() {
		t.Error("the definition is still there")
	}
}

// testRemovalTerminating: R-UNI-5, R-UNI-6: in a namespace that is being deleted a removal waits, and says what keeps
// the namespace and what to do.
func testRemovalTerminating(t *testing.T, r *removed) {
	t.Helper()
	r.withoutWebhook()
	r.gauge("north", "sea.test/drain")
	r.namespaceGoes()
	x := r.ask("")
	var m protocol.RemovalReport
	await(t, "what keeps the namespace", func(context.Context) error {
		m = r.waits(x, "NamespaceTerminating")
		if !strings.Contains(m.Message, "sea.test/drain") || !strings.Contains(m.Message, "delete what is left there") {
			return fmt.Errorf("got %q", m.Message)
		}
		return nil
	})
	_, err := r.gauges().Patch(t.Context(), "north", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`),
		metav1.PatchOptions{})
	must(t, err)
	r.awaitCSV(r.ns, r.csv(), func(c protocol.CSVReport) bool { return c.Removed })
	r.nothing()
}

// namespaceGoes deletes the namespace and waits until what can go of it is gone.
func (r *removed) namespaceGoes() {
	r.t.Helper()
	must(r.t, r.kube.CoreV1().Namespaces().Delete(r.t.Context(), r.ns, metav1.DeleteOptions{}))
	await(r.t, "the namespace's own word", func(ctx context.Context) error {
		n, err := r.kube.CoreV1().Namespaces().Get(ctx, r.ns, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", n.Status.Conditions)
	})
}

// TestRemovalCrashes: whatever point an executor dies at, the next one ends the removal with the same words and nothing
// left (R-IP-44, DESIGN D7).
func TestRemovalCrashes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	var fuse fuse
	end := b.chain(t, &ledger{done: map[string]bool{}}, fuse.point)
	defer end()
	life := func(n, die int) ([]string, []string) {
		r := &removed{bed: b, t: t, ns: fmt.Sprintf("going-%d", n), dyn: dyn}
		r.withoutWebhook()
		r.gauge("north")
		fuse.light(die)
		report, words := r.ends(r.ask("", r.crd()))
		points := fuse.light(-1)
		r.nothing()
		b.Forget(r.ns) // else each next executor begins with a look at all of them
		if r.crdExists() || len(report.Left) > 0 || words.RemovedReason != "Uninstalled" || words.UID == "" {
			t.Errorf("life %d: the definition is there: %v; left %v; words %+v", n, r.crdExists(), report.Left, words)
		}
		return history(words), points
	}
	want, points := life(0, -1)
	t.Logf("%d points: %s", len(points), strings.Join(points, ", "))
	step := distance(t)
	for n := int(chaos.Seed(t) % uint64(step)); n < len(points); n += step {
		got, _ := life(n+1, n)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after a crash at point %d (%s) (-want +got):\n%s", n+1, points[n], diff)
		}
	}
}
