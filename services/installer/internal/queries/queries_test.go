package queries_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/internal/queries"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

const registration = "11111111-1111-5111-8111-111111111111"

// fixture is an installer service that answers questions, with cluster east registered.
type fixture struct {
	t   *testing.T
	bus *bus.Bus
	queries.Server
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, b := pgtest.DB(t).Pool(t, "installer"), bustest.Start(t).Connect(t)
	if _, err := pool.Exec(t.Context(), `insert into installer.clusters (tenant, name, cluster_id, stream, credential)
		values ($1, 'east', $2, '', '')`,
		events.DefaultTenant, registration); err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, bus: b, Server: queries.Server{Pool: pool, Bus: b, Plans: plans{}}}
}

// serving serves until the test ends.
func (d *fixture) serving(serve func(context.Context) error) {
	d.t.Helper()
	ctx, stop := context.WithCancel(d.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }()
	d.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			d.t.Error(err)
		}
	})
}

// executor answers a question to the executor of cluster east.
func executor[Q any](d *fixture, question string, answer func(Q) (any, error)) {
	d.t.Helper()
	d.serving(func(ctx context.Context) error {
		return d.bus.Serve(ctx, protocol.RPCSubject(events.DefaultTenant, registration, question),
			func(_ context.Context, raw json.RawMessage) (any, error) {
				var q Q
				if err := json.Unmarshal(raw, &q); err != nil {
					return nil, err
				}
				return answer(q)
			})
	})
}

// put asks until the service answers.
func put[A any](d *fixture, subject string, question any) (out A, err error) {
	d.t.Helper()
	for {
		if err = d.bus.Call(d.t.Context(), subject, question, &out); err == nil ||
			!strings.Contains(err.Error(), "nobody serves") {
			return out, err
		}
	}
}

// patient asks until the executor answers, too.
func patient[A any](d *fixture, subject string, question any) A {
	d.t.Helper()
	for {
		out, err := put[A](d, subject, question)
		if err == nil {
			return out
		}
		if !errs.Is(err, errs.Unavailable) {
			d.t.Fatal(err)
		}
	}
}

// TestRemovals: the executor of the cluster is asked, by the id of its registration; what it says comes back with its
// digest, and who cannot be asked is named.
func TestRemovals(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.serving(d.ServeRemovalPreviews)
	about := func(cluster string) protocol.OperatorQuestion {
		return protocol.OperatorQuestion{
			Tenant: events.DefaultTenant, Cluster: cluster,
			RemovalQuestion: protocol.RemovalQuestion{Namespace: "ports", CSV: "tidegauge.v1", CRDs: []string{"*"}},
		}
	}
	if _, err := put[protocol.RemovalPreview](d, protocol.RPCInstallerRemoval, about("west")); !errs.Is(
		err, errs.NotFound) {
		t.Errorf("a cluster that is not registered: %v", err)
	}
	if _, err := put[protocol.RemovalPreview](d, protocol.RPCInstallerRemoval, about("east")); !errs.Is(
		err, errs.Unavailable) {
		t.Errorf("a cluster that nobody holds: %v", err)
	}
	plan := protocol.RemovalPlan{
		CSV: "tidegauge.v1", Steps: []protocol.RemovalStep{}, Stays: []protocol.Leftover{},
		Needed: []string{"coast/harbor.v1"},
	}
	executor(d, protocol.RPCRemoval, func(q protocol.RemovalQuestion) (any, error) {
		if q.Namespace != "ports" || q.CSV != "tidegauge.v1" || len(q.CRDs) != 1 {
			return nil, errs.New(errs.Invalid, "asked %+v", q)
		}
		return plan, nil
	})
	digest, err := removal.Digest(plan)
	if err != nil {
		t.Fatal(err)
	}
	got := patient[protocol.RemovalPreview](d, protocol.RPCInstallerRemoval, about("east"))
	if diff := cmp.Diff(protocol.RemovalPreview{RemovalPlan: plan, Digest: string(digest)}, got); diff != "" {
		t.Error(diff)
	}
}
