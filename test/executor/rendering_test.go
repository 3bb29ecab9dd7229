package executor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor"
)

// laterRendering is what a later release renders by.
const laterRendering = "chandler.render.v2"

// renderedLater marks every object, so that it can be seen who rendered it.
func renderedLater(in render.Input) ([]render.Object, error) {
	objects, err := render.Render(in)
	for i := range objects {
		meta := objects[i].Body["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		if labels == nil {
			labels = map[string]any{}
		}
		labels["release"] = "later"
		meta["labels"] = labels
	}
	return objects, err
}

// TestRenderings: DESIGN D5: an executor renders by the rules that a plan and what is installed name. One that does not
// have them yet waits for its own upgrade; where they are gone, what was not begun waits for another plan, and what was
// begun ends and is taken over. Nothing that is installed changes because the executor is another release.
func TestRenderings(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one := render.NewVersions(map[string]render.Renderer{render.Semantics: render.Render})
	both := render.NewVersions(map[string]render.Renderer{
		render.Semantics: render.Render, laterRendering: renderedLater,
	})
	two := render.NewVersions(map[string]render.Renderer{laterRendering: renderedLater})
	with := func(v *render.Versions, hook func(string) error) executor.Config {
		cfg := b.config("one")
		cfg.Rendering, cfg.Hook = v, hook
		return cfg
	}
	later := *b.hub
	later.Hub = b.hub.Rendering(two)

	// An earlier release: one plan of its own, one of a later release, one on whose way it dies.
	rest, restContent := simple(t, "rest")
	ahead, aheadContent := simple(t, "ahead")
	half, halfContent := simple(t, "half")
	stop := b.start(with(one, nil))
	atRest, awaited := b.plan("rest", "rest", restContent), later.plan("ahead", "ahead", aheadContent)
	b.want("rest", atRest)
	b.want("ahead", awaited)
	b.finishes(t, "rest", atRest, rest.csv())
	if r := b.awaitPlan("ahead", awaited.ID, blocked("RenderingAhead")); r.Begun {
		t.Error("a step was taken by rules that the executor does not have")
	}
	stop()
	begun := b.plan("half", "half", halfContent)
	b.want("half", begun)
	applied := 0
	e, err := executor.New(with(one, func(point string) error {
		if point == "applied" {
			applied++
		}
		if applied == 3 {
			return errCrash
		}
		return nil
	}))
	must(t, err)
	if err := b.launch(e).wait(); !errors.Is(err, errCrash) {
		t.Fatalf("the executor ended with %v", err)
	}

	// The upgrade knows both.
	stop = b.start(with(both, nil))
	b.finishes(t, "ahead", awaited, ahead.csv())
	b.finishes(t, "half", begun, half.csv())
	b.looks(t, "rest", rest.csv(), "")
	b.looks(t, "half", half.csv(), "")
	b.looks(t, "ahead", ahead.csv(), "later")
	stop()

	// Another one is under way when the old rules go.
	gone, goneContent := simple(t, "gone")
	stuck, stuckContent := simple(t, "stuck")
	broken := b.plan("stuck", "stuck", stuckContent)
	b.want("stuck", broken)
	applied = 0
	e, err = executor.New(with(both, func(point string) error {
		if point == "applied" {
			applied++
		}
		if applied == 3 {
			return errCrash
		}
		return nil
	}))
	must(t, err)
	if err := b.launch(e).wait(); !errors.Is(err, errCrash) {
		t.Fatalf("the executor ended with %v", err)
	}
	old := b.plan("gone", "gone", goneContent)
	b.want("gone", old)
	b.start(with(two, nil))
	if r := b.awaitPlan("gone", old.ID, blocked("RenderingGone")); r.Begun {
		t.Error("a step was taken by rules that are gone")
	}
	if r := b.awaitPlan("stuck", broken.ID, phase(protocol.PlanFailed)); r.Reason != "RenderingGone" || !r.Begun {
		t.Errorf("what was begun by rules that are gone ended as %+v", r)
	}
	anew, heir := later.plan("gone", "gone", goneContent), later.plan("stuck", "stuck", stuckContent)
	b.want("gone", anew)
	b.want("stuck", heir)
	b.finishes(t, "gone", anew, gone.csv())
	b.finishes(t, "stuck", heir, stuck.csv())
	b.looks(t, "stuck", stuck.csv(), "later")
	b.looks(t, "rest", rest.csv(), "") // it stays as it is until a plan brings it again
}

// wait is until an executor has ended by itself.
func (r *running) wait() error {
	defer r.cancel()
	return <-r.done
}

// looks compares who rendered what is installed with what its InstalledOperator says.
func (b *bed) looks(t *testing.T, ns, csv, release string) {
	t.Helper()
	client, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	rendering := render.Semantics
	if release != "" {
		rendering = laterRendering
	}
	await(t, "the look of "+csv, func(ctx context.Context) error {
		o, err := client.Resource(installedOperators()).Namespace(ns).Get(ctx, csv, metav1.GetOptions{})
		if err != nil {
			return err
		}
		d, err := b.kube.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if got := o.GetAnnotations()["chandler-fleet.io/rendering"]; got != rendering || len(d.Items) == 0 {
			return fmt.Errorf("it is rendered by %q, want %q; %d Deployments", got, rendering, len(d.Items))
		}
		for _, x := range d.Items {
			if x.Labels["release"] != release {
				return fmt.Errorf("Deployment %s is of release %q, want %q", x.Name, x.Labels["release"], release)
			}
		}
		return nil
	})
}
