package app_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	randomSteps      = 260
	randomNamespaces = 4
	leastDecisions   = 200
)

// randomRun is a fleet to which things happen by chance, the same for the same seed.
type randomRun struct {
	*fleet
	draw     *rand.Rand
	packages []string
	heads    map[string]int // newest version of each package
	revision string
	subs     map[string]events.SubscriptionSpec // by subject
}

// TestRandomRunIsDecidedAgain: after a long run of intents, catalogs and facts in any order, each recorded decision
// is made again from its stored input, byte for byte, and again after the tables were rebuilt from the record, which
// decides nothing new (DESIGN D5, D9). Meanwhile no component had two live plans, and generations rose (R-IP-1).
func TestRandomRunIsDecidedAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	stop := f.start()
	r := &randomRun{
		fleet: f, draw: rand.New(rand.NewPCG(7, 11)), packages: []string{"anchor", "buoy", "chart", "drift", "eel"},
		heads: map[string]int{}, subs: map[string]events.SubscriptionSpec{},
	}
	r.begin()
	for range randomSteps {
		r.step()
	}
	f.quiet()
	want := f.decided()
	if n := r.decideAgain(); n < leastDecisions {
		t.Errorf("%d decisions are too few to prove anything", n)
	}
	r.onePlanPerComponent()
	stop()
	_, err := f.admin.Exec(f.ctx,
		`truncate resolver.clusters, resolver.scopes, resolver.catalog_clock, resolver.catalogs, resolver.catalog_revisions,
		resolver.bundle_images, resolver.wanted_images, resolver.catalog_health, resolver.approval_policies,
		resolver.subscriptions, resolver.operator_groups, resolver.installed, resolver.plans, resolver.dirty, resolver.reads, resolver.package_apis`)
	f.must(pg.Err(err))
	_, err = f.admin.Exec(f.ctx, `update eventlog.checkpoints set position = 0 where consumer = 'resolver.scopes'`)
	f.must(pg.Err(err))
	f.start()
	f.quiet()
	if diff := cmp.Diff(want, f.decided()); diff != "" {
		t.Errorf("rebuilding decided something (-want +got):\n%s", diff)
	}
	r.decideAgain()
}

func (r *randomRun) begin() {
	r.t.Helper()
	r.append(events.Gateway, events.KindCluster, cluster, cluster, events.ClusterRegistered{Name: cluster})
	for i := range randomNamespaces {
		e := groupIn(tenant, cluster, r.namespace(i))
		r.append(e.writer, e.kind, e.subject, e.subject, e.payload)
	}
	r.addCatalog("fleet")
	for _, p := range r.packages {
		r.heads[p] = 1
	}
	r.publishSome()
}

func (r *randomRun) namespace(i int) string { return fmt.Sprintf("ns-%d", i) }

// step is one thing that happens; now and then the resolver gets time to finish.
func (r *randomRun) step() {
	r.t.Helper()
	switch n := r.draw.IntN(20); {
	case n < 4:
		r.publishSome()
	case n < 9:
		r.subscribeSome()
	case n < 11:
		r.changeGroup()
	case n < 12:
		r.quiet()
	default:
		r.quiet()
		r.act()
	}
}

// publishSome moves heads, and gives and takes requirements: of an API that another package may provide, or nobody.
func (r *randomRun) publishSome() {
	r.t.Helper()
	var list []catalog.Package
	for i, p := range r.packages {
		if r.draw.IntN(3) == 0 {
			r.heads[p]++
		}
		var versions []version
		for v := r.heads[p]; v >= max(1, r.heads[p]-2); v-- {
			w := version{v: fmt.Sprintf("1.%d.0", v), provides: []string{p + "Kind"}}
			if v > 1 {
				w.replaces = fmt.Sprintf("1.%d.0", v-1)
			}
			if (v+i)%3 == 0 {
				w.requires = []string{r.packages[(i+v)%len(r.packages)] + "Kind"}
			}
			if (v+i)%7 == 0 {
				w.requires = append(w.requires, "NobodysKind")
			}
			versions = append(versions, w)
		}
		if r.draw.IntN(12) > 0 { // sometimes a package is not there
			list = append(list, r.pkg(p, versions...))
		}
	}
	r.revision = r.publish("fleet", r.revision, list...)
}

