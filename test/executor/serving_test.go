package executor_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// buoyManifest is an operator that converts its CRD and validates what is written of it. Its Deployment has no pods:
// the test itself answers for it.
const buoyManifest = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: buoy.v%[1]s}
spec:
  version: %[1]s
  installModes:
  - {type: AllNamespaces, supported: true}
  customresourcedefinitions: {owned: [{name: buoys.sea.test, version: v1, kind: Buoy}]}
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: vbuoy.sea.test
    deploymentName: buoy-controller
    targetPort: 9443
    webhookPath: /validate
    failurePolicy: Fail
    sideEffects: None
    timeoutSeconds: %[2]d
    admissionReviewVersions: [v1]
    rules: [{apiGroups: [sea.test], apiVersions: ['*'], operations: [CREATE], resources: [buoys]}]
  - type: ConversionWebhook
    generateName: cbuoy.sea.test
    deploymentName: buoy-controller
    targetPort: 9443
    webhookPath: /convert
    sideEffects: None
    admissionReviewVersions: [v1]
    conversionCRDs: [buoys.sea.test]
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: buoy
        rules: [{apiGroups: [sea.test], resources: [buoys], verbs: ['*']}]
      deployments:
      - name: buoy-controller
        spec:
          replicas: 0
          selector: {matchLabels: {app: buoy}}
          template:
            metadata: {labels: {app: buoy}}
            spec:
              serviceAccountName: buoy
              containers: [{name: manager, image: 'registry.example.com/buoy:%[1]s'}]
`

const buoyCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buoys.sea.test}
spec:
  group: sea.test
  scope: Namespaced
  names: {kind: Buoy, listKind: BuoyList, plural: buoys, singular: buoy}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// swellManifest is an operator that serves an API of its own.
const swellManifest = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: swell.v1.0.0}
spec:
  version: 1.0.0
  installModes: [{type: OwnNamespace, supported: true}]
  apiservicedefinitions:
    owned: [{name: swells, group: wave.sea.test, version: v1, kind: Swell, deploymentName: swell-server, containerPort: 8443}]
  install:
    strategy: deployment
    spec:
      deployments:
      - name: swell-server
        spec:
          replicas: 0
          selector: {matchLabels: {app: swell}}
          template:
            metadata: {labels: {app: swell}}
            spec: {containers: [{name: server, image: 'registry.example.com/swell:1'}]}
`

func contentOf(tb testing.TB, manifests ...string) bundle.Content {
	tb.Helper()
	raw := make([][]byte, len(manifests))
	for i, m := range manifests {
		raw[i] = []byte(m)
	}
	c, err := bundle.FromManifests(raw)
	must(tb, err)
	return c
}

func buoy(tb testing.TB, version string, timeout int) bundle.Content {
	tb.Helper()
	return contentOf(tb, fmt.Sprintf(buoyManifest, version, timeout), buoyCRD)
}

// backend answers for an operator at an address of this machine, under the certificate of its Secret.
type backend struct {
	mu   sync.Mutex
	pair *tls.Certificate
	port int32
	host string
}

// answer starts a backend.
func (b *bed) answer(handler http.Handler) *backend {
	b.t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(b.t, err)
	s := &backend{}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() && s.host == "" {
			s.host = ip.IP.String()
		}
	}
	if s.host == "" {
		b.t.Fatal("this machine has no address but the loopback one, which an EndpointSlice may not name")
	}
	l, err := (&net.ListenConfig{}).Listen(b.t.Context(), "tcp", net.JoinHostPort(s.host, "0"))
	must(b.t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(b.t, err)
	n, err := strconv.ParseInt(port, 10, 32)
	must(b.t, err)
	s.port = int32(n)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.pair == nil {
				return nil, errors.New("no certificate yet")
			}
			return s.pair, nil
		},
	}}
	stopped := make(chan error, 1)
	go func() { stopped <- server.ServeTLS(l, "", "") }()
	b.t.Cleanup(func() {
		must(b.t, server.Close())
		if err := <-stopped; !errors.Is(err, http.ErrServerClosed) {
			b.t.Error(err)
		}
	})
	return s
}

