package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestUnready: why a Deployment is not ready is told, by what a real API server, scheduler and quota say; and when the
// cause is fixed the operator goes on by itself (R-CSV-23). The cases share a cluster and an executor; the last one
// stands in the way of all.
func TestUnready(t *testing.T) { //nolint:tparallel // one executor is the subject
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	for name, test := range map[string]func(*unreadied){
		"quota": testPodQuota, "security": testPodSecurity, "nodes": testUnschedulable, "image": testImage,
		"crashes": testCrashes,
	} {
		t.Run(name,
			func(t *testing.T) { //nolint:paralleltest // what the executor is busy with at a time is to be known
				b.namespace(t, name)
				test(&unreadied{scoped: &scoped{bed: b.on(t), t: t, ns: name}})
			})
	}
	t.Run("webhook", func(t *testing.T) { //nolint:paralleltest // it refuses the objects of everybody
		testWebhookOfAnother(&unreadied{scoped: &scoped{bed: b.on(t), t: t, ns: "refused"}})
	})
}

// unreadied is one namespace with an operator that does not become ready.
type unreadied struct{ *scoped }

// wants begins an install.
func (u *unreadied) wants(o operator) protocol.Plan {
	u.t.Helper()
	p := u.plan(u.ns, u.ns, planned{content: o.content(u.t)})
	u.want(u.ns, p)
	return p
}

// told waits until a cause is told of the operator's Deployment, in what is told of it and of its objects, and of its
// phase, too.
func (u *unreadied) told(o operator, reason string, words ...string) protocol.NotReady {
	u.t.Helper()
	r := u.awaitCSV(u.ns, o.csv(), func(r protocol.CSVReport) bool {
		if len(r.NotReady) != 1 || r.NotReady[0].Reason != reason {
			return false
		}
		for _, w := range words {
			if !strings.Contains(r.NotReady[0].Message, w) || !strings.Contains(r.Message, w) {
				return false
			}
		}
		return true
	})
	name := o.name + "-controller"
	if r.NotReady[0].Deployment != name {
		u.t.Errorf("the Deployment is called %q", r.NotReady[0].Deployment)
	}
	for _, c := range r.Components {
		if c.Kind == "Deployment" && c.Message != r.NotReady[0].Message {
			u.t.Errorf("of the Deployment among the objects is told %q, want %q", c.Message, r.NotReady[0].Message)
		}
	}
	return r.NotReady[0]
}

// ready waits until nothing is told any more.
func (u *unreadied) ready(o operator) {
	u.t.Helper()
	r := u.awaitCSV(u.ns, o.csv(), reached("Succeeded"))
	if len(r.NotReady) != 0 {
		u.t.Errorf("it is Succeeded, and %+v is told", r.NotReady)
	}
}

func testPodQuota(u *unreadied) {
	u.t.Helper()
	free := u.allowNoPods(u.t, u.ns)
	o := operator{name: u.ns, version: "1.0.0", group: "quota.sea.test", webhook: u.ns + "-controller"}
	p := u.wants(o)
	n := u.told(o, "QuotaExceeded", "exceeded quota: no-pods")
	u.awaitPlan(u.ns, p.ID, func(r protocol.PlanReport) bool {
		// the webhook waits for the Deployment, and its plan tells why
		return r.Phase == protocol.PlanBlocked && strings.Contains(r.Message, "exceeded quota: no-pods")
	})
	if strings.Contains(n.Message, ", used:") || strings.Contains(n.Message, o.name+"-controller-") {
		u.t.Errorf("counters or names of pods are told: %q", n.Message)
	}
	free()
	u.ready(o)
}

// allowNoPods has a quota of a namespace in force, called no-pods; what it returns takes it away.
func (b *bed) allowNoPods(t *testing.T, ns string) (free func()) {
	t.Helper()
	quotas := b.kube.CoreV1().ResourceQuotas(ns)
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	must(t, err)
	await(t, "the quota in force", func(ctx context.Context) error {
		q, err := quotas.Get(ctx, "no-pods", metav1.GetOptions{})
		if err == nil && len(q.Status.Hard) == 0 {
			err = errors.New("nobody has seen it")
		}
		return err
	})
	return func() { must(t, quotas.Delete(t.Context(), "no-pods", metav1.DeleteOptions{})) }
}

