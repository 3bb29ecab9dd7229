package rollout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/budget"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

// defaultSchedules is how many schedules make test runs; CHANDLER_SCHEDULES asks for others. A million take minutes.
const defaultSchedules = 20_000

// seedsThatFailed are those that once showed a fault, for ever.
var seedsThatFailed = []uint64{}

// target is what every rollout of a simulation brings.
const target = "sha256:target"

// simulation is a rollout, its clusters, and everything that goes wrong between them: facts that come late, twice,
// in another order or not at all, facts of rollouts before, clusters that fail, go away and return, controllers
// that decide on old states, are killed before they append, and have clocks that differ, gates that are evaluated too
// early, too late and by several at once, windows that close, and people who interfere.
// Everything follows from the seed.
type simulation struct {
	rng      *rand.Rand
	now      time.Time
	log      []entry
	clusters map[string]*spoke
	names    []string
	inbox    []message // facts on their way to the controllers
	seen     map[string]rollout.Seen
	gates    gatekeeper
	broken   func(rollout.State, rollout.World) rollout.World
	judge    judge
	faults   bool // whether anything goes wrong still
	tenant   ledger
}

// ledger is what all rollouts of the tenant changed, and how much they may.
type ledger struct {
	limit   int // 0 is none
	allowed []budget.Allowance
	changes map[string]time.Time
}

func (l ledger) budget(now time.Time) budget.Budget {
	return budget.Budget{Limit: budget.Raised(l.limit, l.allowed, now), Changes: maps.Clone(l.changes)}
}

// entry is an event of the log, and what the rollout is after it.
type entry struct {
	payload events.Payload
	state   rollout.State
}

// message is a fact about a cluster on its way.
type message struct {
	cluster string
	seen    rollout.Seen
}

// spoke is the truth about a cluster.
type spoke struct {
	away      bool
	directive string // that it works on
	bad       bool   // the change fails here
	facts     []rollout.Seen
	done      map[string]string // by directive: what truly came of it
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		rng: rand.New(rand.NewPCG(seed, 14)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		clusters: map[string]*spoke{}, seen: map[string]rollout.Seen{}, faults: true,
		tenant: ledger{changes: map[string]time.Time{}},
	}
	s.tenant.limit = s.rng.IntN(6)
	started := events.RolloutStarted{
		FleetSubscription: "gauge", Number: 2, Change: "Version", Target: events.RolloutTarget{Content: target},
		MaxConcurrent: 1 + s.rng.IntN(4), MaxFailures: s.rng.IntN(3), DeadlineSeconds: 600,
	}
	if s.rng.IntN(4) == 0 {
		started.Windows = halfHours()
	}
	for wave := range 1 + s.rng.IntN(4) {
		w := events.RolloutWave{
			Name: strconv.Itoa(wave), SoakSeconds: int64(s.rng.IntN(2) * 60), Promotion: events.PromotionAutomatic,
			MaxFailures: s.rng.IntN(2), MaxUnreachable: s.rng.IntN(2),
		}
		if s.rng.IntN(5) == 0 {
			w.Promotion = events.PromotionManual
		}
		w.Gates = s.drawGates()
		for n := range s.rng.IntN(4) {
			name := fmt.Sprintf("c%d-%d", wave, n)
			w.Clusters = append(w.Clusters, name)
			s.names = append(s.names, name)
			// Every cluster was well after the rollout before: such facts must open nothing.
			s.clusters[name] = &spoke{
				bad: s.rng.IntN(6) == 0, done: map[string]string{},
				facts: []rollout.Seen{
					{Directive: "before/" + name, Outcome: events.ClusterSucceeded, Content: "sha256:old"},
				},
			}
		}
		started.Waves = append(started.Waves, w)
	}
	s.append(started)
	return s
}

func (s *simulation) append(list ...events.Payload) {
	for _, p := range list {
		s.judge.judge(s, p)
		next, err := rollout.Evolve(s.state(len(s.log)), p, s.now)
		if err != nil {
			s.judge.fault("fold: %v", err)
		}
		s.log = append(s.log, entry{p, next})
	}
}

// state is the rollout after the first n entries.
func (s *simulation) state(n int) rollout.State {
	if n == 0 {
		return rollout.State{}
	}
	return s.log[n-1].state
}

