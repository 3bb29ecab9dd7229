package gate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/gate"
)

// TestCheck: what cannot be used is refused when it is set, by the field and the place in it (issue 14, section 2).
func TestCheck(t *testing.T) {
	t.Parallel()
	const address = "https://ports.example.com/health"
	for name, c := range map[string]struct {
		gate        events.RolloutGate
		field, says string // "" where it can be used
	}{
		"operators": {gate: events.RolloutGate{Type: events.GateOperatorConditions}},
		"cel": {gate: events.RolloutGate{
			Type:       events.GateCEL,
			Expression: `failed == 0 && clusters.all(c, c.phase == "Succeeded" && c.labels["ring"] == "0" || c.away)`,
		}},
		"http": {gate: events.RolloutGate{Type: events.GateHTTP, URL: address, Expression: "body.ready == true"}},
		"prometheus": {gate: events.RolloutGate{
			Type: events.GatePrometheus, URL: address, Query: "up", Expression: "value > 0.5",
		}},
		"webhook": {gate: events.RolloutGate{Type: events.GateWebhook, URL: address}},
		"no expression": {
			gate: events.RolloutGate{Type: events.GateCEL}, field: "expression", says: "has an expression",
		},
		"a field that is none": {
			gate:  events.RolloutGate{Type: events.GateCEL, Expression: "clusters.all(c,\n  c.phas == 'x')"},
			field: "expression", says: "line 2, column 4: undefined field 'phas'",
		},
		"a name that is none": {
			gate: events.RolloutGate{Type: events.GateCEL, Expression: "body.ready"}, field: "expression",
			says: "undeclared reference to 'body'",
		},
		"no truth": {
			gate:  events.RolloutGate{Type: events.GateCEL, Expression: "failed"},
			field: "expression", says: "must give bool",
		},
		"long": {
			gate: events.RolloutGate{
				Type: events.GateCEL, Expression: strings.Repeat(" ", gate.MaxExpression) + "true",
			},
			field: "expression", says: "1028 characters",
		},
		"of another type": {
			gate: events.RolloutGate{Type: events.GateWebhook, URL: address, Query: "up"}, field: "query",
			says: "is of gates of type Prometheus",
		},
		"no query": {
			gate:  events.RolloutGate{Type: events.GatePrometheus, URL: address, Expression: "value > 1.0"},
			field: "query", says: "has a query",
		},
		"a credential": {
			gate: events.RolloutGate{Type: events.GateHTTP, URL: address + "?token=abc"}, field: "url",
			says: "stands in the event log",
		},
		"plain": {
			gate: events.RolloutGate{Type: events.GateHTTP, URL: "http://ports.example.com/"}, field: "url",
			says: "plain http",
		},
		"often": {
			gate:  events.RolloutGate{Type: events.GateWebhook, URL: address, IntervalSeconds: 1},
			field: "intervalSeconds", says: "want 5 to 3600",
		},
	} {
		got := gate.Check(gate.Normal(c.gate))
		if c.field == "" && len(got) != 0 ||
			c.field != "" && (len(got) != 1 || got[0].Field != c.field || !strings.Contains(got[0].Text, c.says)) {
			t.Errorf("%s: %+v", name, got)
		}
		for _, p := range got {
			if strings.Contains(p.Text, "abc") {
				t.Errorf("%s: the error quotes a credential", name)
			}
		}
	}
}

