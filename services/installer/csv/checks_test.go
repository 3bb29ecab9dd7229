package csv_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

// tide is what TestRequirements asks for: one of each sort.
func tide() bundle.CSVSpec {
	spec := bundle.CSVSpec{MinKubeVersion: "1.27.0", NativeAPIs: []bundle.GVK{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
	}}
	spec.CRDs.Owned = []bundle.CRDDescription{{Name: "tides.sea.test", Version: "v1"}}
	spec.CRDs.Required = []bundle.CRDDescription{{Name: "buoys.sea.test", Version: "v1"}}
	spec.APIServices.Owned = []bundle.APIDescription{
		{Group: "flow.test", Version: "v1", Kind: "Flow", DeploymentName: "tide"},
	}
	spec.APIServices.Required = []bundle.APIDescription{{Group: "metrics.test", Version: "v1", Kind: "Metric"}}
	spec.Install.Spec.Deployments = []bundle.Deployment{{Name: "tide"}}
	spec.Install.Spec.Permissions = []bundle.Permissions{
		{ServiceAccountName: "tide", Rules: []rbacv1.PolicyRule{readSecrets}}, {ServiceAccountName: "tide"},
	}
	spec.Install.Spec.ClusterPermissions = []bundle.Permissions{
		{ServiceAccountName: "tide", Rules: []rbacv1.PolicyRule{readNodes}},
	}
	return spec
}

var (
	readSecrets = rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}
	readNodes   = rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"nodes"}}
)

// facts are those of a cluster in which tide lacks nothing.
func facts() csv.Facts {
	return csv.Facts{
		KubernetesVersion: "v1.34.4+k3s1", Targets: []string{"coast", "harbour"},
		CRDs: map[string]csv.CRDFact{
			"tides.sea.test": {Established: true, Served: []string{"v1"}},
			"buoys.sea.test": {Established: true, Served: []string{"v1", "v2"}},
		},
		APIServices: map[string]csv.APIServiceFact{"v1.metrics.test": {UID: "m", Available: true}},
		Accounts: map[string]csv.AccountFact{"tide": {UID: "u", Held: permissions.Held{
			Cluster:    []rbacv1.PolicyRule{readNodes},
			Namespaces: map[string][]rbacv1.PolicyRule{"coast": {readSecrets}, "harbour": {readSecrets}},
		}}},
		Served: map[bundle.GVK]bool{
			{Group: "apps", Version: "v1", Kind: "Deployment"}:     true,
			{Group: "metrics.test", Version: "v1", Kind: "Metric"}: true,
		},
	}
}

