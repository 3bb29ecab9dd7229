package drift

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/compare"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// corrects reports whether drift is put right, or only reported (R-CSV-24).
func corrects(s events.ClusterSettings, stopped bool) bool {
	return s.WithDefaults().Drift == events.DriftCorrect && !stopped
}

// lastCounts reports an object that others may have written by right, and of which no form is anybody's: what is the
// cluster's and no operator owns, such as a definition, or an account that bears another operator's name.
func lastCounts(o render.Object, live *unstructured.Unstructured) bool {
	if preflight.Formed(o) {
		return false
	}
	if o.Namespace == "" {
		return true
	}
	by := kube.OwnerOf(live)
	return render.Shared(o.GVK) && by != kube.Operator{} &&
		by != kube.Operator{Namespace: o.Namespace, Name: o.Resolving}.Label()
}

// fell reports an object that fell to the operator of a plan, since who held it is gone, and that still has that one's
// form.
func fell(live, want *unstructured.Unstructured, plan string) bool {
	return live != nil && objects.Owned(live) && live.GetAnnotations()[scope.AnnotationPlan] == plan &&
		live.GetAnnotations()[scope.AnnotationDigest] != want.GetAnnotations()[scope.AnnotationDigest]
}

// settled reports an object of which no trial is needed: it has all that is wanted, or others may have written it by
// right. Of these the one who wrote it last is the owner of its body.
func settled(o render.Object, live, want *unstructured.Unstructured, plan string) bool {
	return live.GetAnnotations()[scope.AnnotationPlan] != plan && lastCounts(o, live) ||
		compare.Holds(want.Object, live.Object)
}

// putsRight reports a drift that drift itself puts right. A Deployment that is gone is the phases' matter: put right
// here, it would have been away without a phase that says so.
func putsRight(corrects, missing bool, gvk schema.GroupVersionKind) bool {
	return corrects && (!missing || gvk != kube.GVKDeployment)
}

// MaxReasonBytes bounds why something could not be compared or put right: an admission policy may say a whole page.
const MaxReasonBytes = 500

// Because says why the API server would not say what differs, or put it right, for an object of a kind. Where it does
// not take a field it quotes the value, and what is said of a Secret may hold any: of these its reason and the fields
// are reported alone.
func Because(kind string, err error) string {
	text := err.Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) && (kind == "Secret" || aboutFields(status.Status())) {
		text = withoutValues(status.Status())
	}
	if len(text) <= MaxReasonBytes {
		return text
	}
	return strings.ToValidUTF8(text[:MaxReasonBytes], "") + "…"
}

// aboutFields reports an answer that names fields; an admission policy that refuses an object names none.
func aboutFields(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes,
		func(c metav1.StatusCause) bool { return c.Field != "" })
}

func withoutValues(s metav1.Status) string {
	parts := []string{string(s.Reason)}
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			parts = append(parts, strings.TrimSpace(c.Field+" "+string(c.Type)))
		}
	}
	return strings.Join(parts, ": ")
}