// join makes the backend one of a Service's endpoints, at the name that the Service's port has.
func (s *backend) join(b *bed, ns, service, portName string) {
	b.t.Helper()
	ready, protocolTCP := true, corev1.ProtocolTCP
	_, err := b.kube.DiscoveryV1().EndpointSlices(ns).Create(b.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:   service + "-test",
			Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{s.host},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &s.port, Protocol: &protocolTCP}},
	}, metav1.CreateOptions{})
	must(b.t, err)
}

// serve takes the certificate of a Secret, as a pod does that starts, and returns the Secret.
func (s *backend) serve(b *bed, ns, secret string) *corev1.Secret {
	b.t.Helper()
	o, err := b.kube.CoreV1().Secrets(ns).Get(b.t.Context(), secret, metav1.GetOptions{})
	must(b.t, err)
	pair, err := tls.X509KeyPair(o.Data["tls.crt"], o.Data["tls.key"])
	must(b.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pair = &pair
	return o
}

// buoyServer validates and converts.
func buoyServer(tb testing.TB) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/validate", func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var o unstructured.Unstructured
		if !asked(w, r, &review) {
			return
		}
		if err := json.Unmarshal(review.Request.Object.Raw, &o.Object); err != nil {
			tb.Error(err)
		}
		depth, _, err := unstructured.NestedInt64(map[string]any{"depth": toInt(o.Object["depth"])}, "depth")
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: err == nil && depth >= 0}
		if !review.Response.Allowed {
			review.Response.Result = &metav1.Status{Message: "a buoy swims"}
		}
		reply(tb, w, review)
	})
	mux.HandleFunc("/convert", func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if !asked(w, r, &review) {
			return
		}
		review.Response = &apiextensionsv1.ConversionResponse{
			UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess},
		}
		for _, raw := range review.Request.Objects {
			var o map[string]any
			if err := json.Unmarshal(raw.Raw, &o); err != nil {
				tb.Error(err)
			}
			o["apiVersion"], o["converted"] = review.Request.DesiredAPIVersion, true
			out, err := json.Marshal(o)
			if err != nil {
				tb.Error(err)
			}
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Raw: out})
		}
		reply(tb, w, review)
	})
	return mux
}

// asked reads a question. The API server may take one back before it is read, when a definition changes or the test
// ends.
func asked(w http.ResponseWriter, r *http.Request, review any) bool {
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func toInt(v any) int64 {
	f, ok := v.(float64)
	if !ok {
		return 0
	}
	return int64(f)
}

func reply(tb testing.TB, w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		tb.Error(err)
	}
}

var (
	buoys        = schema.GroupVersionResource{Group: "sea.test", Version: "v1", Resource: "buoys"}
	installedOps = schema.GroupVersionResource{
		Group: "chandler-fleet.io", Version: "v1",
		Resource: "installedoperators",
	}
	crds = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions",
	}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// global makes the group of a namespace one for all namespaces.
func (b *bed) global(ns string) {
	b.t.Helper()
	s := b.scope(ns)
	s.OperatorGroup.Spec.TargetNamespaces = nil
	b.publish(s)
}

func (b *bed) dynamic(tb testing.TB) dynamic.Interface {
	tb.Helper()
	c, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(tb, err)
	return c
}

// makeBuoy creates a Buoy of a depth.
func makeBuoy(ctx context.Context, c dynamic.Interface, name string, depth int64) error {
	_, err := c.Resource(buoys).Namespace("default").Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.test/v1", "kind": "Buoy", "metadata": map[string]any{"name": name}, "depth": depth,
	}}, metav1.CreateOptions{})
	return err
}

func (b *bed) webhook(tb testing.TB) *admissionregistrationv1.ValidatingWebhookConfiguration {
	tb.Helper()
	list, err := b.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(
		tb.Context(), metav1.ListOptions{LabelSelector: "olm.webhook-description-generate-name=vbuoy.sea.test"})
	must(tb, err)
	if len(list.Items) != 1 {
		tb.Fatalf("%d webhook configurations of vbuoy.sea.test, want 1", len(list.Items))
	}
	return &list.Items[0]
}

