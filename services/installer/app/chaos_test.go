package app_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// actor plays the executor of one scope: it does what PLANS says and reports, and never forgets.
type actor struct {
	e     *env
	r     *rand.Rand
	scope protocol.Scope
	plans map[string]*protocol.PlanReport
	csvs  map[string]*protocol.CSVReport
	last  protocol.ScopeReport
	said  []*nats.Msg // all that it ever said
}

func newActor(e *env, r *rand.Rand, s protocol.Scope) *actor {
	return &actor{
		e: e, r: r, scope: s, plans: map[string]*protocol.PlanReport{},
		csvs: map[string]*protocol.CSVReport{},
	}
}

// turn takes one step of every plan that is wanted, and reports: sometimes not, sometimes twice, sometimes
// an old report behind the new one.
func (a *actor) turn() {
	if wanted, ok := a.e.plans(a.scope); ok {
		for _, p := range wanted.Plans {
			a.step(p)
		}
	}
	// Its clock jumps about, which changes nothing.
	report := protocol.ScopeReport{Reported: time.Now().Add(time.Duration(a.r.IntN(2000)-1000) * time.Hour)}
	for _, id := range sorted(a.plans) {
		report.Plans = append(report.Plans, *a.plans[id])
	}
	for _, name := range sorted(a.csvs) {
		c := *a.csvs[name]
		c.History = slices.Clone(c.History)
		report.CSVs = append(report.CSVs, c)
	}
	a.last = report
	m := a.e.signed(a.scope, report)
	a.said = append(a.said, m)
	switch a.r.IntN(6) {
	case 0: // lost
	case 1:
		a.e.send(m)
		a.e.send(m)
	case 2:
		a.e.send(m)
		a.e.send(a.said[a.r.IntN(len(a.said))])
	default:
		a.e.send(m)
	}
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (a *actor) step(p protocol.Plan) {
	if err := p.Grant.Verify(a.e.key); err != nil {
		a.e.t.Errorf("plan %s: %v", p.Name, err)
	}
	pr := a.plans[p.ID]
	if pr == nil {
		pr = &protocol.PlanReport{ID: p.ID, Phase: protocol.PlanStarted, Begun: true, Steps: 2}
		a.plans[p.ID] = pr
		return
	}
	c := a.csvs[p.Component]
	if c == nil {
		c = &protocol.CSVReport{Name: p.Component, UID: "uid-" + p.ID, Plan: p.ID}
		a.csvs[p.Component] = c
	}
	c.History = history(min(4, len(c.History)+1+a.r.IntN(2)))
	if len(c.History) == 4 {
		pr.Phase, pr.Done = protocol.PlanFinished, 2
	}
}

// done reports whether every plan is finished, as far as the cluster is concerned.
func (a *actor) done(plans int) bool {
	if len(a.plans) < plans {
		return false
	}
	for _, p := range a.plans {
		if p.Phase != protocol.PlanFinished {
			return false
		}
	}
	return true
}

// Messages lost, doubled and reordered, every stream deleted in mid-run, the installer stopped and
// started: every plan and CSV reaches its end in the log, once.
func TestEverythingReachesItsEndOnce(t *testing.T) {
	t.Parallel()
	e := setup(t)
	const clusters, plansEach, turns = 3, 3, 40
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	actors := make([]*actor, clusters)
	for i := range actors {
		actors[i] = newActor(e, r, e.cluster(fmt.Sprint("c", i)))
	}
	streams := []string{protocol.StreamEvents, protocol.StreamPlans, protocol.StreamReports, protocol.StreamContent}
	proposed := 0
	finished := func() bool {
		for _, a := range actors {
			if !a.done(plansEach) {
				return false
			}
		}
		return true
	}
	for turn := 0; turn < turns || !finished(); turn++ {
		if turn > 100*turns {
			t.Fatal("the plans never reached the executors")
		}
		if proposed < clusters*plansEach {
			a := actors[proposed%clusters]
			e.propose(a.scope, fmt.Sprintf("op%d.v1", proposed/clusters), "Automatic")
			proposed++
		}
		for _, a := range actors {
			a.turn()
		}
		if turn < turns {
			e.disturb(r, streams)
		}
	}
	for _, a := range actors { // executors repeat what they know
		e.report(a.scope, a.last)
	}
	e.settled(clusters * plansEach)
}

// disturb deletes a stream, or restarts the installer, now and then.
func (e *env) disturb(r *rand.Rand, streams []string) {
	e.t.Helper()
	switch r.IntN(8) {
	case 0, 1:
		// Missing already is as good.
		if err := e.nats.Bus.JetStream().DeleteStream(e.t.Context(),
			e.nats.Bus.StreamName(streams[r.IntN(len(streams))])); err != nil {
			e.t.Log(err)
		}
	case 2:
		e.stop()
		e.start()
	}
}

// settled waits until the log holds one whole life of each plan and CSV, and nothing else.
func (e *env) settled(plans int) {
	e.t.Helper()
	want := map[string]int{
		"installplan.proposed.v1": plans, "installplan.started.v1": plans, "installplan.finished.v1": plans,
		"csv Pending/RequirementsUnknown": plans, "csv InstallReady/AllRequirementsMet": plans,
		"csv Installing/InstallSucceeded": plans, "csv Succeeded/InstallSucceeded": plans,
	}
	var got map[string]int
	defer func() {
		if e.t.Failed() {
			e.t.Logf("the log holds %v\n  %s\n  %s", got, strings.Join(e.facts(events.KindInstallPlan), "\n  "),
				strings.Join(e.facts(events.KindCSV), "\n  "))
		}
	}()
	e.eventually(fmt.Sprintf("facts %v", want), func() bool {
		got = map[string]int{}
		for _, f := range e.facts(events.KindInstallPlan) {
			got[f]++
		}
		for _, f := range e.facts(events.KindCSV) {
			got["csv "+f[strings.LastIndex(f, " ")+1:]]++
		}
		for k, n := range got {
			if n > want[k] {
				e.t.Fatalf("%q is in the log %d times, want %d", k, n, want[k])
			}
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
}
