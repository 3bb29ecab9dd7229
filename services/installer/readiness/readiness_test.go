package readiness_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/services/installer/readiness"
)

// The statuses are as Kubernetes 1.34 writes them.

const deployment = `
metadata: {name: tide, namespace: coast, uid: d-1, generation: 1}
spec: {replicas: 1, template: {spec: {containers: [{name: manager, image: "registry.sea.test/tide:1.0.0"}]}}}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1, conditions: [
  {type: Available, status: "False", reason: MinimumReplicasUnavailable, message: Deployment does not have minimum availability.},
  {type: Progressing, status: "True", reason: ReplicaSetUpdated, message: ReplicaSet "tide-6c4bd9f7d" is progressing.}]}`

const replicaSets = `
- metadata: {name: tide-5f7c9b8d6, uid: r-1, ownerReferences: [{kind: Deployment, name: tide, uid: d-1}], annotations: {deployment.kubernetes.io/revision: "9"}}
- metadata: {name: tide-6c4bd9f7d, uid: r-2, ownerReferences: [{kind: Deployment, name: tide, uid: d-1}], annotations: {deployment.kubernetes.io/revision: "10"}}
- metadata: {name: ebb-6c4bd9f7d, uid: r-3, ownerReferences: [{kind: Deployment, name: ebb, uid: d-2}], annotations: {deployment.kubernetes.io/revision: "11"}}`

// refused is a Deployment of which the API server refuses the Pods.
func refused(message string) string {
	return fmt.Sprintf(`
metadata: {name: tide, namespace: coast, uid: d-1}
status: {observedGeneration: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: %q}]}`, message)
}

// pod is one of the present ReplicaSet, with what its status says beside being not ready.
func pod(name, status string) string {
	return fmt.Sprintf(`
- metadata: {name: tide-6c4bd9f7d-%s, uid: p-%s, ownerReferences: [{kind: ReplicaSet, name: tide-6c4bd9f7d, uid: r-2}]}
  spec: {initContainers: [{name: setup, image: "registry.sea.test/setup:1"}], containers: [{name: manager, image: "registry.sea.test/tide:1.0.0"}, {name: proxy, image: "10.1.2.3:5000/proxy:2"}]}
  status: {phase: Pending, %s}`, name, name, status)
}

func scheduled(statuses string) string {
	return `conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "False", reason: ContainersNotReady}], ` + statuses
}

func waiting(container, reason, message string) string {
	return fmt.Sprintf(
		`{name: %s, ready: false, restartCount: 0, image: x, state: {waiting: {reason: %s, message: %q}}}`, container,
		reason, message)
}

func warning(pod, reason, message, at string) string {
	return fmt.Sprintf(`
- {type: Warning, reason: %s, message: %q, lastTimestamp: %q, involvedObject: {kind: Pod, name: tide-6c4bd9f7d-%s, uid: p-%s}}`, reason, message, at, pod, pod)
}

type seen struct{ deployment, pods, events string }

func (s seen) parse(t *testing.T) readiness.Observed {
	t.Helper()
	out := readiness.Observed{}
	for _, p := range []struct {
		text string
		into any
	}{{s.deployment, &out.Deployment}, {replicaSets, &out.ReplicaSets}, {s.pods, &out.Pods}, {s.events, &out.Events}} {
		if err := yaml.Unmarshal([]byte(p.text), p.into); err != nil {
			t.Fatalf("%v in %s", err, p.text)
		}
	}
	return out
}

