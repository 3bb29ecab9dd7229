package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// delegated is a namespace in which a service account of few rights bounds what may be installed, and its operator.
type delegated struct {
	*world
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	ns      string
}

// What is installed, of the catalog that ships with Chandler.
const (
	delegatedCSV = "lighthouse.v1.2.0"
	delegatedCRD = "beacons.light.example.com"
)

func beacons() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "light.example.com", Version: "v1", Resource: "beacons"}
}

// TestDelegated is the way of an operator in a namespace whose installs are bounded by a service account, by the words
// that people type: it is asked for, checked, approved, let in, removed with and without its data, and installed again.
func TestDelegated(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
	w := newWorld(t)
	w.addCatalog("harbour", example(t))
	kube, err := kubernetes.NewForConfig(w.cluster.RESTConfig())
	w.must(err)
	dyn, err := dynamic.NewForConfig(w.cluster.RESTConfig())
	w.must(err)
	d := &delegated{world: w, kube: kube, dynamic: dyn, ns: "coast-ops"}
	for _, part := range []struct {
		name string
		test func(*delegated)
	}{
		{"asked for and approved with rights missing", (*delegated).asked},
		{"let in", (*delegated).granted},
		{"removed without its data", (*delegated).removed},
		{"installed again", (*delegated).again},
		{"removed with its data", (*delegated).cleared},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			in := *d
			in.world = w.in(t)
			part.test(&in)
		}) {
			return
		}
	}
}

// chandler runs the command line as a person does.
func (w *world) chandler(args ...string) (said string, err error) {
	w.t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(w.ctx, filepath.Join(w.Bin(), "chandler"), args...)
	cmd.Env = append(os.Environ(), "HOME="+w.t.TempDir(), "CHANDLER_URL="+w.Stack.URL(),
		"CHANDLER_TOKEN="+w.Client.Token)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("chandler %s: %w: %s", strings.Join(args, " "), err, errOut.String())
	}
	return out.String(), err
}

// says runs it and wants it to succeed, with these words.
func (d *delegated) says(args []string, words ...string) string {
	d.t.Helper()
	said, err := d.chandler(append(args, "--cluster", spoke, "-n", d.ns)...)
	d.must(err)
	for _, want := range words {
		if !strings.Contains(said, want) {
			d.t.Errorf("chandler %s does not say %q:\n%s", strings.Join(args, " "), want, said)
		}
	}
	return said
}

// read runs it for a program.
func (d *delegated) read(into any, args ...string) (err error) {
	d.t.Helper()
	said, err := d.chandler(append(args, "--cluster", spoke, "-n", d.ns, "-o", "json")...)
	if jsonErr := json.Unmarshal([]byte(said), into); jsonErr != nil {
		d.t.Fatalf("%v: %v: %s", err, jsonErr, said)
	}
	return err
}

// subscribe asks for the operator in OLM's own words.
func (d *delegated) subscribe() {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "wanted.yaml")
	d.must(os.WriteFile(file, []byte(fmt.Sprintf(`apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: coast, namespace: %[1]s}
spec: {targetNamespaces: [%[1]s], serviceAccountName: installer}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: lighthouse, namespace: %[1]s}
spec: {name: lighthouse, channel: steady, source: harbour, sourceNamespace: catalogs, installPlanApproval: Manual}
`, d.ns)), 0o600))
	_, err := d.chandler("apply", "-f", file, "--cluster", spoke)
	d.must(err)
}

// permission is one right that plan check says is missing.
type permission struct{ Verb, Group, Resource, Name, Namespace, URL, For string }

// planCheck is what plan check tells programs.
type planCheck struct {
	Ready       bool
	Account     string
	Permissions []permission
	Obstacles   []struct{ Reason string }
}