func compile(t *testing.T, kind, text string) *gate.Expression {
	t.Helper()
	e, err := gate.Compile(kind, text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExpressions: what holds, and what does not; what cannot be evaluated, or takes too much work, is an error.
func TestExpressions(t *testing.T) {
	t.Parallel()
	clusters := []gate.Cluster{
		{Name: "a", State: events.ClusterSucceeded, Phase: "Succeeded", Labels: map[string]string{"ring": "0"}},
		{Name: "b", State: events.ClusterFailed, Kubernetes: "v1.34.1"},
	}
	for text, want := range map[string]bool{
		`failed == 1 && total == 2`: true,
		`clusters.filter(c, c.state == "Succeeded").all(c, c.phase == "Succeeded")`: true,
		`clusters.exists(c, c.kubernetes.startsWith("v1.33"))`:                      false,
		`clusters[0].labels["ring"] == "0"`:                                         true,
	} {
		if got, err := compile(t, events.GateCEL, text).HoldsOf(clusters); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := compile(t, events.GateCEL, `clusters[0].labels["none"] == "0"`).HoldsOf(clusters); err == nil {
		t.Error("a label that is not there is one")
	}
	many := make([]gate.Cluster, 2000)
	if _, err := compile(t, events.GateCEL, `clusters.all(c, clusters.all(d, c.name == d.name))`).HoldsOf(many); err == nil {
		t.Error("the work of an expression has no bound")
	}
	if got, err := compile(t, events.GateCEL, `clusters.all(c, c.name == "" && !c.away)`).HoldsOf(many); err != nil || !got {
		t.Errorf("2,000 clusters: %v, %v", got, err)
	}
	var body any
	if err := json.Unmarshal([]byte(`{"ready": true, "queue": 3}`), &body); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"body.ready && body.queue < 5": true, "status == 201": false} {
		if got, err := compile(t, events.GateHTTP, text).HoldsOfAnswer(200, body); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestSamples: answers of Prometheus are read as its API gives them.
func TestSamples(t *testing.T) {
	t.Parallel()
	const one = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"a"},"value":[1.5,"0.02"]}]}}`
	const scalar = `{"status":"success","data":{"resultType":"scalar","result":[1.5,"3"]}}`
	const none = `{"status":"success","data":{"resultType":"vector","result":[]}}`
	for _, c := range []struct {
		answer, text string
		want, fails  bool
	}{
		{one, "value < 0.05", true, false},
		{one, `samples.all(s, s.labels["job"] == "a" && s.value > 1.0)`, false, false},
		{scalar, "value == 3.0", true, false},
		{none, "value < 1.0", false, true},
		{none, "samples.size() == 0", true, false},
	} {
		samples, err := gate.Samples([]byte(c.answer))
		if err != nil {
			t.Fatal(err)
		}
		got, err := compile(t, events.GatePrometheus, c.text).HoldsOfSamples(samples)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s of %s: %v, %v", c.text, c.answer, got, err)
		}
	}
	for _, bad := range []string{"", `{"status":"error"}`, `{"status":"success","data":{"resultType":"matrix","result":[]}}`} {
		if _, err := gate.Samples([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// TestVerdicts: what a result means by policy, and how often it has to hold.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	waits := events.RolloutGate{FailurePolicy: events.GateWaits, Successes: 2}
	fails := events.RolloutGate{FailurePolicy: events.GateFails, Successes: 1}
	target := events.RolloutTarget{CSV: "a.v1", Content: "sha256:a"}
	well := gate.Cluster{
		State: events.ClusterSucceeded, CSV: "a.v1", Content: "sha256:a", Phase: "Succeeded", Upgradeable: true,
	}
	with := func(change func(*gate.Cluster)) []gate.Cluster {
		c := well
		change(&c)
		return []gate.Cluster{well, c}
	}
	for name, c := range map[string]struct {
		result    gate.Result
		gate      events.RolloutGate
		successes int
		verdict   string
		code      string
	}{
		"holds once":  {gate.Result{Holds: true}, waits, 0, events.VerdictWait, gate.CodeHolding},
		"holds twice": {gate.Result{Holds: true}, waits, 1, events.VerdictPass, ""},
		"false":       {gate.OfExpression(false, nil), waits, 1, events.VerdictWait, gate.CodeConditionFalse},
		"false fails": {gate.OfExpression(false, nil), fails, 0, events.VerdictFail, gate.CodeConditionFalse},
		"no answer":   {gate.Result{Code: "ConnectionFailed"}, fails, 0, events.VerdictWait, "ConnectionFailed"},
		"well":        {gate.OperatorConditions(target, []gate.Cluster{well}), fails, 0, events.VerdictPass, ""},
		"failed": {
			gate.OperatorConditions(target, with(func(c *gate.Cluster) { c.Phase = "Failed" })), waits, 0,
			events.VerdictFail, gate.CodeOperatorFailed,
		},
		"gone": {
			gate.OperatorConditions(target, with(func(c *gate.Cluster) { c.CSV = "" })), waits, 0,
			events.VerdictFail, gate.CodeOperatorMissing,
		},
		"away": {
			gate.OperatorConditions(target, with(func(c *gate.Cluster) { c.Away = true })), fails, 0,
			events.VerdictWait, gate.CodeClusterAway,
		},
		"migrates": {
			gate.OperatorConditions(target, with(func(c *gate.Cluster) { c.Upgradeable = false })), waits, 0,
			events.VerdictWait, gate.CodeNotUpgradeable,
		},
		"failed before": {
			gate.OperatorConditions(target, with(func(c *gate.Cluster) { c.State = events.ClusterFailed; c.CSV = "" })),
			fails, 0, events.VerdictPass, "",
		},
		"says pass": {
			gate.WebhookVerdict([]byte(`{"verdict":"Pass","reason":"Quiet"}`)), fails, 0, events.VerdictPass, "Quiet",
		},
		"says fail": {
			gate.WebhookVerdict([]byte(`{"verdict":"Fail","reason":"a sentence"}`)), waits, 0, events.VerdictFail, "",
		},
		"says something": {
			gate.WebhookVerdict([]byte(`{"verdict":"Yes"}`)), fails, 0, events.VerdictWait, gate.CodeVerdictNotReadable,
		},
	} {
		if verdict, code, _ := c.result.Of(c.gate, c.successes); verdict != c.verdict || code != c.code {
			t.Errorf("%s: %s (%s)", name, verdict, code)
		}
	}
}
