package questions_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/internal/questions"
)

// plans knows one plan, of cluster east.
type plans struct{}

func (plans) PlanQuestion(_ context.Context, _, plan string) (string, protocol.PlanQuestion, error) {
	if plan != "p" {
		return "", protocol.PlanQuestion{}, errs.New(errs.NotFound, "there is no install plan %s", plan)
	}
	return "east", protocol.PlanQuestion{Namespace: "ports", Plan: protocol.Plan{ID: plan}, OperatorGroups: 1}, nil
}

// TestChecks: a plan is checked by the executor of its cluster, with what the hub knows of it.
func TestChecks(t *testing.T) {
	t.Parallel()
	pool, b := pgtest.DB(t).Pool(t, "installer"), bustest.Start(t).Connect(t)
	if _, err := pool.Exec(t.Context(), `insert into installer.clusters (tenant, name, cluster_id, stream, credential) values ($1, 'east', $2, '', '')`,
		events.DefaultTenant, registration); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- questions.Questions{Pool: pool, Bus: b, Plans: plans{}}.Checks(ctx) }()
	ask := func(plan string) (out protocol.PlanCheck, err error) {
		for { // until it is served
			err = b.Ask(ctx, protocol.AskInstallerCheck, protocol.LivePlanQuestion{Tenant: events.DefaultTenant, Plan: plan}, &out)
			if err == nil || !strings.Contains(err.Error(), "nobody answers") {
				return out, err
			}
		}
	}
	if _, err := ask("none"); !errs.Is(err, errs.NotFound) {
		t.Errorf("a plan that there is not: %v", err)
	}
	if _, err := ask("p"); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), `cluster "east"`) {
		t.Errorf("a cluster that nobody holds: %v", err)
	}
	want := protocol.PlanCheck{Account: "system:serviceaccount:ports:installer", CRDs: []protocol.CRDVerdict{{CRD: "gauges.sea.test", Safe: true}}}
	go func() {
		ended <- b.Serve(ctx, protocol.AskSubject(events.DefaultTenant, registration, protocol.AskCheckPlan), func(_ context.Context, raw json.RawMessage) (any, error) {
			var q protocol.PlanQuestion
			if err := json.Unmarshal(raw, &q); err != nil || q.Namespace != "ports" || q.Plan.ID != "p" || q.OperatorGroups != 1 {
				return nil, errs.New(errs.Invalid, "asked %s", raw)
			}
			return want, nil
		})
	}()
	var got protocol.PlanCheck
	for { // until the executor serves
		var err error
		if got, err = ask("p"); err == nil {
			break
		} else if !errs.Is(err, errs.Unavailable) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	stop()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