// asked: R-NAD-3, R-NAD-6, R-OG-62, R-IP-41: every right that the account lacks is known before anybody approves; who
// approves all the same has a plan that waits before its first step, and says so where people look.
func (d *delegated) asked() {
	_, err := d.kube.CoreV1().Namespaces().Create(d.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.ns}},
		metav1.CreateOptions{})
	d.must(err)
	_, err = d.kube.CoreV1().ServiceAccounts(d.ns).Create(
		d.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "installer"}}, metav1.CreateOptions{})
	d.must(err)
	d.subscribe()
	p := d.waiting(d.ns)
	said, err := d.chandler("plan", "check", p.Name, "--cluster", spoke, "-n", d.ns)
	if err == nil || !strings.Contains(err.Error(), "cannot start now") {
		d.t.Errorf("plan check ends with %v", err)
	}
	for _, want := range []string{ // one of each sort of what R-OG-65 lists, and of what the operator itself is to have
		"system:serviceaccount:" + d.ns + ":installer lacks these permissions:",
		"create serviceaccounts lighthouse in " + d.ns, "patch roles.rbac.authorization.k8s.io",
		"create rolebindings.rbac.authorization.k8s.io", "create clusterroles.rbac.authorization.k8s.io",
		"create deployments.apps lighthouse-operator in " + d.ns, "list configmaps in " + d.ns,
		"update beacons.light.example.com in the whole cluster",
	} {
		if !strings.Contains(said, want) {
			d.t.Errorf("plan check does not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "customresourcedefinitions") {
		d.t.Errorf("the account is to have no right to definitions (R-OG-61, R-IP-21):\n%s", said)
	}
	d.says([]string{"approve", p.Name}, "approved")
	d.eventually("the plan says that it waits for rights", func() (string, bool) {
		plans := d.plans(d.ns)
		return fmt.Sprintf("%+v", plans), len(plans) == 1 && plans[0].Blocked != nil &&
			plans[0].Blocked.Reason == "Forbidden"
	})
	d.says([]string{"describe", "subscription", "lighthouse"}, p.Name)
	d.says([]string{"describe", "installplan", p.Name}, "missing permission")
	if got := d.operators(d.ns); len(got) != 0 {
		d.t.Errorf("before the rights were given the namespace has %v", got)
	}
}

// granted: R-OG-64, R-OG-65, R-IP-40: exactly the rights that were listed are enough, and the plan goes on with no
// further word.
func (d *delegated) granted() {
	var c planCheck
	if err := d.read(&c, "plan", "check", d.plans(d.ns)[0].Name); err == nil || c.Ready || len(c.Permissions) == 0 {
		d.t.Fatalf("before the rights were given: %+v, %v", c, err)
	}
	d.grant(c.Permissions)
	d.succeeded(d.ns, delegatedCSV)
}

// grant gives the account these rights, in as few roles as may be.
func (d *delegated) grant(list []permission) {
	d.t.Helper()
	rules := map[string][]rbacv1.PolicyRule{} // by namespace
	for _, p := range list {
		rule := rbacv1.PolicyRule{Verbs: []string{p.Verb}}
		if p.URL != "" {
			rule.NonResourceURLs = []string{p.URL}
		} else {
			rule.APIGroups, rule.Resources = []string{p.Group}, []string{p.Resource}
		}
		if p.Name != "" && p.Verb != "create" { // the API server does not know the name of what is created
			rule.ResourceNames = []string{p.Name}
		}
		rules[p.Namespace] = append(rules[p.Namespace], rule)
	}
	account := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "installer", Namespace: d.ns}}
	object := metav1.ObjectMeta{Name: "installer-of-" + d.ns}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: object.Name}
	}
	rbac := d.kube.RbacV1()
	for ns, of := range rules {
		var err, bound error
		if ns == "" {
			_, err = rbac.ClusterRoles().Create(d.ctx, &rbacv1.ClusterRole{ObjectMeta: object, Rules: of},
				metav1.CreateOptions{})
			_, bound = rbac.ClusterRoleBindings().Create(
				d.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: object, RoleRef: ref("ClusterRole"), Subjects: account},
				metav1.CreateOptions{})
		} else {
			_, err = rbac.Roles(ns).Create(d.ctx, &rbacv1.Role{ObjectMeta: object, Rules: of}, metav1.CreateOptions{})
			_, bound = rbac.RoleBindings(ns).Create(d.ctx,
				&rbacv1.RoleBinding{ObjectMeta: object, RoleRef: ref("Role"), Subjects: account},
				metav1.CreateOptions{})
		}
		d.must(errors.Join(err, bound))
	}
}