// step does one thing.
func (s *simulation) step() {
	s.now = s.now.Add(time.Duration(s.rng.IntN(20_000)) * time.Millisecond)
	if s.rng.IntN(80) == 0 { // nothing happens for a while
		s.now = s.now.Add(time.Duration(s.rng.IntN(40)) * time.Minute)
	}
	switch n := s.rng.IntN(104); {
	case n >= 102:
		s.elsewhere()
	case n >= 100 && s.faults:
		s.decideBudget()
	case n < 40:
		s.control()
	case n < 66:
		s.work()
	case n < 80:
		s.deliver()
	case n < 92:
		s.evaluate()
	case n < 97 && s.faults:
		c := s.clusters[s.pick()]
		if c != nil {
			c.away = !c.away
		}
	case s.faults:
		s.interfere()
	}
}

func (s *simulation) pick() string {
	if len(s.names) == 0 {
		return ""
	}
	return s.names[s.rng.IntN(len(s.names))]
}

// elsewhere has another rollout of the tenant change a cluster, as far as the budget goes.
func (s *simulation) elsewhere() {
	name := "elsewhere-" + strconv.Itoa(s.rng.IntN(4))
	if may, _ := s.tenant.budget(s.now).Left([]string{name}, s.now); len(may) == 1 {
		s.judge.together = nil
		s.judge.changed(s, name)
		s.tenant.changes[name] = s.now
	}
}

// decideBudget has a person set another bound, or allow more once.
func (s *simulation) decideBudget() {
	if s.rng.IntN(2) == 0 {
		s.tenant.limit = s.rng.IntN(6)
		return
	}
	s.tenant.allowed = append(s.tenant.allowed, budget.Allowance{More: 1 + s.rng.IntN(3), At: s.now})
}

// control has a controller decide, on what it knows, and append, if nobody was faster and it is not killed.
func (s *simulation) control() {
	base := len(s.log)
	if s.faults && s.rng.IntN(4) == 0 {
		base = 1 + s.rng.IntN(len(s.log)) // has read the stream a while ago
	}
	w := rollout.World{Now: s.now, Seen: map[string]rollout.Seen{}, Evaluated: maps.Clone(s.gates.heard)}
	if s.faults {
		w.Now = w.Now.Add(time.Duration(s.rng.IntN(2000)-1000) * time.Millisecond)
	}
	for name, c := range s.clusters {
		seen := s.seen[name]
		seen.Away = c.away
		w.Seen[name] = seen
	}
	// Read behind the lock of the tenant, which is held until what was decided is appended.
	w.Budget = s.tenant.budget(w.Now)
	state := s.state(base)
	if s.broken != nil {
		w = s.broken(state, w)
	}
	out, err := rollout.Next(state, w, func(cluster string, attempt int) string {
		return "this/" + cluster + "/" + strconv.Itoa(attempt)
	})
	if err != nil {
		s.judge.fault("next: %v", err)
	}
	if s.faults && s.rng.IntN(10) == 0 || base != len(s.log) {
		return // killed, or refused by the version of the stream
	}
	s.judge.together = nil
	s.append(out...)
	for _, p := range out {
		if d, ok := p.(events.RolloutClusterDirected); ok { // the subscription, in the same transaction
			s.clusters[d.Cluster].directive = d.Directive
			s.tenant.changes[d.Cluster] = s.now
		}
	}
	s.heldBack(w)
}

// heldBack has a person allow one more where clusters are held back in the end.
func (s *simulation) heldBack(w rollout.World) {
	w.Budget = s.tenant.budget(w.Now)
	wait, err := rollout.HeldBack(s.state(len(s.log)), w, nil)
	if err != nil {
		s.judge.fault("held back: %v", err)
	}
	if len(wait) > 0 && w.Budget.Limit == 0 {
		s.judge.fault("%v are held back without a bound", wait)
	}
	if len(wait) > 0 && !s.faults {
		s.tenant.allowed = append(s.tenant.allowed, budget.Allowance{More: 1, At: s.now})
	}
}

