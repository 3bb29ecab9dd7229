package drift

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
