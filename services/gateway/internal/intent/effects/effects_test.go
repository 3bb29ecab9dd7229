package effects_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/effects"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var ann = model.Caller{Tenant: events.DefaultTenant, Actor: "ann", Rights: access.Everything()}

var clusters = unit.Aggregate[cluster.State, cluster.Command]{
	Kind: events.KindCluster, Subject: func(s cluster.State) string { return s.Name }, Decide: cluster.Decide,
	Evolve: unit.ByPayload(cluster.Evolve),
}

// service has one registered cluster, harbour.
func service(t *testing.T) *effects.Service {
	t.Helper()
	pool := pgtest.DB(t).Pool(t, "gateway")
	quiet := slog.New(slog.DiscardHandler)
	units := &unit.Runner{Pool: pool, Log: eventlog.New(pool), Clock: time.Now, NewID: uuid.New, Slog: quiet}
	err := units.Run(t.Context(), ann, "test", func(ctx context.Context, u *unit.Work) error {
		_, err := unit.Decide(ctx, u, clusters, "harbour", cluster.State{Name: "harbour"},
			func(cluster.State) (cluster.Command, error) {
				return cluster.Register{Name: "harbour", Credential: "c1:00"}, nil
			})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return &effects.Service{Units: units, Tenants: store.NewTokens(pool), Slog: quiet}
}

// TestSwitchOfOneCluster: a cluster and the fleet are stopped apart from each other, and resuming names the epoch that
// the
// person has seen (D7).
func TestSwitchOfOneCluster(t *testing.T) {
	t.Parallel()
	s := service(t)
	set := func(in model.EffectsRequest) (model.Effects, error) { return s.Set(t.Context(), ann, in) }
	stopped, err := set(model.EffectsRequest{Action: "stop", Cluster: "harbour"})
	if err != nil || !stopped.Stopped || stopped.Scope != "cluster/harbour" || stopped.Since == nil ||
		stopped.Position == "" {
		t.Fatalf("stopped: %+v, %v", stopped, err)
	}
	if fleet, err := s.Get(t.Context(), ann, ""); err != nil || fleet.Stopped {
		t.Errorf("the fleet: %+v, %v; want it going on", fleet, err)
	}
	if _, err := set(model.EffectsRequest{Action: "stop", Cluster: "unknown"}); !errs.Is(err, errs.NotFound) {
		t.Errorf("a cluster that is not registered: %v", err)
	}
	if _, err := set(model.EffectsRequest{Action: "resume", Cluster: "harbour", Epoch: stopped.Epoch + 1}); !errs.Is(
		err, errs.Conflict) {
		t.Errorf("another epoch: %v", err)
	}
	if _, err := set(model.EffectsRequest{Action: "resume", Cluster: "harbour"}); !errs.Is(err, errs.Invalid) {
		t.Errorf("no epoch: %v", err)
	}
	resumed, err := set(model.EffectsRequest{Action: "resume", Cluster: "harbour", Epoch: stopped.Epoch})
	if err != nil || resumed.Stopped {
		t.Errorf("resumed: %+v, %v", resumed, err)
	}
}

// A stop by the record holds for all tenants: no other tenant than that of the installation ends it.
func TestStopOfTheRecordIsNoTenants(t *testing.T) {
	t.Parallel()
	s := service(t)
	var raised *int64
	if err := s.Units.Pool.QueryRow(t.Context(), `select eventlog.check_epoch(1, 1000000, 'cluster harbour')`).
		Scan(&raised); err != nil || raised == nil {
		t.Fatalf("epoch %v: %v", raised, err)
	}
	resume := model.EffectsRequest{Action: "resume", Epoch: *raised}
	eve := model.Caller{Tenant: "other", Actor: "eve"}
	if _, err := s.Set(t.Context(), eve, resume); !errs.Is(err, errs.Forbidden) {
		t.Errorf("another tenant resumes: %v", err)
	}
	if _, stopped, err := s.Units.Log.EffectsStopped(t.Context()); err != nil || !stopped {
		t.Errorf("stopped %v, %v; nobody has resumed", stopped, err)
	}
	if _, err := s.Set(t.Context(), ann, resume); err != nil {
		t.Errorf("the installation's own tenant: %v", err)
	}
}