// work has a cluster finish what it works on, and say so; or say again what it said.
func (s *simulation) work() {
	name := s.pick()
	c := s.clusters[name]
	if c == nil || c.away {
		return
	}
	if c.directive == "" {
		s.inbox = append(s.inbox, message{name, c.facts[s.rng.IntN(len(c.facts))]})
		return
	}
	fact := rollout.Seen{
		Directive: c.directive, Outcome: events.ClusterSucceeded, Content: target, Cause: "e/" + c.directive,
	}
	if c.bad || s.faults && s.rng.IntN(12) == 0 {
		fact.Outcome, fact.Reason, fact.Content = events.ClusterFailed, "InstallCheckFailed", ""
	}
	if s.faults && s.rng.IntN(30) == 0 {
		fact.Content = "sha256:moved" // the catalog moved: must not count
	}
	c.bad = c.bad && s.rng.IntN(3) > 0 // mended meanwhile
	c.done[c.directive] = fact.Outcome + " " + fact.Content
	c.facts, c.directive = append(c.facts, fact), ""
	s.inbox = append(s.inbox, message{name, fact})
}

// deliver brings a fact to the controllers: any one of those on their way, perhaps again later, perhaps never.
func (s *simulation) deliver() {
	if len(s.inbox) == 0 {
		return
	}
	at := 0
	if s.faults {
		at = s.rng.IntN(len(s.inbox))
	}
	m := s.inbox[at]
	if !s.faults || s.rng.IntN(4) > 0 {
		s.inbox = slices.Delete(s.inbox, at, at+1)
	}
	if s.faults && s.rng.IntN(10) == 0 {
		return // lost: the cluster says it again
	}
	s.seen[m.cluster] = m.seen
}

// interfere has a person ask something.
func (s *simulation) interfere() {
	var c rollout.Command
	switch n := s.rng.IntN(7); {
	case s.rng.IntN(100) == 0: // also of one that has ended: run plays on
		c = rollout.Rollback{Before: s.before(), Reason: "salted"}
	case n == 0:
		c = rollout.Pause{}
	case n < 3:
		c = rollout.Resume{}
	case n == 3:
		c = rollout.Promote{}
	case n == 4:
		c = rollout.PassGate{Gate: gateNames[s.rng.IntN(len(gateNames))], Reason: "salted"}
	case n == 5:
		c = rollout.Skip{Cluster: s.pick(), Reason: "salted"}
	default:
		c = rollout.Retry{Cluster: s.pick()}
	}
	if out, err := rollout.Decide(s.state(len(s.log)), c); err == nil {
		s.append(out...)
	}
}

// before is the rollout before, which had brought something else to every cluster.
func (s *simulation) before() []rollout.State {
	started := s.log[0].payload.(events.RolloutStarted)
	started.Number, started.Target.Content = 1, "sha256:old"
	b := rollout.State{Started: started, Phase: rollout.Succeeded, Clusters: map[string]rollout.Cluster{}}
	for _, name := range s.names {
		b.Clusters[name] = rollout.Cluster{Attempt: 1, Outcome: events.ClusterSucceeded}
	}
	return []rollout.State{b}
}

// run plays a schedule: with faults, then without, until nothing more happens.
func (s *simulation) run() {
	for range 60 + s.rng.IntN(120) {
		s.step()
	}
	s.faults = false
	for _, c := range s.clusters {
		c.away, c.bad = false, false
	}
	for range 800 { // windows are open for half of the time
		state := s.state(len(s.log))
		if state.Phase.Ended() {
			return
		}
		s.help(state)
		s.now = s.now.Add(30 * time.Second)
		for _, name := range s.names { // whatever was lost is said again
			c := s.clusters[name]
			s.work()
			if c.directive == "" {
				s.seen[name] = c.facts[len(c.facts)-1]
			}
		}
		for range gateNames {
			s.evaluate()
		}
		s.control()
	}
	s.judge.fault("the rollout did not end: %+v", s.state(len(s.log)))
}

// help does what a person would do in the end.
func (s *simulation) help(state rollout.State) {
	ask := func(c rollout.Command) {
		if out, err := rollout.Decide(s.state(len(s.log)), c); err == nil {
			s.append(out...)
		}
	}
	if state.Phase != rollout.Progressing {
		ask(rollout.Resume{})
	}
	if at := max(state.Wave, 0); state.Started.Waves[at].Promotion == events.PromotionManual {
		ask(rollout.Promote{}) // all others soak
	}
}

// judge holds the log against the rules, by its own reading of it.
type judge struct {
	faults  []string
	started events.RolloutStarted
	wave    map[string]int
	stopped bool
	ended   bool
	// rolledBack says that a person had it taken back: that may be after the end, once.
	rolledBack bool
	opened     int
	passed     int
	changing   map[string]string // cluster to directive
	outcome    map[string]string
	counted    map[string]bool // failures that count
	gates      gateJudge
	together   []string // clusters of the decision that is being appended
}