// TestExplain: what keeps a Deployment from being ready is told by reason and text.
func TestExplain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen
		reason, message, webhook string
	}{
		"webhook refuses": {
			seen{deployment: refused(`admission webhook "vpod.gauge.test" denied the request: pods need a tide table`)},
			"AdmissionDenied",
			`its Pods are refused: admission webhook "vpod.gauge.test" denied the request: pods need a tide table`,
			"vpod.gauge.test",
		},
		"webhook does not answer": {
			seen{deployment: refused(
				`Internal error occurred: failed calling webhook "vpod.gauge.test": failed to call webhook: Post "https://gauge-webhook.ops.svc:443/validate?timeout=10s": dial tcp 10.96.7.41:443: connect: connection refused`)},
			"AdmissionWebhookFailed",
			`its Pods are refused: Internal error occurred: failed calling webhook "vpod.gauge.test": failed to call webhook: Post "https://gauge-webhook.ops.svc:443/validate?timeout=10s": dial tcp (address): connect: connection refused`, "vpod.gauge.test",
		},
		"policy refuses": {
			seen{deployment: refused(
				`pods "tide-6c4bd9f7d-x8k2z" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'everywhere' denied request: no latest`)},
			"AdmissionDenied",
			`its Pods are refused: ValidatingAdmissionPolicy 'no-latest' with binding 'everywhere' denied request: no latest`, "",
		},
		"quota": {
			seen{deployment: refused(
				`pods "tide-6c4bd9f7d-x8k2z" is forbidden: exceeded quota: compute, requested: limits.cpu=2,pods=1, used: limits.cpu=1,pods=3, limited: limits.cpu=2,pods=3`)},
			"QuotaExceeded",
			`its Pods are refused: exceeded quota: compute, requested: limits.cpu=2,pods=1, limited: limits.cpu=2,pods=3`, "",
		},
		"quota that wants limits": {
			seen{deployment: refused(
				`pods "tide-6c4bd9f7d-x8k2z" is forbidden: failed quota: compute: must specify limits.cpu for: manager`)},
			"QuotaExceeded", `its Pods are refused: failed quota: compute: must specify limits.cpu for: manager`, "",
		},
		"limit range": {
			seen{deployment: refused(
				`pods "tide-6c4bd9f7d-x8k2z" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi`)},
			"LimitRangeViolated", `its Pods are refused: maximum memory usage per Container is 1Gi, but limit is 2Gi`,
			"",
		},
		"pod security": {
			seen{deployment: refused(
				`pods "tide-6c4bd9f7d-x8k2z" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "manager" must set securityContext.allowPrivilegeEscalation=false)`)},
			"PodSecurityViolated",
			`its Pods are refused: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "manager" must set securityContext.allowPrivilegeEscalation=false)`, "",
		},
		"account": {
			seen{deployment: refused(
				`pods "tide-6c4bd9f7d-" is forbidden: error looking up service account coast/tide: serviceaccount "tide" not found`)},
			"ServiceAccountNotFound",
			`its Pods are refused: error looking up service account coast/tide: serviceaccount "tide" not found`, "",
		},
		"unschedulable": {
			seen{deployment, pod("x8k2z",
				`conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint {sea.test/dry: }. preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."}]`), ""},
			"Unschedulable", "no node takes its Pods: Insufficient cpu, node(s) had untolerated taint {sea.test/dry: }",
			"",
		},
		"two Pods kept apart": {
			seen{deployment, pod("x8k2z",
				`conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."}]`), ""},
			"Unschedulable", "no node takes its Pods: node(s) didn't match pod anti-affinity rules", "",
		},
		"image that is not there": {
			seen{deployment, pod("x8k2z", scheduled("containerStatuses: ["+
				waiting("manager", "ErrImagePull",
					`rpc error: code = NotFound desc = failed to pull and unpack image "registry.sea.test/tide:1.0.0": not found`)+"]")), ""},
			"ImagePullFailed",
			`container manager: image registry.sea.test/tide:1.0.0 cannot be pulled: failed to pull and unpack image "registry.sea.test/tide:1.0.0": not found`, "",
		},
		"the same, between two tries": {
			seen{deployment, pod("x8k2z", scheduled("containerStatuses: ["+
				waiting("manager", "ImagePullBackOff",
					`Back-off pulling image "registry.sea.test/tide:1.0.0": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "registry.sea.test/tide:1.0.0": not found`)+"]")), ""},
			"ImagePullFailed",
			`container manager: image registry.sea.test/tide:1.0.0 cannot be pulled: failed to pull and unpack image "registry.sea.test/tide:1.0.0": not found`, "",
		},
		"the same, of an older Kubernetes": {
			seen{
				deployment, pod("x8k2z", scheduled("containerStatuses: ["+
					waiting("manager", "ImagePullBackOff", `Back-off pulling image "registry.sea.test/tide:1.0.0"`)+
					"]")),
				warning("x8k2z", "Failed",
					`Failed to pull image "registry.sea.test/tide:1.0.0": rpc error: code = NotFound desc = failed to pull and unpack image "registry.sea.test/tide:1.0.0": not found`, "2031-02-03T04:05:06Z") +
					warning("x8k2z", "Failed", "Error: ImagePullBackOff", "2031-02-03T04:05:09Z"),
			},
			"ImagePullFailed",
			`container manager: image registry.sea.test/tide:1.0.0 cannot be pulled: failed to pull and unpack image "registry.sea.test/tide:1.0.0": not found`, "",
		},
		"registry by address": {
			seen{
				strings.Replace(deployment, "registry.sea.test/tide:1.0.0", "10.1.2.3:5000/proxy:2", 1),
				pod("x8k2z", scheduled("containerStatuses: ["+
					waiting("proxy", "ErrImagePull",
						`failed to resolve reference "10.1.2.3:5000/proxy:2": dial tcp: lookup on 10.96.0.10:53: no such host`)+"]")), "",
			},
			"ImagePullFailed",
			`container proxy: image 10.1.2.3:5000/proxy:2 cannot be pulled: failed to resolve reference "10.1.2.3:5000/proxy:2": dial tcp: lookup on (address): no such host`, "",
		},
		"secret that is missing": {
			seen{deployment, pod("x8k2z", scheduled("containerStatuses: ["+
				waiting("manager", "CreateContainerConfigError", `secret "tide-token" not found`)+"]")), ""},
			"CreateContainerConfigError", `container manager cannot be made: secret "tide-token" not found`, "",
		},
		"crash loop": {
			seen{deployment, pod("x8k2z", scheduled(
				`containerStatuses: [{name: manager, ready: false, restartCount: 7, state: {waiting: {reason: CrashLoopBackOff, message: "back-off 2m40s restarting failed container=manager pod=tide-6c4bd9f7d-x8k2z_coast(0f1c)"}},
				lastState: {terminated: {exitCode: 1, reason: Error, message: "2031-02-03T04:05:06.789Z INFO starting\n2031-02-03T04:05:07.001Z ERROR no route to 10.96.0.1:443 from tide-6c4bd9f7d-x8k2z\nmain.run\n\t/src/main.go:12\n"}}}]`)), ""},
			"CrashLoopBackOff",
			"container manager ends after each start, with exit code 1: ERROR no route to (address) from tide", "",
		},
		"it was started again a moment ago": {
			seen{deployment, pod("x8k2z", scheduled(
				`containerStatuses: [{name: manager, ready: false, restartCount: 8, state: {running: {startedAt: "2031-02-03T04:05:06Z"}},
				lastState: {terminated: {exitCode: 2, reason: Error, message: "panic: assignment to entry in nil map\n\ngoroutine 1 [running]:\nmain.main()\n"}}}]`)), ""},
			"CrashLoopBackOff",
			"container manager ends after each start, with exit code 2: panic: assignment to entry in nil map", "",
		},
		"out of memory": {
			seen{deployment, pod("x8k2z", scheduled(
				`containerStatuses: [{name: manager, ready: false, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]`)), ""},
			"OOMKilled", "container manager was ended since it used more memory than its limit", "",
		},
		"init container": {
			seen{deployment, pod("x8k2z", scheduled(
				`initContainerStatuses: [{name: setup, ready: false, restartCount: 3, state: {terminated: {exitCode: 3, reason: Error}}}], containerStatuses: [`+waiting("manager", "PodInitializing", "")+"]")), ""},
			"CrashLoopBackOff", "container setup ends after each start, with exit code 3", "",
		},
		"volume": {
			seen{
				deployment, pod("x8k2z", scheduled("containerStatuses: ["+waiting("manager", "ContainerCreating", "")+
					"]")),
				warning("x8k2z", "FailedMount",
					`MountVolume.SetUp failed for volume "cert" : secret "tide-cert" not found`,
					"2031-02-03T04:05:06Z"),
			},
			"FailedMount", `MountVolume.SetUp failed for volume "cert" : secret "tide-cert" not found`, "",
		},
		"readiness probe": {
			seen{
				deployment, pod("x8k2z", scheduled(
					`containerStatuses: [{name: manager, ready: false, restartCount: 0, state: {running: {}}}, {name: proxy, ready: true, state: {running: {}}}]`)),
				warning("x8k2z", "Unhealthy",
					`Readiness probe failed: Get "http://10.244.0.17:8081/readyz": dial tcp 10.244.0.17:8081: connect: connection refused`, "2031-02-03T04:05:06Z"),
			},
			"ContainersNotReady",
			`container manager runs and is not ready: Readiness probe failed: Get "http://(address)/readyz": dial tcp (address): connect: connection refused`, "",
		},
		"not ready yet": {
			seen{deployment, pod("x8k2z", scheduled(
				`containerStatuses: [{name: manager, ready: false, restartCount: 0, state: {running: {}}}]`)), ""},
			"ContainersNotReady", "container manager runs and is not ready", "",
		},
		"of two Pods the one that says why": {
			seen{deployment, pod("aaaaa", scheduled(
				`containerStatuses: [{name: manager, ready: false, state: {running: {}}}]`)) +
				pod("bbbbb", scheduled("containerStatuses: ["+
					waiting("manager", "CreateContainerConfigError", `configmap "tables" not found`)+"]")), ""},
			"CreateContainerConfigError", `container manager cannot be made: configmap "tables" not found`, "",
		},
		"evicted": {
			seen{deployment, pod("x8k2z",
				`phase: Failed, reason: Evicted, message: "The node was low on resource: memory."`), ""},
			"PodFailed", "its Pod failed: Evicted: The node was low on resource: memory.", "",
		},
		"paused": {
			seen{
				strings.Replace(deployment, "replicas: 1, template", "paused: true, replicas: 1, template", 1), "",
				"",
			},
			"DeploymentPaused", "it is paused (spec.paused)", "",
		},
		"nothing to be seen": {seen{deployment, "", ""}, "", "", ""},
		"an old ReplicaSet does not count": {
			seen{deployment, strings.ReplaceAll(
				pod("x8k2z", scheduled("containerStatuses: ["+waiting("manager", "CreateContainerConfigError", "x")+
					"]")), "uid: r-2", "uid: r-1"), ""}, "", "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.pods = strings.Replace(c.pods, "status: {phase: Pending, phase: Failed", "status: {phase: Failed", 1)
			got, ok := readiness.Explain(c.parse(t))
			want := readiness.Cause{Reason: c.reason, Message: c.message, Webhook: c.webhook}
			if got != want || ok != (c.reason != "") {
				t.Errorf("got  %+v, %v\nwant %+v", got, ok, want)
			}
		})
	}
}

