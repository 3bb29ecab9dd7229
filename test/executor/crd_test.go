package executor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestCRDVerdicts: R-CRD-1 … R-CRD-5 with the objects of a real API server. What would hurt them blocks the plan before
// its first step, names what it is about, and lets go when it is fixed.
//
//nolint:tparallel // one executor is the subject; what it is busy with at a time is to be known
func TestCRDVerdicts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	for name, test := range map[string]func(*testing.T, *defined){
		"crd-invalid": testInvalidObjects, "crd-stored": testStoredVersion, "crd-owners": testSeveralOwners,
		"crd-narrow": testNarrowedAndFits, "crd-many": testManyObjects,
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // see above
			dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
			must(t, err)
			b.namespace(t, name)
			test(t, &defined{bed: b.on(t), t: t, ns: name, dyn: dyn})
		})
	}
}

// defined is a namespace with an operator that owns gauges.<namespace>.test.
type defined struct {
	*bed
	t   *testing.T
	ns  string
	dyn dynamic.Interface
}

// served is one version of the definition, with the properties of its objects' spec.
type served struct {
	name, properties string
	stored           bool
}

func (d *defined) crd() string { return "gauges." + d.ns + ".test" }

// bundle is the operator in a version, with its definition.
func (d *defined) bundle(version, replaces string, versions ...served) (operator, planned) {
	d.t.Helper()
	o := operator{name: d.ns, version: version, replaces: replaces}
	return o, planned{content: d.content(o, versions...), replaces: replaces}
}

func (d *defined) content(o operator, versions ...served) bundle.Content {
	d.t.Helper()
	text := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s.test
  scope: Namespaced
  names: {kind: Gauge, listKind: GaugeList, plural: gauges, singular: gauge}
  versions:
`, d.crd(), d.ns)
	for _, v := range versions {
		text += fmt.Sprintf(
			"  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: "+
				"{type: object, %s}}}}}\n", v.name, v.stored, v.properties)
	}
	c, err := bundle.FromManifests([][]byte{[]byte(o.manifest()), []byte(text)})
	must(d.t, err)
	return c
}

func (d *defined) install(o operator, content planned) {
	d.t.Helper()
	p := d.plan(d.ns, d.ns, content)
	d.want(d.ns, p)
	d.finishes(d.t, d.ns, p, o.csv())
}

func (d *defined) ask(content planned) protocol.Plan {
	d.t.Helper()
	p := d.plan(d.ns, d.ns, content)
	d.want(d.ns, p)
	return p
}

func (d *defined) gauges() dynamic.ResourceInterface {
	return d.dyn.Resource(schema.GroupVersionResource{
		Group: d.ns + ".test", Version: "v1",
		Resource: "gauges",
	}).Namespace(d.ns)
}

// gauge makes an object; its API is served a moment after the definition is established.
func (d *defined) gauge(name string, size int64) {
	d.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": d.ns + ".test/v1", "kind": "Gauge", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"size": size},
	}}
	await(d.t, "object "+name, func(ctx context.Context) error {
		_, err := d.gauges().Create(ctx, o, metav1.CreateOptions{})
		return err
	})
}

const (
	anySize   = "properties: {size: {type: integer}}"
	smallSize = "properties: {size: {type: integer, maximum: 5}}"
)

// testInvalidObjects: R-CRD-4 is found before the first step, and it goes on when the object is fixed.
func testInvalidObjects(t *testing.T, d *defined) {
	one, content := d.bundle("1.0.0", "", served{"v1", anySize, true})
	d.install(one, content)
	d.gauge("small", 1)
	d.gauge("large", 9)
	two, content := d.bundle("2.0.0", one.csv(), served{"v1", smallSize, true})
	p := d.ask(content)
	r := d.awaitPlan(d.ns, p.ID, blocked("CRDUpgradeUnsafe"))
	want := fmt.Sprintf(
		`error validating existing CRs against new CRD's schema for %q: 1 of 2 objects become invalid: %s/large, as v1: spec.size`, d.crd(), d.ns)
	if r.Begun || r.Class != "conflict" || !strings.Contains(r.Message, want) {
		t.Errorf("got %+v, want a conflict before the first step that says %s", r, want)
	}
	patch := []byte(`{"spec":{"size":2}}`)
	_, err := d.gauges().Patch(t.Context(), "large", types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	d.finishes(t, d.ns, p, two.csv())
}

// testStoredVersion: R-CRD-3, R-MT-3. A version that is stored does not go; after a migration of what is stored it
// does, and the change of the definition is what has the plan looked at again.
func testStoredVersion(t *testing.T, d *defined) {
	one, content := d.bundle("1.0.0", "", served{"v1", anySize, true}, served{"v2", anySize, false})
	d.install(one, content)
	two, content := d.bundle("2.0.0", one.csv(), served{"v2", anySize, true})
	p := d.ask(content)
	r := d.awaitPlan(d.ns, p.ID, blocked("CRDUpgradeUnsafe"))
	if want := fmt.Sprintf(
		"risk of data loss updating %q: new CRD removes version v1 that is listed as a stored version on the "+
			"existing CRD", d.crd()); r.Begun || r.Message != want {
		t.Errorf("got %+v, want %s", r, want)
	}
	crds := d.dyn.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions",
	})
	stored := []byte(
		`[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`)
	_, err := crds.Patch(t.Context(), d.crd(), types.JSONPatchType, stored, metav1.PatchOptions{})
	must(t, err)
	_, err = crds.Patch(t.Context(), d.crd(), types.MergePatchType, []byte(`{"status":{"storedVersions":["v2"]}}`),
		metav1.PatchOptions{}, "status")
	must(t, err)
	d.finishes(t, d.ns, p, two.csv())
}

