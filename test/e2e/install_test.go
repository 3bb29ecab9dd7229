package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestInstallAndUpgrade follows an operator from a subscription to Succeeded and through an upgrade with an approval,
// and checks what the log tells of it. R-SUB-1, R-SUB-3, R-RES-40, R-GRA-5, R-IP-11.
func TestInstallAndUpgrade(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
	w := newWorld(t)
	w.addCatalog("harbour", example(t))

	t.Run("a dependency by API comes along", func(t *testing.T) {
		w := w.in(t)
		w.group("gvk")
		w.subscribe("gvk", subscription{Name: "buoy", Package: "buoy", Channel: "beta", Catalog: "harbour"})
		w.succeeded("gvk", "buoy.v0.9.1")
		w.succeeded("gvk", "tidegauge.v1.1.0")
	})
	t.Run("a dependency by package comes along", func(t *testing.T) {
		w := w.in(t)
		w.group("package")
		w.subscribe("package", subscription{Name: "master", Package: "harbourmaster", Catalog: "harbour"})
		w.succeeded("package", "harbourmaster.v2.1.0")
		w.succeeded("package", "lighthouse.v1.2.0")
	})
	t.Run("one step at a time, each approved", func(t *testing.T) {
		w := w.in(t)
		w.group("steps")
		w.subscribe("steps", subscription{
			Name: "gauge", Package: "tidegauge", Channel: "fast", Catalog: "harbour", StartingCSV: "tidegauge.v1.1.0",
			Approval: "Manual",
		})
		first := w.waiting("steps")
		if got := w.operators("steps"); len(got) != 0 {
			t.Errorf("before approval the namespace has %v, want nothing (R-IP-11)", got)
		}
		w.approve(first)
		w.succeeded("steps", "tidegauge.v1.1.0")
		second := w.waiting("steps")
		w.approve(second)
		w.succeeded("steps", "tidegauge.v1.2.0")
		w.only("steps", "tidegauge.v1.2.0")
	})
	t.Run("and back again (P12)", func(t *testing.T) {
		w := w.in(t)
		w.must(w.Post(w.ctx, scopePath("steps", "subscriptions/gauge/rollback"), map[string]any{}, nil))
		w.approve(w.waiting("steps"))
		w.succeeded("steps", "tidegauge.v1.1.0")
		w.only("steps", "tidegauge.v1.1.0")
		w.eventually("the version that was left is not proposed again", func() (string, bool) {
			var s struct {
				Status struct{ State, InstalledCSV, CurrentCSV string }
			}
			w.must(w.Get(w.ctx, scopePath("steps", "subscriptions/gauge"), &s))
			return fmt.Sprint(s.Status), s.Status.State == "AtLatestKnown" &&
				s.Status.InstalledCSV == "tidegauge.v1.1.0"
		})
	})
	t.Run("a fleet subscription, approved by a person", func(t *testing.T) {
		w := w.in(t)
		w.must(w.Do(w.ctx, http.MethodPut, "/api/v1/fleet/subscriptions/lights", map[string]any{
			"package": "lighthouse", "catalog": "harbour", "namespace": "fleet", "approval": "Manual",
			"operatorGroup": map[string]any{
				"name": "harbour", "spec": map[string]any{"targetNamespaces": []string{"fleet"}},
			},
			"placement": map[string]any{"clusters": []string{spoke}},
		}, nil))
		w.approve(w.waiting("fleet"))
		w.succeeded("fleet", "lighthouse.v1.2.0")
		w.rolledOut("lights", "Succeeded")
	})
	t.Run("one trace from the request to Succeeded", func(t *testing.T) {
		w := w.in(t)
		w.oneTrace("gvk")
	})
	t.Run("an impossible subscription is explained and blocks nobody", func(t *testing.T) {
		w := w.in(t)
		w.group("mixed")
		w.subscribe("mixed", subscription{Name: "later", Package: "signalflag", Catalog: "not-there-yet"})
		w.subscribe("mixed", subscription{Name: "light", Package: "lighthouse", Catalog: "harbour"})
		w.succeeded("mixed", "lighthouse.v1.2.0")
		w.failing("mixed", "later")
	})
}

