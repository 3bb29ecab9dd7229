// Package placement chooses the clusters of a fleet subscription, and divides them into waves. It is pure: the same
// clusters and the same present members give the same answer, whatever order they come in.
package placement

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Cluster is what placement knows of a cluster.
type Cluster struct {
	Name   string
	Labels map[string]string
	// Taints keep subscriptions away that do not tolerate them, by key.
	Taints map[string]string
}

// Choose returns the names of the chosen clusters, sorted. Present members that still fit stay before others come:
// a number that says how many clusters are wanted moves no operator from one to another.
func Choose(p events.FleetPlacement, clusters []Cluster, present []string) ([]string, error) {
	fits, err := fitting(p, clusters, present)
	if err != nil {
		return nil, err
	}
	chosen := fits
	if p.Count > 0 && len(fits) > p.Count {
		if chosen, err = some(p, fits, present); err != nil {
			return nil, err
		}
	}
	names := make([]string, 0, len(chosen))
	for _, c := range chosen {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names, nil
}

// fitting are the clusters that a placement allows. A taint keeps others away; who is there stays, as Kubernetes'
// effect NoSchedule has it. One that names nothing allows none: a field that was forgotten must not mean the whole
// fleet.
func fitting(p events.FleetPlacement, clusters []Cluster, present []string) ([]Cluster, error) {
	selector, err := Selector("placement.selector", p.Selector)
	if err != nil {
		return nil, err
	}
	var out []Cluster
	for _, c := range clusters {
		if reason, _ := refusal(p, selector, c, slices.Contains(present, c.Name)); reason == "" {
			out = append(out, c)
		}
	}
	return out, nil
}

// named says whether a name is in a list of names, or beginnings of names followed by *.
func named(list []string, name string) bool {
	_, _, fits := Match(list, name)
	return fits
}

// Match says by how many characters a name fits a list of names, or beginnings of names followed by *, and whether it
// is there in full.
func Match(list []string, name string) (characters int, whole, fits bool) {
	for _, one := range list {
		prefix, isPrefix := strings.CutSuffix(one, "*")
		switch {
		case one == name:
			return len(name), true, true
		case isPrefix && strings.HasPrefix(name, prefix):
			characters, fits = max(characters, len(prefix)), true
		}
	}
	return characters, false, fits
}

// untolerated is the first taint, by key, that is not tolerated, as key=value; "" where all are. A toleration without a
// value takes any.
func untolerated(tolerations []events.FleetToleration, taints map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(taints)) {
		if !slices.ContainsFunc(tolerations, func(t events.FleetToleration) bool {
			return t.Key == key && (t.Value == "" || t.Value == taints[key])
		}) {
			return strings.TrimSuffix(key+"="+taints[key], "=")
		}
	}
	return ""
}

// some chooses as many clusters as are wanted: present members first, then by preference, over the values of the label
// that they are to be spread over, then by a hash of their names, which favours nobody for the first letter of a name.
func some(p events.FleetPlacement, fits []Cluster, present []string) ([]Cluster, error) {
	preferences := make([]labels.Selector, len(p.Prefer))
	for i, one := range p.Prefer {
		var err error
		if preferences[i], err = Selector(fmt.Sprintf("placement.prefer[%d].selector", i), one.Selector); err != nil {
			return nil, err
		}
	}
	type candidate struct {
		Cluster

		present bool
		weight  int
		hash    [sha256.Size]byte
	}
	candidates := make([]candidate, 0, len(fits))
	for _, c := range fits {
		one := candidate{Cluster: c, present: slices.Contains(present, c.Name), hash: sha256.Sum256([]byte(c.Name))}
		for i, selector := range preferences {
			if selector.Matches(labels.Set(c.Labels)) {
				one.weight += p.Prefer[i].Weight
			}
		}
		candidates = append(candidates, one)
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		switch {
		case a.present != b.present && a.present:
			return -1
		case a.present != b.present:
			return 1
		case a.weight != b.weight:
			return b.weight - a.weight
		default:
			return slices.Compare(a.hash[:], b.hash[:])
		}
	})
	chosen := make([]Cluster, 0, p.Count)
	taken := map[string]int{} // how many of each value of the label
	for len(chosen) < p.Count {
		best := 0
		for i, c := range candidates {
			if p.SpreadBy != "" && c.present == candidates[best].present &&
				taken[c.Labels[p.SpreadBy]] < taken[candidates[best].Labels[p.SpreadBy]] {
				best = i
			}
		}
		taken[candidates[best].Labels[p.SpreadBy]]++
		chosen = append(chosen, candidates[best].Cluster)
		candidates = slices.Delete(candidates, best, best+1)
	}
	return chosen, nil
}

