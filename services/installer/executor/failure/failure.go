// Package failure says why something is not done: the classes and reasons that the hub is sent, and how an error of the
// Kubernetes API or of the hub becomes one of them. It also has what ends an executor in tests: a crash between two
// effects.
package failure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
	"github.com/chandler-fleet/chandler/services/installer/executor/address"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/readiness"
)

// Classes of failure (DESIGN D7).
const (
	Transient = "transient"
	Conflict  = "conflict"
	Permanent = "permanent"
	Expired   = "expired"
	Stopped   = "stopped"
)

// Reasons of blocks and failures.
const (
	ReasonForbidden        = "Forbidden"
	ReasonUnreachable      = "ClusterUnreachable"
	ReasonTimeout          = "Timeout"
	ReasonNamespace        = "NamespaceNotFound"
	ReasonNotServed        = protocol.ReasonNotServed
	ReasonServer           = "ServerError"
	ReasonInternal         = "InternalError"
	ReasonManager          = "FieldManagerConflict"
	ReasonInvalid          = "Invalid"
	ReasonTooLarge         = "TooLarge"
	ReasonDigest           = "DigestMismatch"
	ReasonRenderingAhead   = events.RenderingAhead
	ReasonRenderingGone    = events.RenderingGone
	ReasonRenderingDiffers = events.RenderingDiffers
	ReasonGrant            = "GrantInvalid"
	ReasonExpired          = "GrantExpired"
	ReasonStopped          = "EffectsStopped"
	ReasonNoGoAhead        = "NoGoAhead" // the hub has not said for a while that effects are allowed
	ReasonOLM              = events.ReasonOLMRunning
	ReasonBehind           = "RecordBehind"
	ReasonNoGroup          = "NoOperatorGroup"
	ReasonManyGroups       = "TooManyOperatorGroups"
	ReasonReserved         = "NamespaceReserved"
	ReasonBase             = "BaseChanged"
	ReasonAborted          = "Aborted"
	ReasonContent          = "ContentUnavailable"
	ReasonUnsupported      = "UnsupportedBundle"
	ReasonPredecessor      = "PredecessorNotReplaced"
	ReasonUnauthorized     = "Unauthorized"
	ReasonTokenEnded       = "CredentialEnded" // its time was over; another one is needed
	ReasonRefused          = "ConnectionRefused"
	ReasonUnknownHost      = "UnknownHost"
	ReasonCertificate      = "CertificateInvalid"
	ReasonRightsOfExecutor = "InsufficientRights"
	ReasonDenied           = readiness.ReasonAdmissionDenied
	ReasonWebhook          = readiness.ReasonWebhookFailed
	ReasonFenceAhead       = "FenceAhead"
	ReasonShared           = "SharedObjectDiffers"
	ReasonTooOld           = "KubernetesNotSupported"
	ReasonUninstalling     = "BeingUninstalled"
	ReasonDuplicate        = events.ReasonDuplicateCluster
	ReasonWorkFailing      = events.ReasonWorkFailing
	ReasonAddress          = "AddressRefused"
)

// Failure is why a plan or a removal does not go on.
type Failure struct {
	Class   string
	Reason  string
	Message string
	// Quick is set where a hint will come when it is time to try again, so that no back-off is needed.
	Quick bool
}

// Classify reads an error of the Kubernetes API or of the hub.
//
//  0. A policy or webhook refuses the object, whatever status it gives, or a webhook that is to be asked does not
//     answer: transient, since whoever it belongs to can let it pass, fix it, or change the rule.
//  1. The API server calls the object wrong, or too large: permanent.
//  2. Another field manager has the fields, or another operator the object in another form: conflict.
//  3. Forbidden: transient, since granting the right lets the plan go on (R-IP-40).
//  4. Not found: the namespace, or an API that is not served (yet): transient.
//  5. A panic of our own is transient: another try may pass, and nothing says that the object is wrong.
//  6. Everything else is an API server that is away, overloaded or slow: transient.
func Classify(err error) Failure { return classify(err, nil) }

