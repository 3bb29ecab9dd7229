package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/resolver/app"
)

const (
	cluster   = "harbour"
	namespace = "coast-ops"
	tenant    = events.DefaultTenant
	// patience bounds every wait of a test on a busy machine: ten times what the longest one takes on an idle one.
	patience = 4 * time.Minute
	// lookEvery is how often a wait looks where the log gives no signal.
	lookEvery = 10 * time.Millisecond
	// settle is how long scopes wait here after a change of a catalog: most of what a test would wait for otherwise.
	// What waiting itself does is tested in libs/bus.
	settle = 10 * time.Millisecond
)

// encoder is shared by all fleets: a new one takes 20 MB, which the race detector doubles and more.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("zstd options are constants: " + err.Error())
	}
	return enc
})

// fleet is a record and a bus with a resolver between them; the test plays gateway, indexer and installer.
type fleet struct {
	t     testing.TB
	ctx   context.Context
	db    *pgtest.Database
	nats  *bustest.Env
	pools map[events.Writer]*pg.Pool
	admin *pg.Pool // sees and does everything
	app   *app.App // the last one that was started
	log   *eventlog.Log
	tel   *telemetry.Telemetry
	// correlation is that of the events that the test appends, as the recorder takes it from the plan.
	correlation string
	// gateway asks as gateways do.
	gateway *bus.Bus
	// rendering is what the resolvers that are started from now on render by; nil is as this release does.
	rendering *render.Versions
	// gateNetworks are those that gates of the resolvers that are started from now on may lead to.
	gateNetworks string
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	t.Cleanup(cancel)
	f := &fleet{t: t, ctx: ctx, db: pgtest.DB(t), nats: bustest.Start(t), pools: map[events.Writer]*pg.Pool{}}
	for _, w := range []events.Writer{events.Gateway, events.Indexer, events.Installer, events.Resolver} {
		f.pools[w] = f.db.Pool(t, string(w))
	}
	f.admin = f.db.Pool(t, "admin")
	f.log = eventlog.New(f.pools[events.Gateway])
	f.tel = &telemetry.Telemetry{Log: bustest.Log(t)}
	f.gateway = f.nats.As(t, natsauth.Gateway, bustest.Speaking(t, f.db, natsauth.Gateway))
	return f
}

// start runs a resolver until the returned function is called, or the test ends.
func (f *fleet) start() (stop func()) {
	f.t.Helper()
	a, err := app.New(f.ctx, app.Config{Config: service.Config{
		DatabaseURL: f.db.URL("resolver"), NATS: f.nats.Access("resolver"), OpsListen: "127.0.0.1:0", Drain: patience,
	}, Bodies: bodiestest.Secrets(), GateNetworks: f.gateNetworks}, f.tel)
	if err != nil {
		f.t.Fatal(err)
	}
	a.Settle(settle)
	if f.rendering != nil {
		a.Rendering(f.rendering)
	}
	f.app = a
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("the resolver stopped with %v", err)
		}
	}
	f.t.Cleanup(stop)
	return stop
}

// must fails the test on an error.
func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// append adds events to the stream of a natural key, whatever its version.
func (f *fleet) append(w events.Writer, kind events.Kind, subject, natural string, payloads ...events.Payload) {
	f.t.Helper()
	var err error = errs.New(errs.Conflict, "nothing was tried")
	for errs.Is(err, errs.Conflict) { // the resolver writes to streams of subscriptions, too
		err = f.tryAppend(w, kind, subject, natural, payloads...)
	}
	f.must(err)
}

func (f *fleet) tryAppend(w events.Writer, kind events.Kind, subject, natural string,
	payloads ...events.Payload,
) error {
	log := eventlog.New(f.pools[w])
	return f.pools[w].Tx(f.ctx, func(tx pgx.Tx) error {
		head, err := log.Latest(f.ctx, tx, tenant, kind, natural)
		if err != nil {
			return err
		}
		id, expected := head.ID, head.Version
		if head.Closed {
			id, expected = head.Create(), 0
		}
		meta := events.Meta{Tenant: tenant, Source: w, Command: uuid.New(), Time: time.Now(), Actor: "tester"}
		meta.Correlation = f.correlation
		_, err = log.Append(f.ctx, tx, meta, id, subject, expected, payloads...)
		return err
	})
}

func scoped(name string) string { return cluster + "/" + namespace + "/" + name }

