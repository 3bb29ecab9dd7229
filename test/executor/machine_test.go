package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
)

// TestMachine: the rows of R-CSV §6.3 and §6.4 that only a cluster decides: operator conditions (R-COND), rights
// whoever granted them, components that the group's account may not create. The cases share a cluster and an executor.
func TestMachine(t *testing.T) { //nolint:tparallel // one executor is the subject
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	for name, test := range map[string]func(*testing.T, *machine){
		"cond-gate": testUpgradeableGate, "cond-pending": testUpgradeablePending, "rights": testRights,
		"cond-overrides": testOverrides,
		"no-retry":       testNoRetry,
		"back":           testBackFromFailed,
	} {
		t.Run(name,
			func(
				t *testing.T,
			) { //nolint:paralleltest // one executor is the subject; what it is busy with at a time is to be known
				b.namespace(t, name)
				test(t, &machine{scoped: &scoped{bed: b.on(t), t: t, ns: name}, dyn: dyn})
			})
	}
}

// machine is one namespace with an operator.
type machine struct {
	*scoped
	dyn dynamic.Interface
}

var conditionsResource = schema.GroupVersionResource{
	Group: "operators.coreos.com", Version: "v2",
	Resource: "operatorconditions",
}

// say changes what an OperatorCondition's spec says of Upgradeable, as the operator (conditions) or as an administrator
// (overrides).
func (m *machine) say(csvName, field, status string) {
	m.t.Helper()
	client := m.dyn.Resource(conditionsResource).Namespace(m.ns)
	await(m.t, "operator condition", func(ctx context.Context) error {
		o, err := client.Get(ctx, csvName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		entry := map[string]any{
			"type": "Upgradeable", "status": status, "reason": "Reindexing",
			"message": "archive reindex runs", "lastTransitionTime": "2031-02-03T04:05:06Z",
		}
		if err := unstructured.SetNestedSlice(o.Object, []any{entry}, "spec", field); err != nil {
			return err
		}
		_, err = client.Update(ctx, o, metav1.UpdateOptions{})
		return err
	})
}

// testBackFromFailed: an upgrade that failed is rolled back: the version before, which is being replaced by the one
// that failed, is brought back by a plan, and runs; the other one goes (ADR 0019, issue 14, section 2).
func testBackFromFailed(t *testing.T, m *machine) {
	t.Helper()
	one := operator{name: m.ns, version: "1.0.0"}
	p := m.plan(m.ns, m.ns, planned{content: one.content(t)})
	m.want(m.ns, p)
	before := m.finishes(t, m.ns, p, one.csv())

	two := operator{name: m.ns, version: "2.0.0", replaces: one.csv(), berth: "sea.test/nowhere"}
	q := m.plan(m.ns, m.ns, planned{content: two.content(t), replaces: one.csv()})
	s := m.scope(m.ns)
	s.Plans = []protocol.Plan{q}
	s.Installed = []protocol.Installed{{CSV: one.csv(), Content: before.Content, Plan: p.ID}}
	m.publish(s)
	failed := m.awaitCSV(m.ns, two.csv(), reached("Failed"))

	back := m.plan(m.ns, m.ns, planned{
		content: one.content(t), replaces: two.csv(), reason: events.ReasonRollback,
	})
	s.Plans = []protocol.Plan{back}
	s.Installed = append(s.Installed, protocol.Installed{CSV: two.csv(), Content: failed.Content, Plan: q.ID})
	m.publish(s)
	m.awaitPlan(m.ns, back.ID, phase(protocol.PlanFinished))
	m.awaitCSV(m.ns, one.csv(), last("Succeeded", "InstallSucceeded"))
	m.awaitCSV(m.ns, two.csv(), func(r protocol.CSVReport) bool { return r.Removed })
}

// testUpgradeableGate: an operator that does not let itself be upgraded is not: no step is taken (R-COND-3). Its
// condition moves to the status (R-COND-8), is told, and an administrator's override wins (R-COND-6).
func testUpgradeableGate(t *testing.T, m *machine) {
	t.Helper()
	one, c := m.install()
	if c.Condition == nil || !c.Condition.Upgradeable || c.Condition.Reason != "" {
		t.Errorf("an operator that says nothing: %+v, want upgradeable (R-COND-7)", c.Condition)
	}
	m.say(one.csv(), "conditions", "False")
	c = m.awaitCSV(m.ns, one.csv(), func(r protocol.CSVReport) bool {
		return r.Condition != nil &&
			!r.Condition.Upgradeable
	})
	if c.Condition.Reason != "Reindexing" ||
		c.Condition.Message != "the operator is not upgradeable: archive reindex runs" || c.Condition.Overridden {
		t.Errorf("told: %+v", c.Condition)
	}
	await(t, "status of the condition", func(ctx context.Context) error {
		o, err := m.dyn.Resource(conditionsResource).Namespace(m.ns).Get(ctx, one.csv(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		list, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
		if err != nil || len(list) != 1 {
			return fmt.Errorf("status.conditions are %v (%w)", list, err)
		}
		if have, ok := list[0].(map[string]any); !ok || have["status"] != "False" ||
			have["observedGeneration"] != o.GetGeneration() {
			return fmt.Errorf("the condition is %v in generation %d", list[0], o.GetGeneration())
		}
		return nil
	})

	two, p := m.upgrade(one)
	r := m.awaitPlan(m.ns, p.ID, blocked("OperatorConditionNotUpgradeable"))
	if r.Begun || r.Done != 0 || !strings.Contains(r.Message, "archive reindex runs") {
		t.Errorf("got %+v, want a block before the first step that says why", r)
	}
	m.say(one.csv(), "overrides", "True")
	m.finishes(t, m.ns, p, two.csv())
}

// testOverrides: an override that the hub wants is written into the cluster and heeded (R-COND-6), goes when it is not
// wanted any more, is not written over one that somebody has set in the cluster, and does not go to the next version.
func testOverrides(t *testing.T, m *machine) {
	t.Helper()
	one, c := m.install()
	conditions := m.dyn.Resource(conditionsResource).Namespace(m.ns)
	var plans []protocol.Plan
	override := func(status string) {
		t.Helper()
		s := m.scope(m.ns)
		s.Plans = plans
		i := protocol.Installed{CSV: one.csv(), Content: c.Content, Plan: c.Plan}
		if status != "" {
			i.Overrides = &protocol.Overrides{
				Conditions: []events.ConditionOverride{{Type: "Upgradeable", Status: status, Reason: "Tested"}},
				Since:      time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC),
			}
		}
		s.Installed = []protocol.Installed{i}
		m.publish(s)
	}
	told := func(want protocol.OperatorCondition) {
		t.Helper()
		m.awaitCSV(m.ns, one.csv(), func(r protocol.CSVReport) bool {
			return r.Condition != nil && *r.Condition == want
		})
	}
	refuses := protocol.OperatorCondition{
		Reason: "Reindexing", Message: "the operator is not upgradeable: archive reindex runs",
	}
	m.say(one.csv(), "conditions", "False")
	told(refuses)
	override("True")
	told(protocol.OperatorCondition{Upgradeable: true, Reason: "Tested", Message: "set in Chandler", Overridden: true})
	override("")
	told(refuses)
	await(t, "the override to go", func(ctx context.Context) error {
		o, err := conditions.Get(ctx, one.csv(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if list, found, err := unstructured.NestedSlice(o.Object, "spec", "overrides"); err != nil || found {
			return fmt.Errorf("spec.overrides are %v (%w)", list, err)
		}
		return nil
	})

	m.say(one.csv(), "overrides", "False")
	byHand := refuses
	byHand.Overridden = true
	told(byHand)
	override("True")
	m.awaitGroup(t, m.ns, func(g protocol.GroupReport) bool {
		return slices.ContainsFunc(g.Conditions, func(c protocol.GroupCondition) bool {
			return c.Type == protocol.GroupUnattended && strings.Contains(c.Message, one.csv()) &&
				strings.Contains(c.Message, "spec.overrides")
		})
	})
	told(byHand)

	_, err := conditions.Patch(t.Context(), one.csv(), types.JSONPatchType,
		[]byte(`[{"op": "remove", "path": "/spec/overrides"}]`), metav1.PatchOptions{})
	must(t, err)
	two, content := m.operator("2.0.0", one.csv())
	p := m.plan(m.ns, m.ns, content)
	plans = append(plans, p)
	override("True")
	m.finishes(t, m.ns, p, two.csv())
	next := shows(t, conditions, two.csv(), there)
	if list, found, err := unstructured.NestedSlice(next.Object, "spec", "overrides"); err != nil || found {
		t.Errorf("the next version begins with %v (%v)", list, err)
	}
}

// testUpgradeablePending: one that stops to let itself be upgraded once the plan runs keeps its successor in Pending.
func testUpgradeablePending(t *testing.T, m *machine) {
	t.Helper()
	one, _ := m.install()
	two := operator{name: m.ns, version: "2.0.0", replaces: one.csv(), requires: "gauges." + m.ns + ".sea.test"}
	p := m.plan(m.ns, m.ns, planned{content: two.content(t), replaces: one.csv()})
	m.want(m.ns, p)
	waiting := m.awaitCSV(m.ns, two.csv(), endsIn("Pending", "RequirementsNotMet"))
	var rows []csv.Requirement
	must(t, json.Unmarshal(waiting.Requirements, &rows))
	if !slices.ContainsFunc(rows, func(r csv.Requirement) bool {
		return r.Name == two.requires &&
			r.Status == csv.NotPresent
	}) {
		t.Errorf("the CRD that is missing is not among the requirements that are told: %+v", rows)
	}
	m.say(one.csv(), "conditions", "False")
	c := m.awaitCSV(m.ns, two.csv(), endsIn("Pending", "OperatorConditionNotUpgradeable"))
	if got := c.History[len(
		c.History)-1].Message; got != "operator is not upgradeable: the operator is not upgradeable: archive reindex "+
		"runs" {
		t.Errorf("the message is %q", got)
	}
	m.define(m.ns + ".sea.test")
	m.say(one.csv(), "conditions", "True")
	m.finishes(t, m.ns, p, two.csv())
}

// define makes the CRD gauges.<group>.
func (m *machine) define(group string) {
	m.t.Helper()
	o := &unstructured.Unstructured{}
	must(m.t, yaml.Unmarshal([]byte(fmt.Sprintf(crdManifest, group)), &o.Object))
	_, err := m.dyn.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions",
	}).Create(m.t.Context(), o, metav1.CreateOptions{})
	must(m.t, err)
}

func endsIn(phase, reason string) func(protocol.CSVReport) bool {
	return func(r protocol.CSVReport) bool {
		h := r.History
		return len(h) > 0 && h[len(h)-1].Phase == phase && h[len(h)-1].Reason == reason
	}
}

// testRights: a permission that its account lost is a requirement that vanished, told with the rule; one that somebody
// else grants in its stead meets it (R-CSV §6.4). Every object of the operator is told with its state (R-CSV-62).
func testRights(t *testing.T, m *machine) {
	t.Helper()
	one, _ := m.install()
	c := m.awaitCSV(m.ns, one.csv(), func(r protocol.CSVReport) bool {
		return len(r.Components) > 0 &&
			len(unready(r)) == 0
	})
	for _, want := range []string{
		"InstalledOperator", "ServiceAccount", "Role", "RoleBinding", "ClusterRole",
		"ClusterRoleBinding", "Deployment",
	} {
		if !slices.ContainsFunc(c.Components, func(o protocol.Component) bool { return o.Kind == want }) {
			t.Errorf("no %s among the components %+v", want, c.Components)
		}
	}
	s := m.scope(m.ns)
	s.Settings.Drift = events.DriftReport // else it would come back at once
	m.publish(s)
	m.looked(t, s)
	bindings := m.kube.RbacV1().ClusterRoleBindings()
	list, err := bindings.List(t.Context(), metav1.ListOptions{
		LabelSelector: "olm.owner=" + one.csv() + ",olm.permissions.hash",
	})
	must(t, err)
	for _, binding := range list.Items {
		if slices.ContainsFunc(c.Components, func(o protocol.Component) bool {
			return o.Name == binding.Name &&
				o.Kind == "ClusterRoleBinding"
		}) {
			must(t, bindings.Delete(t.Context(), binding.Name, metav1.DeleteOptions{}))
		}
	}
	c = m.awaitCSV(m.ns, one.csv(), endsIn("Pending", "RequirementsNotMet"))
	var rows []csv.Requirement
	must(t, json.Unmarshal(c.Requirements, &rows))
	i := slices.IndexFunc(rows, func(r csv.Requirement) bool { return r.Kind == "ServiceAccount" && r.Name == m.ns })
	if i < 0 || rows[i].Status != csv.PresentNotSatisfied || len(rows[i].Dependents) != 1 ||
		rows[i].Dependents[0].Message != `cluster rule:{"verbs":["get"],"apiGroups":[""],"resources":["nodes"]}` {
		t.Errorf("told: %+v", rows)
	}
	m.bind(m.ns, "elsewhere", []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"nodes"}},
	})
	m.awaitCSV(m.ns, one.csv(), endsIn("Succeeded", "InstallSucceeded"))
}

