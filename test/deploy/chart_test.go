package deploy_test

import (
	"maps"
	"net/url"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// deliveries are the rendered charts by the name of their values.
func deliveries(t testing.TB) map[string]delivery {
	t.Helper()
	all := map[string]delivery{}
	for _, values := range allValues {
		all[values] = deliver(t, values)
	}
	return all
}

// The restricted standard is proved by an API server; these are the wishes beyond it.
func TestPodsCanDoLittle(t *testing.T) {
	t.Parallel()
	for values, d := range deliveries(t) {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			for component, pod := range d.pods() {
				if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
					t.Errorf("%s: pods hold a token of the cluster", component)
				}
				if pod.HostNetwork || pod.HostPID || pod.HostIPC {
					t.Errorf("%s: pods share something of the node", component)
				}
				for _, c := range pod.Containers {
					s := c.SecurityContext
					if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
						t.Errorf("%s/%s: the root file system is writable", component, c.Name)
					}
					if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() ||
						c.Resources.Limits.Memory().IsZero() {
						t.Errorf("%s/%s: resources are %+v", component, c.Name, c.Resources)
					}
				}
			}
			for name, account := range d.accounts {
				if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
					t.Errorf("the ServiceAccount %s hands out tokens", name)
				}
			}
		})
	}
}

// Only an emptyDir may be written to, and only /tmp has to be.
func TestMountsAreReadOnly(t *testing.T) {
	t.Parallel()
	for values, d := range deliveries(t) {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			for component, pod := range d.pods() {
				volumes := map[string]corev1.Volume{}
				for _, v := range pod.Volumes {
					volumes[v.Name] = v
				}
				for _, c := range pod.Containers {
					for _, m := range c.VolumeMounts {
						v, ok := volumes[m.Name]
						if !ok {
							t.Errorf("%s mounts %s, which is no volume of the pod", component, m.Name)
						}
						if !m.ReadOnly && v.EmptyDir == nil {
							t.Errorf("%s may write to %s", component, m.MountPath)
						}
						if v.EmptyDir != nil && v.EmptyDir.SizeLimit == nil {
							t.Errorf("%s: the volume %s has no limit", component, m.Name)
						}
					}
				}
			}
		})
	}
}

func TestProbesAskTheOpsPort(t *testing.T) {
	t.Parallel()
	for values, d := range deliveries(t) {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			for component, deployment := range d.deployments {
				c := deployment.Spec.Template.Spec.Containers[0]
				for path, probe := range map[string]*corev1.Probe{
					"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe,
				} {
					if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path ||
						probe.HTTPGet.Port.String() != "ops" {
						t.Errorf("%s: probe of %s is %+v", component, path, probe)
					}
				}
				if c.StartupProbe == nil {
					t.Errorf("%s: waiting for Postgres at start counts against liveness", component)
				}
			}
		})
	}
}

// What a Service selects exists and has the port; what an account, a budget and the test name, too.
func TestNamesFitTogether(t *testing.T) {
	t.Parallel()
	for values, d := range deliveries(t) {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			for name, service := range d.services {
				deployment, ok := d.deployments[service.Spec.Selector[componentLabel]]
				if !ok || !selects(service.Spec.Selector, deployment.Spec.Template.Labels) {
					t.Errorf("the Service %s selects nothing: %v", name, service.Spec.Selector)
					continue
				}
				for _, p := range service.Spec.Ports {
					if !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports,
						func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.String() }) {
						t.Errorf("the Service %s leads to the port %s, which its pods do not have", name,
							p.TargetPort.String())
					}
				}
			}
			for component, deployment := range d.deployments {
				if !selects(deployment.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels) {
					t.Errorf("%s does not select its own pods", component)
				}
				if account := deployment.Spec.Template.Spec.ServiceAccountName; d.accounts[account].Name == "" {
					t.Errorf("%s runs as %q, which the chart does not make", component, account)
				}
				budget, ok := d.budgets[component]
				if want := *deployment.Spec.Replicas > 1; ok != want {
					t.Errorf("%s has %d replicas; a budget: %t", component, *deployment.Spec.Replicas, ok)
				}
				if ok && !selects(budget.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels) {
					t.Errorf("the budget of %s selects nothing", component)
				}
			}
			for _, c := range d.test.Spec.Containers {
				asked, err := url.Parse(c.Command[1])
				if err != nil || d.services[asked.Hostname()].Name == "" {
					t.Errorf("helm test asks %s, which is no Service", c.Command[1])
				}
			}
		})
	}
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// A change of settings starts new pods of those services that it concerns, and of no others.
func TestChangedSettingsStartNewPods(t *testing.T) {
	t.Parallel()
	before := checksums(deliver(t, "default"))
	tests := map[string]struct {
		set  string
		want []string
	}{
		"one service":  {"catalogIndexer.poll=1m", []string{"catalog-indexer"}},
		"all services": {"log.level=debug", services},
		"none":         {"gateway.replicaCount=5", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var changed []string
			for component, sum := range checksums(deliver(t, "default", "--set", test.set)) {
				if before[component] != sum {
					changed = append(changed, component)
				}
			}
			slices.Sort(changed)
			if !slices.Equal(changed, test.want) {
				t.Errorf("--set %s starts new pods of %v, want %v", test.set, changed, test.want)
			}
		})
	}
}

