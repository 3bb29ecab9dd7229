package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// revision is the annotation in which Chandler notes which of its definitions one is.
const revision = "chandler-fleet.io/definition-revision"

// olmKind is a resource of OLM's group.
func olmKind(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "operators.coreos.com", Version: version, Resource: resource}
}

var (
	csvs          = olmKind("v1alpha1", "clusterserviceversions")
	subscriptions = olmKind("v1alpha1", "subscriptions")
	installPlans  = olmKind("v1alpha1", "installplans")
	groupsOfOLM   = olmKind("v1", "operatorgroups")
	operatorsOLM  = olmKind("v1", "operators")
	olmConfigs    = olmKind("v1", "olmconfigs")
	conditionsOLM = olmKind("v2", "operatorconditions")
	policies      = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingadmissionpolicies",
	}
)

// seen reads a string of an object; "" where there is none.
func seen(o *unstructured.Unstructured, path ...string) string {
	s, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil {
		return err.Error()
	}
	return s
}

// shows waits until an object is there and fulfils a condition.
func shows(t *testing.T, c dynamic.ResourceInterface, name string,
	ok func(*unstructured.Unstructured) bool,
) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	await(t, name, func(ctx context.Context) (err error) {
		if found, err = c.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if !ok(found) {
			return fmt.Errorf("it is %v", found.Object)
		}
		return nil
	})
	return found
}

// vanishes waits until an object is gone.
func vanishes(t *testing.T, c dynamic.ResourceInterface, name string) {
	t.Helper()
	await(t, name+" to be gone", func(ctx context.Context) error {
		_, err := c.Get(ctx, name, metav1.GetOptions{})
		return wantNotFound(err)
	})
}

func inPhase(phase string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool { return seen(o, "status", "phase") == phase }
}

func there(*unstructured.Unstructured) bool { return true }

// TestMirror: what is installed is shown to people and tools, who change nothing there. One cluster lives through all
// of it.
func TestMirror(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stop := b.start(b.config("one"))
	o := operator{name: "tide", version: "1.0.0", group: "tide.sea.test", configMap: "settings", slip: true}
	p := b.plan("ops", "tide", planned{content: o.content(t)})
	b.want("ops", p)
	c := b.finishes(t, "ops", p, o.csv())
	s := b.scope("ops")
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: o.csv(), Content: c.Content, Plan: p.ID}}
	b.publish(s)
	again := func() {
		stop()
		stop = b.start(b.config("one"))
	}
	m := mirrored{bed: b, operator: o, dynamic: b.dynamic(t), again: again}
	for _, part := range []struct {
		name string
		test func(*testing.T)
	}{
		{"ClusterServiceVersion", m.testCSV},
		{"OperatorCondition", m.testCondition},
		{"definitions", m.testDefinitions},
		{"intents", m.testIntents},
		{"none", m.testNone},
		{"all", m.testAll},
		{"events", m.testEvents},
		{"waiting", m.testWaiting},
		{"copies", m.testCopies},
		{"csv again", m.testLess},
		{"OLM at work", m.testOLM},
	} {
		if !t.Run(part.name, part.test) {
			return
		}
	}
}

// mirrored is a cluster with one operator in namespace ops.
type mirrored struct {
	*bed
	operator operator
	dynamic  dynamic.Interface
	again    func() // ends the executor and starts it again
}

func (m mirrored) csvs() dynamic.ResourceInterface { return m.dynamic.Resource(csvs).Namespace("ops") }

// set changes what is wanted of the namespace.
func (m mirrored) set(change func(*protocol.ScopePlans)) protocol.ScopePlans {
	s := m.scope("ops")
	change(&s)
	m.publish(s)
	return s
}