func unready(r protocol.CSVReport) []protocol.Component {
	return slices.DeleteFunc(slices.Clone(r.Components),
		func(c protocol.Component) bool { return c.Status == "Current" })
}

// bind gives an account of the namespace rules in the whole cluster, under a name.
func (m *machine) bind(account, name string, rules []rbacv1.PolicyRule) {
	m.t.Helper()
	meta := metav1.ObjectMeta{Name: m.ns + "-" + name}
	_, err := m.kube.RbacV1().ClusterRoles().Create(m.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		metav1.CreateOptions{})
	must(m.t, err)
	_, err = m.kube.RbacV1().ClusterRoleBindings().Create(m.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: m.ns}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	must(m.t, err)
}

// testNoRetry: a group's account that loses its right to the Deployments while the plan runs fails the operator for as
// long as it lacks it, and no longer (R-CSV-11).
func testNoRetry(t *testing.T, m *machine) {
	t.Helper()
	m.account("installer")
	revoke := m.grant("installer")
	m.name("installer")
	o := operator{name: m.ns, version: "1.0.0", requires: "gauges." + m.ns + ".sea.test"}
	p := m.plan(m.ns, m.ns, planned{content: o.content(t)})
	m.want(m.ns, p)
	m.awaitPlan(m.ns, p.ID, blocked("RequirementsNotMet")) // only the Deployments are left
	revoke()
	m.define(m.ns + ".sea.test")
	c := m.awaitCSV(m.ns, o.csv(), endsIn("Failed", "InstallComponentFailedNoRetry"))
	if got := c.History[len(c.History)-1].Message; !strings.Contains(got, "deployments.apps") ||
		!strings.Contains(got, m.user("installer")) {
		t.Errorf("the message is %q", got)
	}
	m.bind("installer", "again", []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}},
	})
	c = m.finishes(t, m.ns, p, o.csv())
	if got := history(c); !slices.Contains(got, "Pending(DetectedClusterChange)") {
		t.Errorf("history %q has no Pending(DetectedClusterChange)", got)
	}
}
