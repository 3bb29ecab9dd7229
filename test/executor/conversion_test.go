package executor_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// pilot is a version of an operator of a namespace, with a CRD of several versions.
type pilot struct {
	ns, version string
	deployment  string
	webhook     bool     // it converts
	versions    []string // of the CRD; the last one is stored
	berth       string   // the label of the nodes on which its pods run; without, it has no pods and the test answers
}

func (p pilot) csv() string     { return "pilot.v" + p.version }
func (p pilot) group() string   { return p.ns + ".sea.test" }
func (p pilot) crd() string     { return "pilots." + p.group() }
func (p pilot) service() string { return p.deployment + "-service" }
func (p pilot) secret() string  { return p.service() + "-cert" }

func (p pilot) content(tb testing.TB) bundle.Content {
	tb.Helper()
	hook, place, replicas := "", "", 0
	if p.webhook {
		hook = fmt.Sprintf(
			"  webhookdefinitions: [{type: ConversionWebhook, generateName: c.%s, deploymentName: %s, targetPort: "+
				"9443, "+
				"webhookPath: /convert, sideEffects: None, admissionReviewVersions: [v1], conversionCRDs: [%s]}]\n",
			p.group(), p.deployment, p.crd())
	}
	if p.berth != "" {
		replicas, place = 1, fmt.Sprintf("nodeSelector: {%s: ''}, ", p.berth)
	}
	var versions strings.Builder
	for i, v := range p.versions {
		fmt.Fprintf(&versions,
			"  - {name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object, "+
				"x-kubernetes-preserve-unknown-fields: true}}}\n",
			v, i == len(p.versions)-1)
	}
	return contentOf(tb, fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: %[1]s}
spec:
  version: %[2]s
  installModes: [{type: AllNamespaces, supported: true}]
  customresourcedefinitions: {owned: [{name: %[3]s, version: %[4]s, kind: Pilot}]}
%[5]s  install:
    strategy: deployment
    spec:
      deployments:
      - name: %[6]s
        spec:
          replicas: %[7]d
          progressDeadlineSeconds: 1
          selector: {matchLabels: {app: %[6]s}}
          template:
            metadata: {labels: {app: %[6]s}}
            spec: {%[8]scontainers: [{name: manager, image: 'registry.example.com/pilot:%[2]s'}]}
`, p.csv(), p.version, p.crd(), p.versions[0], hook, p.deployment, replicas, place), fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s
  scope: Namespaced
  names: {kind: Pilot, listKind: PilotList, plural: pilots, singular: pilot}
  versions:
%s`, p.crd(), p.group(), versions.String()))
}

// make creates a Pilot as an object of a version.
func (p pilot) make(ctx context.Context, c dynamic.Interface, version, name string) error {
	r := schema.GroupVersionResource{Group: p.group(), Version: version, Resource: "pilots"}
	_, err := c.Resource(r).Namespace("default").Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": p.group() + "/" + version, "kind": "Pilot", "metadata": map[string]any{"name": name},
		"rank": "mate",
	}}, metav1.CreateOptions{})
	return err
}

// read reads a Pilot in a version, and reports whether somebody converted it.
func (p pilot) read(ctx context.Context, c dynamic.Interface, version, name string) (converted bool, err error) {
	r := schema.GroupVersionResource{Group: p.group(), Version: version, Resource: "pilots"}
	o, err := c.Resource(r).Namespace("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if o.GetAPIVersion() != p.group()+"/"+version || o.Object["rank"] != "mate" {
		return false, fmt.Errorf("read %v", o.Object)
	}
	return o.Object["converted"] == true, nil
}

// form is how a CRD says that its objects are brought from version to version.
type form struct{ Strategy, Service, Stored string }

func (p pilot) form(ctx context.Context, c dynamic.Interface) (f form, ca []byte, err error) {
	o, err := c.Resource(crds).Get(ctx, p.crd(), metav1.GetOptions{})
	if err != nil {
		return f, nil, err
	}
	f.Strategy, _, err = unstructured.NestedString(o.Object, "spec", "conversion", "strategy")
	service, _, serviceErr := unstructured.NestedString(o.Object, "spec", "conversion", "webhook", "clientConfig",
		"service", "name")
	text, _, textErr := unstructured.NestedString(o.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	versions, _, versionsErr := unstructured.NestedSlice(o.Object, "spec", "versions")
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok && m["storage"] == true {
			f.Stored = fmt.Sprint(m["name"])
		}
	}
	f.Service = service
	ca, caErr := base64.StdEncoding.DecodeString(text)
	return f, ca, errors.Join(err, serviceErr, textErr, versionsErr, caErr)
}

func (p pilot) wantForm(t *testing.T, c dynamic.Interface, want form) {
	t.Helper()
	got, _, err := p.form(t.Context(), c)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CustomResourceDefinition (-want +got):\n%s", diff)
	}
}

