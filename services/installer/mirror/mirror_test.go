package mirror_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

var now = time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)

type object = map[string]any

// manifest is a ClusterServiceVersion as its author wrote it.
func manifest() object {
	return object{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": object{
			"name": "tidegauge.v2.1.0", "namespace": "coast",
			"labels":      object{"mine": "kept"},
			"annotations": object{"capabilities": "Full Lifecycle"},
		},
		"spec": object{"version": "2.1.0", "description": "long", "replaces": "tidegauge.v2.0.0"},
	}
}

func tide() mirror.Operator {
	return mirror.Operator{
		Namespace: "coast", Name: "tidegauge.v2.1.0", Package: "tidegauge", Replaces: "tidegauge.v1.9.0",
		Labels: map[string]string{"olm.api.x": "provided", "chandler-fleet.io/managed": "true"},
		Status: csv.Status{
			Phase: csv.PhaseSucceeded, Reason: csv.ReasonInstallSucceeded,
			Message: "install strategy completed with no errors", LastTransitionTime: now, ConditionsDropped: 3,
		},
	}
}

func shown(t *testing.T, g mirror.Group) mirror.Object {
	t.Helper()
	o, err := mirror.ClusterServiceVersion(tide(), g, manifest())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// R-CSV-22, R-OG §7.3: a mirror shows the whole manifest, with what plan and operator group add.
func TestClusterServiceVersion(t *testing.T) {
	t.Parallel()
	got := shown(t, mirror.Group{Name: "og", Targets: []string{"coast", "harbour"}})
	want := object{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": object{
			"name": "tidegauge.v2.1.0", "namespace": "coast",
			"labels": object{
				"mine": "kept", "olm.managed": "true", "olm.api.x": "provided", "chandler-fleet.io/mirror": "coast",
				"operators.coreos.com/tidegauge.coast": "",
			},
			"annotations": object{
				"capabilities": "Full Lifecycle", "olm.operatorGroup": "og", "olm.operatorNamespace": "coast",
				"olm.targetNamespaces": "coast,harbour",
			},
		},
		"spec": object{"version": "2.1.0", "description": "long", "replaces": "tidegauge.v1.9.0"},
	}
	if diff := cmp.Diff(want, got.Body); diff != "" {
		t.Error(diff)
	}
	if got.OwnedBy != "tidegauge.v2.1.0" {
		t.Errorf("owned by %q", got.OwnedBy)
	}
	if alone := shown(t, mirror.Group{}); strings.Contains(keysOf(alone.Body["metadata"].(object)["annotations"]),
		"olm.") {
		t.Errorf("without a group it says %v", alone.Body["metadata"])
	}
}

func keysOf(v any) string {
	var b strings.Builder
	for k := range v.(object) {
		b.WriteString(k + " ")
	}
	return b.String()
}

func TestAManifestThatCannotBeShown(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]object{"no metadata": {"spec": object{}}, "no spec": {"metadata": object{}}} {
		if _, err := mirror.ClusterServiceVersion(tide(), mirror.Group{}, bad); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// R-OG-25: a copy follows its source, says that it is one, and names no targets (R-OG §7.3).
func TestCopy(t *testing.T) {
	t.Parallel()
	source := shown(t, mirror.Group{Name: "og", Targets: []string{""}})
	got := mirror.Copy(source, "harbour")
	want := object{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": object{
			"name": "tidegauge.v2.1.0", "namespace": "harbour",
			"labels": object{
				"mine": "kept", "olm.managed": "true", "olm.api.x": "provided",
				"chandler-fleet.io/mirror": "coast", "olm.copiedFrom": "coast",
			},
			"annotations": object{
				"capabilities": "Full Lifecycle", "olm.operatorGroup": "og",
				"olm.operatorNamespace": "coast",
			},
		},
		"spec": source.Body["spec"],
	}
	if diff := cmp.Diff(want, got.Body); diff != "" {
		t.Error(diff)
	}
	if got.OwnedBy != "" {
		t.Errorf("an owner in another namespace: %q", got.OwnedBy)
	}
	status, err := mirror.StatusOf(tide().Status)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := status["conditionsDropped"]; ok {
		t.Error("a note of Chandler's own is shown")
	}
	copied := mirror.CopyStatus(status, "coast")
	if copied["phase"] != "Succeeded" || copied["reason"] != "Copied" ||
		copied["message"] != "The operator is running in coast but is managing this namespace" {
		t.Errorf("got %v", copied)
	}
	if status["reason"] != "InstallSucceeded" {
		t.Error("the source's status was changed")
	}
}