func testPodSecurity(u *unreadied) {
	u.t.Helper()
	label := func(value string) {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":%s}}}`, value)
		_, err := u.kube.CoreV1().Namespaces().Patch(u.t.Context(), u.ns, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		must(u.t, err)
	}
	label(`"restricted"`)
	o := operator{name: u.ns, version: "1.0.0"}
	u.wants(o)
	u.told(o, "PodSecurityViolated", `violates PodSecurity "restricted:latest"`, "allowPrivilegeEscalation")
	label("null")
	u.ready(o)
}

func testUnschedulable(u *unreadied) {
	u.t.Helper()
	o := operator{name: u.ns, version: "1.0.0", berth: "sea.test/nowhere"}
	u.wants(o)
	u.told(o, "Unschedulable", "no node takes its Pods: node(s) didn't match Pod's node affinity/selector")
}

// shows writes into the status of the operator's Pod what a kubelet would: no node is to take it, so that kwok leaves
// it alone.
func (u *unreadied) shows(status string) {
	u.t.Helper()
	patch := []byte(
		`{"status":{"conditions":[{"type":"PodScheduled","status":"True","reason":null,"message":null},{"type":"Ready","status":"False"}],"containerStatuses":[` + status + `]}}`)
	await(u.t, "a Pod", func(ctx context.Context) error {
		pods, err := u.kube.CoreV1().Pods(u.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return errors.New("there is none")
		}
		for _, p := range pods.Items {
			if len(p.Status.Conditions) == 0 {
				return errors.New("the scheduler has not seen it")
			}
			if _, err = u.kube.CoreV1().Pods(u.ns).Patch(ctx, p.Name, types.StrategicMergePatchType, patch,
				metav1.PatchOptions{}, "status"); err != nil {
				return err
			}
		}
		return nil
	})
}

func testImage(u *unreadied) {
	u.t.Helper()
	o := operator{name: u.ns, version: "1.0.0", berth: "sea.test/nowhere"}
	u.wants(o)
	u.shows(
		`{"name":"manager","ready":false,"restartCount":0,"image":"x","imageID":"","state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image \"registry.example.com/op:1.0.0\": ErrImagePull: rpc error: code = NotFound desc = manifest unknown"}}}`)
	n := u.told(o, "ImagePullFailed", "image registry.example.com/op:1.0.0 cannot be pulled: manifest unknown")
	if n.Webhook != "" || n.Owner != "" {
		u.t.Errorf("a webhook is to blame: %+v", n)
	}
}

func testCrashes(u *unreadied) {
	u.t.Helper()
	o := operator{name: u.ns, version: "1.0.0", berth: "sea.test/nowhere"}
	u.wants(o)
	u.shows(
		`{"name":"manager","ready":false,"restartCount":4,"image":"x","imageID":"x","state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 1m20s"}},
		"lastState":{"terminated":{"exitCode":1,"reason":"Error","message":"starting\nerror: no leader election lease\n"}}}`)
	u.told(o, "CrashLoopBackOff",
		"container manager ends after each start, with exit code 1: error: no leader election lease")
}

// testWebhookOfAnother: a webhook of one operator that does not answer stands in the way of the objects, and of the
// Pods, of all others. It is named, with the operator that it belongs to, before a plan is begun, where one waits and
// where a Deployment waits.
func testWebhookOfAnother(u *unreadied) {
	u.t.Helper()
	text := fmt.Sprintf(buoyManifest, "1.0.0", 5)
	from, to := strings.Index(text, "  - type: ConversionWebhook"), strings.Index(text, "  install:")
	warden := strings.Replace(text[:from]+text[to:],
		"apiGroups: [sea.test], apiVersions: ['*'], operations: [CREATE], resources: [buoys]",
		"apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods, configmaps]", 1)
	u.global("wardens")
	u.want("wardens", u.plan("wardens", "buoy", planned{content: contentOf(u.t, warden, buoyCRD)}))
	u.awaitCSV("wardens", "buoy.v1.0.0", reached("Succeeded"))
	const words = "webhook vbuoy.sea.test belongs to operator buoy.v1.0.0 in namespace wardens " +
		"(ValidatingWebhookConfiguration vbuoy.sea.test-"

	u.namespace(u.t, u.ns)
	held := operator{name: u.ns, version: "1.0.0", configMap: "tables"}
	p := u.plan(u.ns, u.ns, planned{content: held.content(u.t)})
	check := u.check(protocol.PlanQuestion{
		Namespace: u.ns, Plan: p, OperatorGroups: 1,
		OperatorGroup: u.scope(u.ns).OperatorGroup,
	})
	var before []string
	for _, x := range check.Obstacles {
		if x.Class == "transient" && x.Reason == "AdmissionWebhookFailed" && strings.Contains(x.Message, words) {
			before = append(before, strings.SplitN(x.Message, ":", 2)[0])
		}
	}
	if want := []string{"ConfigMap refused/tables", "Pod refused/refused-controller"}; !slices.Equal(before, want) {
		u.t.Errorf("before the first step is told of %q, want %q; all obstacles: %+v", before, want, check.Obstacles)
	}
	u.want(u.ns, p)
	r := u.awaitPlan(u.ns, p.ID, blocked("AdmissionWebhookFailed"))
	if r.Class != "transient" || !strings.Contains(r.Message, words) ||
		!strings.HasPrefix(r.Message, "ConfigMap refused/tables: ") {
		u.t.Errorf("the plan waits, and is told: %+v", r)
	}

	other := &unreadied{scoped: &scoped{bed: u.bed, t: u.t, ns: "podless"}}
	o := operator{name: other.ns, version: "1.0.0"}
	other.wants(o)
	n := other.told(o, "AdmissionWebhookFailed", `failed calling webhook "vbuoy.sea.test"`, words)
	if n.Webhook != "vbuoy.sea.test" || n.Owner != "wardens/buoy.v1.0.0" {
		u.t.Errorf("to blame is %+v", n)
	}
}