// installPilot installs the first version.
func (b *bed) installPilot(t *testing.T, one pilot) (protocol.Plan, protocol.CSVReport) {
	t.Helper()
	b.global(one.ns)
	p := b.plan(one.ns, "pilot", planned{content: one.content(t)})
	b.want(one.ns, p)
	return p, b.finishes(t, one.ns, p, one.csv())
}

// upgradePilot has the second version follow the first one and waits until it has failed.
func (b *bed) upgradePilot(t *testing.T, one, two pilot, p protocol.Plan, first protocol.CSVReport) (
	protocol.Plan, protocol.ScopePlans,
) {
	t.Helper()
	q := b.plan(one.ns, "pilot", planned{content: two.content(t), replaces: one.csv()})
	s := b.scope(one.ns)
	s.Plans, s.Installed = []protocol.Plan{q}, []protocol.Installed{
		{CSV: one.csv(), Content: first.Content, Plan: p.ID},
	}
	b.publish(s)
	b.awaitPlan(one.ns, q.ID, phase(protocol.PlanFinished))
	b.awaitCSV(one.ns, two.csv(), endsIn("Failed", "InstallCheckFailed"))
	return q, s
}

// berth gives the pods of a version nodes to run on.
func (b *bed) berth(t *testing.T, label string) {
	t.Helper()
	nodes, err := b.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	_, err = b.kube.CoreV1().Nodes().Patch(t.Context(), nodes.Items[0].Name, types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"`+label+`": ""}}}`), metav1.PatchOptions{})
	must(t, err)
}

// TestConversion: R-CSV-46, R-CSV-50: an upgrade to a version that converts at another Service and stores another
// version never comes to run. All the while objects are read and written through the former version, whose certificate
// and proxy are kept up by an executor that takes over weeks later. When the new one runs, it converts, and the former
// goes.
func TestConversion(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config("one")
	const age = 729*24*time.Hour + 6*time.Hour
	cfg.Now = func() time.Time { return time.Now().Add(-age) }
	stop := b.start(cfg)
	c := b.dynamic(t)
	one := pilot{
		ns: "pilot", version: "1.0.0", deployment: "pilot-controller", webhook: true,
		versions: []string{"v1alpha1", "v1"},
	}
	two := pilot{
		ns: "pilot", version: "2.0.0", deployment: "pilot-engine", webhook: true,
		versions: []string{"v1alpha1", "v1", "v2"}, berth: "berth.sea.test/pilot",
	}
	p, first := b.installPilot(t, one)
	server := b.answer(buoyServer(t))
	server.join(b, one.ns, one.service(), "443")
	secret := server.serve(b, one.ns, one.secret())
	served := func(when string) {
		t.Helper()
		converted, err := one.read(t.Context(), c, "v1alpha1", "one")
		if err != nil || !converted {
			t.Fatalf("%s: read as v1alpha1: converted %v, %v", when, converted, err)
		}
		must(t, one.make(t.Context(), c, "v1alpha1", "x"+strings.ReplaceAll(when, " ", "-")))
		must(t, one.make(t.Context(), c, "v1", "y"+strings.ReplaceAll(when, " ", "-")))
	}
	await(t, "a Pilot", func(ctx context.Context) error { return one.make(ctx, c, "v1", "one") })
	await(t, "its conversion", func(ctx context.Context) error {
		_,
			err := one.read(ctx, c, "v1alpha1", "one")
		return err
	})
	served("installed")

	q, s := b.upgradePilot(t, one, two, p, first)
	former := form{Strategy: "Webhook", Service: one.service(), Stored: "v1"}
	one.wantForm(t, c, former)
	served("behind a failed version")
	if _, err := b.kube.CoreV1().Services(one.ns).Get(t.Context(), one.service(), metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	stop()

	// The next executor finds the certificate of the former version in its last hours, and a proxy.
	_, err := b.kube.CoreV1().ConfigMaps("chandler-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "chandler-proxy"},
		Data:       map[string]string{"HTTPS_PROXY": "http://proxy.example.com:3128"},
	}, metav1.CreateOptions{})
	must(t, err)
	b.start(b.config("two"))
	var renewed *corev1.Secret
	await(t, "another certificate of the former version", func(ctx context.Context) (err error) {
		renewed, err = b.kube.CoreV1().Secrets(one.ns).Get(ctx, one.secret(), metav1.GetOptions{})
		if err == nil && bytes.Equal(renewed.Data["tls.crt"], secret.Data["tls.crt"]) {
			err = errors.New("it is still the one of before")
		}
		return err
	})
	await(t, "the CRD and the pods to have its CA", func(ctx context.Context) error {
		_, ca, err := one.form(ctx, c)
		d, getErr := b.kube.AppsV1().Deployments(one.ns).Get(ctx, one.deployment, metav1.GetOptions{})
		if err := errors.Join(err, getErr); err != nil {
			return err
		}
		if got := d.Spec.Template.Annotations["olmcahash"]; !bytes.Equal(ca, renewed.Data["olmCAKey"]) ||
			got != renewed.Annotations["olmcahash"] {
			return fmt.Errorf("pods have %s, want %s", got, renewed.Annotations["olmcahash"])
		}
		return nil
	})
	served("under its former certificate")
	server.serve(b, one.ns, one.secret())
	served("under its new certificate")
	b.awaitProxy(t, one.ns, "http://proxy.example.com:3128")
	one.wantForm(t, c, former)

	b.berth(t, two.berth)
	b.awaitCSV(one.ns, two.csv(), reached("Succeeded"))
	b.awaitCSV(one.ns, one.csv(), func(r protocol.CSVReport) bool { return r.Removed })
	one.wantForm(t, c, form{Strategy: "Webhook", Service: two.service(), Stored: "v2"})
	_, err = b.kube.CoreV1().Services(one.ns).Get(t.Context(), one.service(), metav1.GetOptions{})
	must(t, wantNotFound(err))
	if _, err := one.read(t.Context(), c, "v1", "one"); err != nil { // as it is stored
		t.Error(err)
	}
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: two.csv(), Content: q.Digest, Plan: q.ID}}
	b.publish(s)
}

// TestConversionBegins: R-CSV-46: a version that brings the first conversion webhook, and does not run, takes nothing
// away: objects are read and written in the version that there was, and nothing is read in a wrong form. Once it is
// removed versions are changed by name.
func TestConversionBegins(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	c := b.dynamic(t)
	one := pilot{ns: "first", version: "1.0.0", deployment: "first-controller", versions: []string{"v1"}}
	two := pilot{
		ns: "first", version: "2.0.0", deployment: "first-controller", webhook: true,
		versions: []string{"v1", "v2"}, berth: "berth.sea.test/first",
	}
	p, first := b.installPilot(t, one)
	await(t, "a Pilot", func(ctx context.Context) error { return one.make(ctx, c, "v1", "one") })
	q, s := b.upgradePilot(t, one, two, p, first)
	one.wantForm(t, c, form{Strategy: "Webhook", Service: two.service(), Stored: "v1"})
	if _, err := one.read(t.Context(), c, "v1", "one"); err != nil {
		t.Error(err)
	}
	must(t, one.make(t.Context(), c, "v1", "two"))
	if _, err := one.read(t.Context(), c, "v2", "one"); err == nil {
		t.Error("read in a version that nobody converts to yet")
	}
	s.Plans = nil
	s.Installed = append(s.Installed, protocol.Installed{CSV: two.csv(), Content: q.Digest, Plan: q.ID})
	b.remove(t, one.ns, two.csv(), s)
	b.awaitCSV(one.ns, one.csv(), endsIn("Succeeded", "InstallSucceeded"))
	one.wantForm(t, c, form{Strategy: "None", Stored: "v1"})
	if _, err := one.read(t.Context(), c, "v1", "two"); err != nil {
		t.Error(err)
	}
}

// TestExpired: a certificate that ran out while no executor was there is renewed by the next one, and the webhooks that
// nobody trusted answer again (R-CSV-40).
func TestExpired(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config("one")
	const age = 731 * 24 * time.Hour
	cfg.Now = func() time.Time { return time.Now().Add(-age) }
	stop := b.start(cfg)
	b.global("ops")
	p := b.plan("ops", "buoy", planned{content: buoy(t, "1.0.0", 5)})
	b.want("ops", p)
	one := b.awaitCSV("ops", "buoy.v1.0.0", reached("Succeeded"))
	b.awaitPlan("ops", p.ID, phase(protocol.PlanFinished))
	stop()
	const service, secret = "buoy-controller-service", "buoy-controller-service-cert"
	server := b.answer(buoyServer(t))
	server.join(b, "ops", service, "443")
	first := server.serve(b, "ops", secret)
	c := b.dynamic(t)
	await(t, "a webhook that nobody trusts any more", func(ctx context.Context) error {
		if err := makeBuoy(ctx, c, "wreck", 1); err == nil || !strings.Contains(err.Error(), "expired") {
			return fmt.Errorf("want an expired certificate, got %w", err)
		}
		return nil
	})
	s := b.scope("ops")
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: "buoy.v1.0.0", Content: one.Content, Plan: p.ID}}
	b.publish(s)
	b.start(b.config("two"))
	b.awaitCSV("ops", "buoy.v1.0.0", func(r protocol.CSVReport) bool {
		return strings.Contains(strings.Join(history(r), " "), "Pending(NeedsCertRotation)") && reached("Succeeded")(r)
	})
	second := server.serve(b, "ops", secret)
	if bytes.Equal(first.Data["tls.crt"], second.Data["tls.crt"]) {
		t.Error("the certificate is the one that ran out")
	}
	await(t, "the webhook to answer again", func(ctx context.Context) error { return makeBuoy(ctx, c, "wreck", 1) })
	if _, ca := conversion(t, c); !bytes.Equal(ca, second.Data["olmCAKey"]) || bytes.Count(ca, []byte("BEGIN")) != 1 {
		t.Error("the conversion does not trust the new CA alone")
	}
}