func (j *judge) fault(format string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf(format, args...))
}

// over says whether more clusters have failed than may.
func (j *judge) over() bool {
	waves := map[int]int{}
	for name := range j.counted {
		waves[j.wave[name]]++
	}
	for i, n := range waves {
		if n > j.started.Waves[i].MaxFailures {
			return true
		}
	}
	return len(j.counted) > j.started.MaxFailures
}

func (j *judge) judge(s *simulation, p events.Payload) {
	_, rolledBack := p.(events.RolloutRollbackRequested)
	if j.ended && (!rolledBack || j.rolledBack) {
		j.fault("%s after the end", p.EventType())
	}
	j.rolledBack = j.rolledBack || rolledBack
	switch e := p.(type) {
	case events.RolloutStarted:
		j.started, j.wave, j.changing, j.outcome, j.counted = e, map[string]int{}, map[string]string{},
			map[string]string{}, map[string]bool{}
		for i, w := range e.Waves {
			for _, c := range w.Clusters {
				j.wave[c] = i
			}
		}
	case events.RolloutGatesDue, events.RolloutGateEvaluated, events.RolloutGateOverridden:
		j.gates.judge(s, e)
	case events.RolloutWaveOpened:
		j.may(p)
		j.gates = gateJudge{begun: s.now}
		if e.Wave != j.opened || j.passed != j.opened {
			j.fault("wave %d opened when %d were open and %d had passed", e.Wave, j.opened, j.passed)
		}
		j.opened++
	case events.RolloutClusterDirected:
		j.directed(s, e)
		j.changed(s, e.Cluster)
	case events.RolloutClusterSettled:
		j.settled(s, e)
	case events.RolloutWavePassed:
		j.may(p)
		j.wavePassed(e)
		j.gates.passed(j, e.Wave)
	case events.RolloutClusterSkipped:
		delete(j.changing, e.Cluster)
		delete(j.counted, e.Cluster)
		j.outcome[e.Cluster] = events.ClusterSkipped
		j.moved(s, e.Cluster)
	case events.RolloutClusterRetried:
		delete(j.counted, e.Cluster)
		delete(j.outcome, e.Cluster)
		j.moved(s, e.Cluster)
	case events.RolloutPaused, events.RolloutHalted:
		j.stopped = true
	case events.RolloutPromoted:
		j.gates.promoted = true
	case events.RolloutResumed:
		j.stopped = false
		j.gates.from, j.gates.soaked = len(s.log), time.Time{}
		clear(j.counted)
	case events.RolloutEnded, events.RolloutAborted, events.RolloutRollbackRequested:
		j.ended = true
	}
}

// may says that a stopped rollout, or one over its budgets, begins nothing.
func (j *judge) may(p events.Payload) {
	if j.stopped {
		j.fault("%s while stopped", p.EventType())
	}
	if j.over() {
		j.fault("%s over the budget of failures", p.EventType())
	}
}

func (j *judge) directed(s *simulation, e events.RolloutClusterDirected) {
	j.may(e)
	j.gates.directed(j, s, e.Cluster)
	if j.wave[e.Cluster] >= j.opened || j.wave[e.Cluster] > j.passed {
		j.fault("%s of wave %d was directed when %d waves were open and %d had passed", e.Cluster, j.wave[e.Cluster],
			j.opened, j.passed)
	}
	if j.changing[e.Cluster] != "" {
		j.fault("%s was directed twice at once", e.Cluster)
	}
	j.changing[e.Cluster] = e.Directive
	delete(j.outcome, e.Cluster)
	if len(j.changing) > j.started.MaxConcurrent {
		j.fault("%d clusters are changed at once, %d may be", len(j.changing), j.started.MaxConcurrent)
	}
}

