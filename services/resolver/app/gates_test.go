package app_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/gate"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

// TestRolloutGates: a wave that is well waits for its gates, which are asked once it has settled; one that fails halts
// the rollout; who resumes it has all of them asked anew; and the next wave begins by what was recorded (issue 14,
// section 2).
func TestRolloutGates(t *testing.T) {
	t.Parallel()
	var status, asked atomic.Int64
	status.Store(http.StatusServiceUnavailable)
	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte(`{"ready": true}`))
	}))
	t.Cleanup(health.Close)
	s := newShore(t)
	s.stop()
	s.gateNetworks = "127.0.0.0/8"
	s.start()
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	spec := s.spec()
	spec.Strategy.Waves[0].Gates = []events.RolloutGate{
		gate.Normal(events.RolloutGate{Name: "operators", Type: events.GateOperatorConditions}),
		gate.Normal(events.RolloutGate{
			Name: "observed", Type: events.GateCEL,
			Expression: `clusters.all(c, c.labels["ring"] == "0" && c.version == "1.0.0" && c.phase == "Succeeded")`,
		}),
		gate.Normal(events.RolloutGate{
			Name: "health", Type: events.GateHTTP, URL: health.URL, Expression: "body.ready", IntervalSeconds: 5,
			FailurePolicy: events.GateFails,
		}),
	}
	s.set(spec)
	if n := asked.Load(); n != 0 {
		t.Errorf("a gate was asked %d times before its wave had settled", n)
	}
	s.carryOutOn("east-1")
	s.until("the rollout halts", func() bool { return s.rollout(1).Phase == rollout.Halted })
	now := s.rollout(1)
	if now.Reason != rollout.ReasonGateFailed || now.Gates.Verdicts["health"].Code != "StatusNotExpected" ||
		len(s.planned()) != 0 {
		t.Fatalf("the rollout is %+v, planned %v", now, s.planned())
	}
	status.Store(http.StatusOK)
	s.append(events.Gateway, events.KindRollout, "buoy/1", "buoy/1", events.RolloutResumed{})
	s.until("the wave passes", func() bool { return s.rollout(1).Passed == 1 })
	s.quiet()
	s.want("the second wave", s.planned(),
		[]string{"east-2 buoy.v1.0.0", "east-3 buoy.v1.0.0", "east-4 buoy.v1.0.0"})
	var due time.Time
	passed := map[string]bool{}
	for _, e := range s.recorded() {
		switch p := e.Payload.(type) {
		case events.RolloutGatesDue:
			due, passed = e.Time, map[string]bool{}
		case events.RolloutGateEvaluated:
			passed[p.Gate] = p.Verdict == events.VerdictPass && !p.BegunAt.Before(due) && !p.EndedAt.Before(p.BegunAt)
		}
	}
	for _, g := range spec.Strategy.Waves[0].Gates {
		if !passed[g.Name] {
			t.Errorf("the next wave began without gate %s having passed in its round", g.Name)
		}
	}
}
