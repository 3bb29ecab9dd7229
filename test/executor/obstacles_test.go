package executor_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// installedOperators is the resource of InstalledOperators.
func installedOperators() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "chandler-fleet.io", Version: "v1", Resource: "installedoperators"}
}

// TestObstacles: what stands in a plan's way is named, and the plan goes on by itself when it is gone.
// The cases share a cluster and an executor, each in a namespace of its own.
//
//nolint:tparallel // one executor is the subject; what it is busy with at a time is to be known
func TestObstacles(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	cfg := b.config("one")
	cfg.Hook = b.trap.point
	b.start(cfg)
	for name, test := range map[string]func(*testing.T, *bed, string){
		"groups": testGroups, "grant": testGrant, "digest": testDigest, "content": testContent,
		"requirement": testRequirement, "kubernetes": testKubernetes, "foreign": testForeign, "record": testRecord,
		"config": testConfig, "base": testBase, "stop": testStop, "slip": testSlip,
		"lost-deployment": testLostDeployment, "deleted": testDeleted, "edited": testEdited, "streams": testStreams,
		"unread": testUnread, "superseded": testSuperseded, "panic": testPanic, "panic-begun": testPanicBegun,
	} {
		t.Run(name, func(t *testing.T) { test(t, b.on(t), name) })
	}
	// Last, since it takes the executor's rights away for a while.
	t.Run("forbidden", func(t *testing.T) { testForbidden(t, b.on(t), "forbidden") })
}

// simple is an operator of its own for a namespace.
func simple(t *testing.T, ns string) (operator, planned) {
	t.Helper()
	o := operator{name: ns, version: "1.0.0", group: ns + ".sea.test"}
	return o, planned{content: o.content(t)}
}

func (b *bed) finishes(t *testing.T, ns string, p protocol.Plan, csv string) protocol.CSVReport {
	t.Helper()
	b.awaitPlan(ns, p.ID, phase(protocol.PlanFinished))
	return b.awaitCSV(ns, csv, reached("Succeeded"))
}

// testGroups: R-IP-42, R-OG-11.
func testGroups(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	s := b.scope(ns)
	s.Plans, s.OperatorGroups = []protocol.Plan{p}, 0
	b.publish(s)
	if r := b.awaitPlan(ns, p.ID, blocked("NoOperatorGroup")); r.Begun {
		t.Error("a step was taken without an operator group")
	}
	s.OperatorGroups = 2
	b.publish(s)
	b.awaitPlan(ns, p.ID, blocked("TooManyOperatorGroups"))
	s.OperatorGroups = 1
	b.publish(s)
	b.finishes(t, ns, p, o.csv())
	s.Plans, s.OperatorGroups = nil, 2
	b.publish(s)
	b.awaitCSV(ns, o.csv(), reached("Failed"))
	s.OperatorGroups = 1
	b.publish(s)
	b.awaitCSV(ns, o.csv(), reached("Succeeded"))
}

// testGrant: DESIGN D6.
func testGrant(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	good := p.Grant
	_, stranger, err := ed25519.GenerateKey(nil)
	must(t, err)
	expired := good
	expired.Expires = time.Now().Add(-time.Minute)
	other := good
	other.Namespace = "another"
	for _, c := range []struct {
		grant  protocol.Grant
		key    ed25519.PrivateKey
		reason string
	}{{good, stranger, "GrantInvalid"}, {other, b.key, "GrantInvalid"}, {expired, b.key, "GrantExpired"}} {
		p.Grant, err = c.grant.Sign(c.key)
		must(t, err)
		b.want(ns, p)
		b.awaitPlan(ns, p.ID, blocked(c.reason))
	}
	p.Grant = good
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
}

// testDigest: what was approved is what runs, or nothing.
func testDigest(t *testing.T, b *bed, ns string) {
	t.Helper()
	_, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	changed := strings.Replace(string(p.Document), `"kind":"Deployment"`, `"kind":"StatefulSet"`, 1)
	p.Document = json.RawMessage(changed)
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, func(r protocol.PlanReport) bool {
		return r.Phase == protocol.PlanFailed && r.Reason == "DigestMismatch" && !r.Begun
	})
	// The document is whole, but not what the bundle gives: a resolver of another mind.
	q := b.plan(ns, ns, content)
	q.Document = json.RawMessage(changed)
	d, err := digest.JSON("chandler.plan.v1", q.Document)
	must(t, err)
	q.Digest = string(d)
	q.Grant.Digest = q.Digest
	q.Grant, err = q.Grant.Sign(b.key)
	must(t, err)
	b.want(ns, q)
	if r := b.awaitPlan(ns, q.ID, blocked("RenderingDiffers")); r.Begun || r.Done != 0 {
		t.Errorf("got %+v, want RenderingDiffers before any step", r)
	}
}