// conversion is the strategy of the buoys' CRD and the CA that it trusts.
func conversion(tb testing.TB, c dynamic.Interface) (strategy string, ca []byte) {
	tb.Helper()
	o, err := c.Resource(crds).Get(tb.Context(), "buoys.sea.test", metav1.GetOptions{})
	must(tb, err)
	strategy, _, err = unstructured.NestedString(o.Object, "spec", "conversion", "strategy")
	must(tb, err)
	text, _, err := unstructured.NestedString(o.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	must(tb, err)
	ca, err = base64.StdEncoding.DecodeString(text)
	must(tb, err)
	return strategy, ca
}

// TestWebhooks drives an operator with webhooks through its life on a real API server that calls them: install
// (R-CSV-40 … R-CSV-43), upgrade in place, renewal of a lost certificate, removal with conversion by name again
// (R-CSV-46, R-CSV-52).
func TestWebhooks(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	c := b.dynamic(t)
	b.global("ops")
	const service, secret = "buoy-controller-service", "buoy-controller-service-cert"

	p := b.plan("ops", "buoy", planned{content: buoy(t, "1.0.0", 5)})
	b.want("ops", p)
	one := b.awaitCSV("ops", "buoy.v1.0.0", reached("Succeeded"))
	if diff := cmp.Diff(fresh, history(one)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	b.awaitPlan("ops", p.ID, phase(protocol.PlanFinished))
	server := b.answer(buoyServer(t))
	server.join(b, "ops", service, "443")
	first := server.serve(b, "ops", secret)
	hook := b.webhook(t)
	strategy, ca := conversion(t, c)
	if strategy != "Webhook" || !bytes.Equal(ca, first.Data["olmCAKey"]) ||
		!bytes.Equal(hook.Webhooks[0].ClientConfig.CABundle, ca) {
		t.Errorf("conversion %s; the CA of the Secret, the CRD and the webhook differ", strategy)
	}
	if diff := cmp.Diff(&metav1.LabelSelector{MatchExpressions: spared},
		hook.Webhooks[0].NamespaceSelector); diff != "" {
		t.Errorf("namespace selector of a global group: %s", diff)
	}
	b.checkCertificate(t, first)
	await(t, "a webhook that refuses", func(ctx context.Context) error {
		if err := makeBuoy(ctx, c, "wreck", -5); err == nil || !strings.Contains(err.Error(), "a buoy swims") {
			return fmt.Errorf("want a refusal, got %w", err)
		}
		return nil
	})
	must(t, makeBuoy(t.Context(), c, "one", 0))
	old := schema.GroupVersionResource{Group: "sea.test", Version: "v1alpha1", Resource: "buoys"}
	o, err := c.Resource(old).Namespace("default").Get(t.Context(), "one", metav1.GetOptions{})
	must(t, err)
	if o.Object["converted"] != true {
		t.Errorf("read as v1alpha1 without its conversion: %v", o.Object)
	}

	b.upgradeBuoy(t, c, p, one, hook, first)
	b.renewBuoy(t, c, server)
	b.removeBuoy(t, c)
}

// checkCertificate: R-CSV-40: the Secret, the pods that start again with its CA, and the status.
func (b *bed) checkCertificate(t *testing.T, s *corev1.Secret) {
	t.Helper()
	d, err := b.kube.AppsV1().Deployments("ops").Get(t.Context(), "buoy-controller", metav1.GetOptions{})
	must(t, err)
	if s.Type != corev1.SecretTypeTLS || s.Annotations["olmcahash"] == "" ||
		d.Spec.Template.Annotations["olmcahash"] != s.Annotations["olmcahash"] {
		t.Errorf("secret of type %s with CA hash %q, pods with %q", s.Type, s.Annotations["olmcahash"],
			d.Spec.Template.Annotations["olmcahash"])
	}
	o, err := b.dynamic(t).Resource(installedOps).Namespace("ops").Get(t.Context(), "buoy.v1.0.0", metav1.GetOptions{})
	must(t, err)
	rotate, _, err := unstructured.NestedString(o.Object, "status", "certsRotateAt")
	must(t, err)
	at, err := time.Parse(time.RFC3339, rotate)
	if days := time.Until(at).Hours() / 24; err != nil || days < 728 || days > 729 {
		t.Errorf("certificates are to be renewed at %q, in %.1f days", rotate, days)
	}
}

// upgradeBuoy: the webhook changes in place, under the same CA, and the Secret goes over to the new version.
func (b *bed) upgradeBuoy(t *testing.T, c dynamic.Interface, p protocol.Plan, one protocol.CSVReport,
	hook *admissionregistrationv1.ValidatingWebhookConfiguration, first *corev1.Secret,
) {
	t.Helper()
	q := b.plan("ops", "buoy", planned{content: buoy(t, "2.0.0", 6), replaces: "buoy.v1.0.0"})
	s := b.scope("ops")
	s.Plans, s.Installed = []protocol.Plan{q}, []protocol.Installed{
		{CSV: "buoy.v1.0.0", Content: one.Content, Plan: p.ID},
	}
	b.publish(s)
	two := b.awaitCSV("ops", "buoy.v2.0.0", reached("Succeeded"))
	b.awaitCSV("ops", "buoy.v1.0.0", func(r protocol.CSVReport) bool { return r.Removed })
	now := b.webhook(t)
	if now.UID != hook.UID || *now.Webhooks[0].TimeoutSeconds != 6 ||
		!bytes.Equal(now.Webhooks[0].ClientConfig.CABundle, first.Data["olmCAKey"]) {
		t.Errorf("webhook %s was not changed in place: uid %s, then %s", now.Name, hook.UID, now.UID)
	}
	secret, err := b.kube.CoreV1().Secrets("ops").Get(t.Context(), first.Name, metav1.GetOptions{})
	must(t, err)
	if secret.UID != first.UID || !bytes.Equal(secret.Data["tls.crt"], first.Data["tls.crt"]) ||
		len(secret.OwnerReferences) != 1 || string(secret.OwnerReferences[0].UID) != two.UID {
		t.Errorf("secret %s: uid %s, then %s; owners %v", secret.Name, first.UID, secret.UID, secret.OwnerReferences)
	}
	if err := makeBuoy(t.Context(), c, "sunk", -1); err == nil || !strings.Contains(err.Error(), "a buoy swims") {
		t.Errorf("want a refusal after the upgrade, got %v", err)
	}
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: "buoy.v2.0.0", Content: two.Content, Plan: q.ID}}
	b.publish(s)
}

