package executorhost_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/internal/executorhost"
	"github.com/chandler-fleet/chandler/services/installer/internal/holds"
)

// replicas are hosts over one database, and the executors that they run.
type replicas struct {
	*env
	mu     sync.Mutex
	at     map[string][]string // by cluster: the replicas that run its executor
	begins map[string]int      // by cluster: how often one began
}

// start runs a replica until the returned function, or the test, ends it.
func (r *replicas) start(name string, capacity int) (stop func()) {
	r.t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	set, err := seal.ParseIdentities(r.identity.String(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	h := executorhost.New(executorhost.Config{
		Pool: r.own, Bus: r.nats.Bus, Identity: set, Log: bustest.Log(r.t), Name: name, Capacity: capacity,
		Register: holds.Registry{Pool: r.own, Log: bustest.Log(r.t)}.Register,
		Session:  protocol.NewSession(uuid.NewString(), key),
		Execute: func(ctx context.Context, t executorhost.Target) error {
			r.note(t.Cluster, func(at []string) []string { return append(at, name) }, 1)
			<-ctx.Done()
			r.note(t.Cluster, func(at []string) []string {
				return slices.DeleteFunc(at, func(n string) bool { return n == name })
			}, 0)
			return nil
		},
	})
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("%s: %v", name, err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

func (r *replicas) note(cluster string, change func([]string) []string, begins int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at[cluster] = change(slices.Clone(r.at[cluster]))
	r.begins[cluster] += begins
}

// placed waits until each cluster that has room runs once, spread as wanted, and returns where.
func (r *replicas) placed(what string, ok func(count map[string]int) bool) map[string]string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		r.mu.Lock()
		where, count, twice := map[string]string{}, map[string]int{}, false
		for cluster, at := range r.at {
			twice = twice || len(at) > 1
			if len(at) == 1 {
				where[cluster] = at[0]
				count[at[0]]++
			}
		}
		r.mu.Unlock()
		if !twice && ok(count) {
			return where
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("waited in vain for %s: %v", what, count)
		}
	}
}

// eventuallySampled waits until a metric has a value for a replica.
func (r *replicas) eventuallySampled(metric, replica string, want float64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := executorhost.Samples(ctx, r.own)
		if slices.ContainsFunc(list, func(s telemetry.Sample) bool {
			return s.Metric == metric && slices.Equal(s.Labels, []string{replica}) && s.Value == want
		}) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("waited in vain for %s %v of %s: %v, %v", metric, want, replica, list, err)
		}
	}
}

// count is how many clusters are at a replica.
func count(where map[string]string, replica string) (n int) {
	for at := range maps.Values(where) {
		if at == replica {
			n++
		}
	}
	return n
}

func sum(count map[string]int) (n int) {
	for c := range maps.Values(count) {
		n += c
	}
	return n
}

func newReplicas(t *testing.T, clusters int) *replicas {
	t.Helper()
	r := &replicas{env: setup(t), at: map[string][]string{}, begins: map[string]int{}}
	if _, err := r.nats.Bus.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range clusters {
		name := fmt.Sprintf("cluster-%02d", i)
		r.register(name)
		r.credential(name, r.seal(r.identity.Recipient(), kubeconfig("one", "")))
	}
	return r
}

// TestReplicasShareTheClusters: DESIGN D8: only the primary of a cluster runs its executor; a replica that comes takes
// load off the others and moves nothing else; one that drains gives all away and takes none; one that stops hands over
// at once; one that is silent is replaced within a bound.
func TestReplicasShareTheClusters(t *testing.T) {
	t.Parallel()
	const n = 24
	r := newReplicas(t, n)
	r.start("one", 0)
	r.placed("one replica", func(c map[string]int) bool { return c["one"] == n })
	stop := r.start("two", 0)
	both := r.placed("two replicas", func(c map[string]int) bool { return c["two"] > n/6 && sum(c) == n })
	for cluster, at := range both {
		if at == "one" && r.begins[cluster] != 1 {
			t.Errorf("%s began %d times and stayed where it was", cluster, r.begins[cluster])
		}
	}
	drain := func(draining bool) {
		t.Helper()
		r.exec(r.gateway, `select installer_api.drain_replica('two', $1, 'me')`, draining)
	}
	drain(true)
	r.placed("one replica while the other one drains", func(c map[string]int) bool { return c["one"] == n })
	r.eventuallySampled("chandler_installer_replica_moves", "two", float64(n-count(both, "one")))
	drain(false)
	r.placed("both again", func(c map[string]int) bool { return c["two"] > n/6 && sum(c) == n })
	begun := time.Now()
	stop()
	r.placed("the other one after an orderly stop", func(c map[string]int) bool { return c["one"] == n })
	if took := time.Since(begun); took > 6*time.Second {
		t.Errorf("the clusters of a replica that stops were taken over after %s", took)
	}
	// One that is killed: its row is the last that is heard of it.
	r.exec(r.own, `insert into installer.replicas (tenant, name, capacity, heard) values ('*', 'dead', 0, now())`)
	r.placed("the third replica", func(c map[string]int) bool { return c["one"] < n-n/6 })
	begun = time.Now()
	r.placed("the rest after a silence", func(c map[string]int) bool { return c["one"] == n })
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("the clusters of a replica that is silent were taken over after %s", took)
	}
}

// TestNoRoom: clusters that no replica has room for are told of, and run when there is room.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	const n = 6
	r := newReplicas(t, n)
	sub, err := r.nats.Bus.Conn().SubscribeSync(protocol.SubjectReport + ".>")
	if err != nil {
		t.Fatal(err)
	}
	// each weighs 1, and one of them 2
	r.exec(r.own, `insert into installer.csvs (tenant, cluster, namespace, name, stream, phase, reason, package, version, content,
		plan) values ($1, 'cluster-03', 'ns', 'tide.v1', '', 'Succeeded', '', 'tide', '1.0.0', '', '')`, events.DefaultTenant)
	r.start("one", 3)
	r.placed("as many as there is room for", func(c map[string]int) bool { return c["one"] == 2 || c["one"] == 3 })
	m, err := sub.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	var report protocol.ClusterReport
	if err := json.Unmarshal(m.Data, &report); err != nil || report.State != "NoRoom" || report.Message == "" {
		t.Errorf("reported %+v, %v", report, err)
	}
	r.start("two", 0)
	r.placed("all of them", func(c map[string]int) bool { return sum(c) == n })
}