// TestSteady: whichever Pod shows a trouble, and however often it was tried, the text is the same.
func TestSteady(t *testing.T) {
	t.Parallel()
	crash := `containerStatuses: [{name: manager, ready: false, restartCount: %d, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, message: %q}}}]`
	var texts []string
	for i, word := range []string{
		"E0203 04:05:06.789012       1 main.go:12] failed to get lease 0f0e0d0c-1111-2222-3333-444455556666 at " +
			"0xc0001234",
		"E0203 04:11:16.000001       7 main.go:12] failed to get lease aaaaaaaa-1111-2222-3333-444455556666 at " +
			"0xc0009999",
	} {
		s := seen{deployment, pod([]string{"x8k2z", "q4w2m"}[i], scheduled(fmt.Sprintf(crash, i+3, word))), ""}
		c, ok := readiness.Explain(s.parse(t))
		if !ok || !strings.Contains(c.Message, "failed to get lease") {
			t.Errorf("got %+v", c)
		}
		texts = append(texts, c.Message)
	}
	if texts[0] != texts[1] {
		t.Errorf("the text changed: %q", texts)
	}
	long := seen{deployment, pod("x8k2z", scheduled("containerStatuses: ["+
		waiting("manager", "CreateContainerError", strings.Repeat("ä", 5000))+"]")), ""}
	if c, _ := readiness.Explain(long.parse(t)); len(c.Message) > 500 || !strings.HasSuffix(c.Message, "ä…") {
		t.Errorf("a text of %d bytes: %q", len(c.Message), c.Message)
	}
}

