package mirror

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
)

// Event is one thing that happened to a mirrored object, to be told by a Kubernetes Event as OLM writes it:
//
//	ClusterServiceVersion  each transition of its phase, Warning where it Failed                R-CSV-5
//	InstallPlan            a step that the API server warned of: AppliedWithWarnings            R-IP-25
//	Subscription           it does not resolve: ResolutionFailed, on its Namespace, too         R-RES-41
//	Subscription           its bundle could not be unpacked: BundleUnpackFailed                 R-IP-33
type Event struct {
	// Name is that of the Event object, made of what happened: whoever tells it again, as another executor may after a
	// restart, meets the first one.
	Name    string
	Type    string // corev1.EventTypeNormal or EventTypeWarning
	Reason  string
	Message string
	Time    time.Time
	// Field is the part of the object that is meant, "" for all of it.
	Field string
	// OfNamespace tells it of the Namespace instead.
	OfNamespace bool
}

const (
	// EventComponent is who tells: source.component of every Event.
	EventComponent = "chandler"
	// eventType is the first line of what the digest that names an Event is taken of.
	eventType = "chandler.event.v1"
	// eventHash is how much of it stands in the name: 64 bits are never drawn twice within the hour that Events live.
	eventHash = 16
	// maxEventMessage is what the API of Events lets a note have (events.k8s.io/v1, in bytes).
	maxEventMessage = 1024
)

// newEvent names an Event after the object that it tells of and what happened: kind, name and id are who it happened
// to, at is when.
func newEvent(kind, name, id string, e Event) Event {
	hash := digest.Bytes([]byte(strings.Join([]string{
		eventType, kind, name, id, e.Type, e.Reason, e.Field, e.Time.UTC().Format(time.RFC3339Nano),
		strconv.FormatBool(e.OfNamespace),
	}, "\n"))).Hex()[:eventHash]
	e.Name = name[:min(len(name), maxObjectName-eventHash-1)] + "." + hash
	if len(e.Message) > maxEventMessage {
		e.Message = strings.ToValidUTF8(e.Message[:maxEventMessage-len("…")], "") + "…"
	}
	return e
}

// Object is the Event about an object.
func (e Event) Object(about corev1.ObjectReference) *corev1.Event {
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where Events about objects without a namespace must lie
	}
	about.FieldPath = e.Field
	return &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: gvkEvent.Kind},
		ObjectMeta:     metav1.ObjectMeta{Name: e.Name, Namespace: namespace},
		InvolvedObject: about, Type: e.Type, Reason: e.Reason, Message: e.Message,
		Source:              corev1.EventSource{Component: EventComponent},
		ReportingController: EventComponent, ReportingInstance: EventComponent,
		FirstTimestamp: metav1.NewTime(e.Time), LastTimestamp: metav1.NewTime(e.Time), Count: 1,
	}
}

// CSVEvents are the transitions of an operator (R-CSV-5). uid is that of its InstalledOperator, whose history it is;
// dropped is how many entries that history had before the first one here.
func CSVEvents(name, uid string, dropped int, history []protocol.Transition) []Event {
	out := make([]Event, 0, len(history))
	for i, t := range history {
		e := Event{Type: corev1.EventTypeNormal, Reason: t.Reason, Message: t.Message, Time: t.Time}
		if t.Phase == string(csv.PhaseFailed) {
			e.Type = corev1.EventTypeWarning
		}
		out = append(out, newEvent(GVKCSV.Kind, name, fmt.Sprint(uid, "/", dropped+i, "/", t.Phase), e))
	}
	return out
}

// planEvents are the steps of a plan that the API server warned of (R-IP-25).
func planEvents(p Plan) []Event {
	var out []Event
	for _, w := range p.Warned {
		message := fmt.Sprintf("%d warning(s) generated during installation of operator %q (%s %q): %s",
			len(w.Texts), w.Resolving, w.Kind, w.Name, strings.Join(w.Texts, ", "))
		out = append(out, newEvent(GVKInstallPlan.Kind, p.Name, p.ID, Event{
			Type: corev1.EventTypeWarning, Reason: "AppliedWithWarnings", Message: message, Time: w.Time,
			Field: fmt.Sprintf("status.plan[%d]", w.Index),
		}))
	}
	return out
}

// subscriptionEvents tell why a subscription does not resolve (R-RES-41), or why its bundle could not be unpacked
// (R-IP-33). What passes by itself, such as unpacking, is told by conditions alone.
func subscriptionEvents(s protocol.Subscription) []Event {
	e := Event{Type: corev1.EventTypeWarning, Reason: conditionResolutionFailed, Time: s.FailedSince}
	switch s.Failed {
	case "", conditionUnpacking, conditionUnhealthy, conditionCordoned:
		return nil
	case conditionUnpackFailed:
		e.Reason, e.Message = conditionUnpackFailed, "the image of the bundle of package "+s.Spec.Package+
			" could not be had; chandler explain says why"
	default:
		e.Message = s.Failed + ": " + messageUnresolved
	}
	if s.FailedSince.IsZero() {
		return nil // nobody knows since when: it could be told for ever
	}
	of := e
	of.OfNamespace, of.Message = true, "subscription "+s.Name+": "+e.Message
	return []Event{newEvent(GVKSubscription.Kind, s.Name, "", e), newEvent(GVKSubscription.Kind, s.Name, "", of)}
}
