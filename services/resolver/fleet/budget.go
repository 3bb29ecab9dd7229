package fleet

import (
	"maps"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/budget"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

// Held are clusters that a fleet subscription would change or let go of, if the budget of mass changes let it.
type Held struct {
	Of      string    `json:"of"`                // events.BudgetChanged, events.BudgetLeaving
	Rollout int       `json:"rollout,omitempty"` // its number; none where clusters leave
	Limit   int       `json:"limit"`
	Used    int       `json:"used"`
	Held    int       `json:"held"`
	Until   time.Time `json:"until"` // when the next of them may go on by itself
}

// Same says whether two are the same stretch of holding back.
func (h *Held) Same(other *Held) bool {
	return h != nil && other != nil && h.Of == other.Of && h.Rollout == other.Rollout
}

func held(of string, number, n int, b budget.Budget, now time.Time) *Held {
	return &Held{Of: of, Rollout: number, Limit: b.Limit, Used: b.Used(now), Held: n, Until: b.Until(now).UTC()}
}

// HeldBack says which clusters the newest rollout holds back, after what was decided about it; nil for none.
func (s State) HeldBack(w rollout.World, made []events.Payload) (*Held, error) {
	wait, err := rollout.HeldBack(s.Last, w, made)
	if err != nil || len(wait) == 0 {
		return nil, err
	}
	b := s.Changed
	b.Changes = with(b.Changes, w.Now, directed(made)...)
	return held(events.BudgetChanged, s.Last.Started.Number, len(wait), b, w.Now), nil
}

func directed(made []events.Payload) (list []string) {
	for _, p := range made {
		if d, ok := p.(events.RolloutClusterDirected); ok {
			list = append(list, d.Cluster)
		}
	}
	return list
}

// Leave says which of the places that it is for no more it lets go of now, and which the budget holds back; nil for
// none.
func (s State) Leave(places []Place, now time.Time) (may []Place, back *Held) {
	var clusters []string
	for _, p := range places {
		if !slices.Contains(clusters, p.Cluster) { // they are sorted, and few are twice
			clusters = append(clusters, p.Cluster)
		}
	}
	now = now.UTC()
	names, wait := s.Leaves.Left(clusters, now)
	if len(wait) == 0 {
		return places, nil
	}
	for _, p := range places {
		if slices.Contains(names, p.Cluster) {
			may = append(may, p)
		}
	}
	b := s.Leaves
	b.Changes = with(b.Changes, now, names...)
	return may, held(events.BudgetLeaving, 0, len(wait), b, now)
}

// with are changes with more of them.
func with(changes map[string]time.Time, at time.Time, clusters ...string) map[string]time.Time {
	out := make(map[string]time.Time, len(changes)+len(clusters))
	maps.Copy(out, changes)
	for _, name := range clusters {
		out[name] = at
	}
	return out
}
