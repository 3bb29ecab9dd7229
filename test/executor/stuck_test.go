package executor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestStuck: what becomes of an install that does not come to its end, on a real API server.
//
//nolint:tparallel // one executor is the subject
func TestStuck(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	for name, test := range map[string]func(*testing.T, *bed, string){
		"st-callers": testCallersLeft, "st-back": testHandedBack, "st-abort": testAborted, "st-gone": testGoneUnderWay,
	} {
		t.Run(name, func(t *testing.T) { test(t, b.on(t), name) }) //nolint:paralleltest // see above
	}
}

// hooks counts the webhook configurations of an operator.
func (b *bed) hooks(t *testing.T, csv string) int {
	t.Helper()
	list, err := b.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(
		t.Context(), metav1.ListOptions{LabelSelector: "olm.owner=" + csv})
	must(t, err)
	return len(list.Items)
}

// testCallersLeft: a webhook that fails closed does not come in before its pods answer. The plan ends without, and it
// comes when they do (R-CSV-42).
func testCallersLeft(t *testing.T, b *bed, ns string) {
	t.Helper()
	berth := "berth.sea.test/" + ns
	o := operator{name: ns, version: "1.0.0", group: ns + ".sea.test", webhook: ns + "-controller", berth: berth}
	p := b.plan(ns, ns, planned{content: o.content(t)})
	b.want(ns, p)
	r := b.awaitPlan(ns, p.ID, phase(protocol.PlanFinished))
	if r.Warnings == 0 || r.Done >= r.Steps || !strings.Contains(string(r.StepLog), "it is written when that does") {
		t.Errorf("%d of %d steps, %d warnings, step log %s", r.Done, r.Steps, r.Warnings, r.StepLog)
	}
	b.awaitCSV(ns, o.csv(), endsIn("Failed", "InstallCheckFailed"))
	if n := b.hooks(t, o.csv()); n > 0 {
		t.Errorf("%d webhook configurations, and nobody answers", n)
	}
	nodes, err := b.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	patch := []byte(`{"metadata": {"labels": {"` + berth + `": ""}}}`)
	_, err = b.kube.CoreV1().Nodes().Patch(t.Context(), nodes.Items[0].Name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	must(t, err)
	b.awaitCSV(ns, o.csv(), reached("Succeeded"))
	if n := b.hooks(t, o.csv()); n != 1 {
		t.Errorf("%d webhook configurations, want 1", n)
	}
}

// removal asks for the removal of an operator and waits for its end.
func (b *bed) remove(t *testing.T, ns, csv string, s protocol.ScopePlans) {
	t.Helper()
	x := b.Removal(ns, protocol.Removal{ID: uuid.NewString(), CSV: csv})
	s.Removals = []protocol.Removal{x}
	b.publish(s)
	b.AwaitRemoval(ns, x.ID, func(m protocol.RemovalReport) bool { return m.Phase == protocol.PlanFinished })
	b.awaitCSV(ns, csv, func(c protocol.CSVReport) bool { return c.Removed })
}

// testHandedBack: an upgrade that failed is uninstalled, and what it had taken over by name is the former version's
// again, which runs on (R-UNI-1, R-CSV-52).
func testHandedBack(t *testing.T, b *bed, ns string) {
	t.Helper()
	one := operator{name: ns, version: "1.0.0", configMap: "settings"}
	p := b.plan(ns, ns, planned{content: one.content(t)})
	b.want(ns, p)
	b.finishes(t, ns, p, one.csv())
	account, err := b.kube.CoreV1().ServiceAccounts(ns).Get(t.Context(), ns, metav1.GetOptions{})
	must(t, err)
	two := operator{name: ns, version: "2.0.0", replaces: one.csv(), configMap: "settings", berth: "berth.sea.test/" +
		ns}
	q := b.plan(ns, ns, planned{content: two.content(t), replaces: one.csv()})
	s := b.scope(ns)
	s.Plans = []protocol.Plan{q}
	s.Installed = []protocol.Installed{
		{CSV: one.csv(), Content: p.Digest, Plan: p.ID},
		{CSV: two.csv(), Content: q.Digest, Plan: q.ID},
	}
	b.publish(s)
	b.awaitPlan(ns, q.ID, phase(protocol.PlanFinished))
	b.awaitCSV(ns, two.csv(), endsIn("Failed", "InstallCheckFailed"))
	s.Plans = nil
	b.remove(t, ns, two.csv(), s)
	b.awaitCSV(ns, one.csv(), endsIn("Succeeded", "InstallSucceeded"))
	after, err := b.kube.CoreV1().ServiceAccounts(ns).Get(t.Context(), ns, metav1.GetOptions{})
	must(t, err)
	if after.UID != account.UID {
		t.Errorf("the account is another one: tokens of what runs are void")
	}
	d := b.controller(t, ns)
	settings, err := b.kube.CoreV1().ConfigMaps(ns).Get(t.Context(), "settings", metav1.GetOptions{})
	must(t, err)
	for what, got := range map[string]string{
		"deployment": d.Labels["olm.owner"],
		"config map": settings.Labels["olm.owner"], "account": after.Labels["olm.owner"],
	} {
		if got != one.csv() {
			t.Errorf("the owner of the %s is %s, want %s", what, got, one.csv())
		}
	}
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/op:1.0.0" ||
		settings.Data["version"] != "1.0.0" {
		t.Errorf("image %s, settings %v", image, settings.Data)
	}
}

// stuck is an operator whose plan has begun and waits for what nobody brings.
func (b *bed) stuck(t *testing.T, ns string) (operator, protocol.Plan, protocol.ScopePlans) {
	t.Helper()
	o := operator{name: ns, version: "1.0.0", requires: "gauges." + ns + ".sea.test"}
	p := b.plan(ns, ns, planned{content: o.content(t)})
	s := b.scope(ns)
	s.Plans, s.Installed = []protocol.Plan{p}, []protocol.Installed{{CSV: o.csv(), Content: p.Digest, Plan: p.ID}}
	b.publish(s)
	b.awaitPlan(ns, p.ID, blocked("RequirementsNotMet"))
	return o, p, s
}

// testAborted: the removal of its operator ends by name a plan that was begun and cannot end (DESIGN D6).
func testAborted(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, p, s := b.stuck(t, ns)
	b.remove(t, ns, o.csv(), s)
	r := b.awaitPlan(ns, p.ID, phase(protocol.PlanFailed))
	if r.Reason != "Aborted" || !strings.Contains(r.Message, o.csv()) {
		t.Errorf("the plan failed for %s (%s)", r.Reason, r.Message)
	}
	await(t, "the account to go", func(ctx context.Context) error {
		_, err := b.kube.CoreV1().ServiceAccounts(ns).Get(ctx, ns, metav1.GetOptions{})
		return wantNotFound(err)
	})
}

// testGoneUnderWay: a plan whose InstalledOperator somebody deletes fails, so that another one can be made (DESIGN D6).
func testGoneUnderWay(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, p, _ := b.stuck(t, ns)
	must(t, b.dynamic(t).Resource(installedOperators()).Namespace(ns).Delete(
		t.Context(), o.csv(), metav1.DeleteOptions{}))
	r := b.awaitPlan(ns, p.ID, phase(protocol.PlanFailed))
	if want := fmt.Sprintf("ClusterServiceVersion %s was removed while its plan ran",
		o.csv()); r.Reason != "BaseChanged" || r.Message != want {
		t.Errorf("the plan failed for %s (%s)", r.Reason, r.Message)
	}
}