// ready gives the scope its cluster and operator group.
func (f *fleet) ready() {
	f.t.Helper()
	f.append(events.Gateway, events.KindCluster, cluster, cluster, events.ClusterRegistered{Name: cluster})
	f.append(events.Gateway, events.KindOperatorGroup, scoped("og"), scoped("og"),
		events.OperatorGroupCreated{Cluster: cluster, Namespace: namespace, Name: "og"})
}

func (f *fleet) subscribe(name, pkg, channel string, change ...func(*events.SubscriptionSpec)) {
	f.t.Helper()
	spec := events.SubscriptionSpec{Package: pkg, Channel: channel, Catalog: "fleet", Approval: installplan.Automatic}
	for _, c := range change {
		c(&spec)
	}
	f.append(events.Gateway, events.KindSubscription, scoped(name), scoped(name),
		events.SubscriptionCreated{Cluster: cluster, Namespace: namespace, Name: name, Spec: spec})
}

func manual(s *events.SubscriptionSpec) { s.Approval = installplan.Manual }

func (f *fleet) addCatalog(name string, change ...func(*events.CatalogAdded)) {
	f.t.Helper()
	added := events.CatalogAdded{Name: name, SourceType: "directory"}
	for _, c := range change {
		c(&added)
	}
	f.append(events.Gateway, events.KindCatalog, name, name, added)
}

// publish stores a revision as the indexer does and says what changed since the one before.
func (f *fleet) publish(name, before string, packages ...catalog.Package) (revision string) {
	f.t.Helper()
	return f.publishVariant(name, "", before, packages...)
}

func (f *fleet) publishVariant(name, variant, before string, packages ...catalog.Package) (revision string) {
	f.t.Helper()
	pool := f.pools[events.Indexer]
	digests := map[string]string{}
	for _, p := range packages {
		d, err := p.Digest()
		f.must(err)
		digests[p.Name] = string(d)
		raw, err := digest.Canonical(p)
		f.must(err)
		_, err = pool.Exec(f.ctx, `insert into catalog.packages (tenant, digest, package, document)
			values ($1, $2, $3, $4) on conflict do nothing`,
			tenant, string(d), p.Name, encoder().EncodeAll(raw, nil))
		f.must(err)
	}
	id, err := digest.JSON("test.revision", digests)
	f.must(err)
	revision = string(id)
	previous := map[string]string{}
	rows, err := pool.Query(f.ctx, `select package, digest from catalog.revision_packages
		where tenant = $1 and revision = $2`, tenant, before)
	f.must(err)
	var pkg, d string
	_, err = pgx.ForEachRow(rows, []any{&pkg, &d}, func() error { previous[pkg] = d; return nil })
	f.must(err)
	published := events.CatalogRevisionPublished{
		Revision: revision, Previous: before, Packages: len(packages),
		Variant: variant,
	}
	for name, d := range digests {
		_, err := pool.Exec(f.ctx, `insert into catalog.revision_packages (tenant, revision, package, digest)
			values ($1, $2, $3, $4) on conflict do nothing`,
			tenant, revision, name, d)
		f.must(err)
		switch {
		case previous[name] == "":
			published.Changes = append(published.Changes,
				events.PackageChange{Package: name, Change: "added", Digest: d})
		case previous[name] != d:
			published.Changes = append(published.Changes,
				events.PackageChange{Package: name, Change: "changed", Digest: d})
		}
	}
	for name := range previous {
		if digests[name] == "" {
			published.Changes = append(published.Changes, events.PackageChange{Package: name, Change: "removed"})
		}
	}
	f.append(events.Indexer, events.KindCatalog, name, name, published)
	return revision
}

// recorded is the whole log.
func (f *fleet) recorded() []eventlog.Recorded {
	f.t.Helper()
	all, _, err := f.log.ReadAfter(f.ctx, f.pools[events.Gateway], events.Position{Epoch: 1}, eventlog.Filter{}, 10_000)
	f.must(err)
	return all
}

// decided is what the resolver wrote, as "type subject".
func (f *fleet) decided() []string {
	var out []string
	for _, e := range f.recorded() {
		if e.Source == "/chandler/resolver" {
			out = append(out, string(e.Type))
		}
	}
	return out
}

// until waits for a condition that needs no signal of its own.
func (f *fleet) until(what string, ok func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatalf("waited in vain for %s; decided: %v", what, f.decided())
		}
	}
}

