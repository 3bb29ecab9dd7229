package rollout

import (
	"maps"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// HeldBack are the clusters that a rollout would change by now if the budget of mass changes let it: those of opened
// waves that are not directed and answer. made is what Next decided on the same state and world.
func HeldBack(s State, w World, made []events.Payload) ([]string, error) {
	s.Clusters = maps.Clone(s.Clusters)
	b := w.Budget
	b.Changes = maps.Clone(b.Changes)
	for _, p := range made {
		if err := s.apply(p, w.Now); err != nil {
			return nil, err
		}
		if directed, ok := p.(events.RolloutClusterDirected); ok {
			if b.Changes == nil {
				b.Changes = map[string]time.Time{}
			}
			b.Changes[directed.Cluster] = w.Now
		}
	}
	if s.Phase != Progressing {
		return nil, nil
	}
	_, wait := b.Left(due(s, w), w.Now)
	return wait, nil
}

// due are the clusters of opened waves that wait to be directed, in their order, and answer.
func due(s State, w World) (list []string) {
	for i := 0; i <= s.Wave && i < len(s.Started.Waves); i++ {
		for _, name := range s.Started.Waves[i].Clusters {
			c := s.Clusters[name]
			waits := c.Directive == "" && c.Outcome == "" || c.Outcome == events.ClusterUnreachable
			if waits && !w.Seen[name].Away {
				list = append(list, name)
			}
		}
	}
	return list
}
