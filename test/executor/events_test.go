package executor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// told are the Events that Chandler wrote about an object, by kind and name.
func (m mirrored) told(ctx context.Context, namespace, kind, name string) ([]corev1.Event, error) {
	list, err := m.kube.CoreV1().Events(namespace).List(
		ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.Source.Component != "chandler" || e.Reason == "DisabledCopiedCSVs"
	}), nil
}

// tells waits for Events with reasons about an object, and returns all that there are.
func (m mirrored) tells(t *testing.T, namespace, kind, name string, reasons ...string) []corev1.Event {
	t.Helper()
	var out []corev1.Event
	await(t, "Events of "+name, func(ctx context.Context) (err error) {
		if out, err = m.told(ctx, namespace, kind, name); err != nil {
			return err
		}
		for _, want := range reasons {
			if !slices.ContainsFunc(out, func(e corev1.Event) bool { return e.Reason == want }) {
				return fmt.Errorf("no Event %s among %d", want, len(out))
			}
		}
		return nil
	})
	return out
}

// testEvents: R-CSV-5, R-IP-25, R-RES-41: what happens to mirrored objects is told by Events, once, also by the next
// executor; where the setting says off, nothing is told.
func (m mirrored) testEvents(t *testing.T) {
	name := m.operator.csv()
	for _, e := range m.tells(t, "ops", "ClusterServiceVersion", name, "RequirementsUnknown", "AllRequirementsMet",
		"InstallSucceeded") {
		if e.Type != corev1.EventTypeNormal || e.InvolvedObject.APIVersion != "operators.coreos.com/v1alpha1" ||
			e.InvolvedObject.UID == "" ||
			e.InvolvedObject.ResourceVersion == "" || e.FirstTimestamp.IsZero() || e.Message == "" {
			t.Errorf("told: %+v", e)
		}
	}
	sub := shows(t, m.dynamic.Resource(subscriptions).Namespace("ops"), "tide", there)
	plan := seen(sub, "status", "installPlanRef", "name")
	warned := m.tells(t, "ops", "InstallPlan", plan, "AppliedWithWarnings")
	if e := warned[0]; e.Type != corev1.EventTypeWarning ||
		!strings.Contains(e.Message, `1 warning(s) generated during installation of operator "`+name+
			`" (Deployment "tide-controller"): `) ||
		!strings.HasPrefix(e.InvolvedObject.FieldPath, "status.plan[") {
		t.Errorf("told of the plan: %+v", e)
	}

	fails := func(reason, setting string) {
		m.looked(t, m.set(func(s *protocol.ScopePlans) {
			s.Settings.Events = setting
			s.Subscriptions[0].Failed, s.Subscriptions[0].FailedSince = reason, time.Now().UTC()
		}))
	}
	fails("ConstraintsNotSatisfiable", "")
	failed := m.tells(t, "ops", "Subscription", "tide", "ResolutionFailed")
	if e := failed[0]; e.Type != corev1.EventTypeWarning || e.InvolvedObject.UID != sub.GetUID() ||
		!strings.HasPrefix(e.Message, "ConstraintsNotSatisfiable: ") {
		t.Errorf("told of the subscription: %+v", e)
	}
	if e := m.tells(t, "default", "Namespace", "ops", "ResolutionFailed")[0]; !strings.Contains(
		e.Message, "subscription tide") || e.InvolvedObject.UID == "" {
		t.Errorf("told of the namespace: %+v", e)
	}

	// Another executor tells nothing of that again; the last Event shows that it had its turn, since they come in
	// order.
	before, err := m.told(t.Context(), "ops", "ClusterServiceVersion", name)
	must(t, err)
	m.again()
	fails("BundleUnpackFailed", "")
	m.tells(t, "ops", "Subscription", "tide", "BundleUnpackFailed")
	for _, about := range []struct {
		kind, name string
		want       int
	}{{"ClusterServiceVersion", name, len(before)}, {"InstallPlan", plan, len(warned)}, {"Subscription", "tide", 2}} {
		if list, err := m.told(t.Context(), "ops", about.kind, about.name); err != nil || len(list) != about.want {
			t.Errorf("after a restart %d Events of %s %s, want %d (%v): %+v", len(list), about.kind, about.name,
				about.want, err, list)
		}
	}

	fails("ErrorPreventedResolution", events.EventsOff)
	fails("BundleUnpackFailed", events.EventsOn)
	await(t, "Events to be told again", func(ctx context.Context) error {
		list, err := m.told(ctx, "ops", "Subscription", "tide")
		if err == nil && len(list) != 3 {
			err = fmt.Errorf("there are %d", len(list))
		}
		for _, e := range list {
			if strings.Contains(e.Message, "ErrorPreventedResolution") {
				t.Errorf("told although Events are off: %s", e.Message)
			}
		}
		return err
	})
	m.set(func(s *protocol.ScopePlans) {
		s.Subscriptions[0].Failed, s.Subscriptions[0].FailedSince = "", time.Time{}
	})
	shows(t, m.dynamic.Resource(subscriptions).Namespace("ops"), "tide", func(o *unstructured.Unstructured) bool {
		return !strings.Contains(fmt.Sprint(o.Object["status"]), "BundleUnpackFailed")
	})
}