// subscribeSome creates, changes or deletes a subscription.
func (r *randomRun) subscribeSome() {
	r.t.Helper()
	p, ns := r.packages[r.draw.IntN(len(r.packages))], r.namespace(r.draw.IntN(randomNamespaces))
	subject := cluster + "/" + ns + "/" + p
	spec, there := r.subs[subject]
	put := func(e events.Payload) { r.append(events.Gateway, events.KindSubscription, subject, subject, e) }
	switch {
	case !there:
		spec = events.SubscriptionSpec{
			Package: p, Channel: "stable", Catalog: "fleet",
			Approval: []string{installplan.Automatic, installplan.Manual}[r.draw.IntN(2)],
		}
		r.subs[subject] = spec
		put(events.SubscriptionCreated{Cluster: cluster, Namespace: ns, Name: p, Spec: spec})
	case r.draw.IntN(3) == 0:
		delete(r.subs, subject)
		put(events.SubscriptionDeleted{})
	default:
		spec.Channel = []string{"stable", "", "beta"}[r.draw.IntN(3)]
		r.subs[subject] = spec
		put(events.SubscriptionChanged{Spec: spec})
	}
}

func (r *randomRun) changeGroup() {
	r.t.Helper()
	e := groupIn(tenant, cluster, r.namespace(r.draw.IntN(randomNamespaces)))
	spec := events.OperatorGroupSpec{
		Colocation:            []string{"", "shared"}[r.draw.IntN(2)],
		UpgradeStrategy:       []string{"", "TechPreviewUnsafeFailForward"}[r.draw.IntN(2)],
		ExcludeGlobalCatalogs: r.draw.IntN(6) == 0,
	}
	r.append(e.writer, e.kind, e.subject, e.subject, events.OperatorGroupChanged{Spec: spec})
}

// act carries out, fails or rejects a plan that lives, or removes an operator.
func (r *randomRun) act() {
	r.t.Helper()
	live := slices.DeleteFunc(r.plans(), func(p installplan.State) bool { return !p.Live() || p.Begun })
	if len(live) == 0 {
		return
	}
	p := live[r.draw.IntN(len(live))]
	in := p.Proposed.Cluster + "/" + p.Proposed.Namespace + "/"
	n := r.draw.IntN(10)
	switch n {
	case 0:
		r.append(events.Gateway, events.KindInstallPlan, in+p.Proposed.Name, p.Proposed.Plan,
			events.InstallPlanRejected{Digest: p.Proposed.Digest})
	case 1:
		r.failPlan(p)
	default:
		r.carryOut(p)
		if n == 2 {
			csv := p.Proposed.Bundles[0].CSV
			r.append(events.Installer, events.KindCSV, in+csv, in+csv, events.CSVRemoved{Reason: "Deleted"})
		}
	}
}

// decideAgain makes every recorded decision again and returns how many there are.
func (r *randomRun) decideAgain() (n int) {
	r.t.Helper()
	for _, e := range r.recorded() {
		differences, decided, err := r.app.Recompute(r.ctx, e)
		if err != nil || len(differences) > 0 {
			r.t.Errorf("%s of %s at %s: %+v, %v", e.Type, e.Subject, e.Position, differences, err)
		}
		if decided {
			n++
		}
	}
	return n
}

// onePlanPerComponent walks the record: at no position live two plans that share a package of a namespace, unless one
// began while it was being superseded; and each plan has the next generation of its namespace.
func (r *randomRun) onePlanPerComponent() {
	r.t.Helper()
	plans := map[uuid.UUID]installplan.State{}
	generation := map[string]int64{}
	for _, e := range r.recorded() {
		if e.StreamID.Kind != events.KindInstallPlan {
			continue
		}
		state, err := installplan.Evolve(plans[e.StreamID.Key], e.Payload)
		r.must(err)
		plans[e.StreamID.Key] = state
		p, proposed := e.Payload.(events.InstallPlanProposed)
		if !proposed {
			continue
		}
		if p.Generation != generation[p.Namespace]+1 {
			r.t.Errorf("plan %s of %s has generation %d after %d", p.Name, p.Namespace, p.Generation,
				generation[p.Namespace])
		}
		generation[p.Namespace] = p.Generation
		for key, other := range plans {
			if key != e.StreamID.Key && other.Live() && other.Proposed.Namespace == p.Namespace &&
				sharesPackage(other.Proposed, p) {
				r.t.Errorf("at %s plans %s and %s of %s live at once", e.Position, other.Proposed.Component,
					p.Component, p.Namespace)
			}
		}
	}
}

func sharesPackage(a, b events.InstallPlanProposed) bool {
	return slices.ContainsFunc(a.Bundles, func(x events.PlannedBundle) bool {
		return slices.ContainsFunc(b.Bundles, func(y events.PlannedBundle) bool { return x.Package == y.Package })
	})
}
