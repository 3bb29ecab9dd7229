package overlay_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func object(kind, namespace string) render.Object {
	gvk := kube.GVKDeployment
	gvk.Kind = kind
	o := render.Object{GVK: gvk, Namespace: namespace, Name: "tide", Resolving: "tide.v1"}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName("tide")
	o.Body = u.Object
	return o
}

// adds is an overlay about Deployments that appends to an annotation.
func adds(text string) overlay.Overlay {
	return overlay.Overlay{
		About: func(_ scope.RenderTarget, kind, _ string) bool { return kind == "Deployment" },
		Input: func(scope.RenderTarget) any { return text },
		Apply: func(_ scope.RenderTarget, body *unstructured.Unstructured) error {
			body.SetAnnotations(map[string]string{"sea.test/order": body.GetAnnotations()["sea.test/order"] + text})
			return nil
		},
	}
}

func target() scope.RenderTarget {
	return scope.RenderTarget{
		Plan: "p", Component: "c", UID: "u",
		Bundle: events.PlannedBundle{CSV: "tide.v1", Package: "tide", Content: "sha256:1"},
	}
}

// TestApply: overlays are applied in their order, to what they are about alone, and never to what was rendered.
func TestApply(t *testing.T) {
	t.Parallel()
	set := overlay.Set{adds("a"), adds("b")}
	o := object("Deployment", "ports")
	body, digest, err := set.Apply(target(), o)
	if err != nil || digest == "" || body.GetAnnotations()["sea.test/order"] != "ab" {
		t.Errorf("got %v, %q, %v", body, digest, err)
	}
	if _, changed := o.Body["metadata"].(map[string]any)["annotations"]; changed {
		t.Error("the rendered object was changed")
	}
	if _, again, _ := set.Apply(target(), o); again != digest {
		t.Errorf("the same input gives %s and %s", digest, again)
	}
	if _, other, _ := (overlay.Set{adds("a"), adds("c")}).Apply(target(), o); other == digest {
		t.Error("another input gives the same digest")
	}
	if body, digest, err := set.Apply(target(), object("ConfigMap", "ports")); err != nil || digest != "" ||
		body.GetAnnotations() != nil {
		t.Errorf("an object that no overlay is about: %v, %q, %v", body, digest, err)
	}
	refused := errors.New("no")
	fails := overlay.Overlay{
		About: adds("").About, Input: adds("").Input,
		Apply: func(scope.RenderTarget, *unstructured.Unstructured) error { return refused },
	}
	if _, _, err := (overlay.Set{fails}).Apply(target(), o); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

// TestInputs: objects are rendered anew when, and only when, the plan, the content, the configuration or the input of
// an overlay changes (ADR 0017).
func TestInputs(t *testing.T) {
	t.Parallel()
	digest := func(set overlay.Set, change func(*scope.RenderTarget)) string {
		t.Helper()
		of := target()
		if change != nil {
			change(&of)
		}
		d, err := set.Inputs(of)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	set := overlay.Set{adds("a")}
	want := digest(set, nil)
	if digest(set, func(t *scope.RenderTarget) { t.UID, t.Component = "v", "d" }) != want {
		t.Error("what no object depends on changes the inputs")
	}
	for name, got := range map[string]string{
		"an overlay":    digest(overlay.Set{adds("b")}, nil),
		"the plan":      digest(set, func(t *scope.RenderTarget) { t.Plan = "q" }),
		"the content":   digest(set, func(t *scope.RenderTarget) { t.Bundle.Content = "sha256:2" }),
		"configuration": digest(set, func(t *scope.RenderTarget) { t.Config = []byte(`{"env":[]}`) }),
	} {
		if got == want {
			t.Errorf("%s does not change the inputs", name)
		}
	}
}

// TestDecorate: R-IP-23: what is written says whose it is, and is owned by its operator where the cluster may remove it
// with that.
func TestDecorate(t *testing.T) {
	t.Parallel()
	body, err := overlay.Set{adds("a")}.Decorate("ports", target(), object("Deployment", "ports"))
	if err != nil {
		t.Fatal(err)
	}
	a := body.GetAnnotations()
	if a[scope.AnnotationPlan] != "p" || a[scope.AnnotationComponent] != "c" || a[scope.AnnotationDigest] == "" ||
		a[scope.AnnotationRendered] == "" || a["sea.test/order"] != "a" {
		t.Errorf("annotations %v", a)
	}
	if body.GetLabels()[kube.LabelManaged] != "true" {
		t.Errorf("labels %v", body.GetLabels())
	}
	if owners := body.GetOwnerReferences(); len(owners) != 1 || owners[0].Name != "tide.v1" || owners[0].UID != "u" {
		t.Errorf("owners %v", owners)
	}
	body, err = overlay.Set{}.Decorate("ports", target(), object("Role", "quays"))
	if err != nil || len(body.GetOwnerReferences()) > 0 || body.GetAnnotations()[scope.AnnotationRendered] != "" {
		t.Errorf("in another namespace: %v, %v", body, err)
	}
	early := target()
	early.UID = ""
	if _, err := (overlay.Set{}).Decorate("ports", early, object("Deployment", "ports")); err == nil {
		t.Error("an object is written before its operator")
	}
}

// TestExpect: R-CSV-20: a plan that has begun is known by the Deployments that it is about to write, with their
// overlays.
func TestExpect(t *testing.T) {
	t.Parallel()
	sc := &scope.Scope{Found: scope.Findings{Expected: map[string]map[string]string{}}}
	p := scope.Plan{Objects: []render.Object{object("Deployment", "ports"), object("ConfigMap", "ports")}}
	p.ID, p.Document.Bundles = "p", []events.PlannedBundle{target().Bundle}
	overlay.Expect(sc, overlay.Set{adds("a")}, p)
	_, want, err := overlay.Set{adds("a")}.Apply(target(), object("Deployment", "ports"))
	if got := sc.Found.Expected["tide.v1"]; err != nil || len(got) != 1 || got["tide"] != want {
		t.Errorf("got %v, want %s, %v", got, want, err)
	}
}