// thing is an object as the API names it.
type thing struct{ Group, Version, Kind, Namespace, Name string }

// removalPlan is what uninstall --dry-run tells programs.
type removalPlan struct {
	Steps []struct {
		Action  string
		Objects []thing
	}
	Stays []struct {
		thing

		Reason string
	}
	Losses []struct {
		CRD     string
		Objects int
	}
	Subscriptions []string
}

// goes are the objects that a plan deletes.
func (p removalPlan) goes() (out []thing) {
	for _, s := range p.Steps {
		if s.Action == "DeleteObjects" || s.Action == "DeleteCRDs" {
			out = append(out, s.Objects...)
		}
	}
	return out
}

// uid of an object, "" where it is not there.
func (d *delegated) uid(o thing) string {
	d.t.Helper()
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{
		Group: o.Group, Version: o.Version,
		Kind: o.Kind,
	})
	found, err := d.dynamic.Resource(resource).Namespace(o.Namespace).Get(d.ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	d.must(err)
	return string(found.GetUID())
}

func (d *delegated) uids(list []thing) map[thing]string {
	d.t.Helper()
	out := map[thing]string{}
	for _, o := range list {
		out[o] = d.uid(o)
	}
	return out
}

// light makes an object of the operator's API.
func (d *delegated) light(name string) {
	d.t.Helper()
	_, err := d.dynamic.Resource(beacons()).Namespace(d.ns).Create(
		d.ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "light.example.com/v1", "kind": "Beacon", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"pattern": "Fl(3) 15s"},
		}}, metav1.CreateOptions{})
	d.must(err)
}

// removed: R-UNI-1, R-UNI-2, R-UNI-7: a dry run says what goes and what stays, and changes nothing; what is done then
// is that, and what is left is shown.
func (d *delegated) removed() {
	d.light("north-pier")
	said := d.says([]string{"uninstall", "lighthouse", "--dry-run"},
		"Removing "+delegatedCSV+" from namespace "+d.ns, "subscription lighthouse is deleted",
		"Deployment "+d.ns+"/lighthouse-operator", "Not removed:", "CustomResourceDefinition "+delegatedCRD+
			": not requested (--delete-crds, --crd)")
	if strings.Contains(said, "all objects of") {
		d.t.Errorf("data would be lost:\n%s", said)
	}
	var p removalPlan
	d.must(d.read(&p, "uninstall", "lighthouse", "--dry-run"))
	before := d.uids(p.goes())
	if slices.Contains(slices.Collect(maps.Values(before)), "") || len(before) < 5 || len(p.Losses) > 0 {
		d.t.Errorf("announced were %v, with losses %v", before, p.Losses)
	}
	d.must(d.read(&p, "uninstall", "lighthouse", "--dry-run"))
	if after := d.uids(p.goes()); !maps.Equal(before, after) {
		d.t.Errorf("a dry run changed something: %v, then %v", before, after)
	}

	d.says([]string{"uninstall", "lighthouse"}, "is being removed")
	d.gone()
	for o := range before {
		if d.uid(o) != "" {
			d.t.Errorf("%v is left", o)
		}
	}
	for _, s := range p.Stays {
		if d.uid(s.thing) == "" {
			d.t.Errorf("%v was to stay", s)
		}
	}
	if got := d.lights(); !slices.Equal(got, []string{"north-pier"}) {
		d.t.Errorf("of the objects of its API are left %v", got)
	}
	if got := d.leftovers(); !slices.Equal(got, []string{delegatedCRD}) {
		d.t.Errorf("leftovers %v", got)
	}
	var list struct{ Items []any }
	d.must(d.Get(d.ctx, scopePath(d.ns, "subscriptions"), &list))
	if len(list.Items) > 0 {
		d.t.Errorf("the subscription is left: %v", list.Items)
	}
}

