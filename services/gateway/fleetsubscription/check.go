package fleetsubscription

import (
	"fmt"
	"reflect"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// Names of rules that only fleet subscriptions have.
const (
	RuleChooses  = "placement-chooses"
	RuleSelector = "selector"
	RuleAmount   = "number-or-percentage"
	// RuleWaveOpen is of the promotion of a wave.
	RuleWaveOpen = "wave-open"
	// RuleNewestRollout is of what is taken back.
	RuleNewestRollout = "newest-rollout"
)

// MaxFleetSubscriptions bounds those of a tenant: whatever happens to a cluster has the fleet controller look at all of
// them.
const MaxFleetSubscriptions = 500

// Bounds of one fleet subscription.
const (
	// MaxWaves is more than anybody watches.
	MaxWaves = 20
	// MaxSelector bounds the text of a selector: a longer one is a label that is missing.
	MaxSelector = 1024
	// MaxTolerations and MaxPreferences bound what each cluster is compared with.
	MaxTolerations = 50
	MaxPreferences = 20
	// MaxWeight keeps sums of weights within what numbers hold, in both directions.
	MaxWeight = 1000
	// MaxCount bounds numbers of clusters: no hub has more.
	MaxCount = 100_000
	// MaxSoakSeconds is 30 days: who wants to wait longer promotes the wave.
	MaxSoakSeconds = 30 * 24 * 3600
	// MinDeadlineSeconds leaves a cluster the time to hear of a change; MaxDeadlineSeconds is a week.
	MinDeadlineSeconds = 60
	MaxDeadlineSeconds = 7 * 24 * 3600
)

// check collects everything that is wrong with a fleet subscription. Places are JSON pointers into the request. What
// passes the fleet controller can read.
func check(s State, spec events.FleetSubscriptionSpec, clusters []placement.Cluster) error {
	var v rule.Violations
	v.DNSSubdomainName("path.name", s.Name)
	v.DNSLabelName("/package", spec.Package)
	if s.Set && spec.Package != s.Spec.Package {
		v.Addf("/package", rule.NotChangeable,
			"the package of a fleet subscription cannot change from %q to %q: delete it and set another", s.Spec.Package,
			spec.Package)
	}
	v.DNSSubdomainName("/catalog", spec.Catalog)
	if spec.Channel != "" {
		v.TokenName("/channel", spec.Channel)
	}
	approvalpolicy.CheckVersions(&v, spec.Versions)
	v.OpenNamespace("/namespace", spec.Namespace)
	v.OneOf("/approval", spec.Approval, subscription.Automatic, subscription.Manual)
	v.OneOf("/deletionPolicy", spec.DeletionPolicy, events.DeletionPolicyOrphan, events.DeletionPolicyKeepCRDs,
		events.DeletionPolicyRemove)
	checkGroup(&v, spec.OperatorGroup)
	checkPlacement(&v, spec.Placement)
	checkStrategy(&v, spec.Strategy)
	checkOverrides(&v, spec, clusters)
	return v.Err()
}

func checkGroup(v *rule.Violations, g events.FleetOperatorGroup) {
	err := operatorgroup.Check(g.Spec)
	if g.Name != "" || !reflect.DeepEqual(g.Spec, events.OperatorGroupSpec{}) {
		v.DNSSubdomainName("/operatorGroup/name", g.Name)
	}
	v.AddAt("/operatorGroup/spec", err)
}

func checkPlacement(v *rule.Violations, p events.FleetPlacement) {
	if len(p.Clusters) == 0 && p.Selector == "" {
		v.Addf("/placement", RuleChooses, "the placement chooses no cluster: give clusters or selector, such as "+
			`clusters: ["*"] for all of them`)
	}
	approvalpolicy.CheckPatterns(v, "/placement/clusters", p.Clusters)
	approvalpolicy.CheckPatterns(v, "/placement/except", p.Except)
	checkSelector(v, "/placement/selector", p.Selector)
	if checkItems(v, "/placement/tolerations", len(p.Tolerations), MaxTolerations) {
		for i, t := range p.Tolerations {
			v.Labels(fmt.Sprintf("/placement/tolerations/%d", i), map[string]string{t.Key: t.Value})
		}
	}
	checkRange(v, "/placement/count", int64(p.Count), 0, MaxCount)
	if p.SpreadBy != "" {
		v.Labels("/placement/spreadBy", map[string]string{p.SpreadBy: ""})
	}
	if checkItems(v, "/placement/prefer", len(p.Prefer), MaxPreferences) {
		for i, one := range p.Prefer {
			at := fmt.Sprintf("/placement/prefer/%d", i)
			if one.Selector == "" {
				v.Addf(at+"/selector", rule.Required, "%s/selector must not be empty", at)
			}
			checkSelector(v, at+"/selector", one.Selector)
			checkRange(v, at+"/weight", int64(one.Weight), -MaxWeight, MaxWeight)
		}
	}
}

func checkStrategy(v *rule.Violations, s events.RolloutStrategy) {
	checkRange(v, "/strategy/maxConcurrent", int64(s.MaxConcurrent), 0, MaxCount)
	checkAmount(v, "/strategy/maxFailures", s.MaxFailures)
	checkAmount(v, "/strategy/maxUnreachable", s.MaxUnreachable)
	if s.DeadlineSeconds != 0 {
		checkRange(v, "/strategy/deadlineSeconds", s.DeadlineSeconds, MinDeadlineSeconds, MaxDeadlineSeconds)
	}
	checkWindows(v, s.Windows)
	if !checkItems(v, "/strategy/waves", len(s.Waves), MaxWaves) {
		return
	}
	names := map[string]bool{placement.RestName: true}
	for i, w := range s.Waves {
		at := fmt.Sprintf("/strategy/waves/%d", i)
		v.DNSLabelName(at+"/name", w.Name)
		switch {
		case w.Name == placement.RestName:
			v.Addf(at+"/name", rule.Unique, "wave %q is the one of the clusters that no wave takes: choose another name",
				w.Name)
		case names[w.Name]:
			v.Addf(at+"/name", rule.Unique, "two waves have the name %q", w.Name)
		}
		names[w.Name] = true
		checkSelector(v, at+"/selector", w.Selector)
		checkAmount(v, at+"/size", w.Size)
		checkAmount(v, at+"/maxFailures", w.MaxFailures)
		checkRange(v, at+"/soakSeconds", w.SoakSeconds, 0, MaxSoakSeconds)
		v.OneOf(at+"/promotion", w.Promotion, events.PromotionAutomatic, events.PromotionManual)
		checkGates(v, at+"/gates", w.Gates)
	}
}

// checkItems says whether a list is short enough to look at what is in it.
func checkItems(v *rule.Violations, at string, n, limit int) bool {
	if n > limit {
		v.Addf(at, rule.MaxItems, "%s has %d entries, %d are allowed", at, n, limit)
	}
	return n <= limit
}

func checkRange(v *rule.Violations, at string, n, from, to int64) {
	if n < from || n > to {
		v.Addf(at, approvalpolicy.RuleBounds, "%s is %d: want %d to %d", at, n, from, to)
	}
}

func checkSelector(v *rule.Violations, at, text string) {
	if len(text) > MaxSelector {
		v.Addf(at, rule.MaxLength, "%s has %d characters, %d are allowed", at, len(text), MaxSelector)
	} else if _, err := placement.Selector(at, text); err != nil {
		v.Addf(at, RuleSelector, "%s", err)
	}
}

// checkAmount takes what placement reads, whatever the number of clusters.
func checkAmount(v *rule.Violations, at, text string) {
	if text == "" {
		return
	}
	if _, err := placement.Size(at, text, 1); err != nil {
		v.Addf(at, RuleAmount, "%s", err)
	}
}
