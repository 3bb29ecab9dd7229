package group_test

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/group"
)

func namespaces() []group.Namespace {
	return []group.Namespace{
		{Name: "north", Labels: map[string]string{"sea": "north"}},
		{Name: "baltic", Labels: map[string]string{"sea": "baltic"}},
		{Name: "old", Labels: map[string]string{"sea": "north"}},
		{Name: "ops"},
	}
}

func selector(labels map[string]string, more ...events.LabelRequirement) events.OperatorGroupSpec {
	return events.OperatorGroupSpec{Selector: events.LabelSelector{MatchLabels: labels, MatchExpressions: more}}
}

// TestTargets is the table of R-OG §7.1, with R-OG-3.
func TestTargets(t *testing.T) {
	t.Parallel()
	both := selector(map[string]string{"sea": "north"})
	both.TargetNamespaces = []string{"ops"}
	for name, c := range map[string]struct {
		spec events.OperatorGroupSpec
		want []string
	}{
		"explicit, sorted, each once": {
			events.OperatorGroupSpec{TargetNamespaces: []string{"b", "a", "b"}},
			[]string{"a", "b"},
		},
		"explicit beside an ignored selector": {both, []string{"ops"}},
		"explicit, but not Chandler's own": {events.OperatorGroupSpec{
			TargetNamespaces: []string{"chandler-system", "a"},
		}, []string{"a"}},
		"neither: all":     {events.OperatorGroupSpec{}, []string{""}},
		"selector: labels": {selector(map[string]string{"sea": "north"}), []string{"north", "old"}},
		"selector: expression": {
			selector(nil, events.LabelRequirement{Key: "sea", Operator: "Exists"}),
			[]string{"baltic", "north", "old"},
		},
		"selector: labels and expression": {
			selector(map[string]string{"sea": "north"}, events.LabelRequirement{
				Key: "sea", Operator: "NotIn", Values: []string{"north"},
			}), []string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := group.Targets(c.spec, namespaces())
			fatal(t, err)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := group.Targets(selector(nil, events.LabelRequirement{Key: "sea", Operator: "Near"}), nil); !errs.Is(
		err, errs.Invalid) {
		t.Errorf("unknown operator: %v", err)
	}
}

// TestServed: rights are carried only to where there is something; what is not there is named.
func TestServed(t *testing.T) {
	t.Parallel()
	g := operatorgroup.Group{Namespace: "ops", Name: "coast"}
	served, missing := group.Served(g, []string{"baltic", "north", "nowhere", "old", "ops"}, namespaces())
	if diff := cmp.Diff([][]string{{"baltic", "north", "old"}, {"nowhere"}}, [][]string{served, missing}); diff != "" {
		t.Error(diff)
	}
	served, missing = group.Served(g, []string{""}, namespaces())
	if served != nil || missing != nil {
		t.Errorf("a global group: %v, %v", served, missing)
	}
}

// TestFollows: a namespace that appears, goes or gets other labels concerns groups with a selector and those that
// list it.
func TestFollows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec events.OperatorGroupSpec
		want bool
	}{
		"selector": {selector(map[string]string{"sea": "north"}), true},
		"listed":   {events.OperatorGroupSpec{TargetNamespaces: []string{"baltic"}}, true},
		"another":  {events.OperatorGroupSpec{TargetNamespaces: []string{"north"}}, false},
		"global":   {events.OperatorGroupSpec{}, false},
	} {
		if got := group.Follows(c.spec, "baltic"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func tide(tb testing.TB) bundle.CSV {
	tb.Helper()
	text, err := os.ReadFile("testdata/csv.json")
	fatal(tb, err)
	content, err := bundle.FromManifests([][]byte{text})
	fatal(tb, err)
	csv, err := content.CSV()
	fatal(tb, err)
	return csv
}

// TestProvided: R-OG-20: Kind.version.group of definitions and API services, sorted, each once.
func TestProvided(t *testing.T) {
	t.Parallel()
	apis := operatorgroup.APIs(tide(t))
	want := []operatorgroup.API{
		{Kind: "Fleet", Version: "v1", Group: "api.sea.test", Resource: "fleets"},
		{Kind: "Gauge", Version: "v1", Group: "sea.test", Resource: "gauges", CRD: true},
		{Kind: "Gauge", Version: "v1beta1", Group: "sea.test", Resource: "gauges", CRD: true},
	}
	if diff := cmp.Diff(want, apis); diff != "" {
		t.Error(diff)
	}
	value := operatorgroup.Join(append(operatorgroup.Names(apis), "Gauge.v1.sea.test"))
	if value != "Fleet.v1.api.sea.test,Gauge.v1.sea.test,Gauge.v1beta1.sea.test" {
		t.Errorf("annotation %s", value)
	}
	if diff := cmp.Diff(operatorgroup.Names(apis), operatorgroup.Split(
		" "+strings.ReplaceAll(value, ",", " , ")+",")); diff != "" {
		t.Error(diff)
	}
}

func decoded[T any](tb testing.TB, o render.Object) T {
	tb.Helper()
	raw, err := json.Marshal(o.Body)
	fatal(tb, err)
	var out T
	fatal(tb, json.Unmarshal(raw, &out))
	return out
}

// TestRoles: R-OG-40 and R-OG-41: three roles of the group, empty while it provides nothing, that find the roles of
// exactly its APIs by their labels.
func TestRoles(t *testing.T) {
	t.Parallel()
	g := operatorgroup.Group{Namespace: "ops", Name: "coast"}
	for _, o := range group.Roles(g, nil) {
		r := decoded[rbacv1.ClusterRole](t, o)
		if r.AggregationRule != nil || len(r.Rules) != 0 || o.Body["rules"] == nil {
			t.Errorf("%s grants something: %v", o.Name, o.Body)
		}
	}
	gauge := operatorgroup.API{Kind: "Gauge", Version: "v1", Group: "sea.test", Resource: "gauges", CRD: true}
	roles := group.Roles(g, []string{gauge.String()})
	for i, level := range []string{"admin", "edit", "view"} {
		r := decoded[rbacv1.ClusterRole](t, roles[i])
		if !strings.HasPrefix(r.Name, "olm.og.coast."+level+"-") || len(r.Rules) != 0 || roles[i].Body["rules"] != nil {
			t.Errorf("role %s: %v", r.Name, r.Rules)
		}
		var found []string
		for _, a := range group.APIRoles(gauge) {
			labels := decoded[rbacv1.ClusterRole](t, a).Labels
			if maps.Equal(r.AggregationRule.ClusterRoleSelectors[0].MatchLabels,
				pick(labels, "olm.opgroup.permissions/")) {
				found = append(found, a.Name)
			}
		}
		want := []string{"gauges.sea.test-v1-" + level}
		if level == "view" {
			want = append(want, "gauges.sea.test-v1-crdview")
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s aggregates:\n%s", level, diff)
		}
	}
	if a, b := group.RoleName(g, "view"), group.RoleName(operatorgroup.Group{Namespace: "other", Name: "coast"},
		"view"); a == b {
		t.Errorf("groups of the same name in two namespaces have one role %s", a)
	}
	if got := group.RoleName(operatorgroup.Group{Namespace: "ops", Name: strings.Repeat("x", 300)}, "view"); len(
		got) > 253 {
		t.Errorf("a name of %d characters", len(got))
	}
}

func pick(labels map[string]string, prefix string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if strings.HasPrefix(k, prefix) {
			out[k] = v
		}
	}
	return out
}

// TestRolesOf: only what is claimed has roles, and nothing that is Kubernetes' own, OLM's or Chandler's, whoever claims
// it.
func TestRolesOf(t *testing.T) {
	t.Parallel()
	var apis []operatorgroup.API
	var claimed []string
	for _, g := range []string{
		"sea.test", "rbac.authorization.k8s.io", "chandler-fleet.io", "operators.coreos.com",
		"apps", "metrics.k8s.io",
	} {
		a := operatorgroup.API{Kind: "Gauge", Version: "v1", Group: g, Resource: "gauges"}
		apis, claimed = append(apis, a), append(claimed, a.String())
	}
	apis = append(apis, operatorgroup.API{Kind: "Buoy", Version: "v1", Group: "sea.test", Resource: "buoys"})
	var got []string
	for _, o := range group.RolesOf(apis, claimed) {
		got = append(got, o.Name)
	}
	want := []string{
		"gauges.sea.test-v1-admin", "gauges.sea.test-v1-edit", "gauges.sea.test-v1-view",
		"gauges.metrics.k8s.io-v1-admin", "gauges.metrics.k8s.io-v1-edit", "gauges.metrics.k8s.io-v1-view",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAPIRoles: R-OG-42, R-OG-43: verbs and aggregation per level; the right to see a definition where there is one.
func TestAPIRoles(t *testing.T) {
	t.Parallel()
	type row struct {
		Name, Aggregates string
		Rule             rbacv1.PolicyRule
	}
	rows := func(a operatorgroup.API) (out []row) {
		for _, o := range group.APIRoles(a) {
			r := decoded[rbacv1.ClusterRole](t, o)
			for k, v := range pick(r.Labels, "rbac.authorization.k8s.io/aggregate-to-") {
				out = append(out, row{r.Name, strings.TrimPrefix(k, "rbac.authorization.k8s.io/aggregate-to-") + "=" +
					v, r.Rules[0]})
			}
		}
		return out
	}
	rule := func(resource, apiGroup string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{apiGroup}, Resources: []string{resource}, Verbs: verbs}
	}
	seen := rule("customresourcedefinitions", "apiextensions.k8s.io", "get")
	seen.ResourceNames = []string{"gauges.sea.test"}
	want := []row{
		{"gauges.sea.test-v1-admin", "admin=true", rule("gauges", "sea.test", "*")},
		{"gauges.sea.test-v1-edit", "edit=true", rule("gauges", "sea.test", "create", "update", "patch", "delete")},
		{"gauges.sea.test-v1-view", "view=true", rule("gauges", "sea.test", "get", "list", "watch")},
		{"gauges.sea.test-v1-crdview", "view=true", seen},
	}
	if diff := cmp.Diff(want, rows(operatorgroup.API{
		Kind: "Gauge", Version: "v1", Group: "sea.test",
		Resource: "gauges", CRD: true,
	})); diff != "" {
		t.Error(diff)
	}
	if got := rows(operatorgroup.API{Kind: "Fleet", Version: "v1", Group: "api.sea.test", Resource: "fleets"}); len(
		got) != 3 {
		t.Errorf("an aggregated API has %d roles, want 3", len(got))
	}
}

// TestCarried: R-OG-44: copies in each served namespace, or the same for the whole cluster; R-OG-45: both name their
// owner, so that they go with it.
func TestCarried(t *testing.T) {
	t.Parallel()
	own, err := render.Permissions(tide(t), "ops")
	fatal(t, err)
	if len(own) != 2 {
		t.Fatalf("%d objects of permissions", len(own))
	}
	names := func(list []render.Object) (out []string) {
		for _, o := range list {
			out = append(out, strings.Replace(o.String(), own[0].Name, "tide", 1))
		}
		return out
	}
	copies := group.CopiedRoles(own, []string{"baltic", "north"}, false)
	if diff := cmp.Diff([]string{
		"Role baltic/tide", "Role north/tide", "RoleBinding baltic/tide",
		"RoleBinding north/tide",
	}, names(copies)); diff != "" {
		t.Error(diff)
	}
	binding := decoded[rbacv1.RoleBinding](t, copies[2])
	if binding.Namespace != "baltic" || binding.Subjects[0].Namespace != "ops" || binding.RoleRef.Kind != "Role" {
		t.Errorf("binding in a target: %+v", binding)
	}
	if diff := cmp.Diff(map[string]string{
		"olm.managed": "true", "olm.owner": "tide.v1", "olm.owner.kind": "ClusterServiceVersion",
		"olm.owner.namespace": "ops", group.LabelPart: group.PartTarget,
		"olm.permissions.hash": own[0].Name[len("tide.v1-tide-"):],
	}, binding.Labels); diff != "" {
		t.Error(diff)
	}
	lifted := group.CopiedRoles(own, nil, true)
	if diff := cmp.Diff([]string{"ClusterRole tide", "ClusterRoleBinding tide"}, names(lifted)); diff != "" {
		t.Error(diff)
	}
	role, bound := decoded[rbacv1.ClusterRole](t, lifted[0]), decoded[rbacv1.ClusterRoleBinding](t, lifted[1])
	last := role.Rules[len(role.Rules)-1]
	if len(role.Rules) != 2 || last.Resources[0] != "namespaces" || role.Namespace != "" || role.Kind != "ClusterRole" {
		t.Errorf("lifted role: %+v", role)
	}
	if bound.RoleRef.Kind != "ClusterRole" || bound.RoleRef.Name != role.Name || bound.Kind != "ClusterRoleBinding" {
		t.Errorf("lifted binding: %+v", bound)
	}
	if again, err := render.Permissions(tide(t), "ops"); err != nil || !cmp.Equal(own, again) {
		t.Errorf("the operator's own objects were changed: %v", cmp.Diff(again, own))
	}
}

// TestConditions: R-OG §7.1: what is the matter with a group names object and next action.
func TestConditions(t *testing.T) {
	t.Parallel()
	missing := group.TargetsMissing([]string{"a", "b"})
	account := group.AccountMissing(operatorgroup.Group{
		Namespace: "ops",
		Spec:      events.OperatorGroupSpec{ServiceAccountName: "installer"},
	})
	for _, want := range []struct{ got, text string }{
		{missing.Message, "a, b; create them"},
		{account.Message, "ops/installer does not exist; create it"},
	} {
		if !strings.Contains(want.got, want.text) {
			t.Errorf("message %q", want.got)
		}
	}
	if missing.Reason != "NamespaceNotFound" || account.Reason != "ServiceAccountNotFound" {
		t.Errorf("reasons %s, %s", missing.Reason, account.Reason)
	}
}