// testContent: content that is not there yet is waited for.
func testContent(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	_, d, err := content.content.Canonical()
	must(t, err)
	stream, err := b.hub.Stream(t.Context(), protocol.StreamContent)
	must(t, err)
	m, err := stream.GetLastMsgForSubject(t.Context(), protocol.ContentSubject("default", d, 0))
	must(t, err)
	must(t, stream.DeleteMsg(t.Context(), m.Sequence))
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, blocked("ContentUnavailable"))
	b.store(content.content)
	b.finishes(t, ns, p, o.csv())
}

// testRequirement: R-CSV-20: no Deployment before the requirements are met; the plan goes on when another
// operator brings them.
func testRequirement(t *testing.T, b *bed, ns string) {
	t.Helper()
	needy := operator{name: ns, version: "1.0.0", requires: "gauges.provider.sea.test"}
	p := b.plan(ns, ns, planned{content: needy.content(t)})
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, blocked("RequirementsNotMet"))
	list, err := b.kube.AppsV1().Deployments(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 0 {
		t.Error("a Deployment runs before the requirements are met")
	}
	provider := operator{name: "provider", version: "1.0.0", group: "provider.sea.test"}
	q := b.plan("provider", "provider", planned{content: provider.content(t)})
	b.want("provider", q)
	b.finishes(t, "provider", q, provider.csv())
	c := b.finishes(t, ns, p, needy.csv())
	if got := strings.Join(history(c)[:3],
		" "); got != "Pending(RequirementsUnknown) Pending(RequirementsNotMet) InstallReady(AllRequirementsMet)" {
		t.Errorf("history begins with %s", got)
	}
}

// testKubernetes: R-CSV §6.4, minKubeVersion.
func testKubernetes(t *testing.T, b *bed, ns string) {
	t.Helper()
	o := operator{name: ns, version: "1.0.0", minKube: "1.99.0"}
	p := b.plan(ns, ns, planned{content: o.content(t)})
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, blocked("RequirementsNotMet"))
	b.want(ns)
}

// testForeign: somebody else's object is not taken over.
func testForeign(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	b.namespace(t, ns)
	foreign := foreignDeployment(ns, ns+"-controller")
	_, err := b.kube.AppsV1().Deployments(ns).Create(t.Context(), foreign,
		metav1.CreateOptions{FieldManager: "somebody"})
	must(t, err)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	r := b.awaitPlan(ns, p.ID, blocked("FieldManagerConflict"))
	if r.Class != "conflict" || !strings.Contains(r.Message, "somebody") {
		t.Errorf("class %s, message %q: want conflict, and the other manager named", r.Class, r.Message)
	}
	must(t, b.kube.AppsV1().Deployments(ns).Delete(t.Context(), foreign.Name, metav1.DeleteOptions{}))
	b.finishes(t, ns, p, o.csv())
}

// testRecord: a record that has gone back never drags the cluster back (DESIGN D1).
func testRecord(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	two := operator{name: ns, version: "2.0.0", replaces: o.csv(), group: ns + ".sea.test"}
	q := b.plan(ns, ns, planned{content: two.content(t), replaces: o.csv()})
	now := b.scope(ns)
	old := now
	old.Plans, old.Position = []protocol.Plan{q}, events.Position{Epoch: 1, N: 1}
	b.publishAt(old)
	r := b.awaitPlanUnlisted(t, ns, now.Position)
	if r.Seen != now.Position {
		t.Errorf("seen is %s, want %s", r.Seen, now.Position)
	}
	// A person has accepted the loss: the record's epoch is raised, and its word holds again.
	old.Position = events.Position{Epoch: 2, N: 2}
	b.publishAt(old)
	b.awaitPlan(ns, q.ID, phase(protocol.PlanFinished))
	b.awaitCSV(ns, two.csv(), reached("Succeeded"))
}

// awaitPlanUnlisted waits for a report after two more looks at the stream, and checks that nothing was begun.
func (b *bed) awaitPlanUnlisted(t *testing.T, ns string, seen events.Position) protocol.ScopeReport {
	t.Helper()
	var first time.Time
	var found protocol.ScopeReport
	await(t, "reports after the record went back", func(ctx context.Context) error {
		r, ok, err := b.report(ctx, ns)
		if err != nil || !ok {
			return fmt.Errorf("no report: %w", err)
		}
		beat, ok, err := b.clusterReport(ctx) // which comes whatever happens
		if err != nil || !ok {
			return fmt.Errorf("no report of the cluster: %w", err)
		}
		if first.IsZero() {
			first = beat.Reported
		}
		found = r
		if beat.Reported.Sub(first) < 3*time.Second {
			return errors.New("too soon to tell")
		}
		return nil
	})
	for _, p := range found.Plans {
		if p.Begun && p.Phase != protocol.PlanFinished {
			t.Errorf("plan %s was begun on a record older than %s", p.ID, seen)
		}
	}
	return found
}

