package app_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// What the resolver answers, as it writes it.
const (
	failedDecision = `{"recorded": {"outcome": "Failed", "reason": "ConstraintsNotSatisfiable", "explanation": "sha256:e"}, "input": "sha256:i", "semantics": "chandler.resolve.v3",
		"agrees": true, "component": {"name": "tidegauge"}, "explanation": {"reason": "ConstraintsNotSatisfiable", "class": "unsatisfiable", "subscriptions": ["tidegauge", "rival"],
		"csvs": ["old.v1"], "statements": [{"kind": "gvk-unique", "bundle": "a", "other": "b", "text": "there can be only one"}], "more": 1},
		"advice": {"remedies": [{"kind": "leave-out", "target": "subscription/rival", "text": "delete subscription rival", "also": ["x"]}], "tried": 3}}`
	planDecision = `{"recorded": {"outcome": "Planned", "plan": "p", "planName": "install-aaaaa", "digest": "sha256:d", "bundles": [{"csv": "tidegauge.v1.1.0", "reason": "ChannelHead"}]},
		"input": "sha256:i", "semantics": "chandler.resolve.v3", "agrees": false, "differences": [{"what": "digest", "recorded": "sha256:d", "again": "sha256:x"}], "component": {}}`
	ledger = `{"package": "tidegauge", "csv": "tidegauge.v1.1.0", "because": [{"by": "subscription/tidegauge", "text": "asked for"}],
		"notTaken": [{"csv": "tidegauge.v1.2.0", "catalog": "fleet", "channels": ["stable"], "reasons": [{"code": "policy", "policy": "freeze", "text": "pinned"}]}]}`
)

// resolver plays the resolver on a gateway's bus: it answers what is said, and notes the questions.
func resolver(b *bench, nats natsconn.Settings) (asked <-chan map[string]string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	conn := connectAs(b, natsauth.Resolver, nats)
	questions := make(chan map[string]string, 100)
	done := make(chan error, 2)
	for subject, answer := range map[string]string{
		"chandler.rpc.resolver.explain": "",
		"chandler.rpc.resolver.why":     ledger,
	} {
		go func() {
			done <- conn.Serve(ctx, subject, func(_ context.Context, q json.RawMessage) (any, error) {
				var m map[string]string
				if err := json.Unmarshal(q, &m); err != nil {
					return nil, err
				}
				questions <- m
				switch {
				case m["operator"] == "none":
					return nil, errs.New(errs.NotFound, "there is no operator none")
				case answer != "":
					return json.RawMessage(answer), nil
				case m["plan"] != "":
					return json.RawMessage(planDecision), nil
				default:
					return json.RawMessage(failedDecision), nil
				}
			})
		}()
	}
	b.t.Cleanup(func() {
		cancel()
		for range cap(done) {
			if err := <-done; err != nil {
				b.t.Error(err)
			}
		}
		conn.Close()
	})
	return questions
}

// TestExplanations: the API asks the resolver why, in the caller's tenant, and says so clearly while it is away; what
// is not there is not asked about.
func TestExplanations(t *testing.T) {
	t.Parallel()
	var nats natsconn.Settings
	b := setupWith(t, func(c *app.Config) { nats = c.NATS })
	b.cluster("spoke")
	b.catalog("fleet")
	b.position = must[model.Subscription](b, 201, b.do("POST", subscriptions,
		subscribe("tidegauge", "tidegauge"))).Position
	plan := uuid.NewString()
	b.fact(events.Resolver, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa",
		proposed(plan, "install-aaaaa", "tidegauge.v1.1.0", "tidegauge"))
	b.do("GET", b.seen("/api/v1/installplans"), nil)
	const operator = "/api/v1/clusters/spoke/namespaces/ops/operators/tidegauge/why"
	away := b.do("GET", b.seen(subscriptions+"/tidegauge/explanation"), nil)
	if p := must[problem](b, 503, away); !strings.HasPrefix(p.Detail, "the resolver does not answer at the moment") ||
		away.header.Get("Retry-After") == "" {
		t.Errorf("while the resolver is away: %+v, %v", p, away.header)
	}
	asked := resolver(b, nats)
	b.until(func() bool { return b.do("GET", operator, nil).status == 200 })
	if q := <-asked; q["tenant"] != "default" || q["cluster"] != "spoke" || q["namespace"] != "ops" ||
		q["operator"] != "tidegauge" {
		t.Errorf("asked %v", q)
	}
	w := must[model.OperatorReasoning](b, 200, b.do("GET", operator, nil))
	if len(w.NotTaken) != 1 || w.NotTaken[0].Reasons[0].Policy != "freeze" || w.Because[0].Text != "asked for" {
		t.Errorf("why %+v", w)
	}
	b.until(func() bool { return b.do("GET", subscriptions+"/tidegauge/explanation", nil).status == 200 })
	d := must[model.Decision](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge/explanation"), nil))
	if !d.Agrees || d.Subscription != "tidegauge" || d.Class != "unsatisfiable" ||
		strings.Join(d.Conflict, " ") != "subscription/tidegauge subscription/rival operator/old.v1" ||
		len(d.Statements) != 1 || d.Statements[0].Other != "b" || len(d.Remedies) != 1 ||
		d.Remedies[0].Target != "subscription/rival" || string(d.Again) != `{"name":"tidegauge"}` {
		t.Errorf("explanation %+v", d)
	}
	d = must[model.Decision](b, 200, b.do("GET", "/api/v1/installplans/"+plan+"/explanation", nil))
	if d.Agrees || d.PlanName != "install-aaaaa" || d.Cluster != "spoke" || d.Namespace != "ops" ||
		d.Differences[0].What != "digest" || d.Bundles[0].CSV != "tidegauge.v1.1.0" {
		t.Errorf("explanation of the plan %+v", d)
	}
	must[problem](b, 404, b.do("GET", subscriptions+"/none/explanation", nil))
	must[problem](b, 404, b.do("GET", "/api/v1/installplans/"+uuid.NewString()+"/explanation", nil))
	must[problem](b, 404, b.do("GET", "/api/v1/clusters/spoke/namespaces/ops/operators/none/why", nil))
	must[problem](b, 401, b.as("no token of anybody", "GET", operator, nil))
}
