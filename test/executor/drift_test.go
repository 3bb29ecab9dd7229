package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestDrift: R-CSV-24: what a person changed or deleted of an operator's objects is seen, told with field and author,
// and put right, or only told where the cluster's settings say so. No step of a plan does it.
func TestDrift(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	o := operator{name: "tide", version: "1.0.0", group: "tide.sea.test", configMap: "settings"}
	p := b.plan("ops", "tide", planned{
		content: o.content(t), config: []byte(`{"env":[{"name":"PASSPHRASE","value":"` + secretWanted + `"}]}`),
	})
	b.want("ops", p)
	c := b.finishes(t, "ops", p, o.csv())
	s := b.scope("ops")
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: o.csv(), Content: c.Content, Plan: p.ID}}
	b.publish(s)

	b.edit(t, "registry.example.com/edited:1")
	d := b.awaitDrift(t, o.csv(), "Deployment", func(d protocol.Drift) bool { return d.Corrected })
	if d.Manager != "kubectl-edit" || len(d.Fields) != 1 ||
		d.Fields[0].Path != "/spec/template/spec/containers/0/image" ||
		string(d.Fields[0].Have) != `"registry.example.com/edited:1"` ||
		string(d.Fields[0].Want) != `"registry.example.com/op:1.0.0"` {
		t.Errorf("told: %+v", d)
	}
	b.awaitImage(t, "registry.example.com/op:1.0.0")

	b.testDriftOfConfiguration(t, o)

	must(t, b.kube.CoreV1().ConfigMaps("ops").Delete(t.Context(), "settings", metav1.DeleteOptions{}))
	b.awaitDrift(t, o.csv(), "ConfigMap", func(d protocol.Drift) bool { return d.Missing && d.Corrected })
	if _, err := b.kube.CoreV1().ConfigMaps("ops").Get(t.Context(), "settings", metav1.GetOptions{}); err != nil {
		t.Errorf("the deleted object did not come back: %v", err)
	}

	s.Settings.Drift = events.DriftReport
	b.publish(s)
	b.looked(t, s)
	b.edit(t, "registry.example.com/edited:2")
	b.awaitDrift(t, o.csv(), "Deployment", func(d protocol.Drift) bool { return !d.Corrected && !d.Missing })
	b.awaitImage(t, "registry.example.com/edited:2")
	s.Settings.Drift = events.DriftCorrect
	b.publish(s)
	b.awaitDrift(t, o.csv(), "Deployment", func(d protocol.Drift) bool { return d.Corrected })
	b.awaitImage(t, "registry.example.com/op:1.0.0")

	b.testDriftOfRequirements(t, o)
	b.testDriftOfGroups(t, s)
}

// Values of a variable that are nobody's business: what the subscription configures, and what somebody wrote instead.
const (
	secretWanted  = "swordfish"
	secretWritten = "pufferfish"
)

// testDriftOfConfiguration: of a variable that somebody changed is told where it is, and neither value, anywhere in
// what the cluster reports.
func (b *bed) testDriftOfConfiguration(t *testing.T, o operator) {
	t.Helper()
	deployments := b.kube.AppsV1().Deployments("ops")
	d, err := deployments.Get(t.Context(), "tide-controller", metav1.GetOptions{})
	must(t, err)
	i := slices.IndexFunc(d.Spec.Template.Spec.Containers[0].Env, func(v corev1.EnvVar) bool {
		return v.Name == "PASSPHRASE" && v.Value == secretWanted
	})
	if i < 0 {
		t.Fatalf("the configuration is not in the Deployment: %+v", d.Spec.Template.Spec.Containers[0].Env)
	}
	path := fmt.Sprintf("/spec/template/spec/containers/0/env/%d/value", i)
	patch := fmt.Sprintf(`[{"op":"replace","path":%q,"value":%q}]`, path, secretWritten)
	_, err = deployments.Patch(t.Context(), d.Name, types.JSONPatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "kubectl-edit"})
	must(t, err)
	ofVariable := func(f protocol.FieldDrift) bool { return f.Path == path }
	found := b.awaitDrift(t, o.csv(), "Deployment", func(d protocol.Drift) bool {
		return d.Corrected && slices.ContainsFunc(d.Fields, ofVariable)
	})
	if f := found.Fields[slices.IndexFunc(found.Fields, ofVariable)]; f.Want != nil || f.Have != nil {
		t.Errorf("told: %+v, want %s without values", found, path)
	}
	r, ok, err := b.report(t.Context(), "ops")
	must(t, err)
	raw, err := json.Marshal(r)
	must(t, err)
	if !ok || strings.Contains(string(raw), secretWanted) || strings.Contains(string(raw), secretWritten) {
		t.Errorf("a report tells a value of the configuration: %s", raw)
	}
}

// testDriftOfRequirements: what an operator requires of its own objects comes back although its phase says that it
// waits for it.
func (b *bed) testDriftOfRequirements(t *testing.T, o operator) {
	t.Helper()
	must(t, b.kube.CoreV1().ServiceAccounts("ops").Delete(t.Context(), o.name, metav1.DeleteOptions{}))
	b.awaitDrift(t, o.csv(), "ServiceAccount", func(d protocol.Drift) bool { return d.Missing && d.Corrected })
	b.awaitCSV("ops", o.csv(), reached("Succeeded"))
	if _, err := b.kube.CoreV1().ServiceAccounts("ops").Get(t.Context(), o.name, metav1.GetOptions{}); err != nil {
		t.Errorf("the deleted account did not come back: %v", err)
	}
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	definitions := dyn.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions",
	})
	must(t, definitions.Delete(t.Context(), "gauges."+o.group, metav1.DeleteOptions{}))
	b.awaitDrift(t, o.csv(), "CustomResourceDefinition",
		func(d protocol.Drift) bool { return d.Missing && d.Corrected })
	b.awaitCSV("ops", o.csv(), reached("Succeeded"))
	if _, err := definitions.Get(t.Context(), "gauges."+o.group, metav1.GetOptions{}); err != nil {
		t.Errorf("the deleted definition did not come back: %v", err)
	}
}