// testSeveralOwners: R-CRD-2a, R-MT-3. What another operator's users use is not taken away, and that operator is named.
func testSeveralOwners(t *testing.T, d *defined) {
	both := []served{{"v1", anySize, true}, {"v2", anySize, false}}
	one, content := d.bundle("1.0.0", "", both...)
	d.install(one, content)
	const elsewhere = "crd-rival"
	o := operator{name: "rival", version: "1.0.0"}
	p := d.plan(elsewhere, elsewhere, planned{content: d.content(o, both...)})
	d.want(elsewhere, p)
	d.finishes(t, elsewhere, p, o.csv())
	_, content = d.bundle("2.0.0", one.csv(), both[0])
	q := d.ask(content)
	r := d.awaitPlan(d.ns, q.ID, blocked("CRDUpgradeUnsafe"))
	if want := d.crd() + " would no longer be served in v2, and is owned by crd-rival/rival.v1.0.0, too"; r.Begun ||
		r.Message != want {
		t.Errorf("got %+v, want %s", r, want)
	}
}

// testNarrowedAndFits: R-CRD-1. A narrower schema that every object fits holds nobody up; what it would cost to go back
// is told.
func testNarrowedAndFits(t *testing.T, d *defined) {
	one, content := d.bundle("1.0.0", "", served{
		"v1", "properties: {size: {type: integer}, color: {type: string}}",
		true,
	})
	d.install(one, content)
	d.gauge("small", 1)
	two, content := d.bundle("2.0.0", one.csv(), served{"v1", "properties: {color: {type: string}}", true})
	p := d.plan(d.ns, d.ns, content)
	var c protocol.PlanCheck
	must(t, d.Ask(t.Context(), protocol.RPCCheckPlan,
		protocol.PlanQuestion{Namespace: d.ns, Plan: p, OperatorGroups: 1, OperatorGroup: d.scope(d.ns).OperatorGroup},
		&c))
	if len(c.CRDs) != 1 || !c.CRDs[0].Safe || c.CRDs[0].Checked != 1 || len(c.CRDs[0].Irreversible) != 1 ||
		!strings.Contains(c.CRDs[0].Irreversible[0], "spec.size (1)") {
		t.Errorf("got %+v, want a safe change that drops spec.size of one object for good", c.CRDs)
	}
	if v := c.CRDs[0].Owners; len(v) != 1 || v[0] != d.ns+"/"+one.csv() {
		t.Errorf("owners %v", v)
	}
	d.want(d.ns, p)
	d.finishes(t, d.ns, p, two.csv())
}

