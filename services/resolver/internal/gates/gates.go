// Package gates evaluates gates of rollouts: it asks the addresses that they name, and puts what they say to their
// expressions. What a verdict means is decided in libs/fleet.
package gates

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/gate"
	"github.com/chandler-fleet/chandler/libs/outbound"
)

// maxBody bounds an answer: the result of a query over a thousand clusters has some 100 KB.
const maxBody = 256 << 10

// Codes of answers.
const (
	codeStatus   = "StatusNotExpected"
	codeTooLarge = "AnswerTooLarge"
	codeNoResult = "ResultNotReadable"
)

// Asked is a gate that is evaluated, with what it looks at.
type Asked struct {
	FleetSubscription string
	Rollout           int
	Wave              string // name
	Round             int
	Evaluation        string // id
	Gate              events.RolloutGate
	Target            events.RolloutTarget
	Clusters          []gate.Cluster // of the wave
}

// Evaluator asks.
type Evaluator struct{ client *http.Client }

// New makes an evaluator that leads to public addresses, and to networks that are allowed.
func New(allowed []netip.Prefix) *Evaluator {
	return &Evaluator{client: outbound.Client(allowed, gate.MaxTimeoutSeconds*time.Second)}
}

// Evaluate evaluates a gate once. It is asked again after a crash, so that who is asked may be asked twice.
func (e *Evaluator) Evaluate(ctx context.Context, a Asked) gate.Result {
	if a.Gate.TimeoutSeconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(a.Gate.TimeoutSeconds)*time.Second)
		defer cancel()
	}
	switch a.Gate.Type {
	case events.GateOperatorConditions:
		return gate.OperatorConditions(a.Target, a.Clusters)
	case events.GateCEL:
		x, err := gate.Compile(a.Gate.Type, a.Gate.Expression)
		if err != nil { // a newer gateway took it
			return gate.OfExpression(false, err)
		}
		return gate.OfExpression(x.HoldsOf(a.Clusters))
	case events.GateHTTP:
		return e.http(ctx, a.Gate)
	case events.GatePrometheus:
		return e.prometheus(ctx, a.Gate)
	case events.GateWebhook:
		return e.webhook(ctx, a)
	default: // of a newer release
		return gate.Result{Code: "TypeNotKnown"}
	}
}

// ask makes one request. Its result is one that ends the evaluation, where there is no answer to read.
func (e *Evaluator) ask(ctx context.Context, method, address string, body []byte) (int, []byte, *gate.Result) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, &gate.Result{Code: string(outbound.Nowhere)}
	}
	req.Header.Set("User-Agent", "Chandler")
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return 0, nil, &gate.Result{Code: string(outbound.TroubleOf(err))}
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is not worth it
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(answer) > maxBody {
		return 0, nil, &gate.Result{Code: codeTooLarge, Definite: true}
	}
	if err != nil {
		return 0, nil, &gate.Result{Code: string(outbound.TroubleOf(err))}
	}
	return resp.StatusCode, answer, nil
}

func (e *Evaluator) http(ctx context.Context, g events.RolloutGate) gate.Result {
	status, answer, end := e.ask(ctx, http.MethodGet, g.URL, nil)
	switch {
	case end != nil:
		return *end
	case status != g.Status:
		return gate.Result{Code: codeStatus, Definite: true}
	case g.Expression == "":
		return gate.Result{Holds: true}
	}
	x, err := gate.Compile(g.Type, g.Expression)
	if err != nil {
		return gate.OfExpression(false, err)
	}
	var body any
	if json.Unmarshal(answer, &body) != nil {
		body = nil // what the expression looks for is not there
	}
	return gate.OfExpression(x.HoldsOfAnswer(status, body))
}

// prometheus makes an instant query (the HTTP API of Prometheus, /api/v1/query).
func (e *Evaluator) prometheus(ctx context.Context, g events.RolloutGate) gate.Result {
	x, err := gate.Compile(g.Type, g.Expression)
	if err != nil {
		return gate.OfExpression(false, err)
	}
	address := strings.TrimRight(g.URL, "/") + "/api/v1/query?" + url.Values{"query": {g.Query}}.Encode()
	status, answer, end := e.ask(ctx, http.MethodGet, address, nil)
	switch {
	case end != nil:
		return *end
	case status != http.StatusOK:
		return gate.Result{Code: codeStatus}
	}
	samples, err := gate.Samples(answer)
	if err != nil {
		return gate.Result{Code: codeNoResult}
	}
	return gate.OfExpression(x.HoldsOfSamples(samples))
}

// question is what a webhook is asked.
type question struct {
	FleetSubscription string         `json:"fleetSubscription"`
	Rollout           int            `json:"rollout"`
	Wave              string         `json:"wave"`
	Gate              string         `json:"gate"`
	When              string         `json:"when"`
	Round             int            `json:"round"`
	Evaluation        string         `json:"evaluation"`
	Target            target         `json:"target"`
	Clusters          []cluster      `json:"clusters"`
	Counts            map[string]int `json:"counts"` // by state
}

type target struct {
	Package string `json:"package"`
	Version string `json:"version"`
	CSV     string `json:"csv"`
	Content string `json:"content"`
}

type cluster struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Phase string `json:"phase,omitempty"`
}

func (e *Evaluator) webhook(ctx context.Context, a Asked) gate.Result {
	q := question{
		FleetSubscription: a.FleetSubscription, Rollout: a.Rollout, Wave: a.Wave, Gate: a.Gate.Name, When: a.Gate.When,
		Round: a.Round, Evaluation: a.Evaluation, Clusters: []cluster{}, Counts: map[string]int{},
		Target: target{
			Package: a.Target.Package, Version: a.Target.Version, CSV: a.Target.CSV, Content: a.Target.Content,
		},
	}
	for _, c := range a.Clusters {
		q.Clusters = append(q.Clusters, cluster{Name: c.Name, State: c.State, Phase: c.Phase})
		q.Counts[c.State]++
	}
	body, err := json.Marshal(q)
	if err != nil {
		return gate.Result{Code: gate.CodeVerdictNotReadable}
	}
	status, answer, end := e.ask(ctx, http.MethodPost, a.Gate.URL, body)
	switch {
	case end != nil:
		return *end
	case status != http.StatusOK:
		return gate.Result{Code: codeStatus}
	}
	return gate.WebhookVerdict(answer)
}