// classify is Classify of an error about an object, whose values the message does not tell.
func classify(err error, values []string) Failure {
	f := Failure{Class: Transient, Message: words(err.Error(), values)}
	switch {
	case IsPanic(err):
		f.Reason = ReasonInternal
	case isDenied(err):
		f.Reason = ReasonDenied
	case webhookFailed(err):
		f.Reason = ReasonWebhook
	case needsChoice(err):
		f.Class, f.Reason = Conflict, ReasonShared
	case errs.Is(err, errs.Forbidden): // a record of Chandler's that the hub granted nobody
		f.Reason = ReasonGrant
	case kube.IsUntypable(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsNotAcceptable(err):
		f.Class, f.Reason = Permanent, ReasonInvalid
	case apierrors.IsRequestEntityTooLargeError(err):
		f.Class, f.Reason = Permanent, ReasonTooLarge
	case apierrors.IsConflict(err):
		f.Class, f.Reason = Conflict, ReasonManager
	case apierrors.IsForbidden(err):
		f.Reason = ReasonForbidden
	case apierrors.IsNotFound(err):
		f.Reason = ReasonNotServed
		if ofNamespace(err) {
			f.Reason = ReasonNamespace
		}
	case apierrors.IsUnauthorized(err), tokenRefused(err) != "":
		f.Reason = ReasonUnauthorized
	case isTimeout(err):
		f.Reason = ReasonTimeout
	case isNetwork(err):
		f.Reason = ReasonUnreachable
	default:
		f.Reason = ReasonServer
	}
	return f
}

// OfRendering says that the rules of a rendering are not here: a later release has them, or an earlier one had. It is
// nil where they are.
func OfRendering(v *render.Versions, semantics string) *Failure {
	f := &Failure{Class: Conflict, Message: fmt.Sprintf("it was rendered by %q, this executor renders by %s", semantics,
		v.Newest())}
	switch v.Presence(semantics) {
	case render.Present:
		return nil
	case render.Ahead:
		f.Reason = ReasonRenderingAhead
		f.Message += ": it goes on when the executor is of that release"
	case render.Gone:
		f.Reason = ReasonRenderingGone
		f.Message += ": another plan takes its place"
	}
	return f
}

// OwnObject reads an error about Chandler's own objects: no step is to blame, so it is tried again
// whatever it is.
func OwnObject(err error) Failure {
	f := Classify(err)
	f.Class = Transient
	return f
}

// OfContent reads an error of fetching or rendering.
func OfContent(err error) Failure {
	if k := errs.KindOf(err); k == errs.Invalid || k == errs.TooLarge || k == errs.Unprocessable {
		return Failure{Class: Permanent, Reason: ReasonUnsupported, Message: err.Error()}
	}
	if IsPanic(err) {
		return Classify(err)
	}
	return Failure{Class: Transient, Reason: ReasonContent, Message: err.Error()}
}

// needsChoice reports an object of which a person has to choose whose form holds.
func needsChoice(err error) bool {
	_, ok := errors.AsType[ChoiceNeededError](err)
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
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || errors.Is(err, context.DeadlineExceeded) ||
		ok && n.Timeout()
}

func isNetwork(err error) bool {
	_, isURL := errors.AsType[*url.Error](err)
	_, isOp := errors.AsType[*net.OpError](err)
	return isURL || isOp
}

// OfCluster says how a cluster is to be reported that cannot be served; "" when the error says nothing
// about the cluster, such as a race with another candidate.
func OfCluster(err error) (state, reason string) {
	const unreachable, unauthorized, refused = events.ObservedUnreachable, events.ObservedUnauthorized,
		events.ObservedRefused
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case kube.IsElsewhere(err):
		return refused, ReasonDuplicate
	case address.IsRefused(err):
		return refused, ReasonAddress
	case kube.IsUnsupported(err):
		return refused, ReasonTooOld
	case kube.IsFenceAhead(err):
		return unreachable, ReasonFenceAhead
	case errs.Is(err, errs.Conflict), apierrors.IsConflict(err):
		return "", ""
	case apierrors.IsUnauthorized(err):
		return unauthorized, ReasonUnauthorized
	case tokenRefused(err) != "":
		return unauthorized, tokenRefused(err)
	case apierrors.IsForbidden(err):
		return unauthorized, ReasonRightsOfExecutor
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreachable, ReasonRefused
	case isDNS:
		return unreachable, ReasonUnknownHost
	case strings.Contains(err.Error(), "x509:"), strings.Contains(err.Error(), "tls:"):
		return unreachable, ReasonCertificate
	case isTimeout(err):
		return unreachable, ReasonTimeout
	}
	return unreachable, ReasonServer
}

// tokenRefused is the reason for which a token of the hub's account is not taken, "" for another error.
func tokenRefused(err error) string {
	refused, ok := errors.AsType[clusteraccess.RefusedError](err)
	switch {
	case !ok:
		return ""
	case refused.Ended:
		return ReasonTokenEnded
	}
	return ReasonUnauthorized
}

// OfStep reads an error of writing an object; what ends the session stays an error.
func OfStep(o render.Object, err error) (*Failure, error) {
	if IsCrash(err) || kube.IsFenced(err) || errors.Is(err, context.Canceled) {
		return nil, err
	}
	f := classify(err, valuesOf(o.GVK.Kind, o.Body))
	if f.Reason == ReasonNotServed {
		f.Message = "the cluster does not serve " + o.GVK.GroupVersion().String() + " " + o.GVK.Kind +
			"; install what brings it, and the plan goes on"
	}
	if f.Reason != ReasonShared { // which names it
		f.Message = o.String() + ": " + f.Message
	}
	return &f, nil
}

// OfCheck makes of an error of a check a block of its plan alone; what ends the session stays an error.
func OfCheck(ctx context.Context, err error) (*Failure, error) {
	if Final(ctx, err) {
		return nil, err
	}
	f := OwnObject(err)
	if k := errs.KindOf(err); k == errs.Invalid || k == errs.TooLarge {
		f.Class, f.Reason = Conflict, ReasonInvalid
	}
	return &f, nil
}

// GrantExpired is why nothing begins under a grant that has run out.
func GrantExpired(g protocol.Grant) *Failure {
	return &Failure{Class: Expired, Reason: ReasonExpired, Quick: true, Message: "the grant expired at " +
		g.Expires.UTC().Format("2006-01-02T15:04:05Z")}
}
