package approvalpolicy

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/installplan/window"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Names of rules that only policies have.
const (
	RulePattern   = "name-or-prefix"
	RuleVersion   = "semantic-version"
	RuleRange     = "version-range"
	RuleWindow    = "maintenance-window"
	RuleBounds    = "between"
	RuleShadowed  = "reachable"
	RuleSaysThing = "says-something"
)

// MaxPolicies bounds the policies of a tenant: each decision reads them all, and who has to approve something reads
// those that choose it.
const MaxPolicies = 100

// Bounds of one policy.
const (
	// MaxPatterns bounds each list of a selector: who means more names means a label or a prefix.
	MaxPatterns = 100
	// MaxRules is one for each kind of change.
	MaxRules = 5
	// MaxWindows bounds the windows of a policy: one for each day of two weeks.
	MaxWindows = 14
	// MaxApprovers bounds how many people have to agree: more are seldom awake at once.
	MaxApprovers = 5
	// MinApprovalSeconds leaves an executor the time to hear of an approval.
	MinApprovalSeconds = 300
)

// maxApprovalSeconds is what an approver may ask for, too.
const maxApprovalSeconds = int64(installplan.MaxApprovalTTL / time.Second)

// Kinds of change that a rule may name.
const (
	changeInstall = "Install"
	changePatch   = "Patch"
	changeMinor   = "Minor"
	changeMajor   = "Major"
	changeAny     = "Any"
)

// rePattern is a name of a cluster, namespace, package or catalog (namespace/name for one of a namespace), or the
// beginning of one followed by "*".
var rePattern = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_./]*)?\*?$`)

// maxPattern is the length of namespace/name.
const maxPattern = rule.MaxLabel + 1 + rule.MaxSubdomain

// check collects everything that is wrong with a policy. Places are JSON pointers into the request.
func check(name string, s events.ApprovalPolicySpec) error {
	var v rule.Violations
	v.DNSSubdomainName("path.name", name)
	checkSelector(&v, s.Selector)
	CheckVersions(&v, s.Versions)
	checkRules(&v, s.Rules)
	v.OneOf("/permissionGrowth", s.PermissionGrowth, GrowthManual, GrowthIgnore)
	checkWindows(&v, s.Windows)
	if s.Approvers < 0 || s.Approvers > MaxApprovers {
		v.Addf("/approvers", RuleBounds, "%d approvers are wanted: want 1 to %d", s.Approvers, MaxApprovers)
	}
	if n := s.ApprovalSeconds; n != 0 && (n < MinApprovalSeconds || n > maxApprovalSeconds) {
		v.Addf("/approvalSeconds", RuleBounds, "approvals would hold for %d seconds: want %d to %d, which is 30 days",
			n, MinApprovalSeconds, maxApprovalSeconds)
	}
	if saysNothing(s) {
		v.Addf("/permissionGrowth", RuleSaysThing,
			"the policy says nothing: give versions, rules, windows, approvers or approvalSeconds, or let "+
				"permissionGrowth be %s", GrowthManual)
	}
	return v.Err()
}

func saysNothing(s events.ApprovalPolicySpec) bool {
	return s.Versions == (events.PolicyVersions{}) && len(s.Rules)+len(s.Windows)+s.Approvers == 0 &&
		s.ApprovalSeconds == 0 && s.PermissionGrowth == GrowthIgnore
}

func checkSelector(v *rule.Violations, s events.PolicySelector) {
	for _, l := range []struct {
		field string
		list  []string
	}{{"clusters", s.Clusters}, {"namespaces", s.Namespaces}, {"packages", s.Packages}, {"catalogs", s.Catalogs}} {
		CheckPatterns(v, "/selector/"+l.field, l.list)
	}
	v.Labels("/selector/clusterLabels", s.ClusterLabels)
}

// CheckPatterns adds what is wrong with a list of names, or beginnings of names followed by "*".
func CheckPatterns(v *rule.Violations, at string, list []string) {
	if len(list) > MaxPatterns {
		v.Addf(at, rule.MaxItems, "%s has %d entries, %d are allowed", at, len(list), MaxPatterns)
		return
	}
	for i, p := range list {
		checkPattern(v, fmt.Sprintf("%s/%d", at, i), p)
	}
}

func checkPattern(v *rule.Violations, at, p string) {
	switch {
	case p == "":
		v.Addf(at, rule.Required, "%s must not be empty", at)
	case len(p) > maxPattern:
		v.Addf(at, rule.MaxLength, "%s has %d characters, %d are allowed", at, len(p), maxPattern)
	case !rePattern.MatchString(p):
		v.Addf(at, RulePattern, "%s is %q: want a name, or the beginning of names followed by '*'", at, p)
	}
}

// CheckVersions adds what is wrong with the versions at /versions of an input.
func CheckVersions(v *rule.Violations, s events.PolicyVersions) {
	if s.Pin != "" {
		v.TokenName("/versions/pin", s.Pin)
	}
	if s.Range != "" {
		if len(s.Range) > rule.MaxToken {
			v.Addf("/versions/range", rule.MaxLength, "/versions/range has %d characters, %d are allowed", len(s.Range),
				rule.MaxToken)
		} else if _, err := catalog.ParseRange(s.Range); err != nil {
			v.Addf("/versions/range", RuleRange, "/versions/range is %q: want a range such as \">=1.4.0 <2.0.0\": %v",
				s.Range, err)
		}
	}
	if s.Ceiling != "" {
		if _, err := semver.Parse(s.Ceiling); err != nil || len(s.Ceiling) > rule.MaxToken {
			v.Addf("/versions/ceiling", RuleVersion, "/versions/ceiling is %q: want a version such as 1.4.2", s.Ceiling)
		}
	}
}

func checkRules(v *rule.Violations, rules []events.ApprovalRule) {
	if len(rules) > MaxRules {
		v.Addf("/rules", rule.MaxItems, "/rules has %d entries, %d are allowed", len(rules), MaxRules)
		return
	}
	seen := map[string]bool{}
	for i, r := range rules {
		at := fmt.Sprintf("/rules/%d", i)
		v.OneOf(at+"/change", r.Change, changeInstall, changePatch, changeMinor, changeMajor, changeAny)
		v.OneOf(at+"/mode", r.Mode, installplan.Automatic, installplan.Manual)
		if seen[r.Change] || seen[changeAny] {
			v.Addf(at+"/change", RuleShadowed,
				"the rule for %s comes after one that fits every change that it does: the first that fits counts",
				r.Change)
		}
		seen[r.Change] = true
	}
}

func checkWindows(v *rule.Violations, windows []events.Window) {
	if len(windows) > MaxWindows {
		v.Addf("/windows", rule.MaxItems, "/windows has %d entries, %d are allowed", len(windows), MaxWindows)
		return
	}
	for i, w := range windows {
		for _, p := range window.Check(w) {
			v.Addf(fmt.Sprintf("/windows/%d/%s", i, p.Field), RuleWindow, "%s", strings.TrimSpace(p.Text))
		}
	}
}
