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
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

const registration = "11111111-1111-5111-8111-111111111111"

// TestRemovals: the executor of the cluster is asked, by the id of its registration; what it says comes back with its
// digest, and who cannot be asked is named.
func TestRemovals(t *testing.T) {
	t.Parallel()
	pool, b := pgtest.DB(t).Pool(t, "installer"), bustest.Start(t).Connect(t)
	if _, err := pool.Exec(t.Context(), `insert into installer.clusters (tenant, name, cluster_id, stream, credential) values ($1, 'east', $2, '', '')`,
		events.DefaultTenant, registration); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	serving := func(serve func() error) {
		go func() { ended <- serve() }()
	}
	serving(func() error { return questions.Questions{Pool: pool, Bus: b}.Removals(ctx) })
	ask := func(cluster string) (out protocol.RemovalPreview, err error) {
		q := protocol.OperatorQuestion{Tenant: events.DefaultTenant, Cluster: cluster, RemovalQuestion: protocol.RemovalQuestion{Namespace: "ports", CSV: "tidegauge.v1", CRDs: []string{"*"}}}
		for { // until it is served
			if err = b.Ask(ctx, protocol.AskInstallerRemoval, q, &out); err == nil || !strings.Contains(err.Error(), "nobody answers") {
				return out, err
			}
		}
	}
	if _, err := ask("west"); !errs.Is(err, errs.NotFound) {
		t.Errorf("a cluster that is not registered: %v", err)
	}
	if _, err := ask("east"); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a cluster that nobody holds: %v", err)
	}
	plan := protocol.RemovalPlan{CSV: "tidegauge.v1", Steps: []protocol.RemovalStep{}, Stays: []protocol.Leftover{}, Needed: []string{"coast/harbor.v1"}}
	serving(func() error {
		return b.Serve(ctx, protocol.AskSubject(events.DefaultTenant, registration, protocol.AskRemoval), func(_ context.Context, raw json.RawMessage) (any, error) {
			var q protocol.RemovalQuestion
			if err := json.Unmarshal(raw, &q); err != nil || q.Namespace != "ports" || q.CSV != "tidegauge.v1" || len(q.CRDs) != 1 {
				return nil, errs.New(errs.Invalid, "asked %s", raw)
			}
			return plan, nil
		})
	})
	var got protocol.RemovalPreview
	for {
		var err error
		if got, err = ask("east"); err == nil {
			break
		} else if !errs.Is(err, errs.Unavailable) {
			t.Fatal(err)
		}
	}
	digest, err := removal.Digest(plan)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(protocol.RemovalPreview{RemovalPlan: plan, Digest: string(digest)}, got); diff != "" {
		t.Error(diff)
	}
	stop()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