// TestRequirements is the table of R-CSV §6.4, with R-CSV-12.
func TestRequirements(t *testing.T) {
	t.Parallel()
	account := func(change func(*csv.AccountFact)) func(*csv.Facts) {
		return func(f *csv.Facts) {
			a := f.Accounts["tide"]
			change(&a)
			f.Accounts["tide"] = a
		}
	}
	for name, c := range map[string]struct {
		change func(*csv.Facts)
		want   []string
	}{
		"all met": {func(*csv.Facts) {}, nil},
		"minKubeVersion: old cluster": {
			func(f *csv.Facts) { f.KubernetesVersion = "v1.26.9" },
			[]string{"minKubeVersion PresentNotSatisfied minKubeVersion 1.27.0 is above the cluster's 1.26.9"},
		},
		"minKubeVersion: own build": {func(f *csv.Facts) { f.KubernetesVersion = "v1.27.0-beta.1" }, nil},
		"CRD: not there": {
			func(f *csv.Facts) { delete(f.CRDs, "tides.sea.test") },
			[]string{"tides.sea.test NotPresent CRD is not present"},
		},
		"CRD: version not served": {func(f *csv.Facts) {
			f.CRDs["buoys.sea.test"] = csv.CRDFact{
				Established: true, Served: []string{"v2"},
			}
		}, []string{"buoys.sea.test NotPresent CRD version not served"}},
		"CRD: not established": {
			func(f *csv.Facts) { f.CRDs["buoys.sea.test"] = csv.CRDFact{Served: []string{"v1"}} },
			[]string{
				"buoys.sea.test PresentNotAvailable CRD is present but the Established condition is False (not " +
					"available)",
			},
		},
		"owned CRD: of another one, too": {func(f *csv.Facts) {
			f.CRDs["tides.sea.test"] = csv.CRDFact{
				Established: true, Served: []string{"v1"},
				Alongside: []string{"coast/ebb.v1", "coast/flood.v1"},
			}
		}, []string{
			"tides.sea.test PresentNotSatisfied CRD installed alongside other CSV(s): coast/ebb.v1, coast/flood.v1",
		}},
		"required CRD: of another one": {func(f *csv.Facts) {
			f.CRDs["buoys.sea.test"] = csv.CRDFact{
				Established: true, Served: []string{"v1"},
				Alongside: []string{"coast/buoy.v1"},
			}
		}, nil},
		"required API: kind not served": {func(f *csv.Facts) {
			delete(
				f.Served, bundle.GVK{Group: "metrics.test", Version: "v1", Kind: "Metric"})
		}, []string{"v1.metrics.test NotPresent kind Metric is not served"}},
		"required API: not there": {
			func(f *csv.Facts) { f.APIServices = nil },
			[]string{"v1.metrics.test NotPresent APIService is not present"},
		},
		"required API: not available": {
			func(f *csv.Facts) { f.APIServices["v1.metrics.test"] = csv.APIServiceFact{} },
			[]string{"v1.metrics.test NotPresent APIService is not available"},
		},
		"native API: not served": {func(f *csv.Facts) {
			delete(
				f.Served, bundle.GVK{Group: "apps", Version: "v1", Kind: "Deployment"})
		}, []string{" NotPresent Native API does not exist"}},
		"account: not there": {
			func(f *csv.Facts) { f.Accounts = nil },
			[]string{"tide NotPresent Service account does not exist"},
		},
		"account: of another one": {
			account(func(a *csv.AccountFact) { a.ForeignOwner = "x" }),
			[]string{"tide PresentNotSatisfied Service account is owned by another ClusterServiceVersion"},
		},
		"permissions: not in one target": {
			account(func(a *csv.AccountFact) { delete(a.Held.Namespaces, "harbour") }),
			[]string{
				"tide PresentNotSatisfied Policy rule not satisfied for service account",
				`NotSatisfied namespaced rule:{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}`,
			},
		},
		"permissions: held in the whole cluster": {account(func(a *csv.AccountFact) {
			a.Held = permissions.Held{Cluster: []rbacv1.PolicyRule{readNodes, readSecrets}}
		}), nil},
		"permissions: all namespaces": {func(f *csv.Facts) { f.Targets = []string{""} }, []string{
			"tide PresentNotSatisfied Policy rule not satisfied for service account",
			`NotSatisfied namespaced rule:{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}`,
		}},
		"cluster permissions: not held": {account(func(a *csv.AccountFact) { a.Held.Cluster = nil }), []string{
			"tide PresentNotSatisfied Policy rule not satisfied for service account",
			`NotSatisfied cluster rule:{"verbs":["list"],"apiGroups":[""],"resources":["nodes"]}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := facts()
			c.change(&f)
			rows := csv.Check(tide(), f)
			if len(rows) != 7 {
				t.Errorf("%d rows, want 7: %+v", len(rows), rows)
			}
			var got []string
			for _, r := range csv.Brief(csv.Unmet(rows)) {
				got = append(got, r.Name+" "+r.Status+" "+r.Message)
				for _, d := range r.Dependents {
					got = append(got, d.Status+" "+d.Message)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("unmet (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwnedAPIService: the row of owned API services is about the install strategy alone.
func TestOwnedAPIService(t *testing.T) {
	t.Parallel()
	spec := bundle.CSVSpec{}
	spec.APIServices.Owned = []bundle.APIDescription{
		{Group: "flow.test", Version: "v1", Kind: "Flow", DeploymentName: "tide"},
		{Group: "flow.test", Version: "v1", Kind: "Ebb", DeploymentName: "tide"},
	}
	if rows := csv.Check(spec, facts()); len(rows) != 1 || rows[0].Status != csv.DeploymentNotFound ||
		rows[0].Name != "v1.flow.test" || len(csv.Unmet(rows)) != 1 {
		t.Errorf("without the deployment: %+v", rows)
	}
	spec.Install.Spec.Deployments = []bundle.Deployment{{Name: "tide"}}
	if rows := csv.Check(spec, facts()); len(rows) != 1 || rows[0].Status != csv.DeploymentFound ||
		len(csv.Unmet(rows)) != 0 {
		t.Errorf("with the deployment: %+v", rows)
	}
}

// TestScopes: what an account may do is asked only where it is to be able to do something.
func TestScopes(t *testing.T) {
	t.Parallel()
	spec := tide()
	if got := csv.Scopes(spec, "tide", []string{"coast", "harbour"}); !slices.Equal(
		got, []string{"", "coast", "harbour"}) {
		t.Errorf("both sorts: %q", got)
	}
	spec.Install.Spec.ClusterPermissions = nil
	if got := csv.Scopes(spec, "tide", []string{"coast"}); !slices.Equal(got, []string{"coast"}) {
		t.Errorf("permissions alone: %q", got)
	}
	if got := csv.Scopes(spec, "ebb", []string{"coast"}); len(got) != 0 {
		t.Errorf("another account: %q", got)
	}
}

func deployment(name string, change func(*appsv1.Deployment)) appsv1.Deployment {
	one := int32(1)
	d := appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: &one},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			},
		},
	}
	change(&d)
	return d
}

// TestHealth is R-CSV-23.
func TestHealth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change            func(*appsv1.Deployment)
		healthy, exceeded bool
	}{
		"healthy":       {func(*appsv1.Deployment) {}, true, false},
		"not observed":  {func(d *appsv1.Deployment) { d.Generation = 3 }, false, false},
		"not updated":   {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }, false, false},
		"old replicas":  {func(d *appsv1.Deployment) { d.Status.Replicas = 2 }, false, false},
		"not available": {func(d *appsv1.Deployment) { d.Status.Conditions = nil }, false, false},
		"deadline": {func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
			}
		}, false, true},
		"none wanted": {func(d *appsv1.Deployment) {
			none := int32(0)
			d.Spec.Replicas, d.Status.Replicas, d.Status.UpdatedReplicas = &none, 0, 0
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			healthy, exceeded, message := csv.Health(deployment("d", c.change))
			if healthy != c.healthy || exceeded != c.exceeded || healthy == (message != "") {
				t.Errorf("healthy %v, exceeded %v, message %q", healthy, exceeded, message)
			}
		})
	}
}

// TestObserve: what is missing is not applied; the message names all, sorted.
func TestObserve(t *testing.T) {
	t.Parallel()
	declared := []bundle.Deployment{{Name: "b"}, {Name: "a"}}
	fine := func(*appsv1.Deployment) {}
	if c := csv.Observe(declared, []appsv1.Deployment{deployment("a", fine), deployment("b", fine)}, nil); !c.Applied ||
		!c.Healthy || c.Message != "" {
		t.Errorf("both there: %+v", c)
	}
	if c := csv.Observe(declared, nil, nil); c.Applied || c.Healthy ||
		c.Message != "deployment a is not there; deployment b is not there" {
		t.Errorf("none there: %+v", c)
	}
	if c := csv.Observe(nil, nil, nil); !c.Applied || !c.Healthy {
		t.Errorf("none declared: %+v", c)
	}
}