// testConfig: R-SUB-14 reaches the Deployment, and a changed config rolls it out again.
func testConfig(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	content.config = json.RawMessage(`{"env":[{"name":"LEVEL","value":"debug"}]}`)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	content.config = json.RawMessage(`{"env":[{"name":"LEVEL","value":"error"}]}`)
	q := b.plan(ns, ns, content)
	b.want(ns, q)
	b.awaitPlan(ns, q.ID, phase(protocol.PlanFinished))
	c := b.awaitCSV(ns, o.csv(), func(r protocol.CSVReport) bool {
		return len(r.History) >= 7 &&
			reached("Succeeded")(r)
	})
	want := "Succeeded(InstallSucceeded) InstallReady(ComponentUnhealthy) Installing(InstallSucceeded) " +
		"Succeeded(InstallSucceeded)"
	if got := strings.Join(history(c)[3:], " "); got != want {
		t.Errorf("history goes on with %s, want %s", got, want)
	}
	d, err := b.kube.AppsV1().Deployments(ns).Get(t.Context(), ns+"-controller", metav1.GetOptions{})
	must(t, err)
	env := map[string]string{}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	if env["LEVEL"] != "error" || env["OPERATOR_CONDITION_NAME"] != o.csv() {
		t.Errorf("environment is %v", env)
	}
}

// testBase: DESIGN D6: a plan is void when what it stands on changed before it was begun, and says so.
func testBase(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	s := b.scope(ns)
	own := s.OperatorGroup.Spec
	s.Plans, s.OperatorGroup.Spec = []protocol.Plan{p}, events.OperatorGroupSpec{}
	b.publish(s)
	if r := b.awaitPlan(ns, p.ID, blocked("BaseChanged")); r.Begun || !strings.Contains(r.Message, "operator group") {
		t.Errorf("begun %v, message %q", r.Begun, r.Message)
	}
	two := operator{name: ns, version: "2.0.0", replaces: o.csv(), group: ns + ".sea.test"}
	s.Plans, s.OperatorGroup.Spec = nil, own
	b.publish(s)
	q := b.plan(ns, ns, planned{content: two.content(t), replaces: o.csv()})
	b.want(ns, q)
	if r := b.awaitPlan(ns, q.ID, blocked("BaseChanged")); r.Begun || !strings.Contains(r.Message, o.csv()) {
		t.Errorf("begun %v, message %q", r.Begun, r.Message)
	}
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
}

// testSlip: published bundles hold fields that Kubernetes does not know; it drops them, and so do we.
func testSlip(t *testing.T, b *bed, ns string) {
	t.Helper()
	o := operator{name: ns, version: "1.0.0", slip: true}
	p := b.plan(ns, ns, planned{content: o.content(t)})
	b.want(ns, p)
	// What was left out is told (R-IP-25).
	if r := b.awaitPlan(ns, p.ID, phase(protocol.PlanFinished)); r.Warnings == 0 ||
		!strings.Contains(string(r.StepLog), "restartPolcy") {
		t.Errorf("%d warnings, step log %s", r.Warnings, r.StepLog)
	}
	b.finishes(t, ns, p, o.csv())
	two := operator{name: ns, version: "2.0.0", replaces: o.csv(), slip: true}
	q := b.plan(ns, ns, planned{content: two.content(t), replaces: o.csv()})
	b.want(ns, q)
	b.finishes(t, ns, q, two.csv())
}

// testStop: the stop switch is honoured at the next step, and a stopped plan goes on where it was.
func testStop(t *testing.T, b *bed, ns string) {
	t.Helper()
	needy := operator{name: ns, version: "1.0.0", requires: "gauges.stop-provider.sea.test"}
	p := b.plan(ns, ns, planned{content: needy.content(t)})
	b.want(ns, p)
	begun := b.awaitPlan(ns, p.ID, blocked("RequirementsNotMet"))
	s := b.scope(ns)
	s.Stopped = true
	b.publish(s)
	if r := b.awaitPlan(ns, p.ID, blocked("EffectsStopped")); r.Class != "stopped" || !r.Begun || r.Done != begun.Done {
		t.Errorf("stopped: %+v", r)
	}
	provider := operator{name: "stop-provider", version: "1.0.0", group: "stop-provider.sea.test"}
	q := b.plan("stop-provider", "stop-provider", planned{content: provider.content(t)})
	b.want("stop-provider", q)
	b.finishes(t, "stop-provider", q, provider.csv())
	if r := b.awaitPlan(ns, p.ID, blocked("EffectsStopped")); r.Done != begun.Done {
		t.Errorf("%d steps are done, %d were when effects were stopped", r.Done, begun.Done)
	}
	s.Stopped = false
	b.publish(s)
	b.finishes(t, ns, p, needy.csv())
}

