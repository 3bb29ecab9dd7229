package mirror_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// told is what people see of an Event.
type told struct{ Type, Reason, Message, Field string }

func toldOf(list []mirror.Event) []told {
	var out []told
	for _, e := range list {
		out = append(out, told{e.Type, e.Reason, e.Message, e.Field})
	}
	return out
}

// TestCSVEvents: R-CSV-5: each transition is an Event with its reason and message, a Warning when Failed.
func TestCSVEvents(t *testing.T) {
	t.Parallel()
	history := []protocol.Transition{
		{Phase: "Pending", Reason: "RequirementsUnknown", Message: "requirements not yet checked", Time: now},
		{
			Phase: "InstallReady", Reason: "AllRequirementsMet", Message: "all requirements found, attempting install",
			Time: now,
		},
		{Phase: "Failed", Reason: "InstallCheckFailed", Message: "install timeout", Time: now.Add(5 * time.Minute)},
		{
			Phase: "Pending", Reason: "RequirementsUnknown", Message: "requirements not yet checked",
			Time: now.Add(6 * time.Minute),
		},
	}
	list := mirror.CSVEvents("tidegauge.v2.1.0", "uid-1", 0, history)
	if diff := cmp.Diff([]told{
		{"Normal", "RequirementsUnknown", "requirements not yet checked", ""},
		{"Normal", "AllRequirementsMet", "all requirements found, attempting install", ""},
		{"Warning", "InstallCheckFailed", "install timeout", ""},
		{"Normal", "RequirementsUnknown", "requirements not yet checked", ""},
	}, toldOf(list)); diff != "" {
		t.Error(diff)
	}
	names := map[string]bool{}
	for i, e := range list {
		if names[e.Name] || !strings.HasPrefix(e.Name, "tidegauge.v2.1.0.") || !e.Time.Equal(history[i].Time) {
			t.Errorf("Event %d is %+v", i, e)
		}
		names[e.Name] = true
	}

	// Who tells it again gives it the same name, also when the history has become shorter meanwhile; another life has
	// others.
	later := mirror.CSVEvents("tidegauge.v2.1.0", "uid-1", 2, history[2:])
	if diff := cmp.Diff(list[2:], later); diff != "" {
		t.Errorf("told again: %s", diff)
	}
	if other := mirror.CSVEvents("tidegauge.v2.1.0", "uid-2", 0, history); names[other[0].Name] {
		t.Error("an operator that was installed anew tells under the names of the former one")
	}
}

// TestPlanEvents: R-IP-25: warnings of the API server are AppliedWithWarnings on the plan, for each step.
func TestPlanEvents(t *testing.T) {
	t.Parallel()
	p := mirror.Plan{ID: "p1", Name: "install-7xk2p", Phase: protocol.PlanStarted, Warned: []mirror.WarnedStep{{
		Index: 3, Resolving: "tidegauge.v2.1.0", Kind: "PodDisruptionBudget", Name: "gauge",
		Texts: []string{"policy/v1beta1 is deprecated", "use policy/v1"}, Time: now,
	}}}
	if diff := cmp.Diff([]told{{
		"Warning", "AppliedWithWarnings",
		`2 warning(s) generated during installation of operator "tidegauge.v2.1.0" (PodDisruptionBudget "gauge"): policy/v1beta1 is deprecated, use policy/v1`,
		"status.plan[3]",
	}}, toldOf(mirror.InstallPlan("coast", p, nil).Events)); diff != "" {
		t.Error(diff)
	}
}

// TestSubscriptionEvents: R-RES-41, R-IP-33: which of the resolver's words are told of a subscription, and of its
// namespace.
func TestSubscriptionEvents(t *testing.T) {
	t.Parallel()
	unresolved := "the subscription does not resolve; chandler explain says why"
	unpacked := "the image of the bundle of package tidegauge could not be had; chandler explain says why"
	for name, c := range map[string]struct {
		failed string
		since  time.Time
		want   []told
	}{
		"resolves":              {"", now, nil},
		"since an unknown time": {"ConstraintsNotSatisfiable", time.Time{}, nil},
		"unpacking":             {"BundleUnpacking", now, nil},
		"its catalog is away":   {"CatalogSourcesUnhealthy", now, nil},
		"cannot be unpacked": {
			"BundleUnpackFailed", now,
			[]told{
				{"Warning", "BundleUnpackFailed", unpacked, ""},
				{"Warning", "BundleUnpackFailed", "subscription gauge: " + unpacked, ""},
			},
		},
		"constraints are not satisfied": {
			"ConstraintsNotSatisfiable", now,
			[]told{
				{"Warning", "ResolutionFailed", "ConstraintsNotSatisfiable: " + unresolved, ""},
				{"Warning", "ResolutionFailed", "subscription gauge: ConstraintsNotSatisfiable: " + unresolved, ""},
			},
		},
		"another error": {
			"ErrorPreventedResolution", now,
			[]told{
				{"Warning", "ResolutionFailed", "ErrorPreventedResolution: " + unresolved, ""},
				{"Warning", "ResolutionFailed", "subscription gauge: ErrorPreventedResolution: " + unresolved, ""},
			},
		},
	} {
		s := protocol.Subscription{
			Name: "gauge", Spec: events.SubscriptionSpec{Package: "tidegauge"}, Failed: c.failed,
			FailedSince: c.since,
		}
		list := mirror.Subscription("coast", s, mirror.Known{}, now).Events
		if diff := cmp.Diff(c.want, toldOf(list)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(list) == 2 && (list[0].OfNamespace || !list[1].OfNamespace || list[0].Name == list[1].Name) {
			t.Errorf("%s: one of the subscription and one of the namespace are wanted: %+v", name, list)
		}
	}
}

// TestEventObject: the Event as the API server takes it, within its bounds.
func TestEventObject(t *testing.T) {
	t.Parallel()
	long := mirror.CSVEvents(strings.Repeat("g", 253), "uid", 0,
		[]protocol.Transition{{
			Phase: "Failed", Reason: "ComponentUnhealthy", Message: strings.Repeat("ü", 1000),
			Time: now,
		}})[0]
	if len(long.Name) > 253 || len(long.Message) > 1024 || !strings.HasSuffix(long.Message, "ü…") {
		t.Errorf("name of %d bytes, message of %d that ends in %q", len(long.Name), len(long.Message),
			long.Message[len(long.Message)-6:])
	}
	e := mirror.CSVEvents("gauge.v1", "uid", 0, []protocol.Transition{
		{Phase: "Succeeded", Reason: "InstallSucceeded", Time: now},
	})[0]
	o := e.Object(corev1.ObjectReference{Kind: "ClusterServiceVersion", Namespace: "coast", Name: "gauge.v1", UID: "u"})
	if o.Namespace != "coast" || o.Source.Component != "chandler" || o.Count != 1 ||
		!o.FirstTimestamp.Equal(&o.LastTimestamp) || !o.LastTimestamp.Time.Equal(now) || o.InvolvedObject.UID != "u" {
		t.Errorf("the Event is %+v", o)
	}
	if of := e.Object(corev1.ObjectReference{Kind: "Namespace", Name: "coast"}); of.Namespace != "default" {
		t.Errorf("an Event of an object without a namespace lies in %q", of.Namespace)
	}
}