// gone waits until the operator is.
func (d *delegated) gone() {
	d.t.Helper()
	d.eventually("the operator is gone", func() (string, bool) {
		left := d.operators(d.ns)
		return fmt.Sprintf("%+v", left), len(left) == 0
	})
}

func (d *delegated) lights() (names []string) {
	d.t.Helper()
	list, err := d.dynamic.Resource(beacons()).Namespace(d.ns).List(d.ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	d.must(err)
	for _, o := range list.Items {
		names = append(names, o.GetName())
	}
	return names
}

// leftovers are the objects that get leftovers lists, of any operator of the namespace.
func (d *delegated) leftovers() (names []string) {
	d.t.Helper()
	var list struct{ Items []struct{ Objects []thing } }
	d.must(d.read(&list, "get", "leftovers"))
	for _, i := range list.Items {
		for _, o := range i.Objects {
			names = append(names, o.Name)
		}
	}
	return names
}

// again: R-UNI-5, R-UNI-6: after a removal the operator can be installed again, finds its data, and nothing is left
// over.
func (d *delegated) again() {
	d.subscribe()
	p := d.waiting(d.ns)
	d.says([]string{"plan", "check", p.Name}, "No obstacles.", "which has all permissions that it needs")
	d.says([]string{"approve", p.Name}, "approved")
	d.succeeded(d.ns, delegatedCSV)
	if got := d.lights(); !slices.Equal(got, []string{"north-pier"}) {
		d.t.Errorf("the objects of its API are now %v", got)
	}
	d.eventually("what is in use again is left over no more", func() (string, bool) {
		got := d.leftovers()
		return fmt.Sprint(got), len(got) == 0
	})
}

// cleared: R-UNI-2: definitions go with their objects where that is asked for, and agreed to by a word of its own.
func (d *delegated) cleared() {
	d.says([]string{"uninstall", delegatedCSV, "--delete-crds", "--dry-run"}, "all objects of "+delegatedCRD+" (1: "+
		d.ns+"/north-pier)", "CustomResourceDefinition "+delegatedCRD)
	if _, err := d.chandler("uninstall", delegatedCSV, "--delete-crds", "--cluster", spoke, "-n", d.ns); err == nil ||
		!strings.Contains(err.Error(), "1 custom resource would be lost: use --yes to go on") {
		d.t.Errorf("without a word: %v", err)
	}
	if got := d.lights(); len(got) != 1 {
		d.t.Errorf("without a word %v is left", got)
	}
	d.says([]string{"uninstall", delegatedCSV, "--delete-crds", "--yes"}, "is being removed")
	d.gone()
	if uid := d.uid(thing{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		Name: delegatedCRD,
	}); uid != "" {
		d.t.Error("the definition is left")
	}
	if got := d.leftovers(); len(got) > 0 {
		d.t.Errorf("leftovers %v", got)
	}
	d.keepsOthers()
}

// keepsOthers: what was there before Chandler stays.
func (d *delegated) keepsOthers() {
	d.t.Helper()
	for what, get := range map[string]func(context.Context) error{
		"account": func(ctx context.Context) error {
			_, err := d.kube.CoreV1().ServiceAccounts(d.ns).Get(ctx, "installer", metav1.GetOptions{})
			return err
		},
		"namespace": func(ctx context.Context) error {
			_, err := d.kube.CoreV1().Namespaces().Get(ctx, d.ns, metav1.GetOptions{})
			return err
		},
	} {
		if err := get(d.ctx); err != nil {
			d.t.Errorf("%s: %v", what, err)
		}
	}
}
