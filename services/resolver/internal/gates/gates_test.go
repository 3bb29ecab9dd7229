package gates_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/gate"
	"github.com/chandler-fleet/chandler/services/resolver/internal/gates"
)

// server plays everybody that a gate asks.
func server(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	say := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}
	}
	mux.Handle("GET /ready", say(200, `{"ready": true}`))
	mux.Handle("GET /text", say(200, `ready`))
	mux.Handle("GET /gone", say(410, ``))
	mux.Handle("GET /large", say(200, strings.Repeat("x", 257<<10)))
	mux.Handle("GET /moved", http.RedirectHandler("/ready", http.StatusFound))
	mux.HandleFunc("GET /api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") != `sum(rate(errors[5m]))` {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		say(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0.25"]}]}}`)(w, r)
	})
	mux.HandleFunc("POST /ask", func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Rollout int
			Wave    string
			Counts  map[string]int
			Target  struct{ CSV string }
		}
		err := json.NewDecoder(r.Body).Decode(&q)
		if err != nil || q.Rollout != 3 || q.Wave != "canary" || q.Counts["Succeeded"] != 1 || q.Target.CSV != "a.v1" {
			t.Errorf("asked %+v, %v", q, err)
		}
		say(200, `{"verdict": "Fail", "reason": "ErrorBudget"}`)(w, r)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// TestEvaluate: what each type of gate asks, and what it makes of the answer (issue 14, section 2).
func TestEvaluate(t *testing.T) {
	t.Parallel()
	at := server(t)
	here := gates.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")})
	http := func(path, expression string) events.RolloutGate {
		return gate.Normal(events.RolloutGate{Type: events.GateHTTP, URL: at + path, Expression: expression})
	}
	query := func(text, expression string) events.RolloutGate {
		return gate.Normal(events.RolloutGate{
			Type: events.GatePrometheus, URL: at + "/", Query: text, Expression: expression,
		})
	}
	const rate = `sum(rate(errors[5m]))`
	for name, c := range map[string]struct {
		gate events.RolloutGate
		want gate.Result
	}{
		"answers":            {http("/ready", ""), gate.Result{Holds: true}},
		"is ready":           {http("/ready", "body.ready"), gate.Result{Holds: true}},
		"is not":             {http("/ready", "!body.ready"), gate.Result{Definite: true, Code: "ConditionFalse"}},
		"no JSON":            {http("/text", "body.ready"), gate.Result{Definite: true, Code: "ExpressionFailed"}},
		"another status":     {http("/gone", ""), gate.Result{Definite: true, Code: "StatusNotExpected"}},
		"a redirect":         {http("/moved", ""), gate.Result{Definite: true, Code: "StatusNotExpected"}},
		"large":              {http("/large", ""), gate.Result{Definite: true, Code: "AnswerTooLarge"}},
		"a query":            {query(rate, "value < 0.5"), gate.Result{Holds: true}},
		"above":              {query(rate, "value < 0.1"), gate.Result{Definite: true, Code: "ConditionFalse"}},
		"a query that fails": {query("up(", "value < 0.1"), gate.Result{Code: "StatusNotExpected"}},
		"a verdict": {
			gate.Normal(events.RolloutGate{Type: events.GateWebhook, URL: at + "/ask"}),
			gate.Result{Verdict: "Fail", Code: "ErrorBudget"},
		},
		"operators": {
			gate.Normal(events.RolloutGate{Type: events.GateOperatorConditions}),
			gate.Result{Verdict: "Fail", Code: "OperatorMissing"},
		},
		"cel": {
			gate.Normal(events.RolloutGate{Type: events.GateCEL, Expression: "succeeded == 1"}),
			gate.Result{Holds: true},
		},
	} {
		got := here.Evaluate(t.Context(), gates.Asked{
			FleetSubscription: "gauges", Rollout: 3, Wave: "canary", Gate: c.gate,
			Target:   events.RolloutTarget{CSV: "a.v1"},
			Clusters: []gate.Cluster{{Name: "east-1", State: events.ClusterSucceeded}},
		})
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestNowhere: a gate leads to nobody whom only this site reaches, unless an operator of Chandler allows it.
func TestNowhere(t *testing.T) {
	t.Parallel()
	at := server(t)
	for _, address := range []string{at + "/ready", "http://127.0.0.1:1/", "https://[fd00:ec2::254]/"} {
		got := gates.New(nil).Evaluate(t.Context(), gates.Asked{
			Gate: gate.Normal(events.RolloutGate{Type: events.GateHTTP, URL: address}),
		})
		if got != (gate.Result{Code: "AddressNotAllowed"}) {
			t.Errorf("%s: %+v", address, got)
		}
	}
}