// renewBuoy: a Secret that was lost is made anew (NeedsCertRotation), and pods that still serve under the former
// certificate are trusted until they are replaced.
func (b *bed) renewBuoy(t *testing.T, c dynamic.Interface, server *backend) {
	t.Helper()
	before := b.webhook(t).Webhooks[0].ClientConfig.CABundle
	must(t, b.kube.CoreV1().Secrets("ops").Delete(t.Context(), "buoy-controller-service-cert", metav1.DeleteOptions{}))
	r := b.awaitCSV("ops", "buoy.v2.0.0", func(r protocol.CSVReport) bool {
		return strings.Contains(strings.Join(history(r), " "), "Pending(NeedsCertRotation)") && reached("Succeeded")(r)
	})
	want := slices.Concat(fresh, []string{
		"Pending(NeedsCertRotation)", "InstallReady(AllRequirementsMet)",
		"Installing(InstallSucceeded)", "Succeeded(InstallSucceeded)",
	})
	if diff := cmp.Diff(want, history(r)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	after := b.webhook(t).Webhooks[0].ClientConfig.CABundle
	if bytes.Equal(before, after) || !bytes.HasSuffix(after, before) {
		t.Error("the webhook does not trust the new CA and the former one")
	}
	if err := makeBuoy(t.Context(), c, "adrift", -1); err == nil || !strings.Contains(err.Error(), "a buoy swims") {
		t.Errorf("want a refusal by the pod of before, got %v", err)
	}
	server.serve(b, "ops", "buoy-controller-service-cert")
	if _, ca := conversion(t, c); !bytes.Equal(ca, after) {
		t.Error("the conversion trusts another CA than the webhook")
	}
	if err := makeBuoy(t.Context(), c, "lost", -1); err == nil || !strings.Contains(err.Error(), "a buoy swims") {
		t.Errorf("want a refusal by the pod of now, got %v", err)
	}
}

// removeBuoy: without an operator nothing calls it any more, and its objects can be read and removed.
func (b *bed) removeBuoy(t *testing.T, c dynamic.Interface) {
	t.Helper()
	must(t, c.Resource(installedOps).Namespace("ops").Delete(t.Context(), "buoy.v2.0.0", metav1.DeleteOptions{}))
	b.awaitCSV("ops", "buoy.v2.0.0", func(r protocol.CSVReport) bool { return r.Removed })
	if strategy, ca := conversion(t, c); strategy != "None" || len(ca) > 0 {
		t.Errorf("conversion %s after the removal", strategy)
	}
	const owned = "olm.owner=buoy.v2.0.0"
	hooks, err := b.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(
		t.Context(), metav1.ListOptions{LabelSelector: owned})
	must(t, err)
	roles, err := b.kube.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{LabelSelector: owned})
	must(t, err)
	readers, err := b.kube.RbacV1().RoleBindings("kube-system").List(
		t.Context(), metav1.ListOptions{LabelSelector: owned})
	must(t, err)
	if n := len(hooks.Items) + len(roles.Items) + len(readers.Items); n > 0 {
		t.Errorf("%d webhooks and bindings are left", n)
	}
	o, err := c.Resource(buoys.GroupVersion().WithResource("buoys")).Namespace("default").Get(
		t.Context(), "one", metav1.GetOptions{})
	must(t, err)
	must(t, c.Resource(buoys).Namespace("default").Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}))
}

