package holds_test

import (
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/internal/holds"
)

func setup(t *testing.T) (holds.Registry, *pg.Pool, string) {
	t.Helper()
	own := pgtest.DB(t).Pool(t, "installer")
	cluster := uuid.NewString()
	if _, err := own.Exec(t.Context(), `insert into installer.clusters (tenant, name, cluster_id, stream, credential)
		values ($1, 'east', $2, 's', '')`, events.DefaultTenant, cluster); err != nil {
		t.Fatal(err)
	}
	return holds.Registry{Pool: own, Log: slog.New(slog.DiscardHandler)}, own, cluster
}

func hold(t *testing.T, cluster string, epoch int64) protocol.Hold {
	t.Helper()
	key, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.Hold{
		Tenant: events.DefaultTenant, ClusterID: cluster, Epoch: epoch, Holder: "h", Session: uuid.NewString(),
		PublicKey: key,
	}
}

// TestRegister: DESIGN D7: a hold is what was registered with the highest epoch; who comes later with a lower or an
// equal one holds nothing, and registering again changes nothing.
func TestRegister(t *testing.T) {
	t.Parallel()
	r, own, cluster := setup(t)
	held := func(by ed25519.PublicKey) bool {
		t.Helper()
		key, err := r.Key(t.Context(), events.DefaultTenant, cluster)
		if err != nil && !errs.Is(err, errs.Unavailable) {
			t.Fatal(err)
		}
		return key.Equal(by)
	}
	register := func(h protocol.Hold, want int64) {
		t.Helper()
		if got, err := r.Register(t.Context(), h); err != nil || got != want {
			t.Errorf("epoch %d is registered as %d, want %d: %v", h.Epoch, got, want, err)
		}
	}
	a, b := hold(t, cluster, 0), hold(t, cluster, 5)
	register(a, 0)
	if !held(nil) {
		t.Error("a session without an epoch holds the cluster")
	}
	a.Epoch = 5
	register(a, 5)
	register(a, 5)
	register(b, 5) // too late: somebody has that epoch
	if !held(a.PublicKey) {
		t.Error("two sessions have one epoch")
	}
	b.Epoch = 6
	register(b, 6)
	register(a, 6) // paused between the lease and this, and overtaken
	a.Epoch = 0
	register(a, 6) // a session that was overtaken still says that it lives; its epoch does not go back
	if !held(b.PublicKey) {
		t.Error("who was overtaken holds the cluster")
	}
	var kept int64
	if err := own.QueryRow(t.Context(), `select epoch from installer.holds where session = $1`, a.Session).Scan(
		&kept); err != nil || kept != 5 {
		t.Errorf("the epoch of a session went back to %d: %v", kept, err)
	}
	other := hold(t, cluster, 9)
	other.Session = b.Session
	if _, err := r.Register(t.Context(), other); !errs.Is(err, errs.Forbidden) {
		t.Errorf("another key for a session: %v, want forbidden", err)
	}
	if _, err := r.Register(t.Context(), hold(t, uuid.NewString(), 1)); !errs.Is(err, errs.NotFound) {
		t.Errorf("a cluster that is not registered: %v", err)
	}
	for _, epoch := range []int64{-1, protocol.MaxEpoch + 1} {
		if _, err := r.Register(t.Context(), hold(t, cluster, epoch)); !errs.Is(err, errs.Invalid) {
			t.Errorf("epoch %d: %v, want invalid", epoch, err)
		}
	}
}

// TestRegisterAtOnce: of many that register one epoch at once, one holds the cluster; what sessions leave is bounded.
func TestRegisterAtOnce(t *testing.T) {
	t.Parallel()
	r, own, cluster := setup(t)
	var running sync.WaitGroup
	for n := range 40 {
		h := hold(t, cluster, int64(1+n/4))
		running.Go(func() {
			if got, err := r.Register(t.Context(), h); err != nil || got < h.Epoch {
				t.Errorf("registered %d as %d: %v", h.Epoch, got, err)
			}
		})
	}
	running.Wait()
	var epoch, same, sessions int64
	if err := own.QueryRow(t.Context(), `select h.epoch, s.epoch, (select count(*) from installer.holds)
		from installer.holders h join installer.holds s using (tenant, cluster_id, session)`).Scan(&epoch, &same,
		&sessions); err != nil {
		t.Fatal(err)
	}
	if epoch != 10 || same != 10 || sessions > 18 {
		t.Error(fmt.Sprint("the cluster is held in epoch ", epoch, " by a session of ", same, ", of ", sessions))
	}
}