func checksums(d delivery) map[string]string {
	all := map[string]string{}
	for component, deployment := range d.deployments {
		all[component] = deployment.Spec.Template.Annotations["checksum/config"]
	}
	return all
}

// Each service sees the secrets that it needs, and no other's.
func TestSecretsAreGivenOut(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"catalog-indexer": {
			"CHANDLER_CATALOG_CREDENTIALS_IDENTITY", "CHANDLER_CATALOG_INDEXER_PASSWORD",
			"CHANDLER_NATS_CATALOG_INDEXER_SEED", "CHANDLER_SOURCE_KEY",
		},
		"gateway": {
			"CHANDLER_ADMIN_TOKEN", "CHANDLER_ANNOTATION_KEY", "CHANDLER_CATALOG_CREDENTIALS_RECIPIENT",
			"CHANDLER_CONFIGURATION_KEY", "CHANDLER_CREDENTIALS_RECIPIENT", "CHANDLER_GATEWAY_API_PASSWORD",
			"CHANDLER_GATEWAY_PASSWORD", "CHANDLER_HOOK_KEY", "CHANDLER_NATS_GATEWAY_SEED", "CHANDLER_REASON_KEY",
			"CHANDLER_SOURCE_KEY",
		},
		"installer": {
			"CHANDLER_ANNOTATION_KEY", "CHANDLER_CONFIGURATION_KEY", "CHANDLER_CREDENTIALS_IDENTITY",
			"CHANDLER_GRANT_KEY", "CHANDLER_INSTALLER_PASSWORD", "CHANDLER_NATS_INSTALLER_SEED", "CHANDLER_SOURCE_KEY",
		},
		"resolver": {"CHANDLER_CONFIGURATION_KEY", "CHANDLER_NATS_RESOLVER_SEED", "CHANDLER_RESOLVER_PASSWORD"},
		"migration": {
			"CHANDLER_ADMIN_DATABASE_URL", "CHANDLER_CATALOG_INDEXER_PASSWORD", "CHANDLER_GATEWAY_API_PASSWORD",
			"CHANDLER_GATEWAY_PASSWORD", "CHANDLER_INSTALLER_PASSWORD", "CHANDLER_RESOLVER_PASSWORD",
		},
		"test": nil,
	}
	for values, d := range deliveries(t) {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			for component, pod := range d.pods() {
				keys := secretKeys(pod)
				delete(keys, "CHANDLER_NATS_URL") // of a Secret of its own
				for _, file := range []string{"root.pem", "tls.crt", "tls.key"} {
					delete(keys, file) // certificates of Postgres and NATS
				}
				delete(keys, "CHANDLER_OPS_TOKEN") // of a Secret of its own, where metrics ask for it
				if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, want[component]) {
					t.Errorf("%s sees %v, want %v", component, got, want[component])
				}
			}
		})
	}
}

// secretKeys are the keys of Secrets that a pod sees, as variables or as files.
func secretKeys(pod corev1.PodSpec) map[string]bool {
	keys := map[string]bool{}
	for _, c := range pod.Containers {
		for _, v := range c.Env {
			if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
				keys[v.ValueFrom.SecretKeyRef.Key] = true
			}
		}
	}
	for _, v := range pod.Volumes {
		if v.Secret == nil && v.Projected == nil {
			continue
		}
		if len(items(v)) == 0 {
			keys["everything of the volume "+v.Name] = true
		}
		for _, item := range items(v) {
			keys[item.Key] = true
		}
	}
	return keys
}

// Labels that tell apart what belongs to which release.
func TestEveryObjectSaysWhereItBelongs(t *testing.T) {
	t.Parallel()
	for values, d := range deliveries(t) {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			for _, o := range d.objects {
				l := o.GetLabels()
				if l["app.kubernetes.io/instance"] != release || l["app.kubernetes.io/part-of"] != "chandler" ||
					l[componentLabel] == "" {
					t.Errorf("labels of %s %s are %v", o.GetKind(), o.GetName(), l)
				}
				if o.GetNamespace() != "control" {
					t.Errorf("%s %s is in the namespace %q", o.GetKind(), o.GetName(), o.GetNamespace())
				}
			}
		})
	}
}