// testCSV: kubectl get csv shows what is installed, deleting that uninstalls nothing, and editing it is refused.
func (m mirrored) testCSV(t *testing.T) {
	name := m.operator.csv()
	first := shows(t, m.csvs(), name, inPhase("Succeeded"))
	if seen(first, "spec", "displayName") != "tide" || first.GetAnnotations()["olm.targetNamespaces"] != "ops" ||
		first.GetLabels()["operators.coreos.com/tide.ops"] != "" {
		t.Errorf("shown: %v", first.Object)
	}
	if r := first.GetOwnerReferences(); len(r) != 1 || r[0].Kind != "InstalledOperator" {
		t.Errorf("owned by %v", r)
	}
	m.refusesEdits(t, m.csvs(), first)
	first = shows(t, m.csvs(), name, there)

	// A look in which nothing changed writes nothing; a delete uninstalls nothing.
	before, err := m.kube.AppsV1().Deployments("ops").Get(t.Context(), "tide-controller", metav1.GetOptions{})
	must(t, err)
	m.looked(t, m.scope("ops"))
	if again := shows(t, m.csvs(), name, there); again.GetResourceVersion() != first.GetResourceVersion() {
		t.Error("a look in which nothing changed wrote the mirror")
	}
	must(t, m.csvs().Delete(t.Context(), name, metav1.DeleteOptions{}))
	shows(t, m.csvs(), name, func(o *unstructured.Unstructured) bool {
		return o.GetUID() != first.GetUID() && seen(o, "status", "phase") == "Succeeded"
	})
	after, err := m.kube.AppsV1().Deployments("ops").Get(t.Context(), "tide-controller", metav1.GetOptions{})
	must(t, err)
	if before.UID != after.UID {
		t.Error("deleting the mirror took the Deployment with it")
	}
}

// testNone: the setting decides at any time. What has the name of a mirror and is somebody else's stays as it is.
func (m mirrored) testNone(t *testing.T) {
	name := m.operator.csv()
	m.set(func(s *protocol.ScopePlans) { s.Settings.Mirror = events.MirrorNone })
	definitions := m.dynamic.Resource(crds)
	vanishes(t, definitions, "clusterserviceversions.operators.coreos.com")
	vanishes(t, m.dynamic.Resource(policies), "chandler-mirror.chandler-fleet.io")
	vanishes(t, m.dynamic.Resource(policies), "chandler-intents.chandler-fleet.io")
	if _, err := m.dynamic.Resource(conditionsOLM).Namespace("ops").Get(
		t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Errorf("the operator condition is no mirror: %v", err)
	}

	// Somebody brings a definition of his own, and an object in it.
	must(t, m.defines(t, csvs, "ClusterServiceVersion"))
	own := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"displayName": "mine"},
		}}
	}
	for _, name := range []string{name, "mine.v1"} {
		await(t, "an object of a definition of somebody else", func(ctx context.Context) error {
			// the API server serves it a moment later
			_, err := m.csvs().Create(ctx, own(name), metav1.CreateOptions{})
			return err
		})
	}
	for _, setting := range []string{events.MirrorCSV, events.MirrorNone} {
		m.looked(t, m.set(func(s *protocol.ScopePlans) { s.Settings.Mirror = setting }))
		if o := shows(t, m.csvs(), name, there); seen(o, "spec", "displayName") != "mine" || len(o.GetLabels()) != 0 {
			t.Errorf("it was changed: %v", o.Object)
		}
	}
	o := shows(t, definitions, "clusterserviceversions.operators.coreos.com", there)
	if o.GetAnnotations()[revision] != "" || o.GetDeletionTimestamp() != nil {
		t.Errorf("the definition of somebody else was touched: %v", o.Object["metadata"])
	}
	m.set(func(s *protocol.ScopePlans) { s.Settings.Mirror = events.MirrorCSV })
	m.refusesLabel(t)
	must(t, definitions.Delete(t.Context(), "clusterserviceversions.operators.coreos.com", metav1.DeleteOptions{}))
	await(t, "a definition of ours in its place", func(ctx context.Context) error {
		o, err := definitions.Get(ctx, "clusterserviceversions.operators.coreos.com", metav1.GetOptions{})
		if err == nil && o.GetAnnotations()[revision] == "" {
			err = errors.New("it is still the other one")
		}
		return err
	})
	shows(t, m.csvs(), name, inPhase("Succeeded"))
}