// changed says that no more clusters are changed within an hour than the bound and what persons allowed.
func (j *judge) changed(s *simulation, cluster string) {
	if s.tenant.limit == 0 {
		return
	}
	limit := s.tenant.limit
	for _, a := range s.tenant.allowed {
		if s.now.Sub(a.At) < time.Hour+skew {
			limit += a.More
		}
	}
	n := 1
	for name, at := range s.tenant.changes {
		switch {
		case name == cluster && s.now.Sub(at) < time.Hour+skew:
			return // it counts already
		case name != cluster && s.now.Sub(at) < time.Hour-skew:
			n++
		}
	}
	// Directives of the same decision are in the log, and in the ledger after it.
	for _, name := range j.together {
		if at, is := s.tenant.changes[name]; !is || s.now.Sub(at) >= time.Hour-skew {
			n++
		}
	}
	j.together = append(j.together, cluster)
	if n > limit {
		j.fault("%s is the cluster number %d within the hour, %d may be changed", cluster, n, limit)
	}
}

func (j *judge) settled(s *simulation, e events.RolloutClusterSettled) {
	delete(j.changing, e.Cluster)
	j.outcome[e.Cluster] = e.Outcome
	j.moved(s, e.Cluster)
	if e.Reason == rollout.ReasonDeadline {
		j.gates.late(j, s, e.Cluster)
	}
	switch e.Outcome {
	case events.ClusterFailed:
		j.counted[e.Cluster] = true
	case events.ClusterSucceeded:
		if s.clusters[e.Cluster].done[e.Directive] != events.ClusterSucceeded+" "+target {
			j.fault("%s counts as changed by %s, which came to %q", e.Cluster, e.Directive,
				s.clusters[e.Cluster].done[e.Directive])
		}
	}
}

func (j *judge) wavePassed(e events.RolloutWavePassed) {
	j.passed++
	away := 0
	for _, name := range j.started.Waves[e.Wave].Clusters {
		switch j.outcome[name] {
		case events.ClusterSucceeded, events.ClusterSkipped, events.ClusterFailed:
		case events.ClusterUnreachable:
			away++
		default:
			j.fault("wave %d passed with %s undecided", e.Wave, name)
		}
	}
	if away > j.started.Waves[e.Wave].MaxUnreachable {
		j.fault("wave %d passed with %d clusters away", e.Wave, away)
	}
}

// TestSimulation: whatever happens between controllers, clusters and people, waves keep their order, budgets hold, only
// what the rollout itself caused counts, and in the end it ends (issue: causal gates; P21, P22).
func TestSimulation(t *testing.T) {
	t.Parallel()
	schedules := defaultSchedules
	if testing.Short() {
		schedules /= 10
	}
	if given := os.Getenv("CHANDLER_SCHEDULES"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil {
			t.Fatalf("CHANDLER_SCHEDULES: %v", err)
		}
		schedules = n
	}
	ended := map[rollout.Phase]int{}
	try := func(seed uint64) {
		s := newSimulation(seed)
		s.run()
		if len(s.judge.faults) > 0 {
			t.Fatalf("seed %d: %s", seed, s.judge.faults)
		}
		ended[s.state(len(s.log)).Phase]++
	}
	for _, seed := range seedsThatFailed {
		try(seed)
	}
	for seed := range schedules {
		try(uint64(seed))
	}
	t.Logf("%d schedules ended: %v", schedules, ended)
}

// TestSimulationSeesFaults: a gate that believes that a cluster is well, whatever made it so, breaks the order that
// TestSimulation watches over (argo-cd #29410).
func TestSimulationSeesFaults(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(rollout.State, rollout.World) rollout.World{
		"health without its cause": func(s rollout.State, w rollout.World) rollout.World {
			for cluster, seen := range w.Seen {
				seen.Directive = s.Clusters[cluster].Directive
				w.Seen[cluster] = seen
			}
			return w
		},
		"a budget that sees its own rollout alone": func(_ rollout.State, w rollout.World) rollout.World {
			maps.DeleteFunc(w.Budget.Changes, func(name string, _ time.Time) bool {
				return strings.HasPrefix(name, "elsewhere-")
			})
			return w
		},
		"whatever runs": func(_ rollout.State, w rollout.World) rollout.World {
			for cluster, seen := range w.Seen {
				seen.Content = target
				w.Seen[cluster] = seen
			}
			return w
		},
		"whatever a gate said": func(s rollout.State, w rollout.World) rollout.World {
			for gate, e := range w.Evaluated {
				e.Round = s.Gates.Round
				w.Evaluated[gate] = e
			}
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2000) {
				s := newSimulation(seed)
				s.broken = broken
				s.run()
				if len(s.judge.faults) > 0 {
					return
				}
			}
			t.Error("2,000 schedules showed nothing")
		})
	}
}
