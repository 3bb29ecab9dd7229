package app_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// The fleet that DESIGN §7 names: clusters with as many subscribed namespaces each.
const (
	fanOutClusters  = 1_000
	fanOutPerSpoke  = 10
	fanOutShort     = 100 // clusters with -short
	appendsPerTx    = 500
	personEvery     = 100 * time.Millisecond
	personLooks     = 2 * time.Millisecond
	maxPeople       = 2_000
	otherTenant     = "harbourmaster"
	personsCluster  = "persons"
	sampleMemory    = 50 * time.Millisecond
	yardstickMB     = 512
	fanOutPatience  = 3 * time.Minute
	resolvedAtFirst = `select count(*) from resolver.subscriptions where outcome ->> 'kind' = 'AtLatestKnown'`
)

// BenchmarkFanOut moves a channel's head under 10,000 subscribed namespaces of 1,000 clusters, each with the
// operator of before installed, and waits until all plans are proposed (DESIGN §7: ≤ 60 s on two cores).
// Meanwhile people subscribe, in the same tenant and in another one: what they wait for is the
// time from their request's commit to the plan's.
func BenchmarkFanOut(b *testing.B) {
	clusters := fanOutClusters
	if testing.Short() {
		clusters = fanOutShort
	}
	for range b.N {
		b.StopTimer()
		f := newFleet(b)
		f.ctx = b.Context()
		f.tel.Log = slog.New(slog.DiscardHandler)
		before := f.subscribedFleet(clusters, maxPeople)
		stop := f.start()
		scopes := clusters * fanOutPerSpoke
		f.eventually("the fleet to be resolved", func() bool {
			return f.scalar(resolvedAtFirst) >= scopes && f.scalar(`select count(*) from resolver.dirty`) == 0
		})
		_, err := f.admin.Exec(f.ctx, `analyze`)
		f.must(err)
		head := f.scalar(`select position from eventlog.sequencer`)
		peak, yardstick := watchMemory(b), hashing()
		b.StartTimer()
		begin := time.Now()
		f.publish("fleet", before, f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
		people := f.peopleWork(func() bool {
			return f.scalar(`select count(*) from resolver.plans where cluster <> $1`, personsCluster) >= scopes
		})
		took := time.Since(begin)
		b.StopTimer()
		b.ReportMetric(took.Seconds(), "s/fan-out")
		b.ReportMetric((yardstick+hashing())/2, "sha256-MB/s")
		b.ReportMetric(float64(f.scalar(`select position from eventlog.sequencer`)-head)/took.Seconds(), "events/s")
		b.ReportMetric(float64(f.scalar(`select count(*) from eventlog.events`)+
			f.scalar(`select count(*) from eventlog.appended`)-head), "events")
		b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
		for who, waits := range people {
			b.ReportMetric(float64(quantile(waits, 0.5).Microseconds())/1000, "p50-ms/"+who)
			b.ReportMetric(float64(quantile(waits, 0.99).Microseconds())/1000, "p99-ms/"+who)
		}
		stop()
	}
}

// subscribedFleet writes what a fleet of clusters looks like that all follow one package and have its version 1.0.0,
// through the record, with namespaces for people of two tenants, and returns the catalog's revision.
func (f *fleet) subscribedFleet(clusters, people int) (revision string) {
	f.t.Helper()
	f.addCatalog("fleet")
	revision = f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	var entries []entry
	for c := range clusters {
		name := fmt.Sprintf("spoke-%04d", c)
		entries = append(entries, entry{
			events.Gateway, tenant, events.KindCluster, name,
			events.ClusterRegistered{Name: name},
		})
		for n := range fanOutPerSpoke {
			ns := fmt.Sprintf("ns-%02d", n)
			entries = append(entries, groupIn(tenant, name, ns), subscriptionIn(tenant, name, ns), entry{
				events.Installer, tenant, events.KindCSV, name + "/" + ns + "/buoy.v1.0.0",
				events.CSVPhaseChanged{
					Cluster: name, Namespace: ns, Name: "buoy.v1.0.0", Package: "buoy",
					Version: "1.0.0", Phase: "Succeeded", Reason: "x",
				},
			})
		}
	}
	for _, t := range []string{tenant, otherTenant} {
		entries = append(entries, entry{
			events.Gateway, t, events.KindCluster, personsCluster,
			events.ClusterRegistered{Name: personsCluster},
		})
		for i := range people {
			entries = append(entries, groupIn(t, personsCluster, personsNamespace(i)))
		}
	}
	f.appendAll(entries)
	f.otherTenantsCatalog(revision)
	return revision
}

// otherTenantsCatalog gives the other tenant a catalog of the same content.
func (f *fleet) otherTenantsCatalog(revision string) {
	f.t.Helper()
	for table, columns := range map[string]string{
		"packages": "digest, package, document",
		"contents": "digest, size, pack", "revision_packages": "revision, package, digest",
	} {
		_, err := f.pools[events.Indexer].Exec(f.ctx, `insert into catalog.`+table+` (tenant, `+columns+`) select $2, `+
			columns+` from catalog.`+table+` where tenant = $1`, tenant, otherTenant)
		f.must(pg.Err(err))
	}
	f.appendAll([]entry{
		{
			events.Gateway, otherTenant, events.KindCatalog, "fleet",
			events.CatalogAdded{Name: "fleet", SourceType: "directory"},
		},
	})
	f.appendAll([]entry{
		{
			events.Indexer, otherTenant, events.KindCatalog, "fleet",
			events.CatalogRevisionPublished{Revision: revision, Packages: 1},
		},
	})
}

// entry is one event to be appended to a stream.
type entry struct {
	writer  events.Writer
	tenant  string
	kind    events.Kind
	subject string // the natural key, too
	payload events.Payload
}

func groupIn(tenant, cluster, namespace string) entry {
	return entry{
		events.Gateway, tenant, events.KindOperatorGroup, cluster + "/" + namespace + "/og",
		events.OperatorGroupCreated{Cluster: cluster, Namespace: namespace, Name: "og"},
	}
}

func subscriptionIn(tenant, cluster, namespace string) entry {
	return entry{
		events.Gateway, tenant, events.KindSubscription, cluster + "/" + namespace + "/buoy",
		events.SubscriptionCreated{Cluster: cluster, Namespace: namespace, Name: "buoy", Spec: events.SubscriptionSpec{
			Package: "buoy", Channel: "stable", Catalog: "fleet", Approval: installplan.Manual,
		}},
	}
}

// appendAll appends many events, some hundred in a transaction; what is installed goes before intents, so that
// nothing is planned for a fleet that is up to date.
func (f *fleet) appendAll(entries []entry) {
	f.t.Helper()
	byWriter := map[events.Writer][]entry{}
	for _, e := range entries {
		byWriter[e.writer] = append(byWriter[e.writer], e)
	}
	for _, w := range []events.Writer{events.Installer, events.Gateway, events.Indexer} {
		log := eventlog.New(f.pools[w])
		for chunk := range slices.Chunk(byWriter[w], appendsPerTx) {
			f.must(f.pools[w].Tx(f.ctx, func(tx pgx.Tx) error {
				for _, e := range chunk {
					id := events.StreamID{Kind: e.kind, Key: events.Key(e.tenant, e.kind, e.subject), Incarnation: 1}
					meta := events.Meta{
						Tenant: e.tenant, Source: w, Command: uuid.New(), Time: time.Now(),
						Actor: "tester",
					}
					var expected int64
					if e.kind == events.KindCatalog && w == events.Indexer {
						expected = 1 // behind catalog.added
					}
					if _, err := log.Append(f.ctx, tx, meta, id, e.subject, expected, e.payload); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	}
}

func personsNamespace(i int) string { return fmt.Sprintf("person-%04d", i) }

// peopleWork has a person of each tenant subscribe every now and then until done, and returns how long each waited for
// the plan.
func (f *fleet) peopleWork(done func() bool) map[string][]time.Duration {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, fanOutPatience)
	defer cancel()
	waits := map[string][]time.Duration{}
	var mu sync.Mutex
	var people sync.WaitGroup
	working, stop := context.WithCancel(ctx)
	for who, t := range map[string]string{"same-tenant": tenant, "other-tenant": otherTenant} {
		people.Go(func() {
			for i := 0; i < maxPeople && working.Err() == nil; i++ {
				took := f.personWaits(ctx, t, personsNamespace(i))
				mu.Lock()
				waits[who] = append(waits[who], took)
				mu.Unlock()
				f.pause(working, personEvery)
			}
		})
	}
	for !done() && ctx.Err() == nil {
		f.pause(ctx, personEvery)
	}
	stop()
	people.Wait()
	f.must(ctx.Err())
	return waits
}

// personWaits subscribes in a namespace and waits for its plan.
func (f *fleet) personWaits(ctx context.Context, tenant, namespace string) time.Duration {
	f.appendAll([]entry{subscriptionIn(tenant, personsCluster, namespace)})
	begin := time.Now()
	for planned := false; !planned && ctx.Err() == nil; f.pause(ctx, personLooks) {
		f.must(pg.Err(f.pools[events.Resolver].QueryRow(ctx, `select exists (select from resolver.plans
			where tenant = $1 and cluster = $2 and namespace = $3)`,
			tenant, personsCluster, namespace).Scan(&planned)))
	}
	return time.Since(begin)
}

func (f *fleet) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// eventually is until with the patience of a benchmark.
func (f *fleet) eventually(what string, ok func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, fanOutPatience)
	defer cancel()
	for !ok() {
		f.pause(ctx, personEvery)
		if ctx.Err() != nil {
			f.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// hashing is what one thread hashes in a second, in MB: the yardstick for figures of a machine that others use, too.
func hashing() float64 {
	block := make([]byte, 1<<20)
	begin := time.Now()
	for range yardstickMB {
		sha256.Sum256(block)
	}
	return yardstickMB / time.Since(begin).Seconds()
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)-1, int(q*float64(len(d))))]
}

// watchMemory samples what the process holds until the returned function gives the peak: the resolver's, with the
// bus and the people in the same process.
func watchMemory(b *testing.B) (peak func() uint64) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	most := make(chan uint64, 1)
	go func() {
		sample := []metrics.Sample{
			{Name: "/memory/classes/heap/objects:bytes"},
			{Name: "/memory/classes/heap/unused:bytes"},
		}
		var top uint64
		t := time.NewTicker(sampleMemory)
		defer t.Stop()
		for {
			metrics.Read(sample)
			top = max(top, sample[0].Value.Uint64()+sample[1].Value.Uint64())
			select {
			case <-ctx.Done():
				most <- top
				return
			case <-t.C:
			}
		}
	}()
	return func() uint64 { cancel(); return <-most }
}
