package drift

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestBecause: R-CSV-24: people read why the API server would not compare, and no value of a configuration.
func TestBecause(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "tide", field.ErrorList{
		field.Invalid(field.NewPath("spec", "template", "spec", "containers").Index(0).Child("env"), "s3cr3t", "no"),
	})
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "tide",
		errors.New("denied by policy tide-guard"))
	frozen := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "settings", nil)
	frozen.ErrStatus.Message, frozen.ErrStatus.Details.Causes = "policy 'freeze' denied request: settings are frozen",
		[]metav1.StatusCause{{Message: "policy 'freeze' denied request"}}
	secret := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "tide",
		errors.New("s3cr3t is a bad word"))
	for name, c := range map[string]struct {
		kind string
		err  error
		want string
	}{
		"values that are not taken": {
			"Deployment", fmt.Errorf("apply: %w", invalid),
			"Invalid: spec.template.spec.containers[0].env FieldValueInvalid",
		},
		"a policy": {
			"Deployment", denied,
			`deployments.apps "tide" is forbidden: denied by policy tide-guard`,
		},
		"a policy, about a Secret":   {"Secret", secret, "Forbidden"},
		"a policy that says invalid": {"ConfigMap", frozen, "policy 'freeze' denied request: settings are frozen"},
		"the network":                {"Secret", errors.New("connection refused"), "connection refused"},
		"more than anybody reads": {
			"Service", errors.New(strings.Repeat("é", MaxReasonBytes)),
			strings.Repeat("é", MaxReasonBytes/2) + "…",
		},
		"cut in the middle of a rune": {
			"Service", errors.New("x" + strings.Repeat("é", MaxReasonBytes)),
			"x" + strings.Repeat("é", MaxReasonBytes/2-1) + "…",
		},
	} {
		if got := Because(c.kind, c.err); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPutsRight: R-CSV-24: what is put right, and what only reported or left to phases.
func TestPutsRight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setting          string
		stopped, missing bool
		gvk              schema.GroupVersionKind
		want             bool
	}{
		"changed":                 {events.DriftCorrect, false, false, kube.GVKDeployment, true},
		"deleted":                 {events.DriftCorrect, false, true, kube.GVKServiceAccount, true},
		"a Deployment is deleted": {events.DriftCorrect, false, true, kube.GVKDeployment, false},
		"only to be reported":     {events.DriftReport, false, false, kube.GVKDeployment, false},
		"the stop switch":         {events.DriftCorrect, true, false, kube.GVKDeployment, false},
	} {
		got := putsRight(corrects(events.ClusterSettings{Drift: c.setting}, c.stopped), c.missing, c.gvk)
		if got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestSettled: of a definition that two plans brought, whoever wrote it last is the owner of its body; of what is an
// operator's alone its plan is.
func TestSettled(t *testing.T) {
	t.Parallel()
	object := func(plan, value string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"gauge": value}}}
		o.SetAnnotations(map[string]string{scope.AnnotationPlan: plan})
		return o
	}
	definition := render.Object{GVK: kube.GVKCRD, Name: "gauges.sea.test", Resolving: "tide.v1"}
	own := render.Object{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "ports", Name: "tide",
		Resolving: "tide.v1",
	}
	for name, c := range map[string]struct {
		o    render.Object
		live *unstructured.Unstructured
		want bool
	}{
		"as it is to be":               {own, object("p", "1"), true},
		"changed":                      {own, object("p", "2"), false},
		"a definition of another plan": {definition, object("q", "2"), true},
		"a definition of this plan":    {definition, object("p", "2"), false},
		"an object that names another": {own, object("q", "2"), false},
	} {
		if got := settled(c.o, c.live, object(c.live.GetAnnotations()[scope.AnnotationPlan], "1"), "p"); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
