package deploy_test

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// services are the components that run for ever.
var services = []string{"catalog-indexer", "gateway", "installer", "resolver"}

const componentLabel = "app.kubernetes.io/component"

// delivery is what a rendered chart holds, typed.
type delivery struct {
	objects     []*unstructured.Unstructured
	deployments map[string]appsv1.Deployment // by component
	configs     map[string]corev1.ConfigMap  // by name
	services    map[string]corev1.Service    // by name
	budgets     map[string]policyv1.PodDisruptionBudget
	accounts    map[string]corev1.ServiceAccount
	migration   *batchv1.Job
	test        *corev1.Pod
}

func typed[T any](t testing.TB, o *unstructured.Unstructured) (v T) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &v, true); err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return v
}

func deliver(t testing.TB, values string, more ...string) delivery {
	t.Helper()
	d := delivery{
		objects:     render(t, "control", values, more...),
		deployments: map[string]appsv1.Deployment{}, configs: map[string]corev1.ConfigMap{},
		services: map[string]corev1.Service{}, budgets: map[string]policyv1.PodDisruptionBudget{},
		accounts: map[string]corev1.ServiceAccount{},
	}
	for _, o := range d.objects {
		component := o.GetLabels()[componentLabel]
		switch o.GetKind() {
		case "Deployment":
			d.deployments[component] = typed[appsv1.Deployment](t, o)
		case "ConfigMap":
			d.configs[o.GetName()] = typed[corev1.ConfigMap](t, o)
		case "Service":
			d.services[o.GetName()] = typed[corev1.Service](t, o)
		case "PodDisruptionBudget":
			d.budgets[component] = typed[policyv1.PodDisruptionBudget](t, o)
		case "ServiceAccount":
			d.accounts[o.GetName()] = typed[corev1.ServiceAccount](t, o)
		case "Job":
			job := typed[batchv1.Job](t, o)
			d.migration = &job
		case "Pod":
			pod := typed[corev1.Pod](t, o)
			d.test = &pod
		}
	}
	if len(d.deployments) != len(services) || d.migration == nil || d.test == nil {
		t.Fatalf("values %s: %d deployments, migration %v, test %v", values, len(d.deployments), d.migration != nil,
			d.test != nil)
	}
	return d
}

// pods are the specifications of all pods, by component.
func (d delivery) pods() map[string]corev1.PodSpec {
	all := map[string]corev1.PodSpec{"migration": d.migration.Spec.Template.Spec, "test": d.test.Spec}
	for component, deployment := range d.deployments {
		all[component] = deployment.Spec.Template.Spec
	}
	return all
}

// environment is what a container sees. A value from a Secret is asked of secret by its key.
func (d delivery) environment(t testing.TB, c corev1.Container, secret func(key string) string) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, from := range c.EnvFrom {
		config, ok := d.configs[from.ConfigMapRef.Name]
		if !ok {
			t.Fatalf("container %s takes variables from the ConfigMap %q, which the chart does not hold", c.Name,
				from.ConfigMapRef.Name)
		}
		maps.Copy(env, config.Data)
	}
	var names []string
	for _, v := range c.Env {
		if slices.Contains(names, v.Name) {
			t.Errorf("container %s has the variable %s twice", c.Name, v.Name)
		}
		names = append(names, v.Name)
		env[v.Name] = v.Value
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			env[v.Name] = secret(v.ValueFrom.SecretKeyRef.Key)
		}
	}
	return env
}
