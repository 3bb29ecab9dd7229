package executor

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/drift"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/hub"
	"github.com/chandler-fleet/chandler/services/installer/readiness"
)

// Classes of failure (DESIGN D7).
const (
	classTransient = "transient"
	classConflict  = "conflict"
	classPermanent = "permanent"
	classExpired   = "expired"
	classStopped   = "stopped"
)

// Reasons of blocks and failures.
const (
	reasonForbidden        = "Forbidden"
	reasonUnreachable      = "ClusterUnreachable"
	reasonTimeout          = "Timeout"
	reasonNamespace        = "NamespaceNotFound"
	reasonNotServed        = protocol.ReasonNotServed
	reasonServer           = "ServerError"
	reasonInternal         = "InternalError"
	reasonManager          = "FieldManagerConflict"
	reasonInvalid          = "Invalid"
	reasonTooLarge         = "TooLarge"
	reasonDigest           = "DigestMismatch"
	reasonGrant            = "GrantInvalid"
	reasonExpired          = "GrantExpired"
	reasonStopped          = "EffectsStopped"
	reasonOLM              = "OLMRunning"
	reasonBehind           = "RecordBehind"
	reasonNoGroup          = "NoOperatorGroup"
	reasonManyGroups       = "TooManyOperatorGroups"
	reasonReserved         = "NamespaceReserved"
	reasonBase             = "BaseChanged"
	reasonAborted          = "Aborted"
	reasonContent          = "ContentUnavailable"
	reasonUnsupported      = "UnsupportedBundle"
	reasonPredecessor      = "PredecessorNotReplaced"
	reasonUnauthorized     = "Unauthorized"
	reasonRefused          = "ConnectionRefused"
	reasonUnknownHost      = "UnknownHost"
	reasonCertificate      = "CertificateInvalid"
	reasonRightsOfExecutor = "InsufficientRights"
	reasonDenied           = readiness.ReasonAdmissionDenied
	reasonWebhook          = readiness.ReasonWebhookFailed
	reasonFenceAhead       = "FenceAhead"
	reasonShared           = "SharedObjectDiffers"
	reasonTooOld           = "KubernetesNotSupported"
	reasonDuplicate        = "DuplicateCluster"
)

// stateHeldElsewhere is the state of a cluster that was served and is held for another registration by now.
const stateHeldElsewhere = "HeldElsewhere"

// failure is why a plan does not go on.
type failure struct {
	class   string
	reason  string
	message string
	// quick is set where a hint will tell when to look again, so that no back-off is needed.
	quick bool
}

func (f failure) block() hub.Block {
	return hub.Block{Class: f.class, Reason: f.reason, Message: f.message}
}

// classify reads an error of the Kubernetes API or of the hub.
//
//  0. A policy or webhook refuses the object, whatever status it gives, or a webhook that is to be asked does not answer:
//     transient, since whoever it belongs to can let it pass, mend it, or change the rule.
//  1. The API server calls the object wrong, or too large: permanent.
//  2. Another field manager has the fields, or another operator the object in another form: conflict.
//  3. Forbidden: transient, since granting the right lets the plan go on (R-IP-40).
//  4. Not found: the namespace, or an API that is not served (yet): transient.
//  5. A panic of our own is transient: another try may pass, and nothing says that the object is wrong.
//  6. Everything else is an API server that is away, overloaded or slow: transient.
func classify(err error) failure {
	f := failure{class: classTransient, message: err.Error()}
	switch {
	case isPanic(err):
		f.reason = reasonInternal
	case isDenied(err):
		f.reason = reasonDenied
	case webhookFailed(err):
		f.reason = reasonWebhook
	case isAsking(err):
		f.class, f.reason = classConflict, reasonShared
	case errs.Is(err, errs.Forbidden): // a record of Chandler's that the hub granted nobody
		f.reason = reasonGrant
	case cluster.IsUntypable(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), apierrors.IsNotAcceptable(err):
		f.class, f.reason = classPermanent, reasonInvalid
	case apierrors.IsRequestEntityTooLargeError(err):
		f.class, f.reason = classPermanent, reasonTooLarge
	case apierrors.IsConflict(err):
		f.class, f.reason = classConflict, reasonManager
	case apierrors.IsForbidden(err):
		f.reason = reasonForbidden
	case apierrors.IsNotFound(err):
		f.reason = reasonNotServed
		if ofNamespace(err) {
			f.reason = reasonNamespace
		}
	case apierrors.IsUnauthorized(err):
		f.reason = reasonUnauthorized
	case isTimeout(err):
		f.reason = reasonTimeout
	case isNetwork(err):
		f.reason = reasonUnreachable
	default:
		f.reason = reasonServer
	}
	return f
}