// R-OG-25, R-OG-26, R-CFG-1, R-CFG-3: which namespaces get a copy.
func TestCopiesTo(t *testing.T) {
	t.Parallel()
	all := map[string]map[string]string{"harbour": nil, "coast": nil, "quay": nil, "openshift": nil}
	conflict := tide()
	conflict.Status.Reason = "InterOperatorGroupOwnerConflict"
	global := mirror.Group{Name: "og", Targets: []string{""}}
	for name, c := range map[string]struct {
		op     mirror.Operator
		g      mirror.Group
		copies mirror.Copies
		want   []string
	}{
		"all of the namespaces": {
			tide(), global, mirror.CopiesEnabled,
			[]string{"harbour", "openshift", "quay"},
		},
		"its own namespace only": {
			tide(),
			mirror.Group{Name: "og", Targets: []string{"coast"}},
			mirror.CopiesEnabled, nil,
		},
		"targets that are there": {
			tide(),
			mirror.Group{Name: "og", Targets: []string{"gone", "quay"}},
			mirror.CopiesEnabled,
			[]string{"quay"},
		},
		"there is no group at all":                 {tide(), mirror.Group{}, mirror.CopiesEnabled, nil},
		"loser of an intersection":                 {conflict, global, mirror.CopiesEnabled, nil},
		"loser of an intersection, copies are off": {conflict, global, mirror.CopiesDisabled, nil},
		"targets, its own among them": {
			tide(),
			mirror.Group{Name: "og", Targets: []string{"coast", "quay"}},
			mirror.CopiesEnabled,
			[]string{"quay"},
		},
		"all namespaces, copies are off":            {tide(), global, mirror.CopiesDisabled, []string{"openshift"}},
		"all namespaces, nothing is said of copies": {tide(), global, mirror.CopiesUnsaid, []string{"openshift"}},
		"targets, copies are off": {
			tide(),
			mirror.Group{Name: "og", Targets: []string{"coast", "openshift"}},
			mirror.CopiesDisabled, nil,
		},
		"it is in the namespace itself": {
			mirror.Operator{Namespace: "openshift", Name: "tide.v1"},
			global,
			mirror.CopiesDisabled, nil,
		},
	} {
		if got := mirror.CopiesTo(c.op, c.g, c.copies, all); !cmp.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// Few writes: a phase that passes within two seconds is not shown.
func TestSettled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase csv.Phase
		ago   time.Duration
		ok    bool
		wait  time.Duration
	}{
		"at its end":         {csv.PhaseSucceeded, 0, true, 0},
		"failed":             {csv.PhaseFailed, 0, true, 0},
		"just begun":         {csv.PhasePending, 0, false, 2 * time.Second},
		"installing briefly": {csv.PhaseInstalling, time.Second, false, time.Second},
		"installing":         {csv.PhaseInstalling, 2 * time.Second, true, 0},
		"new":                {csv.PhaseNone, time.Hour, true, 0},
	} {
		ok, wait := mirror.Settled(csv.Status{Phase: c.phase, LastTransitionTime: now.Add(-c.ago)}, now)
		if ok != c.ok || wait != c.wait {
			t.Errorf("%s: got %v, %s", name, ok, wait)
		}
	}
}