// spared leaves Chandler's own namespace out of every selector of a webhook.
var spared = []metav1.LabelSelectorRequirement{
	{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"chandler-system"}},
}

// TestWebhookNamespaces: R-CSV-44: the selector of a webhook follows the operator group while the operator runs.
func TestWebhookNamespaces(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	text := strings.Replace(fmt.Sprintf(buoyManifest, "1.0.0", 5), "{type: AllNamespaces, supported: true}",
		"{type: AllNamespaces, supported: true}\n  - {type: OwnNamespace, supported: true}\n  - {type: "+
			"SingleNamespace, supported: true}", 1)
	from, to := strings.Index(text, "  - type: ConversionWebhook"), strings.Index(text, "  install:")
	b.want("ops", b.plan("ops", "buoy", planned{content: contentOf(t, text[:from]+text[to:], buoyCRD)}))
	b.awaitCSV("ops", "buoy.v1.0.0", reached("Succeeded"))
	s := b.scope("ops")
	selector := func(want metav1.LabelSelector) {
		t.Helper()
		want.MatchExpressions = spared
		await(t, "the namespace selector", func(context.Context) error {
			if diff := cmp.Diff(&want, b.webhook(t).Webhooks[0].NamespaceSelector); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
	label := "olm.operatorgroup.uid/" + s.OperatorGroup.ID
	selector(metav1.LabelSelector{MatchLabels: map[string]string{label: ""}})
	s.Plans, s.OperatorGroup.Spec.TargetNamespaces = nil, nil
	b.publish(s)
	selector(metav1.LabelSelector{})
	s.OperatorGroup.Spec.Selector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": "ops"}
	b.publish(s)
	selector(metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "ops"}})
}

// TestAPIService: R-CSV-40 and the rows of R-CSV §6.3 about owned API services: it is Succeeded when the API server
// reaches the API, and an APIService that is taken away comes back.
func TestAPIService(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	c := b.dynamic(t)
	p := b.plan("ops", "swell", planned{content: contentOf(t, swellManifest)})
	b.want("ops", p)
	b.awaitPlan("ops", p.ID, phase(protocol.PlanFinished))
	b.awaitCSV("ops", "swell.v1.0.0", reached("Installing"))

	mux := http.NewServeMux()
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "wave.sea.test/v1",
		APIResources: []metav1.APIResource{{Name: "swells", Kind: "Swell", Verbs: []string{"get"}}},
	}
	mux.HandleFunc("/apis/wave.sea.test/v1", func(w http.ResponseWriter, _ *http.Request) { reply(t, w, list) })
	server := b.answer(mux)
	server.serve(b, "ops", "swell-server-service-cert")
	server.join(b, "ops", "swell-server-service", "8443")
	b.awaitCSV("ops", "swell.v1.0.0", reached("Succeeded"))
	got, err := b.kube.Discovery().ServerResourcesForGroupVersion("wave.sea.test/v1")
	must(t, err)
	if len(got.APIResources) != 1 {
		t.Errorf("resources of the API: %v", got.APIResources)
	}

	before, err := c.Resource(apiServices).Get(t.Context(), "v1.wave.sea.test", metav1.GetOptions{})
	must(t, err)
	must(t, c.Resource(apiServices).Delete(t.Context(), before.GetName(), metav1.DeleteOptions{}))
	await(t, "the APIService to come back", func(ctx context.Context) error {
		now, err := c.Resource(apiServices).Get(ctx, before.GetName(), metav1.GetOptions{})
		if err == nil && now.GetUID() == before.GetUID() {
			return errors.New("it is still the one of before")
		}
		return err
	})
	b.awaitCSV("ops", "swell.v1.0.0", reached("Succeeded"))
}

