package executor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestDrift: R-CSV-24: what a person changed or deleted of an operator's objects is seen, told with field and author, and
// put right, or only told where the cluster's settings say so. No step of a plan does it.
func TestDrift(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	o := operator{name: "tide", version: "1.0.0", group: "tide.sea.test", configMap: "settings"}
	p := b.plan("ops", "tide", planned{content: o.content(t)})
	b.want("ops", p)
	c := b.finishes(t, "ops", p, o.csv())
	s := b.scope("ops")
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: o.csv(), Content: c.Content, Plan: p.ID}}
	b.publish(s)

	b.edit(t, "registry.example.com/edited:1")
	d := b.awaitDrift(t, o.csv(), "Deployment", func(d protocol.Drift) bool { return d.Corrected })
	if d.Manager != "kubectl-edit" || len(d.Fields) != 1 || d.Fields[0].Path != "/spec/template/spec/containers/0/image" ||
		string(d.Fields[0].Have) != `"registry.example.com/edited:1"` || string(d.Fields[0].Want) != `"registry.example.com/op:1.0.0"` {
		t.Errorf("told: %+v", d)
	}
	b.awaitImage(t, "registry.example.com/op:1.0.0")

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
	_, err := b.kube.AppsV1().Deployments("ops").Patch(t.Context(), "tide-controller", types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
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
