package decide_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

const (
	races      = 10_000
	raceLength = 12
	grantTTL   = 30 * time.Minute // of the hub
)

// evening are windows at the beginning of some hours.
var evening = []events.Window{
	{Start: "20:00", Minutes: 40, TimeZone: "UTC"},
	{Start: "21:00", Minutes: 40, TimeZone: "UTC"},
	{Start: "22:00", Minutes: 40, TimeZone: "UTC"},
}

// race is one namespace in which people approve, policies, bounds, configuration, group and subscription change, an
// operator flaps or stays away, catalogs move, and an executor begins what it was allowed to, in any order.
type race struct {
	t       *testing.T
	draw    *rand.Rand
	now     time.Time
	s       *scene
	seen    []events.InstallPlanProposed // what people have looked at
	given   []consent
	grant   grant
	heard   bool // by the resolver, of everything that happened
	refused int
	begun   int
}

type consent struct {
	plan, digest, by string
	base             events.PlanBase
	expires          time.Time
}

type grant struct {
	plan, digest string
	expires      time.Time
}

// TestRaces: 10,000 namespaces in which everything happens at once. Nothing begins that the people it takes have
// not approved, as it is, in time and in its window; no plan is left under terms that hold no more, whatever its
// operator does meanwhile; and an operator that flaps voids no approval (D6, P10, R-IP-11).
func TestRaces(t *testing.T) {
	t.Parallel()
	const parts = 4 // that run at once
	for part := range uint64(parts) {
		t.Run(strconv.FormatUint(part, 10), func(t *testing.T) {
			t.Parallel()
			begun, refused := 0, 0
			for seed := part; seed < races; seed += parts {
				r := newRace(t, seed)
				for range raceLength {
					r.step()
				}
				begun, refused = begun+r.begun, refused+r.refused
			}
			if begun < races/100 || refused < races/100 {
				t.Errorf("%d plans began and %d approvals were refused: they race for nothing", begun, refused)
			}
		})
	}
}

func newRace(t *testing.T, seed uint64) *race {
	t.Helper()
	r := &race{
		t: t, draw: rand.New(rand.NewPCG(seed, 4)), now: time.Date(2026, 5, 5, 20, 0, 0, 0, time.UTC),
		s: newScene().installed("a.v1", "1.0.0", "Succeeded"),
	}
	r.s.PermissionGrowth = growing
	r.s.Policies = []decide.Policy{
		policy("p", func(s *events.ApprovalPolicySpec) { rules("Any", "Manual")(s); s.Approvers = 1 + int(seed%2) }),
	}
	r.resolve()
	return r
}

func (r *race) step() {
	r.now = r.now.Add(time.Duration(r.draw.IntN(20)) * time.Minute)
	switch r.draw.IntN(16) {
	case 0, 1, 2, 3, 12, 13:
		r.approve()
	case 4, 5:
		r.allow()
	case 6, 7:
		r.begin()
	case 8, 14:
		r.change()
	case 15: // its component is held until it flaps
		r.s.Installed[0].Phase = "Pending"
		r.resolve()
	case 9:
		r.flap()
	case 10:
		r.s.rev = "r" + string(rune('1'+r.draw.IntN(9))) // the catalog moves elsewhere
		r.resolve()
	case 11:
		if r.draw.IntN(4) == 0 {
			r.now = r.now.Add(25 * time.Hour)
		}
		r.hear()
	}
}

// hear is a turn of the resolver where something has happened since the last one.
func (r *race) hear() {
	if !r.heard {
		r.resolve()
	}
}

// resolve is a turn of the resolver.
func (r *race) resolve() {
	r.heard = true
	d, err := r.s.tryDecide()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, gone := range d.Superseded {
		p := r.plan(gone.Plan.ID)
		p.State = mustEvolve(p.State, gone.Events...)
	}
	for _, p := range d.Proposals {
		r.s.Generation = p.Event.Generation
		r.s.Plans = append([]decide.Plan{{
			ID: p.Event.Plan, Effect: p.Effect,
			State: mustEvolve(installplan.State{}, p.Event),
		}}, r.s.Plans...)
		r.seen = append(r.seen, p.Event)
	}
	for _, p := range r.s.Plans {
		if p.State.Live() && !p.State.Begun {
			r.inForce(p.State.Proposed)
		}
	}
}