// testLostDeployment: Succeeded → InstallReady (ComponentUnhealthy) → Succeeded (R-CSV §6.3).
func testLostDeployment(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	b.want(ns)
	must(t, b.kube.AppsV1().Deployments(ns).Delete(t.Context(), ns+"-controller", metav1.DeleteOptions{}))
	c := b.awaitCSV(ns, o.csv(), func(r protocol.CSVReport) bool {
		return len(r.History) > 4 &&
			reached("Succeeded")(r)
	})
	if got := history(c)[4]; got != "InstallReady(ComponentUnhealthy)" {
		t.Errorf("after the loss: %s", got)
	}
}

// testDeleted: a ClusterServiceVersion that somebody deleted is reported, and nothing of it stays (R-CSV-52).
func testDeleted(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	c := b.finishes(t, ns, p, o.csv())
	b.deleteCSV(t, ns, o.csv(), protocol.Installed{CSV: o.csv(), Content: c.Content, Plan: p.ID})
	await(t, "what it owned", func(ctx context.Context) error {
		roles, err := b.kube.RbacV1().ClusterRoles().List(
			ctx, metav1.ListOptions{LabelSelector: "olm.owner=" + o.csv()})
		if err != nil {
			return err
		}
		deployments, err := b.kube.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if n := len(roles.Items) + len(deployments.Items); n > 0 {
			return fmt.Errorf("%d objects are left", n)
		}
		return nil
	})
}

func (b *bed) deleteCSV(t *testing.T, ns, name string, installed protocol.Installed) {
	t.Helper()
	s := b.scope(ns)
	s.Plans, s.Installed = nil, []protocol.Installed{installed}
	b.publish(s)
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	must(t, dyn.Resource(installedOperators()).Namespace(ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
	r := b.awaitCSV(ns, name, func(r protocol.CSVReport) bool { return r.Removed })
	if r.RemovedReason != "Deleted" {
		t.Errorf("removed because %s, want Deleted", r.RemovedReason)
	}
}

// testEdited: an object that Chandler wrote and a person edited is written over by the next plan.
func testEdited(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	deployments := b.kube.AppsV1().Deployments(ns)
	await(t, "edit", func(ctx context.Context) error {
		d, err := deployments.Get(ctx, ns+"-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Spec.Template.Spec.Containers[0].Image = "registry.example.com/edited:1"
		_, err = deployments.Update(ctx, d, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
		return err
	})
	two := operator{name: ns, version: "2.0.0", replaces: o.csv(), group: ns + ".sea.test"}
	q := b.plan(ns, ns, planned{content: two.content(t), replaces: o.csv()})
	b.want(ns, q)
	b.finishes(t, ns, q, two.csv())
	d, err := deployments.Get(t.Context(), ns+"-controller", metav1.GetOptions{})
	must(t, err)
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/op:2.0.0" {
		t.Errorf("image is %s", image)
	}
}

// testStreams: the loss of all streams costs only time (DESIGN D4).
func testStreams(t *testing.T, b *bed, ns string) {
	t.Helper()
	for _, name := range []string{protocol.StreamPlans, protocol.StreamReports, protocol.StreamContent} {
		must(t, b.js.DeleteStream(t.Context(), protocol.StreamName(bustest.Installation, name)))
	}
	b.ensure(t)
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	await(t, "report of the cluster", func(ctx context.Context) error {
		r, ok, err := b.clusterReport(ctx)
		if err != nil || !ok || r.State != "Connected" {
			return fmt.Errorf("report %+v: %w", r, err)
		}
		return nil
	})
}

// testForbidden: R-IP-40: granting the missing right lets the plan go on.
func testForbidden(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	b.namespace(t, ns)
	bindings := b.kube.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(t.Context(), "chandler-executor", metav1.GetOptions{})
	must(t, err)
	must(t, bindings.Delete(t.Context(), binding.Name, metav1.DeleteOptions{}))
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, blocked("Forbidden"))
	binding.ResourceVersion, binding.UID = "", ""
	_, err = bindings.Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)
	b.finishes(t, ns, p, o.csv())
}

func (b *bed) namespace(tb testing.TB, name string) {
	tb.Helper()
	_, err := b.kube.CoreV1().Namespaces().Create(tb.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(tb, err)
}
