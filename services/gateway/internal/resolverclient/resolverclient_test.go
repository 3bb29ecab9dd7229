package resolverclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/internal/resolverclient"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var ann = model.Caller{Tenant: events.DefaultTenant, Actor: "ann"}

// bus answers every request in the same way and keeps the last one.
type bus struct {
	reply   string
	err     error
	subject string
	asked   string
}

func (b *bus) Call(_ context.Context, subject string, in, out any) error {
	raw, err := json.Marshal(in)
	b.subject, b.asked = subject, string(raw)
	return errors.Join(err, b.err, json.Unmarshal([]byte(b.reply), out))
}

func client(b *bus) resolverclient.Client {
	return resolverclient.Client{Bus: b, Slog: slog.New(slog.DiscardHandler)}
}

// TestExplain: P3: what the resolver says about a decision is shown with the scope that was asked about; who is in
// conflict is named by kind; the tenant of the caller is asked for and no other.
func TestExplain(t *testing.T) {
	t.Parallel()
	b := &bus{reply: `{"recorded": {"outcome": "Failed", "reason": "ConstraintsNotSatisfiable", "planName": "install-a"},
		"input": "sha256:i", "agrees": true, "component": {"x": 1},
		"explanation": {"class": "conflict", "subscriptions": ["a"], "csvs": ["b.v1"], "more": 2},
		"advice": {"exhausted": true, "waits": ["fleet"]}}`}
	got, err := client(b).ExplainSubscription(t.Context(), ann, "harbour", "ops", "a")
	if err != nil {
		t.Fatal(err)
	}
	want := model.Decision{
		Cluster: "harbour", Namespace: "ops", Subscription: "a", Outcome: "Failed", PlanName: "install-a",
		Reason: "ConstraintsNotSatisfiable", Input: "sha256:i", Agrees: true, Again: json.RawMessage(`{"x": 1}`),
		Class: "conflict", Conflict: []string{"subscription/a", "operator/b.v1"}, More: 2, Exhausted: true,
		Waits: []string{"fleet"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const asked = `{"tenant":"default","cluster":"harbour","namespace":"ops","subscription":"a"}`
	if b.subject != "chandler.rpc.resolver.explain" || b.asked != asked {
		t.Errorf("asked %s: %s", b.subject, b.asked)
	}
	b.reply = `{"recorded": {"outcome": "Planned"}}`
	plan := model.InstallPlan{ID: "p1", Cluster: "harbour", Namespace: "ops"}
	got, err = client(b).ExplainPlan(t.Context(), ann, plan)
	if err != nil || got.Outcome != "Planned" || got.Cluster != "harbour" || got.Class != "" ||
		b.asked != `{"tenant":"default","plan":"p1"}` {
		t.Errorf("%+v, %v; asked %s", got, err, b.asked)
	}
}

// TestUnanswered: a resolver that does not answer is named as what it is, without the words of the bus, and may be
// asked again; any other refusal is the resolver's own.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	calls := map[string]func(resolverclient.Client) error{
		"explain": func(c resolverclient.Client) error {
			_, err := c.ExplainSubscription(t.Context(), ann, "harbour", "ops", "a")
			return err
		},
		"why": func(c resolverclient.Client) error {
			_, err := c.WhyOperator(t.Context(), ann, "harbour", "ops", "a")
			return err
		},
		"preview": func(c resolverclient.Client) error {
			_, err := c.Preview(t.Context(), previewapi.Question{})
			return err
		},
		"removal": func(c resolverclient.Client) error {
			_, err := c.AfterRemoval(t.Context(), previewapi.RemovalQuestion{})
			return err
		},
	}
	for name, call := range calls {
		away := call(client(&bus{reply: "{}", err: errs.New(errs.Unavailable, "nats: no responders")}))
		if !errs.Is(away, errs.Unavailable) || strings.Contains(away.Error(), "nats") ||
			!strings.Contains(away.Error(), "try again") {
			t.Errorf("%s of a resolver that is away: %v", name, away)
		}
		refused := call(client(&bus{reply: "{}", err: errs.New(errs.NotFound, "nothing was decided")}))
		if !errs.Is(refused, errs.NotFound) || !strings.Contains(refused.Error(), "nothing was decided") {
			t.Errorf("%s that the resolver refuses: %v", name, refused)
		}
	}
}
