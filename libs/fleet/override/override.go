// Package override says what a cluster of a fleet subscription gets where overrides make that another thing than what
// all get. It is pure.
//
// Of the overrides that fit a cluster the most particular one holds, and it alone: a name in full goes before the
// beginning of one, a longer beginning before a shorter one, and either before labels; where that is the same, more
// requirements of the selector go first. Overrides that are as particular are a conflict if they differ: then none
// holds, and the cluster fails, since to guess would be to configure it by the order of a list.
package override

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
)

// ReasonConflict is the code of why a cluster fails for which overrides are a conflict.
const ReasonConflict = "OverrideConflict"

// Choice is what overrides make of a cluster. The zero value is that none fits: it gets what all get.
type Choice struct {
	Name string // of the override that holds
	// Conflict are the names of several that are as particular and differ, sorted; then none holds.
	Conflict []string
	Config   string // commitment of what the cluster gets, where an override holds
	Approval string
}

// Key tells choices of one version of a fleet subscription apart.
func (c Choice) Key() string {
	if len(c.Conflict) > 0 {
		return strings.Join(c.Conflict, ",")
	}
	return c.Name
}

// Spec is the subscription of the cluster, made of that of all.
func (c Choice) Spec(all events.SubscriptionSpec) events.SubscriptionSpec {
	if c.Name != "" {
		all.Config, all.Approval = c.Config, c.Approval
	}
	return all
}

// Rules are the overrides of a fleet subscription.
type Rules []one

type one struct {
	events.FleetOverride

	selector     labels.Selector
	requirements int
}

// Read reads the overrides of a fleet subscription.
func Read(spec events.FleetSubscriptionSpec) (Rules, error) {
	out := make(Rules, 0, len(spec.Overrides))
	for i, o := range spec.Overrides {
		selector, err := placement.Selector(fmt.Sprintf("overrides[%d].selector", i), o.Selector)
		if err != nil {
			return nil, err
		}
		if o.Approval == "" {
			o.Approval = spec.Approval
		}
		requirements, _ := selector.Requirements()
		out = append(out, one{o, selector, len(requirements)})
	}
	return out, nil
}

// particular is how particular an override is for a cluster that it fits.
type particular struct {
	whole        int // 1: its name in full
	characters   int // of the beginning of its name; 0 where it is chosen by labels alone
	requirements int
}

func (p particular) compare(o particular) int {
	return cmp.Or(cmp.Compare(p.whole, o.whole), cmp.Compare(p.characters, o.characters),
		cmp.Compare(p.requirements, o.requirements))
}

// fits says whether an override is for a cluster, and how particular it is. One that chooses nothing fits none.
func (o one) fits(c placement.Cluster) (p particular, ok bool) {
	if len(o.Clusters) == 0 && o.requirements == 0 || !o.selector.Matches(labels.Set(c.Labels)) {
		return p, false
	}
	p.requirements = o.requirements
	if len(o.Clusters) == 0 {
		return p, true
	}
	characters, whole, ok := placement.Match(o.Clusters, c.Name)
	// The beginning that all names have is one, and more particular than none.
	p.characters = characters + 1
	if whole {
		p.whole = 1
	}
	return p, ok
}

// For says which override holds for a cluster.
func (r Rules) For(c placement.Cluster) Choice {
	var best particular
	var among Rules
	for _, o := range r {
		p, ok := o.fits(c)
		if !ok {
			continue
		}
		if is := p.compare(best); len(among) == 0 || is > 0 {
			best, among = p, Rules{o}
		} else if is == 0 {
			among = append(among, o)
		}
	}
	if len(among) == 0 {
		return Choice{}
	}
	slices.SortFunc(among, func(a, b one) int { return cmp.Compare(a.Name, b.Name) })
	first := among[0]
	for _, o := range among[1:] {
		if o.MergedConfig != first.MergedConfig || o.Approval != first.Approval {
			return Choice{Conflict: among.names()}
		}
	}
	return Choice{Name: first.Name, Config: first.MergedConfig, Approval: first.Approval}
}

func (r Rules) names() []string {
	out := make([]string, len(r))
	for i, o := range r {
		out[i] = o.Name
	}
	return out
}

// Freeze is what a rollout writes down of what overrides make of its clusters, by name of the override, and which are
// in conflict.
func Freeze(choices map[string]Choice) (list []events.RolloutOverride, conflicts []events.RolloutConflict) {
	for _, cluster := range slices.Sorted(maps.Keys(choices)) {
		choice := choices[cluster]
		switch {
		case len(choice.Conflict) > 0:
			conflicts = append(conflicts, events.RolloutConflict{Cluster: cluster, Overrides: choice.Conflict})
		case choice.Name != "":
			at := slices.IndexFunc(list, func(o events.RolloutOverride) bool {
				return o.Name == choice.Name && o.Config == choice.Config && o.Approval == choice.Approval
			})
			if at < 0 {
				at = len(list)
				list = append(list, events.RolloutOverride{
					Name: choice.Name, Config: choice.Config, Approval: choice.Approval,
				})
			}
			list[at].Clusters = append(list[at].Clusters, cluster)
		}
	}
	slices.SortStableFunc(list, func(a, b events.RolloutOverride) int { return cmp.Compare(a.Name, b.Name) })
	return list, conflicts
}

// Of is what a rollout wrote down about a cluster.
func Of(r events.RolloutStarted, cluster string) Choice {
	for _, c := range r.Conflicts {
		if c.Cluster == cluster {
			return Choice{Conflict: c.Overrides}
		}
	}
	for _, o := range r.Overrides {
		if _, is := slices.BinarySearch(o.Clusters, cluster); is {
			return Choice{Name: o.Name, Config: o.Config, Approval: o.Approval}
		}
	}
	return Choice{}
}