// TestUnexplained: Events are asked for only where the Pods do not say why.
func TestUnexplained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pods string
		want []string
	}{
		"none": {"", nil},
		"a Pod that says": {pod("a", scheduled("containerStatuses: ["+
			waiting("manager", "CreateContainerConfigError", "x")+"]")), nil},
		"one that does not": {pod("a", scheduled("containerStatuses: ["+waiting("manager", "ContainerCreating", "")+
			"]")), []string{"p-a"}},
		"one without words": {pod("a", scheduled("containerStatuses: ["+
			waiting("manager", "ImagePullBackOff", `Back-off pulling image "x"`)+"]")), []string{"p-a"}},
	} {
		if got := readiness.Unexplained(seen{deployment, c.pods, ""}.parse(t)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestRefused: what the Deployment itself says needs nothing else to be read.
func TestRefused(t *testing.T) {
	t.Parallel()
	var d appsv1.Deployment
	if err := yaml.Unmarshal([]byte(deployment), &d); err != nil {
		t.Fatal(err)
	}
	if c, ok := readiness.AdmissionRefusal(d); ok {
		t.Errorf("got %+v", c)
	}
	d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
		Type:   appsv1.DeploymentReplicaFailure,
		Status: corev1.ConditionTrue, Message: `admission webhook "w" denied the request: no`,
	})
	if c, ok := readiness.AdmissionRefusal(d); !ok || c.Webhook != "w" {
		t.Errorf("got %+v, %v", c, ok)
	}
}

// TestWebhook: the API server's words name the webhook.
func TestWebhook(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]struct {
		name   string
		failed bool
	}{
		`admission webhook "v.sea.test" denied the request: no`:                                           {"v.sea.test", false},
		`admission webhook "v.sea.test" denied the request without explanation`:                           {"v.sea.test", false},
		`Internal error occurred: failed calling webhook "v.sea.test": failed to call webhook: EOF`:       {"v.sea.test", true},
		`Internal error occurred: conversion webhook for sea.test/v1, Kind=Tide failed: Post "https://x"`: {"", false},
	} {
		if name, failed := readiness.Webhook(message); name != want.name || failed != want.failed {
			t.Errorf("%s: %q, %v", message, name, failed)
		}
	}
}