// testManyObjects: objects are read page by page, all of them below the limit.
func testManyObjects(t *testing.T, d *defined) {
	one, content := d.bundle("1.0.0", "", served{"v1", anySize, true})
	d.install(one, content)
	const many = 600
	for i := range many {
		d.gauge(fmt.Sprint("g", i), int64(i%7))
	}
	_, content = d.bundle("2.0.0", one.csv(), served{"v1", smallSize, true})
	p := d.ask(content)
	r := d.awaitPlan(d.ns, p.ID, blocked("CRDUpgradeUnsafe"))
	if !strings.Contains(r.Message, "85 of 600 objects become invalid") {
		t.Errorf("got %s", r.Message)
	}
}

// TestProtectedGroup: of groups of the Kubernetes community that no API server serves itself, the API server decides by
// its own rule, the annotation api-approved.kubernetes.io. What it says is known before anybody approves and before the
// first step.
func TestProtectedGroup(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	const ns = "charts"
	o := operator{name: "charts", version: "1.0.0", group: "charts.helm.k8s.io"}
	b.namespace(t, ns)
	bare := b.plan(ns, ns, planned{content: o.content(t)})
	const want = "protected groups must have approval annotation"
	b.want(ns, bare)
	if r := b.awaitPlan(ns, bare.ID, blocked("DefinitionRefused")); r.Begun || !strings.Contains(r.Message, want) ||
		!strings.Contains(r.Message, "gauges.charts.helm.k8s.io") {
		t.Errorf("got %+v, want a plan that is not begun and says %q", r, want)
	}
	var c protocol.PlanCheck
	must(t, b.Ask(t.Context(), protocol.RPCCheckPlan,
		protocol.PlanQuestion{Namespace: ns, Plan: bare, OperatorGroups: 1, OperatorGroup: b.scope(ns).OperatorGroup},
		&c))
	if len(c.Obstacles) != 1 || c.Obstacles[0].Reason != "DefinitionRefused" ||
		!strings.Contains(c.Obstacles[0].Message, want) {
		t.Errorf("the check says %+v, want one obstacle with %q", c.Obstacles, want)
	}
	const approved = "metadata:\n  name: gauges.%[1]s\n  annotations: {api-approved.kubernetes.io: 'unapproved, a " +
		"test'}"
	crd := strings.Replace(crdManifest, "metadata: {name: gauges.%[1]s}", approved, 1)
	content, err := bundle.FromManifests([][]byte{[]byte(o.manifest()), []byte(fmt.Sprintf(crd, o.group))})
	must(t, err)
	p := b.plan(ns, ns, planned{content: content})
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
}

// TestOwnGroups: the groups that a real API server says that it serves itself are reserved, all of them.
func TestOwnGroups(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	services, err := dyn.Resource(schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1",
		Resource: "apiservices",
	}).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	own := 0
	for _, s := range services.Items {
		if s.GetLabels()["kube-aggregator.kubernetes.io/automanaged"] != "onstart" {
			continue // of a definition
		}
		own++
		group, _, err := unstructured.NestedString(s.Object, "spec", "group")
		must(t, err)
		if !bundle.Reserved(group) {
			t.Errorf("the API server serves %q itself, which is not reserved", group)
		}
	}
	if own < 10 {
		t.Errorf("only %d API services of its own", own)
	}
}