// TestRenewalInTime: R-CSV-40: an executor that finds a certificate in its last day renews it (NeedsCertRotation), and
// at no moment does the API server distrust the pods, which start again one after the other.
func TestRenewalInTime(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config("one")
	const age = 729*24*time.Hour + 12*time.Hour
	cfg.Now = func() time.Time { return time.Now().Add(-age) }
	stop := b.start(cfg)
	b.global("ops")
	p := b.plan("ops", "buoy", planned{content: buoy(t, "1.0.0", 5)})
	b.want("ops", p)
	one := b.awaitCSV("ops", "buoy.v1.0.0", reached("Succeeded"))
	stop()
	server := b.answer(buoyServer(t))
	server.join(b, "ops", "buoy-controller-service", "443")
	first := server.serve(b, "ops", "buoy-controller-service-cert")
	c := b.dynamic(t)
	refused := func() error {
		if err := makeBuoy(t.Context(), c, "wreck", -5); err == nil || !strings.Contains(err.Error(), "a buoy swims") {
			return fmt.Errorf("want a refusal, got %w", err)
		}
		return nil
	}
	await(t, "a webhook that refuses", func(context.Context) error { return refused() })

	s := b.scope("ops")
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: "buoy.v1.0.0", Content: one.Content, Plan: p.ID}}
	b.publish(s)
	b.start(b.config("two"))
	await(t, "another certificate", func(ctx context.Context) error {
		must(t, refused())
		now, err := b.kube.CoreV1().Secrets("ops").Get(ctx, first.Name, metav1.GetOptions{})
		if err == nil && bytes.Equal(now.Data["tls.crt"], first.Data["tls.crt"]) {
			return errors.New("it is still the one of before")
		}
		return err
	})
	b.awaitCSV("ops", "buoy.v1.0.0", func(r protocol.CSVReport) bool {
		must(t, refused())
		return strings.Contains(strings.Join(history(r), " "), "Pending(NeedsCertRotation)") && reached("Succeeded")(r)
	})
	second := server.serve(b, "ops", first.Name)
	must(t, refused())
	b.checkCertificate(t, second)
}
