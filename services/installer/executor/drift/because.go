package drift

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
