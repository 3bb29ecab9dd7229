package decide

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// Generated are subscriptions for operators that came in as dependencies, once their plan is finished
// (R-RES-40): without one they would never be updated. A package that is subscribed to gets none.
func Generated(s State) (subs []events.SubscriptionGenerated, settled []Plan) {
	taken := map[string]bool{}
	for _, sub := range s.Subscriptions {
		taken[sub.Spec.Package] = true
	}
	for _, p := range s.Plans {
		if p.Settled || p.State.Phase != installplan.Complete {
			continue
		}
		settled = append(settled, p)
		for _, b := range p.State.Proposed.Bundles {
			if len(b.Subscriptions) > 0 || taken[b.Package] {
				continue
			}
			taken[b.Package] = true
			subs = append(subs, generated(s, p, b))
		}
	}
	slices.SortFunc(subs, func(a, b events.SubscriptionGenerated) int { return strings.Compare(a.Name, b.Name) })
	return subs, settled
}

// Subscribed are the finished plans that nothing is to be generated for: every dependency has a subscription, or its
// subscription's name is taken.
func Subscribed(s State) []Plan {
	subs, finished := Generated(s)
	return slices.DeleteFunc(finished, func(p Plan) bool {
		return slices.ContainsFunc(subs, func(g events.SubscriptionGenerated) bool {
			return g.Plan == p.ID &&
				s.subscription(g.Name) == nil
		})
	})
}

func generated(s State, p Plan, b events.PlannedBundle) events.SubscriptionGenerated {
	name, namespace := b.Catalog, ""
	if ns, n, ok := strings.Cut(b.Catalog, "/"); ok {
		name, namespace = n, ns
	}
	parts := []string{b.Package, b.Channel, name}
	if namespace != "" {
		parts = append(parts, namespace)
	}
	return events.SubscriptionGenerated{
		Cluster: s.Scope.Cluster, Namespace: s.Scope.Namespace, Name: strings.Join(parts, "-"), Plan: p.ID,
		Spec: events.SubscriptionSpec{
			Package: b.Package, Channel: b.Channel, Catalog: name, CatalogNamespace: namespace,
			StartingCSV: b.CSV, Approval: installplan.Automatic,
		},
	}
}