// RestName is the wave of the clusters that no wave of the strategy takes: none is left out for a selector that forgot
// it.
const RestName = "rest"

// Waves divides members into the waves of a strategy. Each cluster is in one wave: the first that takes it.
func Waves(s events.RolloutStrategy, members []Cluster) ([]events.RolloutWave, error) {
	left := slices.Clone(members)
	slices.SortFunc(left, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	var out []events.RolloutWave
	for i, spec := range s.Waves {
		at := fmt.Sprintf("strategy.waves[%d]", i)
		selector, err := Selector(at+".selector", spec.Selector)
		if err != nil {
			return nil, err
		}
		var fits []string
		for _, c := range left {
			if selector.Matches(labels.Set(c.Labels)) {
				fits = append(fits, c.Name)
			}
		}
		if spec.Size != "" {
			size, err := Size(at+".size", spec.Size, len(fits))
			if err != nil {
				return nil, err
			}
			fits = fits[:min(size, len(fits))]
		}
		wave, err := counted(at, s, spec, fits)
		if err != nil {
			return nil, err
		}
		out = append(out, wave)
		left = slices.DeleteFunc(left, func(c Cluster) bool { return slices.Contains(fits, c.Name) })
	}
	if len(left) > 0 {
		rest := make([]string, 0, len(left))
		for _, c := range left {
			rest = append(rest, c.Name)
		}
		wave, err := counted("strategy", s, events.RolloutWaveSpec{Name: RestName}, rest)
		if err != nil {
			return nil, err
		}
		out = append(out, wave)
	}
	return out, nil
}

// counted is a wave with its percentages counted out.
func counted(at string, s events.RolloutStrategy, spec events.RolloutWaveSpec, clusters []string) (
	events.RolloutWave, error,
) {
	failures, err := Budget(at+".maxFailures", spec.MaxFailures, len(clusters))
	if err != nil {
		return events.RolloutWave{}, err
	}
	away, err := Budget("strategy.maxUnreachable", s.MaxUnreachable, len(clusters))
	if err != nil {
		return events.RolloutWave{}, err
	}
	promotion := spec.Promotion
	if promotion == "" {
		promotion = events.PromotionAutomatic
	}
	return events.RolloutWave{
		Name: spec.Name, Clusters: clusters, SoakSeconds: spec.SoakSeconds, Promotion: promotion, MaxFailures: failures,
		MaxUnreachable: away, Gates: slices.Clone(spec.Gates),
	}, nil
}

// Size reads how many of a number are meant, as a number or a percentage of them, rounded up: a wave of a tenth of
// three clusters is one of them.
func Size(place, text string, of int) (int, error) { return amount(place, text, of, 99) }

// Budget is Size, rounded down: a tenth of three clusters may not fail. "" is none.
func Budget(place, text string, of int) (int, error) {
	if text == "" {
		return 0, nil
	}
	return amount(place, text, of, 0)
}

func amount(place, text string, of, rounding int) (int, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || percent && n > 100 {
		return 0, fmt.Errorf("%s is %q: want a number, such as 3, or a percentage up to 100%%, such as 10%%", place, text)
	}
	if percent {
		return (n*of + rounding) / 100, nil
	}
	return n, nil
}

// Selector reads a label selector as Kubernetes does; "" selects all.
func Selector(place, selector string) (labels.Selector, error) {
	out, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: %w", place, selector, err)
	}
	return out, nil
}
