package csv_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/services/installer/csv"
)

// TestRequirements is the table of R-CSV §6.4, with R-CSV-12.
func TestRequirements(t *testing.T) {
	t.Parallel()
	spec := bundle.CSVSpec{MinKubeVersion: "1.27.0", NativeAPIs: []bundle.GVK{{Group: "apps", Version: "v1", Kind: "Deployment"}}}
	spec.CRDs.Owned = []bundle.CRDDescription{{Name: "tides.sea.test", Version: "v1"}}
	spec.CRDs.Required = []bundle.CRDDescription{{Name: "buoys.sea.test", Version: "v1"}}
	spec.Install.Spec.Permissions = []bundle.Permissions{{ServiceAccountName: "tide"}, {ServiceAccountName: "tide"}}
	good := func() csv.Facts {
		return csv.Facts{
			KubernetesVersion: "v1.34.4+k3s1",
			CRDs: map[string]csv.CRDFact{
				"tides.sea.test": {Established: true, Served: []string{"v1"}}, "buoys.sea.test": {Established: true, Served: []string{"v1", "v2"}},
			},
			Accounts:   map[string]csv.AccountFact{"tide": {UID: "u"}},
			NativeAPIs: map[bundle.GVK]bool{{Group: "apps", Version: "v1", Kind: "Deployment"}: true},
		}
	}
	for name, c := range map[string]struct {
		change func(*csv.Facts)
		want   []string
	}{
		"all met":         {func(*csv.Facts) {}, nil},
		"old cluster":     {func(f *csv.Facts) { f.KubernetesVersion = "v1.26.9" }, []string{"minKubeVersion PresentNotSatisfied minKubeVersion 1.27.0 is above the cluster's 1.26.9"}},
		"own build":       {func(f *csv.Facts) { f.KubernetesVersion = "v1.27.0-beta.1" }, nil},
		"no CRD":          {func(f *csv.Facts) { delete(f.CRDs, "tides.sea.test") }, []string{"tides.sea.test NotPresent CRD is not present"}},
		"not served":      {func(f *csv.Facts) { f.CRDs["buoys.sea.test"] = csv.CRDFact{Established: true, Served: []string{"v2"}} }, []string{"buoys.sea.test NotPresent CRD version not served"}},
		"not established": {func(f *csv.Facts) { f.CRDs["buoys.sea.test"] = csv.CRDFact{Served: []string{"v1"}} }, []string{"buoys.sea.test PresentNotAvailable CRD is present but the Established condition is False (not available)"}},
		"no native API":   {func(f *csv.Facts) { f.NativeAPIs = nil }, []string{" NotPresent Native API does not exist"}},
		"no account":      {func(f *csv.Facts) { f.Accounts = nil }, []string{"tide NotPresent Service account does not exist"}},
		"foreign account": {func(f *csv.Facts) { f.Accounts["tide"] = csv.AccountFact{ForeignOwner: "x"} }, []string{"tide PresentNotSatisfied Service account is owned by another ClusterServiceVersion"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := good()
			c.change(&f)
			rows := csv.Check(spec, f)
			if len(rows) != 5 {
				t.Errorf("%d rows, want 5: %+v", len(rows), rows)
			}
			var got []string
			for _, r := range csv.Unmet(rows) {
				got = append(got, r.Name+" "+r.Status+" "+r.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("unmet (-want +got):\n%s", diff)
			}
		})
	}
}

func deployment(name string, change func(*appsv1.Deployment)) appsv1.Deployment {
	one := int32(1)
	d := appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: &one},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
		}},
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
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
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
	if c := csv.Observe(declared, []appsv1.Deployment{deployment("a", fine), deployment("b", fine)}); !c.Applied || !c.Healthy || c.Message != "" {
		t.Errorf("both there: %+v", c)
	}
	if c := csv.Observe(declared, nil); c.Applied || c.Healthy || c.Message != "deployment a is not there; deployment b is not there" {
		t.Errorf("none there: %+v", c)
	}
	if c := csv.Observe(nil, nil); !c.Applied || !c.Healthy {
		t.Errorf("none declared: %+v", c)
	}
}