// inForce checks that a plan which may begin, or be approved, is what holds now: the resolver has just looked.
func (r *race) inForce(is events.InstallPlanProposed) {
	policy, sub := r.s.Policies[0].Spec, r.s.Subscriptions[0].Spec
	want := events.InstallPlanProposed{Approval: sub.Approval}
	if len(policy.Rules) > 0 {
		want.Approval = installplan.Manual
	}
	if want.Approval == installplan.Manual {
		want.ApprovalSeconds = policy.ApprovalSeconds
		if policy.Approvers > 1 {
			want.Approvers = policy.Approvers
		}
	}
	if is.Approval != want.Approval || is.Approvers != want.Approvers || is.ApprovalSeconds != want.ApprovalSeconds ||
		len(is.Windows) > 0 != (len(policy.Windows) > 0) {
		r.t.Fatalf(
			"with its operator %s, plan %s is left under terms that hold no more: %s by %d for %d s, want %s by %d "+
				"for %d s, windows %v",
			r.s.Installed[0].Phase, is.Plan, is.Approval, is.Approvers, is.ApprovalSeconds, want.Approval,
			want.Approvers, want.ApprovalSeconds, policy.Windows)
	}
	if policy.Versions.Ceiling != "" {
		r.t.Fatalf("with its operator %s, plan %s is left beyond the ceiling %s", r.s.Installed[0].Phase, is.Plan,
			policy.Versions.Ceiling)
	}
	base, err := installplan.BaseFacts{
		Configs:       map[string]string{"a": sub.Config},
		OperatorGroup: installplan.GroupFacts{Name: r.s.Groups[0].Name, Spec: r.s.Groups[0].Spec},
	}.Base()
	if err != nil || base.Config != is.Base.Config || base.OperatorGroup != is.Base.OperatorGroup {
		r.t.Fatalf("with its operator %s, plan %s is left with another configuration or group, %v",
			r.s.Installed[0].Phase, is.Plan, err)
	}
}

func (r *race) plan(id string) *decide.Plan {
	for i := range r.s.Plans {
		if r.s.Plans[i].ID == id {
			return &r.s.Plans[i]
		}
	}
	r.t.Fatalf("no plan %s", id)
	return nil
}

// approve is a person who has looked at some plan, now or long ago.
func (r *race) approve() {
	saw := r.seen[r.draw.IntN(len(r.seen))]
	on := r.seen[max(0, len(r.seen)-1-r.draw.IntN(2))] // what the person clicks on may be another by now
	p := r.plan(on.Plan)
	who := string(rune('a' + r.draw.IntN(3)))
	approve := installplan.Approve{Digest: saw.Digest, Actor: who, Now: r.now}
	if r.draw.IntN(2) == 0 {
		approve.Base = &saw.Base
	}
	if minutes := r.draw.IntN(120); minutes > 10 { // else as long as it goes
		approve.Expires = r.now.Add(time.Duration(minutes) * time.Minute)
	}
	got, err := installplan.Decide(p.State, approve)
	if err != nil {
		r.refused++
		return
	}
	p.State = mustEvolve(p.State, got...)
	for _, e := range got {
		c := consent{plan: p.ID, by: who}
		switch e := e.(type) {
		case events.InstallPlanApproved:
			c.digest, c.base, c.expires = e.Digest, e.Base, e.Expires
		case events.InstallPlanApprovalGiven:
			c.digest, c.base, c.expires = e.Digest, e.Base, e.Expires
		}
		r.given = append(r.given, c)
	}
}

