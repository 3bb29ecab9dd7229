package app_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// rolloutAtOnce bounds how many clusters are answered for in one transaction.
const rolloutAtOnce = 100

// BenchmarkRollout brings an operator to 1,000 clusters in four waves. Executors that need no time are played, so that
// what is measured is the hub: wave after wave is opened, directed, resolved, planned, and its facts are believed
// (issue 14, section 3: at most 2 minutes).
func BenchmarkRollout(b *testing.B) {
	clusters := fanOutClusters
	if testing.Short() {
		clusters = fanOutShort
	}
	for range b.N {
		b.StopTimer()
		f := newFleet(b)
		f.ctx = b.Context()
		f.tel.Log = slog.New(slog.DiscardHandler)
		f.registerMany(clusters)
		f.addCatalog("fleet")
		f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
		stop := f.start()
		f.quiet()
		b.StartTimer()
		begin := time.Now()
		f.append(events.Gateway, events.KindFleetBudget, events.FleetBudgetSubject, events.FleetBudgetSubject,
			events.FleetBudgetSet{}) // what is measured is not to be held back
		f.append(events.Gateway, events.KindFleetSubscription, "buoy", "buoy", events.FleetSubscriptionSet{
			Name: "buoy", Spec: events.FleetSubscriptionSpec{
				Package: "buoy", Channel: "stable", Catalog: "fleet", Namespace: namespace,
				Approval: installplan.Automatic, OperatorGroup: events.FleetOperatorGroup{Name: "og"},
				Placement: events.FleetPlacement{Clusters: []string{"*"}}, DeletionPolicy: events.DeletionPolicyOrphan,
				Strategy: events.RolloutStrategy{MaxConcurrent: clusters, Waves: []events.RolloutWaveSpec{
					{Name: "canary", Size: "1%"}, {Name: "tenth", Size: "10%"}, {Name: "half", Size: "50%"},
				}},
			},
		})
		played := f.playExecutors(func() bool {
			return f.scalar(`select count(*) from resolver.rollouts where phase = 'Succeeded'`) == 1
		})
		took := time.Since(begin)
		b.StopTimer()
		b.ReportMetric(took.Seconds(), "s/rollout")
		b.ReportMetric(played.Seconds(), "s/played")
		b.ReportMetric(float64(f.scalar(`select position from eventlog.sequencer`)), "events")
		stop()
	}
}

// registerMany registers clusters that are connected.
func (f *fleet) registerMany(n int) {
	f.t.Helper()
	log := eventlog.New(f.pools[events.Gateway])
	for first := 0; first < n; first += rolloutAtOnce {
		for _, w := range []events.Writer{events.Gateway, events.Installer} {
			f.must(f.pools[w].Tx(f.ctx, func(tx pgx.Tx) error {
				for i := first; i < min(first+rolloutAtOnce, n); i++ {
					name := fmt.Sprintf("spoke-%04d", i)
					var p events.Payload = events.ClusterRegistered{Name: name}
					version := int64(0)
					if w == events.Installer {
						p, version = events.ClusterObserved{State: "Connected"}, 1
					}
					meta := events.Meta{Tenant: tenant, Source: w, Command: uuid.New(), Time: time.Now()}
					id := events.StreamID{
						Kind: events.KindCluster, Key: events.Key(tenant, events.KindCluster, name), Incarnation: 1,
					}
					if _, err := log.Append(f.ctx, tx, meta, id, name, version, p); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	}
}

// playExecutors carries out every plan at once until it is done, and says how long the playing itself took.
func (f *fleet) playExecutors(done func() bool) (took time.Duration) {
	f.t.Helper()
	log := eventlog.New(f.pools[events.Installer])
	answered := map[string]bool{}
	f.eventually("the rollout", func() bool {
		rows, err := f.admin.Query(f.ctx, `select p.plan, p.version, p.state, d.directive from resolver.plans p
			join resolver.directives d on d.tenant = p.tenant and d.cluster = p.cluster where p.live`)
		f.must(err)
		var work []played
		var one played
		_, err = pgx.ForEachRow(rows, []any{&one.id, &one.version, &one.state, &one.directive}, func() error {
			if !answered[one.id] {
				work = append(work, one)
			}
			one = played{}
			return nil
		})
		f.must(err)
		begin := time.Now()
		for some := range slices.Chunk(work, rolloutAtOnce) {
			f.must(f.pools[events.Installer].Tx(f.ctx, func(tx pgx.Tx) error {
				for _, w := range some {
					answered[w.id] = true
					if err := w.play(f, log, tx); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		took += time.Since(begin)
		return done()
	})
	return took
}

// played is a plan that is carried out.
type played struct {
	id, directive string
	version       int64
	state         json.RawMessage
}

func (w played) play(f *fleet, log *eventlog.Log, tx pgx.Tx) error {
	var s installplan.State
	if err := json.Unmarshal(w.state, &s); err != nil {
		return err
	}
	meta := func() events.Meta {
		return events.Meta{
			Tenant: tenant, Source: events.Installer, Command: uuid.New(), Time: time.Now(), Correlation: w.directive,
		}
	}
	in := s.Proposed.Cluster + "/" + s.Proposed.Namespace + "/"
	plan := events.StreamID{
		Kind: events.KindInstallPlan, Key: events.Key(tenant, events.KindInstallPlan, w.id), Incarnation: 1,
	}
	_, err := log.Append(f.ctx, tx, meta(), plan, in+s.Proposed.Name, w.version,
		events.InstallPlanStarted{Steps: s.Proposed.Steps},
		events.InstallPlanFinished{Steps: s.Proposed.Steps, StepLog: "log"})
	if err != nil {
		return err
	}
	b := s.Proposed.Bundles[0]
	csv := events.StreamID{
		Kind: events.KindCSV, Key: events.Key(tenant, events.KindCSV, in+b.CSV), Incarnation: 1,
	}
	phase := func(phase string) events.CSVPhaseChanged {
		return events.CSVPhaseChanged{
			Cluster: s.Proposed.Cluster, Namespace: s.Proposed.Namespace, Name: b.CSV, Package: b.Package,
			Version: b.Version, Phase: phase, Reason: "x", Content: b.Content, Plan: w.id,
		}
	}
	_, err = log.Append(f.ctx, tx, meta(), csv, in+b.CSV, 0, phase("Pending"), phase("Succeeded"))
	return err
}
