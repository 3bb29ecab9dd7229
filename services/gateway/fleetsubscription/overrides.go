package fleetsubscription

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// Names of rules of overrides.
const (
	RuleOverrideChooses  = "override-chooses"
	RuleOverrideChanges  = "override-changes"
	RuleOverrideConflict = "override-conflict"
)

// MaxOverrides bounds what each cluster is held against, and configurations that are kept: who needs more has another
// operator for each cluster.
const MaxOverrides = 50

// checkOverrides also refuses what is a conflict on clusters as they are now. That labels make one of it later the
// fleet controller sees.
func checkOverrides(v *rule.Violations, spec events.FleetSubscriptionSpec, clusters []placement.Cluster) {
	if !checkItems(v, "/overrides", len(spec.Overrides), MaxOverrides) {
		return
	}
	names := map[string]bool{}
	for i, o := range spec.Overrides {
		at := fmt.Sprintf("/overrides/%d", i)
		v.DNSLabelName(at+"/name", o.Name)
		if names[o.Name] {
			v.Addf(at+"/name", rule.Unique, "two overrides have the name %q", o.Name)
		}
		names[o.Name] = true
		if len(o.Clusters) == 0 && o.Selector == "" {
			v.Addf(at, RuleOverrideChooses, "override %q chooses no cluster: give clusters or selector", o.Name)
		}
		approvalpolicy.CheckPatterns(v, at+"/clusters", o.Clusters)
		checkSelector(v, at+"/selector", o.Selector)
		if o.Config == "" && o.Approval == "" {
			v.Addf(at, RuleOverrideChanges, "override %q changes nothing: give config or approval", o.Name)
		}
		if o.Approval != "" {
			v.OneOf(at+"/approval", o.Approval, subscription.Automatic, subscription.Manual)
		}
	}
	if v.Err() == nil { // what cannot be read has no conflicts
		checkConflicts(v, spec, clusters)
	}
}

// checkConflicts names each set of overrides that are in conflict once, with a cluster on which they are.
func checkConflicts(v *rule.Violations, spec events.FleetSubscriptionSpec, clusters []placement.Cluster) {
	rules, err := override.Read(spec)
	if err != nil { // they were checked before
		v.Addf("/overrides", RuleSelector, "%s", err)
		return
	}
	verdicts, err := placement.Explain(spec.Placement, clusters, nil)
	if err != nil {
		v.Addf("/placement", RuleSelector, "%s", err)
		return
	}
	labels := make(map[string]placement.Cluster, len(clusters))
	for _, c := range clusters {
		labels[c.Name] = c
	}
	on := map[string][]string{} // clusters by the names of the overrides
	for _, d := range verdicts {
		// Who is kept away by a taint or a number may be chosen at any time.
		if !d.Chosen && d.Reason != placement.BeyondCount && d.Reason != placement.NotTolerated {
			continue
		}
		if c := rules.For(labels[d.Cluster]); len(c.Conflict) > 0 {
			on[c.Key()] = append(on[c.Key()], d.Cluster)
		}
	}
	for i, o := range spec.Overrides { // two that choose the same are in conflict wherever they are the most particular
		for _, other := range spec.Overrides[:i] {
			names := []string{other.Name, o.Name}
			slices.Sort(names)
			if !told(on, names) && o.Selector == other.Selector && slices.Equal(o.Clusters, other.Clusters) &&
				(o.MergedConfig != other.MergedConfig || approvalOf(spec, o) != approvalOf(spec, other)) {
				on[strings.Join(names, ",")] = nil
			}
		}
	}
	reportConflicts(v, spec, on)
}

// told says whether a conflict of both is known already.
func told(on map[string][]string, names []string) bool {
	for key := range on {
		all := strings.Split(key, ",")
		if slices.Contains(all, names[0]) && slices.Contains(all, names[1]) {
			return true
		}
	}
	return false
}

func approvalOf(spec events.FleetSubscriptionSpec, o events.FleetOverride) string {
	if o.Approval == "" {
		return spec.Approval
	}
	return o.Approval
}

// reportConflicts names a conflict at the last of its overrides.
func reportConflicts(v *rule.Violations, spec events.FleetSubscriptionSpec, on map[string][]string) {
	for i, o := range spec.Overrides {
		for _, key := range slices.Sorted(maps.Keys(on)) {
			names := strings.Split(key, ",")
			last := slices.IndexFunc(spec.Overrides[i+1:], func(e events.FleetOverride) bool {
				return slices.Contains(names, e.Name)
			}) < 0
			if !slices.Contains(names, o.Name) || !last {
				continue
			}
			where := "every cluster that they choose"
			if clusters := on[key]; len(clusters) > 0 {
				where = "cluster " + clusters[0]
				if more := len(clusters) - 1; more > 0 {
					where += fmt.Sprintf(" and %d more", more)
				}
			}
			v.Addf(fmt.Sprintf("/overrides/%d", i), RuleOverrideConflict,
				"overrides %s are as particular for %s, and differ: name the cluster in one of them, or give one of them "+
					"more requirements", strings.Join(names, " and "), where)
		}
	}
}