// refusesEdits: an edit of a mirror is refused with a sentence that says where to make it, whoever makes it.
func (m mirrored) refusesEdits(t *testing.T, shown dynamic.ResourceInterface, o *unstructured.Unstructured) {
	t.Helper()
	edit := func(ctx context.Context, patch string, how metav1.PatchOptions, subresource ...string) error {
		_, err := shown.Patch(ctx, o.GetName(), types.MergePatchType, []byte(patch), how, subresource...)
		if err == nil || !strings.Contains(err.Error(), "chandler uninstall "+o.GetName()) {
			return fmt.Errorf("not refused with a way out: %w", err)
		}
		return nil
	}
	// The API server loads a policy within a second or so. Until then it is tried in a way that changes nothing: an
	// edit that was let in would be none any more when it is made again.
	await(t, "the policy over the mirrors in force", func(ctx context.Context) error {
		return edit(ctx, `{"spec":{"replaces":"nothing"}}`, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	})
	for name, e := range map[string]struct {
		patch       string
		subresource []string
	}{
		"spec":       {`{"spec":{"replaces":"nothing"}}`, nil},
		"status":     {`{"status":{"phase":"Failed"}}`, []string{"status"}},
		"label":      {`{"metadata":{"labels":{"chandler-fleet.io/mirror":null}}}`, nil},
		"annotation": {`{"metadata":{"annotations":{"olm.targetNamespaces":"elsewhere"}}}`, nil},
	} {
		if err := edit(t.Context(), e.patch, metav1.PatchOptions{}, e.subresource...); err != nil {
			t.Errorf("an edited %s: %v", name, err)
		}
	}
	if _, err := shown.Patch(t.Context(), o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`),
		metav1.PatchOptions{}); err != nil {
		t.Errorf("what the cluster itself does is refused: %v", err)
	}
	shows(t, shown, o.GetName(), func(live *unstructured.Unstructured) bool {
		return seen(live, "spec", "replaces") == "" && seen(live, "status", "phase") == "Succeeded" &&
			live.GetAnnotations()["olm.targetNamespaces"] == "ops"
	})
}

// refusesLabel: what Chandler overwrites and removes is told by a label, which nobody else gives.
func (m mirrored) refusesLabel(t *testing.T) {
	t.Helper()
	label := []byte(`{"metadata":{"labels":{"chandler-fleet.io/mirror":"ops"}}}`)
	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"spec": map[string]any{"displayName": "mine"}, "metadata": map[string]any{
			"name": "other.v1", "labels": map[string]any{"chandler-fleet.io/mirror": "ops"},
		},
	}}
	await(t, "the policy over the mirrors in force", func(ctx context.Context) error {
		trial := []string{metav1.DryRunAll}
		_, put := m.csvs().Patch(ctx, "mine.v1", types.MergePatchType, label, metav1.PatchOptions{DryRun: trial})
		_, made := m.csvs().Create(ctx, other, metav1.CreateOptions{DryRun: trial})
		for what, err := range map[string]error{"put on": put, "brought": made} {
			if err == nil || !strings.Contains(err.Error(), "leave it out") {
				return fmt.Errorf("a label that is %s: %w", what, err)
			}
		}
		return nil
	})
}

// defines makes a definition as somebody else would.
func (m mirrored) defines(t *testing.T, of schema.GroupVersionResource, kind string) error {
	t.Helper()
	_, err := m.dynamic.Resource(crds).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": of.Resource + "." + of.Group}, "spec": map[string]any{
			"group": of.Group, "scope": "Namespaced", "names": map[string]any{"plural": of.Resource, "kind": kind},
			"versions": []any{map[string]any{
				"name": of.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}, metav1.CreateOptions{})
	return err
}

// testDefinitions: a definition of ours that is older is written anew by the next holder, one that somebody changed is
// his; and what is there can be explained.
func (m mirrored) testDefinitions(t *testing.T) {
	const conditions, shown = "operatorconditions.operators.coreos.com", "clusterserviceversions.operators.coreos.com"
	definitions := m.dynamic.Resource(crds)
	shipped := shows(t, definitions, conditions, there)
	// As a Chandler before this one had them: one version, no revision.
	old := shipped.DeepCopy()
	versions, _, err := unstructured.NestedSlice(old.Object, "spec", "versions")
	must(t, err)
	must(t, unstructured.SetNestedSlice(old.Object, versions[:1], "spec", "versions"))
	unstructured.RemoveNestedField(old.Object, "metadata", "annotations")
	_, err = definitions.Update(t.Context(), old, metav1.UpdateOptions{FieldManager: "chandler/mirror"})
	must(t, err)
	// And one that an administrator has changed.
	edit := `{"metadata":{"annotations":{"` + revision +
		`":"0"}},"spec":{"names":{"shortNames":["csv","csvs","mine"]}}}`
	_, err = definitions.Patch(t.Context(), shown, types.MergePatchType, []byte(edit),
		metav1.PatchOptions{FieldManager: "kubectl"})
	must(t, err)

	m.again()
	shows(t, definitions, conditions, func(o *unstructured.Unstructured) bool {
		versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
		return err == nil && len(versions) == 2 && o.GetAnnotations()[revision] == shipped.GetAnnotations()[revision] &&
			o.GetUID() == shipped.GetUID()
	})
	m.looked(t, m.scope("ops"))
	if o := shows(t, definitions, shown, there); o.GetAnnotations()[revision] != "0" {
		t.Errorf("a definition that somebody changed was written: %v", o.GetAnnotations())
	}
	_, err = definitions.Patch(t.Context(), shown, types.MergePatchType,
		[]byte(`{"spec":{"names":{"shortNames":["csv","csvs"]}}}`),
		metav1.PatchOptions{FieldManager: "chandler/mirror"})
	must(t, err)

	// R-COND-8: an operator that knows version v1 writes the status, and takes nothing from what version v2 says.
	spec := `{"spec":{"overrides":[{"type":"Upgradeable","status":"True","reason":"Forced","message":"by hand","lastTransitionTime":"2031-02-03T04:05:06Z"}]}}`
	name, v1 := m.operator.csv(), m.dynamic.Resource(olmKind("v1", "operatorconditions")).Namespace("ops")
	_, err = m.dynamic.Resource(conditionsOLM).Namespace("ops").Patch(t.Context(), name, types.MergePatchType,
		[]byte(spec), metav1.PatchOptions{})
	must(t, err)
	says := `{"status":{"conditions":[{"type":"Upgradeable","status":"True","reason":"Ready","message":"go on","lastTransitionTime":"2031-02-03T04:05:06Z"}]}}`
	operator := m.as(t, "system:serviceaccount:ops:tide")
	await(t, "the status of version v1", func(ctx context.Context) error {
		_, err := operator.Resource(olmKind("v1", "operatorconditions")).Namespace("ops").Patch(
			ctx, name, types.MergePatchType, []byte(says), metav1.PatchOptions{}, "status")
		return err
	})
	o := shows(t, v1, name, there)
	said, _, err := unstructured.NestedSlice(o.Object, "spec", "overrides")
	if kept, _, e := unstructured.NestedSlice(o.Object, "spec", "conditions"); err != nil || e != nil ||
		len(said) != 1 || len(kept) != 0 {
		t.Errorf("version v1 shows %v", o.Object)
	}

	// kubectl explain reads this.
	doc, err := m.kube.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/operators.coreos.com/v1alpha1").DoRaw(
		t.Context())
	must(t, err)
	for _, sentence := range []string{
		"What the author of the bundle wrote.", "Where it is in its life.",
		"The lowest version of Kubernetes that it runs on.",
	} {
		if !strings.Contains(string(doc), sentence) {
			t.Errorf("%q is not in what the API server explains", sentence)
		}
	}
}

// testIntents: what people create of OLM's kinds is refused with a way out, since nobody would act on it; what is read
// is let in.
func (m mirrored) testIntents(t *testing.T) {
	m.looked(t, m.set(func(s *protocol.ScopePlans) { s.Settings.Mirror = events.MirrorAll }))
	for kind, of := range map[string]schema.GroupVersionResource{
		"Subscription": subscriptions, "CatalogSource": olmKind("v1alpha1", "catalogsources"),
		"OperatorGroup": groupsOfOLM, "InstallPlan": installPlans, "ClusterServiceVersion": csvs,
	} {
		made := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": of.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": "by-hand"},
			"spec": map[string]any{},
		}}
		await(t, kind+" by hand", func(ctx context.Context) error {
			// definitions and policies are loaded a moment later
			_, err := m.dynamic.Resource(of).Namespace("ops").Create(
				ctx, made, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil || !strings.Contains(err.Error(), "Nothing would act on this "+kind) ||
				!strings.Contains(err.Error(), "chandler apply") {
				return fmt.Errorf("not refused with a way out: %w", err)
			}
			return nil
		})
	}
	must(t, m.dynamic.Resource(policies).Delete(t.Context(), "chandler-intents.chandler-fleet.io",
		metav1.DeleteOptions{}))
	shows(t, m.dynamic.Resource(policies), "chandler-intents.chandler-fleet.io", there)
	config := m.dynamic.Resource(olmConfigs)
	shows(t, config, "cluster", there)
	_, err := config.Patch(t.Context(), "cluster", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
	must(t, err)
}

// as is a client of a user.
func (m mirrored) as(t *testing.T, user string) dynamic.Interface {
	t.Helper()
	c := rest.CopyConfig(m.cluster.RESTConfig())
	c.Impersonate = rest.ImpersonationConfig{
		UserName: user,
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	client, err := dynamic.NewForConfig(c)
	must(t, err)
	return client
}

// testCondition: R-COND-1, R-COND-2: each operator has one, which its service account may write and nobody's writing is
// undone; deleted, it comes back.
func (m mirrored) testCondition(t *testing.T) {
	name, conditions := m.operator.csv(), m.dynamic.Resource(conditionsOLM).Namespace("ops")
	first := shows(t, conditions, name, there)
	accounts, _, err := unstructured.NestedStringSlice(first.Object, "spec", "serviceAccounts")
	must(t, err)
	if !slices.Equal(accounts, []string{"tide"}) {
		t.Errorf("it may be written by %v", accounts)
	}

	operator := m.as(t, "system:serviceaccount:ops:tide")
	says := `{"spec":{"conditions":[{"type":"Upgradeable","status":"False","reason":"Reindexing","message":"archive reindex runs","lastTransitionTime":"2031-02-03T04:05:06Z"}]}}`
	await(t, "the operator's right to write its condition", func(ctx context.Context) error {
		// RBAC is read a moment later
		_, err := operator.Resource(conditionsOLM).Namespace("ops").Patch(ctx, name, types.MergePatchType, []byte(says),
			metav1.PatchOptions{})
		return err
	})
	must(t, m.kube.RbacV1().Roles("ops").Delete(t.Context(), name, metav1.DeleteOptions{}))
	await(t, "its role to come back", func(ctx context.Context) error {
		_, err := m.kube.RbacV1().Roles("ops").Get(ctx, name, metav1.GetOptions{})
		return err
	})
	m.looked(t, m.scope("ops"))
	said := shows(t, conditions, name, there)
	if list, _, err := unstructured.NestedSlice(said.Object, "spec", "conditions"); err != nil || len(list) != 1 {
		t.Errorf("the operator's condition was undone: %v, %v", said.Object["spec"], err)
	}

	must(t, conditions.Delete(t.Context(), name, metav1.DeleteOptions{}))
	await(t, "the operator condition to come back", func(ctx context.Context) error {
		again, err := conditions.Get(ctx, name, metav1.GetOptions{})
		if err == nil && again.GetUID() == first.GetUID() {
			return errors.New("it is still the first one")
		}
		return err
	})
}

// testAll: the other kinds (R-CSV-62).
func (m mirrored) testAll(t *testing.T) {
	m.set(func(s *protocol.ScopePlans) {
		s.Settings.Mirror = events.MirrorAll
		s.Subscriptions = []protocol.Subscription{
			{Name: "tide", Spec: events.SubscriptionSpec{
				Package: "tide", Channel: "stable", Catalog: "fleet",
				Approval: "Automatic",
			}},
		}
		s.OperatorGroup.Spec.TargetNamespaces = nil
	})
	sub := shows(t, m.dynamic.Resource(subscriptions).Namespace("ops"), "tide",
		func(o *unstructured.Unstructured) bool {
			return seen(o, "status", "state") == "AtLatestKnown"
		})
	if seen(sub, "status", "installedCSV") != m.operator.csv() || seen(sub, "spec", "channel") != "stable" {
		t.Errorf("subscription %v", sub.Object)
	}
	shows(t, m.dynamic.Resource(installPlans).Namespace("ops"), seen(sub, "status", "installPlanRef", "name"),
		inPhase("Complete"))
	shows(t, m.dynamic.Resource(groupsOfOLM).Namespace("ops"), "group", func(o *unstructured.Unstructured) bool {
		list, _, err := unstructured.NestedStringSlice(o.Object, "status", "namespaces")
		return err == nil && slices.Equal(list, []string{""})
	})
	shows(t, m.dynamic.Resource(operatorsOLM), "tide.ops", func(o *unstructured.Unstructured) bool {
		refs, _, err := unstructured.NestedSlice(o.Object, "status", "components", "refs")
		return err == nil && slices.ContainsFunc(refs,
			func(r any) bool { return r.(map[string]any)["name"] == "gauges.tide.sea.test" })
	})
}

// testWaiting: what waits is visible: a plan for approval, the catalog that a subscription names, and a namespace that
// is not there yet.
func (m mirrored) testWaiting(t *testing.T) {
	const ns = "harbour"
	s := m.scope(ns)
	s.Settings.Mirror = events.MirrorAll
	s.Subscriptions = []protocol.Subscription{{
		Name: "buoy", Spec: events.SubscriptionSpec{Package: "buoy", Catalog: "fleet", Approval: "Manual"},
		Catalog: &protocol.CatalogState{State: "Ready"}, Metadata: protocol.Metadata{
			Labels: map[string]string{"team": "sea", "trial": "yes"}, Annotations: map[string]string{"owner": "dock"},
		},
	}}
	s.Waiting = []protocol.WaitingPlan{{
		ID: "w", Name: "install-wait1",
		Bundles: []events.PlannedBundle{{Package: "buoy", CSV: "buoy.v1.0.0"}},
	}}
	m.publish(s)
	shows(t, m.dynamic.Resource(operatorsOLM), "buoy."+ns, func(o *unstructured.Unstructured) bool {
		return strings.Contains(fmt.Sprint(o.Object["status"]), "NamespaceToCome")
	})
	if _, err := m.kube.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace was made for what only waits: %v", err)
	}
	m.namespace(t, ns)
	sub := shows(t, m.dynamic.Resource(subscriptions).Namespace(ns), "buoy", func(o *unstructured.Unstructured) bool {
		return seen(o, "status", "state") == "UpgradePending"
	})
	if text := fmt.Sprint(sub.Object["status"]); !strings.Contains(text, "RequiresApproval") ||
		!strings.Contains(text, "AllCatalogSourcesHealthy") {
		t.Errorf("its conditions: %s", text)
	}
	plan := shows(t, m.dynamic.Resource(installPlans).Namespace(ns), "install-wait1", inPhase("RequiresApproval"))
	if approved, _, err := unstructured.NestedBool(plan.Object, "spec", "approved"); err != nil || approved {
		t.Errorf("a plan that waits is shown as approved: %v, %v", plan.Object["spec"], err)
	}
	shows(t, m.dynamic.Resource(olmKind("v1alpha1", "catalogsources")).Namespace(ns), "fleet",
		func(o *unstructured.Unstructured) bool {
			return seen(o, "status", "connectionState", "lastObservedState") == "READY"
		})
	shows(t, m.dynamic.Resource(operatorsOLM), "buoy."+ns, func(o *unstructured.Unstructured) bool {
		return !strings.Contains(fmt.Sprint(o.Object["status"]), "NamespaceToCome")
	})
	m.testMetadata(t, s)
	s.Subscriptions, s.Waiting = nil, nil
	m.publish(s)
	vanishes(t, m.dynamic.Resource(installPlans).Namespace(ns), "install-wait1")
}

// testMetadata: a mirror bears the labels and annotations of its intent, and no longer those that the intent has no
// more (R-SUB §4.1).
func (m mirrored) testMetadata(t *testing.T, s protocol.ScopePlans) {
	t.Helper()
	objects := m.dynamic.Resource(subscriptions).Namespace(s.Scope.Namespace)
	shows(t, objects, "buoy", func(o *unstructured.Unstructured) bool {
		return o.GetLabels()["team"] == "sea" && o.GetLabels()["trial"] == "yes" &&
			o.GetAnnotations()["owner"] == "dock" && o.GetLabels()["chandler-fleet.io/mirror"] == s.Scope.Namespace
	})
	s.Subscriptions = slices.Clone(s.Subscriptions)
	s.Subscriptions[0].Metadata = protocol.Metadata{Labels: map[string]string{"team": "land"}}
	m.publish(s)
	shows(t, objects, "buoy", func(o *unstructured.Unstructured) bool {
		labels, annotations := o.GetLabels(), o.GetAnnotations()
		_, trial := labels["trial"]
		_, owner := annotations["owner"]
		return labels["team"] == "land" && !trial && !owner
	})
}

// testCopies: ClusterServiceVersions are copied where the cluster's OLMConfig or its setting in the hub asks for it,
// and only there (R-OG-25 … R-OG-28, R-CFG-1, R-CFG-2).
func (m mirrored) testCopies(t *testing.T) {
	name, configs := m.operator.csv(), m.dynamic.Resource(olmConfigs)
	in := func(ns string) dynamic.ResourceInterface { return m.dynamic.Resource(csvs).Namespace(ns) }
	shows(t, configs, "cluster", func(o *unstructured.Unstructured) bool { return disabledCopies(o) == "True" })
	await(t, "the event that copies are disabled", m.copiesEvent)
	if _, err := in("default").Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("copied without being asked: %v", err)
	}
	switchCopies := func(disabled bool) {
		t.Helper()
		_, err := configs.Patch(t.Context(), "cluster", types.MergePatchType,
			[]byte(fmt.Sprintf(`{"spec":{"features":{"disableCopiedCSVs":%t}}}`, disabled)), metav1.PatchOptions{})
		must(t, err)
	}
	switchCopies(false)
	copied := func(o *unstructured.Unstructured) bool {
		_, told := o.GetAnnotations()["olm.targetNamespaces"]
		return seen(o, "status", "reason") == "Copied" && seen(o, "status", "phase") == "Succeeded" &&
			o.GetLabels()["olm.copiedFrom"] == "ops" && !told
	}
	shows(t, in("default"), name, copied)
	shows(t, configs, "cluster", func(o *unstructured.Unstructured) bool { return disabledCopies(o) == "False" })
	await(t, "the event to be taken back", func(ctx context.Context) error { return wantNotFound(m.copiesEvent(ctx)) })
	m.namespace(t, "later")
	shows(t, in("later"), name, copied)
	switchCopies(true)
	vanishes(t, in("default"), name)
	vanishes(t, in("later"), name)
	shows(t, in("ops"), name, inPhase("Succeeded"))
	// The cluster's setting in the hub goes before its OLMConfig, in both directions, and gives the word back to it.
	m.set(func(s *protocol.ScopePlans) { s.Settings.CopiedCSVs = events.CopiedCSVsOn })
	shows(t, in("default"), name, copied)
	shows(t, configs, "cluster", func(o *unstructured.Unstructured) bool { return disabledCopies(o) == "False" })
	switchCopies(false)
	m.set(func(s *protocol.ScopePlans) { s.Settings.CopiedCSVs = events.CopiedCSVsOff })
	vanishes(t, in("default"), name)
	shows(t, configs, "cluster", func(o *unstructured.Unstructured) bool { return disabledCopies(o) == "True" })
	m.set(func(s *protocol.ScopePlans) { s.Settings.CopiedCSVs = events.CopiedCSVsOLMConfig })
	shows(t, in("default"), name, copied)
	switchCopies(true)
	vanishes(t, in("default"), name)
	m.namespace(t, "openshift") // where users look up what serves all namespaces (R-CFG-3)
	shows(t, in("openshift"), name, copied)
}

// testLess: what another setting has shown is taken away.
func (m mirrored) testLess(t *testing.T) {
	m.set(func(s *protocol.ScopePlans) { s.Settings.Mirror, s.Subscriptions = events.MirrorCSV, nil })
	vanishes(t, m.dynamic.Resource(subscriptions).Namespace("ops"), "tide")
	vanishes(t, m.dynamic.Resource(operatorsOLM), "tide.ops")
	shows(t, m.csvs(), m.operator.csv(), inPhase("Succeeded"))
}

func disabledCopies(o *unstructured.Unstructured) string {
	list, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil || len(list) != 1 {
		return ""
	}
	return fmt.Sprint(list[0].(map[string]any)["status"])
}

// copiesEvent reads the event that an operator is copied nowhere (R-CFG-2).
func (m mirrored) copiesEvent(ctx context.Context) error {
	o := m.operator
	e, err := m.kube.CoreV1().Events("ops").Get(ctx, o.csv()+".copies-disabled", metav1.GetOptions{})
	if err != nil {
		return err
	}
	shown, err := m.csvs().Get(ctx, o.csv(), metav1.GetOptions{})
	if err == nil && (e.Reason != "DisabledCopiedCSVs" || e.InvolvedObject.Name != o.csv() ||
		e.InvolvedObject.UID != shown.GetUID()) {
		return fmt.Errorf("it says %s of %s with UID %s", e.Reason, e.InvolvedObject.Name, e.InvolvedObject.UID)
	}
	return err
}

// testOLM: where OLM runs, nothing is done and the cluster says why; it goes on by itself when OLM is gone.
func (m mirrored) testOLM(t *testing.T) {
	m.namespace(t, "tenant")
	m.olm(t, "tenant", 1) // anybody may call a Deployment so
	m.namespace(t, "olm")
	m.looked(t, m.scope("ops"))
	must(t, m.state(t.Context(), "Connected", ""))
	role := metav1.ObjectMeta{Name: "operator-lifecycle-manager"}
	_, err := m.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: role, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "olm-operator", Namespace: "olm"}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	must(t, err)
	m.olm(t, "olm", 1)
	await(t, "the cluster's reason", func(ctx context.Context) error { return m.state(ctx, "Connected", "OLMRunning") })
	vanishes(t, m.dynamic.Resource(policies), "chandler-intents.chandler-fleet.io") // OLM and its users write again
	two := operator{name: "tide", version: "2.0.0", replaces: m.operator.csv(), group: "tide.sea.test"}
	p := m.plan("ops", "tide", planned{content: two.content(t), replaces: m.operator.csv()})
	m.want("ops", p)
	r := m.awaitPlan("ops", p.ID, blocked("OLMRunning"))
	if r.Class != "stopped" || !strings.Contains(r.Message,
		"olm/olm-operator, whose service account olm-operator may write") || strings.Contains(r.Message, "tenant/") {
		t.Errorf("told: %+v", r)
	}
	must(t, m.csvs().Delete(t.Context(), m.operator.csv(), metav1.DeleteOptions{}))
	m.looked(t, m.scope("ops"))
	if _, err := m.csvs().Get(t.Context(), m.operator.csv(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a mirror was written beside OLM: %v", err)
	}
	m.scaleOLM(t, 0)
	m.finishes(t, "ops", p, two.csv())
	shows(t, m.csvs(), two.csv(), inPhase("Succeeded"))
	vanishes(t, m.csvs(), m.operator.csv())
	await(t, "the cluster without a reason", func(ctx context.Context) error { return m.state(ctx, "Connected", "") })
	shows(t, m.dynamic.Resource(policies), "chandler-intents.chandler-fleet.io", there)
	m.scaleOLM(t, 1)
	await(t, "the cluster's reason once more", func(ctx context.Context) error {
		return m.state(
			ctx, "Connected", "OLMRunning")
	})
	must(t, m.kube.AppsV1().Deployments("olm").Delete(t.Context(), "olm-operator", metav1.DeleteOptions{}))
	await(t, "the cluster without a reason again",
		func(ctx context.Context) error { return m.state(ctx, "Connected", "") })
}

func (m mirrored) olm(t *testing.T, namespace string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": "olm-operator"}
	_, err := m.kube.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "olm-operator", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "olm-operator",
					Containers:         []corev1.Container{{Name: "olm", Image: "registry.example.com/olm:1"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	must(t, err)
}

func (m mirrored) scaleOLM(t *testing.T, replicas int) {
	t.Helper()
	_, err := m.kube.AppsV1().Deployments("olm").Patch(t.Context(), "olm-operator", types.MergePatchType,
		[]byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)), metav1.PatchOptions{})
	must(t, err)
}