// transient reads an error about Chandler's own objects: no step is to blame, so it is tried again
// whatever it is.
func transient(err error) failure {
	f := classify(err)
	f.class = classTransient
	return f
}

// classifyContent reads an error of fetching or rendering.
func classifyContent(err error) failure {
	if k := errs.KindOf(err); k == errs.Invalid || k == errs.TooLarge || k == errs.Unprocessable {
		return failure{class: classPermanent, reason: reasonUnsupported, message: err.Error()}
	}
	if isPanic(err) {
		return classify(err)
	}
	return failure{class: classTransient, reason: reasonContent, message: err.Error()}
}

// isAsking reports an object of which a person has to choose whose form holds.
func isAsking(err error) bool {
	_, ok := errors.AsType[asking](err)
	return ok
}

func ofNamespace(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// isDenied reports the words with which the API server passes on a refusal by admission; such a refusal may bear any
// status, by default those of objects that are wrong.
func isDenied(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && readiness.Denied(status.Status().Message)
}

// webhookFailed reports an admission webhook that the API server must ask and that does not answer.
func webhookFailed(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	_, failed := readiness.Webhook(status.Status().Message)
	return failed
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || errors.Is(err, context.DeadlineExceeded) || ok && n.Timeout()
}

func isNetwork(err error) bool {
	_, isURL := errors.AsType[*url.Error](err)
	_, isOp := errors.AsType[*net.OpError](err)
	return isURL || isOp
}

// trouble says how a cluster is to be reported that cannot be served; "" when the error says nothing
// about the cluster, such as a race with another candidate.
func trouble(err error) (state, reason string) {
	const unreachable, unauthorized, refused = "Unreachable", "Unauthorized", "Refused"
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case cluster.IsElsewhere(err):
		return refused, reasonDuplicate
	case cluster.IsUnsupported(err):
		return refused, reasonTooOld
	case cluster.IsFenceAhead(err):
		return unreachable, reasonFenceAhead
	case errs.Is(err, errs.Conflict), apierrors.IsConflict(err):
		return "", ""
	case apierrors.IsUnauthorized(err):
		return unauthorized, reasonUnauthorized
	case apierrors.IsForbidden(err):
		return unauthorized, reasonRightsOfExecutor
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreachable, reasonRefused
	case isDNS:
		return unreachable, reasonUnknownHost
	case strings.Contains(err.Error(), "x509:"), strings.Contains(err.Error(), "tls:"):
		return unreachable, reasonCertificate
	case isTimeout(err):
		return unreachable, reasonTimeout
	}
	return unreachable, reasonServer
}

// item names something that is kept for an operator, "" for all of the namespace.
func (w *work) item(operator, what string) drift.Item {
	return drift.Item{Namespace: w.ns, Operator: operator, What: what}
}

// alone notes what could not be done for one operator, "" for what all of the namespace share, so that the others go on,
// and has it tried again; nil forgets it. What ends the session stays an error.
func (w *work) alone(ctx context.Context, operator, what string, err error) error {
	i := w.item(operator, what)
	if err == nil {
		w.pace.Succeeded(i)
		return nil
	}
	if final(ctx, err) {
		return err
	}
	w.cfg.Log.WarnContext(ctx, "operator is not as it should be; it is tried again", "csv", operator, "namespace", w.ns, "part", what, "error", err)
	w.soon(w.pace.Failed(i, strings.TrimPrefix(operator+": ", ": ")+what+": "+err.Error(), w.cfg.Now()))
	return nil
}

// waits reports what failed for an operator a moment ago and is not to be tried yet, and sees to it that it will be.
func (w *work) waits(operator, what string) bool {
	wait := w.pace.Wait(w.item(operator, what), w.cfg.Now())
	w.soon(wait)
	return wait > 0
}

// later notes what could not be done now and has it tried again; what ends the session stays an error.
func (w *work) later(ctx context.Context, what string, err error) error {
	if err == nil || final(ctx, err) {
		return err
	}
	w.cfg.Log.WarnContext(ctx, "what an operator group comes to is not as it should be", "part", what, "namespace", w.ns, "error", err)
	w.soon(w.cfg.Timing.Pause)
	return nil
}