// quiet waits until everything that was appended is sequenced, consumed and resolved.
func (f *fleet) quiet() {
	f.t.Helper()
	f.until("the resolver to be done", func() bool {
		var done bool
		f.must(pg.Err(f.admin.QueryRow(f.ctx, `select not exists (select from eventlog.appended)
			and not exists (select from resolver.dirty)
			and not exists (select from resolver.fleet_subscriptions where due)
			and exists (select from eventlog.checkpoints c, eventlog.sequencer s where c.consumer = 'resolver.scopes'
			and c.position >= s.position)`).Scan(&done)))
		return done
	})
}

// plans are the plans of the scope in the order of proposal.
func (f *fleet) plans() []installplan.State {
	f.t.Helper()
	byID := map[uuid.UUID][]events.Payload{}
	var order []uuid.UUID
	for _, e := range f.recorded() {
		if e.StreamID.Kind != events.KindInstallPlan {
			continue
		}
		if byID[e.StreamID.Key] == nil {
			order = append(order, e.StreamID.Key)
		}
		byID[e.StreamID.Key] = append(byID[e.StreamID.Key], e.Payload)
	}
	var out []installplan.State
	for _, id := range order {
		s, err := installplan.Fold(byID[id]...)
		f.must(err)
		out = append(out, s)
	}
	return out
}

func (f *fleet) livePlan() installplan.State {
	f.t.Helper()
	for _, p := range slices.Backward(f.plans()) {
		if p.Live() {
			return p
		}
	}
	f.t.Fatalf("no plan lives; decided: %v", f.decided())
	return installplan.State{}
}

// carryOut plays the executor: the plan is finished and its operators become Succeeded; what they
// replace goes.
func (f *fleet) carryOut(p installplan.State) {
	f.t.Helper()
	id := p.Proposed.Plan
	in := p.Proposed.Cluster + "/" + p.Proposed.Namespace + "/"
	subject := in + p.Proposed.Name
	f.append(events.Installer, events.KindInstallPlan, subject, id, events.InstallPlanStarted{Steps: p.Proposed.Steps})
	for _, b := range p.Proposed.Bundles {
		f.phaseIn(in, b, id, "Pending")
	}
	f.append(events.Installer, events.KindInstallPlan, subject, id,
		events.InstallPlanFinished{Steps: p.Proposed.Steps, StepLog: "log"})
	for _, b := range p.Proposed.Bundles {
		if b.Replaces != "" { // as executors tell it: until the old one is gone, nothing further is planned
			old := b
			old.CSV = b.Replaces
			f.phaseIn(in, old, "", "Replacing")
		}
		f.phaseIn(in, b, id, "Succeeded")
		if b.Replaces != "" {
			f.append(events.Installer, events.KindCSV, in+b.Replaces, in+b.Replaces,
				events.CSVRemoved{Reason: "Replaced"})
		}
	}
}

func (f *fleet) phase(b events.PlannedBundle, plan, phase string) {
	f.t.Helper()
	f.phaseIn(scoped(""), b, plan, phase)
}

// phaseIn tells a phase of a CSV in "cluster/namespace/".
func (f *fleet) phaseIn(in string, b events.PlannedBundle, plan, phase string) {
	f.t.Helper()
	where := strings.Split(in, "/")
	f.append(events.Installer, events.KindCSV, in+b.CSV, in+b.CSV, events.CSVPhaseChanged{
		Cluster: where[0], Namespace: where[1], Name: b.CSV, Package: b.Package, Version: b.Version,
		Phase: phase, Reason: "x", Content: b.Content, Plan: plan,
	})
}

// count is how often a type was decided.
func count(list []string, t events.Payload) int {
	n := 0
	for _, s := range list {
		if s == string(t.EventType()) {
			n++
		}
	}
	return n
}

// csvs are "name (reason)" of a plan's bundles, in order.
func csvs(p installplan.State) []string {
	var out []string
	for _, b := range p.Proposed.Bundles {
		out = append(out, fmt.Sprintf("%s %s", b.CSV, b.Reason))
	}
	return out
}

// explanation is the stored text of a failure.
func (f *fleet) explanation(digest string) string {
	f.t.Helper()
	var doc string
	f.must(pg.Err(f.pools[events.Gateway].QueryRow(f.ctx, `select document::text from resolver_api.explanations
		where tenant = $1 and digest = $2`, tenant, digest).Scan(&doc)))
	return doc
}
