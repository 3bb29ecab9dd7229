package placement

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Why a placement does not choose a cluster: codes. The first one that holds is said, in this order.
const (
	NotNamed     = "NotNamed"          // placement.clusters has other names, or nothing is named
	Excepted     = "Excepted"          // placement.except has its name
	LabelsDiffer = "LabelsDiffer"      // placement.selector wants other labels
	NotTolerated = "TaintNotTolerated" // it has a taint that placement.tolerations does not have
	BeyondCount  = "BeyondCount"       // it fits, and as many as placement.count wants are chosen before it
)

// Verdict says whether a cluster is chosen, and why not.
type Verdict struct {
	Cluster string
	Chosen  bool
	Reason  string // a code; "" where it is chosen
	Detail  string // the taint that is not tolerated, as key=value
}

// Explain is Choose with what it says of every cluster, by name.
func Explain(p events.FleetPlacement, clusters []Cluster, present []string) ([]Verdict, error) {
	chosen, err := Choose(p, clusters, present)
	if err != nil {
		return nil, err
	}
	selector, err := Selector("placement.selector", p.Selector)
	if err != nil {
		return nil, err
	}
	out := make([]Verdict, 0, len(clusters))
	for _, c := range clusters {
		v := Verdict{Cluster: c.Name}
		if _, v.Chosen = slices.BinarySearch(chosen, c.Name); !v.Chosen {
			v.Reason, v.Detail = refusal(p, selector, c, slices.Contains(present, c.Name))
			if v.Reason == "" {
				v.Reason = BeyondCount
			}
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Verdict) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out, nil
}

// refusal is why a placement does not allow a cluster; "" where it does.
func refusal(p events.FleetPlacement, selector labels.Selector, c Cluster, present bool) (reason, detail string) {
	switch {
	case p.Selector == "" && len(p.Clusters) == 0: // a field that was forgotten must not mean the whole fleet
		return NotNamed, ""
	case len(p.Clusters) > 0 && !named(p.Clusters, c.Name):
		return NotNamed, ""
	case named(p.Except, c.Name):
		return Excepted, ""
	case !selector.Matches(labels.Set(c.Labels)):
		return LabelsDiffer, ""
	case !present:
		if taint := untolerated(p.Tolerations, c.Taints); taint != "" {
			return NotTolerated, taint
		}
	}
	return "", ""
}
