package failure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
)

// TestClassify: DESIGN D7's three classes, and R-IP-40: forbidden is transient.
func TestClassify(t *testing.T) {
	t.Parallel()
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}
	refused := &url.Error{
		Op: "Patch", URL: "https://k",
		Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
	}
	for name, c := range map[string]struct {
		err           error
		class, reason string
	}{
		"invalid":     {apierrors.NewInvalid(schema.GroupKind{Kind: "Role"}, "x", nil), "permanent", "Invalid"},
		"bad request": {apierrors.NewBadRequest("no"), "permanent", "Invalid"},
		"too large":   {apierrors.NewRequestEntityTooLargeError("no"), "permanent", "TooLarge"},
		"conflict":    {apierrors.NewConflict(roles, "x", errors.New("no")), "conflict", "FieldManagerConflict"},
		"forbidden":   {apierrors.NewForbidden(roles, "x", errors.New("no")), "transient", "Forbidden"},
		"no namespace": {
			apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), "transient",
			"NamespaceNotFound",
		},
		"not served":   {apierrors.NewNotFound(roles, "x"), "transient", "APINotServed"},
		"unauthorized": {apierrors.NewUnauthorized("no"), "transient", "Unauthorized"},
		"timeout":      {apierrors.NewTimeoutError("slow", 1), "transient", "Timeout"},
		"deadline":     {fmt.Errorf("wait: %w", context.DeadlineExceeded), "transient", "Timeout"},
		"refused":      {refused, "transient", "ClusterUnreachable"},
		"by a policy": {
			denied("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", 422),
			"transient", "AdmissionDenied",
		},
		"by a webhook": {
			denied(`admission webhook "w.sea.test" denied the request: no`, 400), "transient",
			"AdmissionDenied",
		},
		"internal error": {apierrors.NewInternalError(errors.New("no")), "transient", "ServerError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f := Classify(fmt.Errorf("step: %w", c.err)); f.Class != c.class || f.Reason != c.reason ||
				f.Message == "" {
				t.Errorf("got %+v, want %s %s", f, c.class, c.reason)
			}
			if f := OwnObject(c.err); f.Class != Transient || f.Reason != c.reason {
				t.Errorf("of Chandler's own objects: %+v", f)
			}
		})
	}
}

// TestClassifyContent: what no retry changes is permanent, what may still come is not.
func TestClassifyContent(t *testing.T) {
	t.Parallel()
	for kind, class := range map[errs.Kind]string{
		errs.Unavailable: Transient, errs.Internal: Transient, errs.Invalid: Permanent,
		errs.TooLarge: Permanent, errs.Unprocessable: Permanent,
	} {
		if f := OfContent(errs.New(kind, "x")); f.Class != class {
			t.Errorf("%s: %s, want %s", kind, f.Class, class)
		}
	}
}

// TestTrouble: a cluster that is down is told apart from credentials that are wrong; a race with another
// candidate says nothing about the cluster.
func TestTrouble(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err           error
		state, reason string
	}{
		"race":   {errs.New(errs.Conflict, "x"), "", ""},
		"token":  {apierrors.NewUnauthorized("x"), "Unauthorized", "Unauthorized"},
		"rights": {apierrors.NewForbidden(schema.GroupResource{}, "x", nil), "Unauthorized", "InsufficientRights"},
		"refused": {
			&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "Unreachable",
			"ConnectionRefused",
		},
		"name": {&net.DNSError{Err: "no such host"}, "Unreachable", "UnknownHost"},
		"tls": {
			errors.New("tls: failed to verify certificate: x509: unknown authority"), "Unreachable",
			"CertificateInvalid",
		},
		"slow": {context.DeadlineExceeded, "Unreachable", "Timeout"},
		"else": {errors.New("x"), "Unreachable", "ServerError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if state, reason := OfCluster(c.err); state != c.state || reason != c.reason {
				t.Errorf("got %s %s, want %s %s", state, reason, c.state, c.reason)
			}
		})
	}
}

// TestFailureOfStep: what ends the session is no failure of the step.
func TestFailureOfStep(t *testing.T) {
	t.Parallel()
	for _, err := range []error{CrashError{Err: errors.New("x")}, context.Canceled} {
		if f, got := OfStep(render.Object{}, err); f != nil || got == nil {
			t.Errorf("%v became %+v, %v", err, f, got)
		}
	}
	if f, err := OfStep(render.Object{Name: "x"}, apierrors.NewBadRequest("no")); err != nil || f.Class != Permanent {
		t.Errorf("got %+v, %v", f, err)
	}
}

// denied is how the API server passes on what admission refuses.
func denied(message string, code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code,
		Reason: metav1.StatusReasonInvalid, Message: message,
	}}
}