// in returns the world as seen by a subtest.
func (w *world) in(t *testing.T) *world {
	c := *w
	c.t = t
	return &c
}

// rolledOut waits until the newest rollout of a fleet subscription is in a phase (issue 14, section 2).
func (w *world) rolledOut(name, phase string) {
	w.t.Helper()
	w.eventually("the rollout of "+name+" is "+phase, func() (string, bool) {
		var f struct {
			Status struct {
				WaitsFor string
				Rollout  *struct{ Phase string }
			}
		}
		w.must(w.Get(w.ctx, "/api/v1/fleet/subscriptions/"+name, &f))
		if f.Status.Rollout == nil {
			return f.Status.WaitsFor, false
		}
		return f.Status.Rollout.Phase, f.Status.Rollout.Phase == phase
	})
}

// waiting returns the plan that wants to be approved.
func (w *world) waiting(namespace string) plan {
	w.t.Helper()
	var found plan
	w.eventually("a plan waits for approval", func() (string, bool) {
		plans := w.plans(namespace)
		i := slices.IndexFunc(plans, func(p plan) bool { return p.Phase == "RequiresApproval" })
		if i < 0 {
			return "", false
		}
		found = plans[i]
		return "", true
	})
	return found
}

func (w *world) approve(p plan) {
	w.t.Helper()
	w.must(w.Post(w.ctx, "/api/v1/installplans/"+p.ID+"/approve", map[string]any{"digest": p.Digest}, nil))
}

// only waits until nothing else is installed.
func (w *world) only(namespace, csv string) {
	w.t.Helper()
	w.eventually("only "+csv+" is left", func() (string, bool) {
		ops := w.operators(namespace)
		var names []string
		for _, o := range ops {
			names = append(names, o.Name)
		}
		return strings.Join(names, " "), len(names) == 1 && names[0] == csv
	})
}

// oneTrace checks that every event that followed from the subscription carries the trace of its request.
func (w *world) oneTrace(namespace string) {
	w.t.Helper()
	traces := map[string][]string{}
	for _, e := range w.events("cluster=" + spoke) {
		if !strings.HasPrefix(e.Subject, spoke+"/"+namespace+"/") || strings.HasPrefix(e.Type, "operatorgroup.") {
			continue
		}
		parts := strings.Split(e.TraceParent, "-")
		if len(parts) != 4 {
			w.t.Errorf("%s of %s has traceparent %q, want one of W3C's form", e.Type, e.Subject, e.TraceParent)
			continue
		}
		traces[parts[1]] = append(traces[parts[1]], e.Type+" "+e.Subject)
	}
	if len(traces) != 1 {
		w.t.Errorf("events lie in %d traces, want 1: %v", len(traces), traces)
	}
}

// failing waits until the subscription says why it cannot be resolved.
func (w *world) failing(namespace, name string) {
	w.t.Helper()
	w.condition(namespace, name, "ResolutionFailed")
}

// condition waits until the subscription has a condition, explained, with the event that says so.
func (w *world) condition(namespace, name, typ string) {
	w.t.Helper()
	w.eventually("subscription "+name+" is explained", func() (string, bool) {
		var s struct {
			Status struct {
				Conditions []struct{ Type, Status, Reason, Message, Event string }
			}
		}
		w.must(w.Get(w.ctx, scopePath(namespace, "subscriptions/"+name), &s))
		for _, c := range s.Status.Conditions {
			if c.Type == typ && c.Status == "True" && c.Message != "" && c.Event != "" {
				return "", true
			}
		}
		return fmt.Sprint(s.Status.Conditions), false
	})
}