// allow is a turn of the hub: it signs a grant for what may begin now.
func (r *race) allow() {
	r.grant = grant{}
	for _, p := range r.s.Plans {
		if p.State.Begun || !p.State.Executable(r.now) {
			continue
		}
		g := grant{plan: p.ID, digest: p.State.Proposed.Digest, expires: p.State.Until(r.now, r.now.Add(grantTTL))}
		if r.grant.plan != "" {
			r.t.Fatalf("plans %s and %s may both begin", r.grant.plan, g.plan)
		}
		if !g.expires.After(r.now) {
			r.t.Fatalf("plan %s is handed out with a grant that has ended", g.plan)
		}
		r.grant = g
	}
}

// begin is the executor, which knows its grant alone and is slow.
func (r *race) begin() {
	g := r.grant
	if g.plan == "" || !r.now.Before(g.expires) {
		return
	}
	p := r.plan(g.plan)
	people := map[string]bool{}
	for _, c := range r.given {
		if c.plan == p.ID && c.digest == g.digest && c.base == p.State.Proposed.Base && r.now.Before(c.expires) {
			people[c.by] = true
		}
	}
	if len(people) < p.State.Approvers() {
		r.t.Fatalf("plan %s begins at %s, approved by %v of %d: %+v", p.ID, r.now, people, p.State.Proposed.Approvers,
			r.given)
	}
	if hour, minute := r.now.Hour(), r.now.Minute(); len(p.State.Proposed.Windows) > 0 &&
		(hour < 20 || hour > 22 || minute >= 40) {
		r.t.Fatalf("plan %s begins at %s, outside of its window", p.ID, r.now)
	}
	got, err := installplan.Decide(p.State, installplan.Start{})
	if err != nil {
		r.t.Fatalf("a plan that was allowed to begin: %v", err)
	}
	p.State = mustEvolve(p.State, got...)
	r.grant = grant{}
	r.begun++
	// It fails at once, so that the next one can race, and the subscription is made anew.
	p.State = mustEvolve(p.State, failed)
	r.s.Subscriptions[0].Incarnation++
	r.resolve()
}

func (r *race) change() {
	spec, sub := &r.s.Policies[0].Spec, &r.s.Subscriptions[0].Spec
	switch r.draw.IntN(10) {
	case 0, 1:
		spec.Approvers = 1 + r.draw.IntN(3)
	case 2:
		spec.ApprovalSeconds = int64(3600 * (2 + r.draw.IntN(3)))
	case 3:
		spec.Windows = evening
	case 4:
		spec.Windows = nil
	case 5:
		if spec.Rules = nil; r.draw.IntN(2) == 0 {
			rules("Any", "Manual")(spec)
		}
	case 6:
		spec.Versions.Ceiling = []string{"", "1.5.0"}[r.draw.IntN(2)]
	case 7:
		sub.Approval = []string{installplan.Automatic, installplan.Manual}[r.draw.IntN(2)]
	case 8:
		sub.Config = []string{"", "c1", "c2"}[r.draw.IntN(3)]
	case 9:
		r.s.Groups[0].Spec.TargetNamespaces = []string{"x", "y"}[:r.draw.IntN(3)]
	}
	if r.heard = false; r.draw.IntN(2) == 0 { // else the resolver hears of it later
		r.resolve()
	}
}

// flap is an operator that leaves Succeeded and comes back: nothing of what people approved may go.
func (r *race) flap() {
	if r.s.Installed[0].Phase != "Succeeded" {
		r.s.Installed[0].Phase, r.heard = "Succeeded", false
	}
	r.hear() // of what has changed before
	live := func() (ids []string) {
		for _, p := range r.s.Plans {
			if p.State.Live() {
				ids = append(ids, p.ID)
			}
		}
		return ids
	}
	before := live()
	phases := []string{"Failed", "Pending", "InstallReady", "Installing"}
	for _, phase := range []string{phases[r.draw.IntN(len(phases))], "Succeeded"} {
		r.s.Installed[0].Phase = phase
		r.resolve()
	}
	if after := live(); !slices.Equal(before, after) {
		r.t.Fatalf("a flapping operator made %v of the plans %v", after, before)
	}
}