// R-COND-1: every service account of the operator may write the condition, and each is named once.
func TestCondition(t *testing.T) {
	t.Parallel()
	c := bundle.CSV{Name: "tidegauge.v2.1.0"}
	c.Spec.Install.Spec = bundle.Details{
		Permissions:        []bundle.Permissions{{ServiceAccountName: "gauge"}, {ServiceAccountName: "gauge"}},
		ClusterPermissions: []bundle.Permissions{{ServiceAccountName: "gauge"}},
		Deployments: []bundle.Deployment{
			{Name: "controller", Spec: []byte(`{"template":{"spec":{"serviceAccountName":"watcher"}}}`)},
			{Name: "plain", Spec: []byte(`{}`)},
		},
	}
	got, err := mirror.Condition("coast", "tidegauge", c)
	if err != nil || len(got) != 3 {
		t.Fatalf("got %v, %v", got, err)
	}
	if diff := cmp.Diff(object{
		"deployments":     []any{"controller", "plain"},
		"serviceAccounts": []any{"gauge", "watcher"},
	}, got[0].Body["spec"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{object{
		"apiGroups": []any{"operators.coreos.com"}, "resources": []any{
			"operatorconditions", "operatorconditions/status",
		}, "resourceNames": []any{"tidegauge.v2.1.0"},
		"verbs": []any{"get", "update", "patch"},
	}}, got[1].Body["rules"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{
		object{"kind": "ServiceAccount", "name": "gauge", "namespace": "coast"},
		object{"kind": "ServiceAccount", "name": "watcher", "namespace": "coast"},
	}, got[2].Body["subjects"]); diff != "" {
		t.Error(diff)
	}
	for _, o := range got {
		if o.OwnedBy != c.Name || o.Name != c.Name || o.Namespace != "coast" {
			t.Errorf("%s %s/%s is owned by %q", o.GVK.Kind, o.Namespace, o.Name, o.OwnedBy)
		}
	}
}

// failedTide is an operator that is there and has failed.
func failedTide() mirror.Operator {
	op := tide()
	op.Status.Phase = csv.PhaseFailed
	return op
}

// R-SUB-21: the state is how far the subscription got; how what is installed does says its phase.
func TestSubscription(t *testing.T) {
	t.Parallel()
	s := protocol.Subscription{Name: "gauge", Spec: events.SubscriptionSpec{
		Package: "tidegauge", Channel: "steady",
		Catalog: "fleet",
	}}
	plan := func(name, phase, pkg, csv string) mirror.Plan {
		return mirror.Plan{
			ID: name, Name: name, Phase: phase,
			Bundles: []events.PlannedBundle{{Package: pkg, CSV: csv}},
		}
	}
	for name, c := range map[string]struct {
		installed []mirror.Operator
		plans     []mirror.Plan
		forward   bool
		want      object
	}{
		"nothing yet": {nil, nil, false, object{}},
		"on its way": {
			nil,
			[]mirror.Plan{plan("install-1", "Started", "tidegauge", "tidegauge.v2.1.0")},
			false,
			object{"currentCSV": "tidegauge.v2.1.0", "state": "UpgradePending", "plan": "install-1"},
		},
		"installed": {
			[]mirror.Operator{tide()},
			[]mirror.Plan{
				plan("install-1", "Finished", "tidegauge", "tidegauge.v2.1.0"),
				plan("install-2", "Finished", "buoy", "buoy.v1.0.0"),
			},
			false,
			object{
				"currentCSV": "tidegauge.v2.1.0", "installedCSV": "tidegauge.v2.1.0", "state": "AtLatestKnown",
				"plan": "install-1",
			},
		},
		"an upgrade that failed": {
			[]mirror.Operator{tide()},
			[]mirror.Plan{plan("install-2", "Failed", "tidegauge", "tidegauge.v2.2.0")},
			false,
			object{
				"currentCSV": "tidegauge.v2.2.0", "installedCSV": "tidegauge.v2.1.0", "state": "UpgradePending",
				"plan": "install-2",
			},
		},
		"an upgrade that failed, to be failed forward from": {
			[]mirror.Operator{tide()},
			[]mirror.Plan{plan("install-2", "Failed", "tidegauge", "tidegauge.v2.2.0")},
			true,
			object{
				"currentCSV": "tidegauge.v2.2.0", "installedCSV": "tidegauge.v2.1.0", "state": "UpgradeFailed",
				"plan": "install-2",
			},
		},
		"what failed after it came": {
			[]mirror.Operator{failedTide()},
			[]mirror.Plan{plan("install-1", "Finished", "tidegauge", "tidegauge.v2.1.0")},
			true,
			object{
				"currentCSV": "tidegauge.v2.1.0", "installedCSV": "tidegauge.v2.1.0", "state": "AtLatestKnown",
				"plan": "install-1",
			},
		},
		"beside the one that it replaces": {
			[]mirror.Operator{{Name: "tidegauge.v1.9.0", Package: "tidegauge"}, tide()},
			nil,
			false,
			object{"currentCSV": "tidegauge.v2.1.0", "installedCSV": "tidegauge.v2.1.0", "state": "AtLatestKnown"},
		},
	} {
		o := mirror.Subscription("coast", s, mirror.Known{
			Installed: c.installed, Plans: c.plans,
			FailForward: c.forward,
		}, now)
		if ref, ok := o.Status["installPlanRef"].(object); ok {
			o.Status["plan"] = ref["name"]
			delete(o.Status, "installPlanRef")
		}
		for _, told := range []string{"lastUpdated", "installplan", "conditions", "catalogHealth"} {
			// of which others tell
			delete(o.Status, told)
		}
		if diff := cmp.Diff(c.want, o.Status); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(object{
			"name": "tidegauge", "channel": "steady", "source": "fleet", "sourceNamespace": "",
			"installPlanApproval": "Automatic",
		}, o.Body["spec"]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// R-IP-5: phase, steps and condition in OLM's words.
func TestInstallPlan(t *testing.T) {
	t.Parallel()
	p := mirror.Plan{
		Name: "install-7xk2p", Bundles: []events.PlannedBundle{
			{CSV: "tidegauge.v2.1.0", Package: "tidegauge", Catalog: "fleet"}, {CSV: "brine.v3.2.0", Package: "brine"},
		},
		Steps: []mirror.PlanStep{
			{
				Resolving: "tidegauge.v2.1.0", GVK: schema.GroupVersionKind{Version: "v1", Kind: "Service"},
				Name: "gauge", Done: true,
			},
			{
				Resolving: "brine.v3.2.0", GVK: schema.GroupVersionKind{
					Group: "apps", Version: "v1", Kind: "Deployment",
				},
				Name: "brine",
			},
		},
	}
	manual := []protocol.Subscription{{Name: "gauge", Spec: events.SubscriptionSpec{
		Package: "tidegauge", Approval: "Manual",
	}}}
	o := mirror.InstallPlan("coast", p, manual)
	if diff := cmp.Diff(object{
		"approval": "Manual", "approved": true, "clusterServiceVersionNames": []any{"brine.v3.2.0", "tidegauge.v2.1.0"},
	}, o.Body["spec"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{
		object{"resolving": "tidegauge.v2.1.0", "status": "Created", "resource": object{
			"group": "", "version": "v1", "kind": "Service", "name": "gauge", "sourceName": "fleet",
			"sourceNamespace": "", "manifest": "",
		}},
		object{"resolving": "brine.v3.2.0", "status": "Unknown", "resource": object{
			"group": "apps", "version": "v1", "kind": "Deployment", "name": "brine", "sourceName": "",
			"sourceNamespace": "", "manifest": "",
		}},
	}, o.Status["plan"]); diff != "" {
		t.Error(diff)
	}
	if got := mirror.InstallPlan("coast", p, nil).Body["spec"].(object)["approval"]; got != "Automatic" {
		t.Errorf("approval %v", got)
	}
	for name, c := range map[string]struct {
		phase   string
		started time.Time
		want    string
		reason  any
	}{
		"not begun":            {"", time.Time{}, "Installing", nil},
		"under way":            {protocol.PlanStarted, now, "Installing", nil},
		"waiting before it":    {protocol.PlanBlocked, time.Time{}, "Installing", "InstallCheckFailed"},
		"waiting within":       {protocol.PlanBlocked, now, "Installing", "InstallComponentFailed"},
		"failed":               {protocol.PlanFailed, now, "Failed", "InstallComponentFailed"},
		"done, with no reason": {protocol.PlanFinished, now, "Complete", nil},
	} {
		p.Phase, p.Started = c.phase, c.started
		s := mirror.InstallPlan("coast", p, nil).Status
		var reason any
		if list, ok := s["conditions"].([]any); ok {
			reason = list[0].(object)["reason"]
		}
		if s["phase"] != c.want || reason != c.reason {
			t.Errorf("%s: phase %v, reason %v", name, s["phase"], reason)
		}
	}
}

func TestOperatorGroup(t *testing.T) {
	t.Parallel()
	g := protocol.OperatorGroup{Name: "og", Spec: events.OperatorGroupSpec{
		Selector: events.LabelSelector{MatchLabels: map[string]string{"tier": "quay"}}, ServiceAccountName: "installer",
	}}
	o, err := mirror.OperatorGroup("coast", g, protocol.GroupReport{
		Targets: []string{"harbour", "quay"}, ProvidedAPIs: []string{"Buoy.v1.sea.test", "Gauge.v1.sea.test"},
		Conditions: []protocol.GroupCondition{{Type: "OperatorGroupServiceAccount", Reason: "ServiceAccountNotFound"}},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object{
		"upgradeStrategy": "Default", "serviceAccountName": "installer",
		"selector": object{"matchLabels": object{"tier": "quay"}},
	}, o.Body["spec"]); diff != "" {
		t.Error(diff)
	}
	provided := o.Body["metadata"].(object)["annotations"].(object)["olm.providedAPIs"]
	if got := provided; got != "Buoy.v1.sea.test,Gauge.v1.sea.test" {
		t.Errorf("provided APIs %v", got)
	}
	if diff := cmp.Diff(object{
		"namespaces": []any{"harbour", "quay"}, "lastUpdated": "2031-02-03T04:05:06Z",
		"conditions": []any{object{
			"type": "OperatorGroupServiceAccount", "status": "True", "reason": "ServiceAccountNotFound", "message": "",
			"lastTransitionTime": "2031-02-03T04:05:06Z",
		}},
	}, o.Status); diff != "" {
		t.Error(diff)
	}
}

// R-CSV-62: all parts of a package in a namespace, each once.
func TestOperator(t *testing.T) {
	t.Parallel()
	service := protocol.Component{ObjectRef: protocol.ObjectRef{
		Version: "v1", Kind: "Service", Namespace: "coast",
		Name: "gauge",
	}}
	crd := protocol.Component{ObjectRef: protocol.ObjectRef{
		Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition", Name: "gauges.sea.test",
	}}
	monitor := protocol.Component{
		ObjectRef: protocol.ObjectRef{
			Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor",
			Namespace: "coast", Name: "gauge",
		},
		Status: protocol.ComponentWaiting, Message: "waits for ServiceMonitor (monitoring.coreos.com)",
	}
	o := mirror.OperatorOf("coast", "tidegauge", []protocol.Component{crd, service, monitor, crd}, false, now)
	if o.Name != "tidegauge.coast" || o.Namespace != "" {
		t.Errorf("named %s/%s", o.Namespace, o.Name)
	}
	if diff := cmp.Diff(object{"components": object{
		"labelSelector": object{"matchExpressions": []any{
			object{"key": "operators.coreos.com/tidegauge.coast", "operator": "Exists"},
		}},
		"refs": []any{
			object{"apiVersion": "v1", "kind": "Service", "namespace": "coast", "name": "gauge"},
			object{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
				"name": "gauges.sea.test",
			},
			object{
				"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "namespace": "coast",
				"name": "gauge", "conditions": []any{object{
					"type": "Available", "status": "False", "reason": "APINotServed",
					"message":            "waits for ServiceMonitor (monitoring.coreos.com)",
					"lastTransitionTime": "2031-02-03T04:05:06Z",
				}},
			},
		},
	}}, o.Status); diff != "" {
		t.Error(diff)
	}
	long := mirror.ComponentLabel(strings.Repeat("a", 61), "-coast")
	if name := strings.TrimPrefix(long, "operators.coreos.com/"); name != strings.Repeat("a", 61) {
		t.Errorf("a long name is cut to %q", name)
	}
}

// R-CFG-1, R-CFG-2, and copies that are off unless asked for (R-OG-28).
func TestConfig(t *testing.T) {
	t.Parallel()
	with := func(features any) object { return object{"spec": object{"features": features}} }
	for name, c := range map[string]struct {
		config object
		want   mirror.Copies
	}{
		"no OLMConfig": {nil, mirror.CopiesUnsaid},
		"no features":  {object{"spec": object{}}, mirror.CopiesUnsaid},
		"another one":  {with(object{"packageServerSyncInterval": "1m"}), mirror.CopiesUnsaid},
		"disabled":     {with(object{"disableCopiedCSVs": true}), mirror.CopiesDisabled},
		"enabled":      {with(object{"disableCopiedCSVs": false}), mirror.CopiesEnabled},
		"ours":         {mirror.Config().Body, mirror.CopiesDisabled},
	} {
		if got := mirror.CopiesIn(c.config); got != c.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for _, said := range []mirror.Copies{mirror.CopiesUnsaid, mirror.CopiesDisabled, mirror.CopiesEnabled} {
		for setting, want := range map[string]mirror.Copies{
			"": said, events.CopiedCSVsOLMConfig: said, events.CopiedCSVsOn: mirror.CopiesEnabled,
			events.CopiedCSVsOff: mirror.CopiesDisabled,
		} {
			if got := mirror.CopiesOf(setting, said); got != want {
				t.Errorf("setting %q beside OLMConfig %q: got %q, want %q", setting, said, got, want)
			}
		}
	}
	status, ok := mirror.ConfigStatus(with(object{}), mirror.CopiesEnabled, now)
	if !ok || status["conditions"].([]any)[0].(object)["reason"] != "CopiedCSVsEnabled" {
		t.Errorf("got %v", status)
	}
	if _, again := mirror.ConfigStatus(object{"status": status}, mirror.CopiesEnabled, now.Add(time.Hour)); again {
		t.Error("what is said already is written again")
	}
	if status, ok := mirror.ConfigStatus(object{"status": status}, mirror.CopiesUnsaid, now); !ok ||
		status["conditions"].([]any)[0].(object)["status"] != "True" {
		t.Errorf("got %v", status)
	}
	e := mirror.DisabledEvent(tide(), "u", now)
	if e.Body["reason"] != "DisabledCopiedCSVs" ||
		e.Body["message"] != "CSV copying disabled for coast/tidegauge.v2.1.0" || e.Body["type"] != "Warning" {
		t.Errorf("got %v", e.Body)
	}
}

// TestOLMCandidates: OLM is known by its names, or under other names by what runs in it.
func TestOLMCandidates(t *testing.T) {
	t.Parallel()
	zero, two := int32(0), int32(2)
	deployment := func(name string, change func(*appsv1.Deployment)) appsv1.Deployment {
		d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "olm", Name: name, Labels: map[string]string{"app": name},
		}}
		change(&d)
		return d
	}
	runs := func(c corev1.Container) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Labels, d.Spec.Template.Spec.Containers = nil, []corev1.Container{{Command: []string{"proxy"}}, c}
		}
	}
	for name, c := range map[string]struct {
		d    appsv1.Deployment
		want bool
	}{
		"running":     {deployment("olm-operator", func(d *appsv1.Deployment) { d.Spec.Replicas = &two }), true},
		"by default":  {deployment("catalog-operator", func(*appsv1.Deployment) {}), true},
		"scaled down": {deployment("olm-operator", func(d *appsv1.Deployment) { d.Spec.Replicas = &zero }), false},
		"going": {deployment("olm-operator",
			func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: now} }), false},
		"a namesake":    {deployment("olm-operator", func(d *appsv1.Deployment) { d.Labels = nil }), false},
		"another thing": {deployment("packageserver", func(*appsv1.Deployment) {}), false},
		"by its program": {deployment("lifecycle",
			runs(corev1.Container{Command: []string{"/bin/olm"}, Args: []string{"--namespace", "x"}})), true},
		"by its arguments": {deployment("catalogs", runs(corev1.Container{Args: []string{"/bin/catalog"}})), true},
		"names it only":    {deployment("backup", runs(corev1.Container{Command: []string{"cp", "/bin/olm"}})), false},
	} {
		got := mirror.OLMCandidates([]appsv1.Deployment{c.d, c.d})
		want := []mirror.OLMCandidate{{Namespace: "olm", Name: c.d.Name, Account: "default"}}
		if c.want && !cmp.Equal(got, want) || !c.want && got != nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// What is there already is not written again; what somebody changed is.
func TestHolds(t *testing.T) {
	t.Parallel()
	live := func(change func(o object)) object {
		o := shown(t, mirror.Group{}).Body
		o["metadata"].(object)["uid"] = "u"
		change(o)
		return o
	}
	want := shown(t, mirror.Group{})
	for name, c := range map[string]struct {
		live object
		want bool
	}{
		"as it is": {live(func(object) {}), true},
		"with another's label": {
			live(func(o object) { o["metadata"].(object)["labels"].(object)["another"] = "x" }),
			true,
		},
		"without a label": {live(func(o object) {
			delete(o["metadata"].(object)["labels"].(object),
				"olm.managed")
		}), false},
		"with a field changed": {live(func(o object) { o["spec"] = object{"version": "9"} }), false},
		"with a field more": {live(func(o object) {
			o["spec"] = object{"version": "2.1.0", "description": "long", "replaces": "tidegauge.v1.9.0", "x": "y"}
		}), false},
		"nothing there": {nil, false},
	} {
		if got := mirror.Holds(c.live, want); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	condition, err := mirror.Condition("coast", "tidegauge", bundle.CSV{Name: "tidegauge.v2.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	written := condition[0].Body
	written["spec"].(object)["conditions"] = []any{object{"type": "Upgradeable"}}
	wanted, err := mirror.Condition("coast", "tidegauge", bundle.CSV{Name: "tidegauge.v2.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	if !mirror.Holds(written, wanted[0]) {
		t.Error("what the operator says of itself is taken for an edit (R-COND-2)")
	}
	then, later := object{"phase": "x", "lastUpdated": "1"}, object{"phase": "x", "lastUpdated": "2"}
	if diff := cmp.Diff(mirror.Timeless(then), mirror.Timeless(later)); diff != "" {
		t.Error(diff)
	}
	if !mirror.SameStatus(then, later) || mirror.SameStatus(then, object{"phase": "y"}) {
		t.Error("a status is compared by its times, or not by its words")
	}
}

// Chandler brings what a setting needs; OperatorCondition always (R-COND-1).
func TestCRDs(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string][]string{
		events.MirrorNone: {"operatorconditions"},
		events.MirrorCSV:  {"operatorconditions", "clusterserviceversions"},
		events.MirrorAll: {
			"operatorconditions", "clusterserviceversions", "subscriptions", "installplans", "operatorgroups",
			"operators", "catalogsources", "olmconfigs",
		},
	} {
		var got []string
		for _, c := range mirror.CRDs(setting) {
			if c.Name != c.Spec.Names.Plural+".operators.coreos.com" {
				t.Errorf("%s is named %s", c.Spec.Names.Plural, c.Name)
			}
			got = append(got, c.Spec.Names.Plural)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", setting, diff)
		}
	}
}

// TestMirrorMetadata: mirrors bear the labels and annotations of their intents beside ours, which win (R-SUB §4.1, R-OG
// §7.1, R-CAT §1.11).
func TestMirrorMetadata(t *testing.T) {
	t.Parallel()
	noted := protocol.Metadata{
		Labels:      map[string]string{"team": "sea", mirror.LabelMirror: "x"},
		Annotations: map[string]string{"owner": "dock", "olm.providedAPIs": "x"},
	}
	s := protocol.Subscription{
		Name: "gauge", Spec: events.SubscriptionSpec{Package: "tidegauge", Catalog: "fleet"},
		Metadata: noted,
	}
	s.Catalog = &protocol.CatalogState{State: "Ready", Metadata: noted}
	g := protocol.OperatorGroup{
		Name: "og", Spec: events.OperatorGroupSpec{ExcludeGlobalCatalogs: true},
		Metadata: noted,
	}
	group, err := mirror.OperatorGroup("coast", g, protocol.GroupReport{ProvidedAPIs: []string{"Gauge.v1.sea.test"}},
		now)
	if err != nil {
		t.Fatal(err)
	}
	ours := object{"team": "sea", "olm.managed": "true", mirror.LabelMirror: "coast"}
	component := object{"operators.coreos.com/tidegauge.coast": ""}
	maps.Copy(component, ours)
	theirs := object{"owner": "dock", "olm.providedAPIs": "x"}
	for _, c := range []struct {
		got                 mirror.Object
		labels, annotations object
	}{
		{mirror.Subscription("coast", s, mirror.Known{}, now), component, theirs},
		{mirror.CatalogSources("coast", []protocol.Subscription{s})[0], ours, theirs},
		{group, ours, object{
			"owner": "dock", "olm.providedAPIs": "Gauge.v1.sea.test",
			"olm.operatorframework.io/exclude-global-namespace-resolution": "true",
		}},
	} {
		meta := c.got.Body["metadata"].(object)
		if diff := cmp.Diff([]any{c.labels, c.annotations}, []any{meta["labels"], meta["annotations"]}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.got.GVK.Kind, diff)
		}
	}
	// What no API server would take is not shown.
	g.Annotations = map[string]string{"a": strings.Repeat("x", events.MaxAnnotations-1)}
	if group, err = mirror.OperatorGroup("coast", g, protocol.GroupReport{}, now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"},
		group.Body["metadata"].(object)["annotations"]); diff != "" {
		t.Error(diff)
	}
}

// TestLeaves: what the mirrors' manager wrote and is wanted no more is found, and nothing of others.
func TestLeaves(t *testing.T) {
	t.Parallel()
	want := mirror.Object{Body: object{"metadata": object{"labels": object{"team": "sea"}}}}
	entry := func(manager string, operation metav1.ManagedFieldsOperationType,
		fields string,
	) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: operation,
			FieldsV1: metav1.NewFieldsV1(fields),
		}}
	}
	for name, c := range map[string]struct {
		written []metav1.ManagedFieldsEntry
		want    bool
	}{
		"as wanted": {
			entry("m", "Apply", `{"f:metadata":{"f:labels":{"f:team":{}}},"f:spec":{"f:a":{}}}`),
			false,
		},
		"a label more":         {entry("m", "Apply", `{"f:metadata":{"f:labels":{"f:team":{},"f:trial":{}}}}`), true},
		"an annotation more":   {entry("m", "Apply", `{"f:metadata":{"f:annotations":{".":{},"f:a/b":{}}}}`), true},
		"somebody else's":      {entry("n", "Apply", `{"f:metadata":{"f:labels":{"f:trial":{}}}}`), false},
		"written in other way": {entry("m", "Update", `{"f:metadata":{"f:labels":{"f:trial":{}}}}`), false},
		"nothing told":         {[]metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Apply"}}, false},
	} {
		if got, err := mirror.Leaves(c.written, "m", want); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := mirror.Leaves(entry("m", "Apply", `[]`), "m", want); err == nil {
		t.Error("fields that cannot be read are no error")
	}
}