// testDriftOfGroups: while nobody knows whom an operator serves, nothing of it is written: its pods would be told of
// all namespaces.
func (b *bed) testDriftOfGroups(t *testing.T, s protocol.ScopePlans) {
	t.Helper()
	s.OperatorGroups = 2
	b.looked(t, s)
	b.edit(t, "registry.example.com/edited:3")
	for range 2 {
		b.looked(t, s)
	}
	b.awaitImage(t, "registry.example.com/edited:3")
	s.OperatorGroups = 1
	b.publish(s)
	b.awaitImage(t, "registry.example.com/op:1.0.0")
}

// TestAlone: an operator that cannot be written is told and tried again, and holds up no other one of its namespace.
func TestAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	tide, wind := operator{name: "tide", version: "1.0.0"}, operator{name: "wind", version: "1.0.0"}
	s := b.scope("ops")
	for _, o := range []operator{tide, wind} {
		p := b.plan("ops", o.name, planned{content: o.content(t)})
		b.want("ops", p)
		c := b.finishes(t, "ops", p, o.csv())
		s.Installed = append(s.Installed, protocol.Installed{CSV: o.csv(), Content: c.Content, Plan: p.ID})
	}
	b.publish(s)
	deployments := b.kube.AppsV1().Deployments("ops")
	d, err := deployments.Get(t.Context(), "tide-controller", metav1.GetOptions{})
	must(t, err)
	d.ObjectMeta = metav1.ObjectMeta{Name: d.Name, Labels: d.Labels}
	d.Spec.Selector.MatchLabels = map[string]string{"somebody": "else"} // which no write can change
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	must(t, deployments.Delete(t.Context(), d.Name, metav1.DeleteOptions{}))
	_, err = deployments.Create(t.Context(), d, metav1.CreateOptions{})
	must(t, err)
	unattended := func(r protocol.ScopeReport) bool {
		return r.Group != nil && slices.ContainsFunc(r.Group.Conditions, func(c protocol.GroupCondition) bool {
			return c.Type == protocol.GroupUnattended && strings.Contains(c.Message, tide.csv())
		})
	}
	b.awaitReport(t, "the one that cannot be written", unattended)

	must(t, deployments.Delete(t.Context(), "wind-controller", metav1.DeleteOptions{}))
	await(t, "the other one's Deployment", func(ctx context.Context) error {
		_, err := deployments.Get(ctx, "wind-controller", metav1.GetOptions{})
		return err
	})
	b.awaitCSV("ops", wind.csv(), reached("Succeeded"))

	must(t, deployments.Delete(t.Context(), d.Name, metav1.DeleteOptions{}))
	b.awaitCSV("ops", tide.csv(), reached("Succeeded"))
	b.awaitReport(t, "nothing in the way", func(r protocol.ScopeReport) bool {
		return r.Group != nil &&
			!unattended(r)
	})
}

func (b *bed) awaitReport(t *testing.T, what string, ok func(protocol.ScopeReport) bool) {
	t.Helper()
	await(t, what, func(ctx context.Context) error {
		r, known, err := b.report(ctx, "ops")
		if err != nil || !known || !ok(r) {
			return fmt.Errorf("told: %+v (%w)", r.Group, err)
		}
		return nil
	})
}

// TestDriftOfARestart: what was changed while no executor ran is seen by the next one.
func TestDriftOfARestart(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stop := b.start(b.config("one"))
	o := operator{name: "tide", version: "1.0.0"}
	p := b.plan("ops", "tide", planned{content: o.content(t)})
	b.want("ops", p)
	b.finishes(t, "ops", p, o.csv())
	stop()
	b.edit(t, "registry.example.com/edited:1")
	b.start(b.config("one"))
	b.awaitDrift(t, o.csv(), "Deployment", func(d protocol.Drift) bool { return d.Corrected })
	b.awaitImage(t, "registry.example.com/op:1.0.0")
}

func (b *bed) edit(t *testing.T, image string) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image)
	_, err := b.kube.AppsV1().Deployments("ops").Patch(t.Context(), "tide-controller", types.JSONPatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	must(t, err)
}

func (b *bed) awaitDrift(t *testing.T, csv, kind string, ok func(protocol.Drift) bool) protocol.Drift {
	t.Helper()
	var found protocol.Drift
	b.awaitCSV("ops", csv, func(r protocol.CSVReport) bool {
		return slices.ContainsFunc(r.Drift, func(d protocol.Drift) bool {
			found = d
			return d.Kind == kind && ok(d)
		})
	})
	return found
}

func (b *bed) awaitImage(t *testing.T, want string) {
	t.Helper()
	await(t, "image "+want, func(ctx context.Context) error {
		d, err := b.kube.AppsV1().Deployments("ops").Get(ctx, "tide-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := d.Spec.Template.Spec.Containers[0].Image; got != want {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}
