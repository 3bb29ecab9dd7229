// Package eventtext renders events as text: one sentence for each type, without the envelope.
package eventtext

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// subjectColumns is the width of the column of subjects: a cluster, a namespace and a ClusterServiceVersion of
	// usual length. A longer subject shifts only its own line.
	subjectColumns = 34
	// fewestColumns is the narrowest terminal for which lines are wrapped at words; a narrower terminal breaks them
	// itself.
	fewestColumns = 80
)

// Line writes one event: time, position, subject, sentence. The sentence is wrapped at the given number of columns;
// with 0, for programs, it is one line.
func Line(w io.Writer, e model.Event, columns int) error {
	lead := fmt.Sprintf("%s  %-7s %-*s ", e.Time.UTC().Format(time.TimeOnly), e.Sequence, subjectColumns,
		plain.Cell(e.Subject))
	if columns < fewestColumns {
		_, err := io.WriteString(w, lead+plain.Cell(Sentence(e))+"\n")
		return err
	}
	below := fmt.Sprintf("%*s", len(time.TimeOnly)+2+8+subjectColumns+1, "") //nolint:mnd // the widths of lead
	var b strings.Builder
	line := lead
	for i, word := range strings.Fields(plain.Cell(Sentence(e))) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			b.WriteString(line + "\n")
			line = below + word
		default:
			line += " " + word
		}
	}
	_, err := io.WriteString(w, b.String()+line+"\n")
	return err
}

// Sentence describes an event. A type that this version does not know is shown by its name and data.
func Sentence(e model.Event) string {
	p, err := events.Decode(events.Envelope{ID: e.ID, Type: events.Type(e.Type), Data: e.Data})
	if err != nil {
		return e.Type + " " + string(e.Data)
	}
	if s := fixedSentence(p.EventType()); s != "" {
		return s
	}
	if s := sentence(p); s != "" {
		return s
	}
	d, _ := events.Lookup(p.EventType()) // a new type, until somebody writes a sentence
	return d.Doc
}

// fixedSentence is the sentence of an event whose data adds nothing to its type, "" for others.
func fixedSentence(t events.Type) string {
	return map[events.Type]string{
		"cluster.registered.v1":          "cluster registered",
		"cluster.credential-replaced.v1": "kubeconfig replaced",
		"cluster.cordoned.v1":            "cluster cordoned: no new install plans are made for it",
		"cluster.uncordoned.v1":          "cluster uncordoned: install plans are made for it again",
		"cluster.removed.v1":             "cluster removed; installed operators stay",
		"cluster.join-accepted.v1":       "agent accepted; the one before is let in no more",
		"cluster.join-rejected.v1":       "request to become the agent rejected",
		"cluster.agent-revoked.v1":       "agent and join token revoked: nobody is let in",
		"cluster.agent-cloned.v1":        "two live processes have the credentials of the agent: neither is let in",
		"catalog.refresh-requested.v1":   "a poll of the source was requested",
		"catalog.removed.v1":             "catalog removed; installed operators stay",
		"operatorgroup.deleted.v1":       "operator group deleted",
		"catalogsecret.deleted.v1":       "credential erased",
		"subscription.deleted.v1":        "subscription deleted; the installed operator stays",
		"subscription.removed.v1":        "taken back by its fleet subscription, and what it installed is uninstalled",
		"webhook.deleted.v1":             "webhook deleted; what waited is not sent",
		"policy.approval-deleted.v1":     "approval policy deleted; approvals of plans under it are void",
		"fleet.subscription-deleted.v1":  "fleet subscription deleted; what is on its clusters stays",
		"fleet.rollout-paused.v1":        "rollout paused: the change is asked of no further cluster",
		"fleet.rollout-resumed.v1":       "rollout resumed; failures until now are forgiven",
		"fleet.rollout-aborted.v1":       "rollout aborted; nothing is undone",
	}[t]
}

// sentence describes an event with its data, "" where there is nothing to add to its type.
func sentence(p events.Payload) string {
	switch v := p.(type) {
	case events.ClusterObserved, events.ClusterFactsObserved:
		return clusterSeen(v)
	case events.ClusterConfigured, events.ClusterCredentialRotated, events.ClusterLabelsChanged,
		events.ClusterTaintsChanged:
		return clusterHas(v)
	case events.ClusterJoinTokenIssued, events.ClusterJoinRequested:
		return joinSentence(v)
	case events.CatalogAdded, events.CatalogChanged, events.CatalogLoadFailed, events.CatalogRevisionPublished,
		events.CatalogBundlesFetched, events.CatalogSecretSet, events.CatalogHealthSet:
		return catalogSentence(v)
	case events.SubscriptionCreated, events.SubscriptionGenerated, events.SubscriptionChanged,
		events.SubscriptionRollbackRequested, events.SubscriptionPlaced, events.SubscriptionReleased,
		events.ResolutionFailed, events.ResolutionSucceeded:
		return subscriptionSentence(v)
	case events.InstallPlanProposed, events.InstallPlanSuperseded, events.InstallPlanApproved,
		events.InstallPlanApprovalGiven, events.InstallPlanRejected,
		events.InstallPlanObstaclesSettled, events.InstallPlanCommented,
		events.InstallPlanStarted, events.InstallPlanStartUnauthorised, events.InstallPlanBlocked,
		events.InstallPlanFinished, events.InstallPlanFailed:
		return planSentence(v)
	case events.OperatorGroupCreated:
		return "operator group created for " + targets(v.Spec)
	case events.OperatorGroupChanged:
		return "operator group changed: now for " + targets(v.Spec)
	case events.SubscriptionMetadataChanged, events.OperatorGroupMetadataChanged, events.CatalogMetadataChanged,
		events.ApprovalPolicyMetadataChanged, events.InstallPlanMetadataChanged:
		return metadataSentence(v)
	case events.OperatorGroupObserved:
		return groupObserved(v)
	case events.WebhookSet, events.WebhookSecretRotated, events.WebhookReplayRequested, events.WebhookDisabled:
		return webhookSentence(v)
	case events.CSVPhaseChanged, events.CSVRemoved, events.CSVFlapping, events.CSVDrifted, events.CSVDriftEnded,
		events.CSVReadinessChanged, events.OperatorConditionChanged, events.OperatorConditionOverridden,
		events.CSVRemovalRequested, events.CSVRemovalDirected, events.CSVRemovalStarted, events.CSVRemovalBlocked,
		events.CSVRemovalRefused:
		return csvSentence(v)
	case events.ApprovalPolicySet:
		return policySet(v.Spec)
	case events.TokenCreated, events.TokenRotated, events.BreakGlassUsed:
		return tokenSentence(v)
	case events.DecisionsCollected, events.CatalogsCollected, events.DriftsCollected:
		return collected(v)
	case events.EffectsStopped:
		return "plans are stopped (" + v.Reason + ")"
	case events.RoleDefined, events.RoleDeleted, events.RoleBindingDefined, events.RoleBindingDeleted:
		return roleSentence(v)
	case events.QuotaSet:
		return quotaSentence(v)
	case events.EffectsResumed:
		return "plans are resumed; a person accepted epoch " + strconv.FormatInt(v.Epoch, 10)
	case events.FleetBudgetSet, events.FleetBudgetAllowed, events.FleetBudgetExhausted:
		return fleetBudgetSentence(v)
	default:
		return fleetSentence(p)
	}
}

// collected says what was removed because nobody needs it any more.
func collected(p events.Payload) string {
	switch v := p.(type) {
	case events.DecisionsCollected:
		return removed(v.Removed)
	case events.CatalogsCollected:
		return removed(v.Removed)
	case events.DriftsCollected:
		return removed(v.Removed)
	default:
		return ""
	}
}

// removed tells what a collector removed, and by which policy.
func removed(r events.Removed) string {
	s := fmt.Sprintf("%s removed that nothing needed any more: %d, stored %s to %s",
		strings.ReplaceAll(r.What, "-", " "), r.Count, r.Oldest.UTC().Format(time.DateOnly),
		r.Newest.UTC().Format(time.DateOnly))
	if r.RetentionDays > 0 {
		s += fmt.Sprintf(" (retention %d days)", r.RetentionDays)
	}
	return s
}

// policySet lists what a policy decides.
func policySet(s events.ApprovalPolicySpec) string {
	var rules []string
	for _, r := range []struct {
		is   bool
		word string
	}{
		{s.Versions != (events.PolicyVersions{}), "versions"},
		{len(s.Rules) > 0, "approval modes"},
		{s.PermissionGrowth == "Manual", "growing permissions"},
		{len(s.Windows) > 0, plural(len(s.Windows), "maintenance window")},
		{s.Approvers > 1, plural(s.Approvers, "approver")},
		{s.ApprovalSeconds > 0, "how long approvals hold"},
	} {
		if r.is {
			rules = append(rules, r.word)
		}
	}
	return "approval policy set: " + strings.Join(rules, ", ")
}

func tokenSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.TokenCreated:
		if v.BreakGlass {
			return "break-glass token made or replaced; it has no end"
		}
		s := "token of " + v.Holder + " made or replaced, role " + v.Role
		if v.Kind != "" {
			s += ", for a program"
		}
		if v.Ends.IsZero() {
			return s + ", without an end"
		}
		return s + ", ends at " + v.Ends.UTC().Format(time.RFC3339)
	case events.BreakGlassUsed:
		return "break-glass token in use until " + v.Ends.UTC().Format(time.RFC3339)
	case events.TokenRotated:
		return "token rotated, ends at " + v.Ends.UTC().Format(time.RFC3339) + "; the secret before ends at " +
			v.PreviousEnds.UTC().Format(time.RFC3339)
	default:
		return ""
	}
}

func quotaSentence(v events.QuotaSet) string {
	if len(v.Bounds) == 0 {
		return "the tenant has no quota any more"
	}
	var parts []string
	for _, b := range v.Bounds {
		parts = append(parts, b.Resource+" "+strconv.FormatInt(b.Hard, 10))
	}
	return "quota of the tenant set, at most: " + strings.Join(parts, ", ")
}

func clusterObserved(v events.ClusterObserved) string {
	s := "cluster is " + v.State
	if v.Reason != "" {
		s += " (" + v.Reason + ")"
	}
	if v.KubernetesVersion != "" {
		s += ", Kubernetes " + v.KubernetesVersion
	}
	if v.TokenAuth != "" {
		s += ", tokens of " + v.TokenAuth
	}
	return s
}

func targets(s events.OperatorGroupSpec) string {
	switch {
	case s.Global():
		return "all namespaces"
	case len(s.TargetNamespaces) == 0:
		return "the namespaces that its selector chooses"
	}
	return strings.Join(s.TargetNamespaces, ", ")
}

func catalogSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.CatalogAdded:
		return "catalog added from a " + v.SourceType + disabled(v.Disabled)
	case events.CatalogChanged:
		return "catalog changed: from a " + v.SourceType + ", priority " + strconv.Itoa(int(v.Priority)) +
			disabled(v.Disabled)
	case events.CatalogBundlesFetched:
		return fetched(v)
	case events.CatalogSecretSet:
		return "credential of kind " + v.Kind + " given"
	case events.CatalogHealthSet:
		return "effect of unhealthy catalogs: " + v.Mode
	case events.CatalogLoadFailed:
		return fmt.Sprintf("the source could not be loaded: %s, %s (%s)", v.Reason, plural(v.Findings, "finding"),
			v.Rule)
	case events.CatalogRevisionPublished:
		return revision(v)
	default:
		return ""
	}
}

func disabled(yes bool) string {
	if yes {
		return ", not offered"
	}
	return ""
}

func fetched(v events.CatalogBundlesFetched) string {
	there := 0
	for _, b := range v.Bundles {
		if b.Content != "" {
			there++
		}
	}
	s := plural(there, "bundle image") + " fetched"
	if missing := len(v.Bundles) - there; missing > 0 {
		s += ", " + strconv.Itoa(missing) + " not"
	}
	return s
}

func revision(v events.CatalogRevisionPublished) string {
	s := fmt.Sprintf("revision %s in service: %s, %s", digest.Digest(v.Revision).Short(), plural(v.Packages, "package"),
		plural(v.Bundles, "bundle"))
	if v.Previous == "" {
		return s
	}
	var moves []string
	for _, c := range v.Changes {
		if c.Change != "changed" {
			moves = append(moves, c.Package+" "+c.Change)
		}
		for _, h := range c.Heads {
			moves = append(moves, fmt.Sprintf("%s %s: %s → %s", c.Package, h.Channel, or(h.From, "new"),
				or(h.To, "gone")))
		}
	}
	if len(moves) > 0 {
		s += "; " + strings.Join(moves, ", ")
	}
	return s
}

func subscriptionSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.SubscriptionCreated:
		return "subscribed to " + intent(v.Spec)
	case events.SubscriptionGenerated:
		return "subscribed as a dependency to " + intent(v.Spec)
	case events.SubscriptionChanged:
		return "subscription changed: now to " + intent(v.Spec)
	case events.SubscriptionRollbackRequested:
		return "rollback requested from " + v.From + " to " + v.To
	case events.SubscriptionPlaced:
		return fmt.Sprintf("rollout %s/%d asks for %s; it goes to %s", v.Owner, v.Rollout, intent(v.Spec), v.Target.CSV)
	case events.SubscriptionReleased:
		if v.Kept != "" {
			return "let go by its fleet subscription, and not uninstalled (" + v.Kept + "): other operators need it"
		}
		return "let go by its fleet subscription; it stays as it is until somebody changes it"
	case events.ResolutionFailed:
		return "cannot be resolved: " + v.Reason
	case events.ResolutionSucceeded:
		if v.Outcome == "AtLatestKnown" {
			return v.CSV + " is the latest known version"
		}
		return "resolved to " + v.CSV
	default:
		return ""
	}
}

func intent(s events.SubscriptionSpec) string {
	t := s.Package
	if s.Channel != "" {
		t += " channel " + s.Channel
	}
	return t + " of " + s.Catalog + ", approval " + or(s.Approval, "Automatic")
}

func chosen(list []events.PlanChoice) string {
	out := make([]string, 0, len(list))
	for _, c := range list {
		out = append(out, strings.ToLower(c.Choice)+" "+c.Object)
	}
	return strings.Join(out, ", ")
}

func planSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.InstallPlanProposed:
		return proposed(v)
	case events.InstallPlanSuperseded:
		if v.Reason == events.SupersededRendering {
			return "plan superseded before it started: this release renders its bundles to other objects"
		}
		return "plan superseded before it started"
	case events.InstallPlanApproved:
		return "plan " + digest.Digest(v.Digest).Short() + " approved until " +
			v.Expires.UTC().Format("2006-01-02 15:04 MST")
	case events.InstallPlanApprovalGiven:
		return "one of several people approved plan " + digest.Digest(v.Digest).Short() + " until " +
			v.Expires.UTC().Format("2006-01-02 15:04 MST")
	case events.InstallPlanObstaclesSettled:
		return "choices for plan " + digest.Digest(v.Digest).Short() + ": " + chosen(v.Choices)
	case events.InstallPlanCommented:
		if v.About != "" {
			return "reason of the " + strings.ToLower(v.About) + " given"
		}
		return "commented"
	case events.InstallPlanRejected:
		return "plan " + digest.Digest(v.Digest).Short() + " rejected"
	case events.InstallPlanStarted:
		return "started, with " + plural(v.Steps, "step")
	case events.InstallPlanStartUnauthorised:
		return fmt.Sprintf("NOT started: the executor of epoch %d says that it began without authority (%s)", v.Epoch,
			v.Reason)
	case events.InstallPlanBlocked:
		return "waits: " + v.Reason + " (" + v.Class + ")"
	case events.InstallPlanFinished:
		return "finished, all " + plural(v.Steps, "step") + " done"
	case events.InstallPlanFailed:
		return fmt.Sprintf("failed permanently at step %d: %s", v.Step, v.Reason)
	default:
		return ""
	}
}

func proposed(v events.InstallPlanProposed) string {
	parts := make([]string, len(v.Bundles))
	for i, b := range v.Bundles {
		parts[i] = b.CSV + " (" + Why(model.PlannedBundle(b)) + ")"
	}
	s := fmt.Sprintf("plan with %s: %s", plural(v.Steps, "step"), strings.Join(parts, ", "))
	if v.Approval == "Manual" {
		s += "; waits for approval"
	}
	return s
}

// Why is the reason why a plan installs a bundle.
func Why(b model.PlannedBundle) string {
	switch b.Reason {
	case "Subscribed", "ChannelHead":
		return "head of channel " + b.Channel
	case "NextStep":
		return "follows " + or(b.Replaces, "the installed version")
	case "SkipRange":
		return "may follow " + or(b.Replaces, "the installed version") + " by its skip range"
	case "RequiredPackage":
		return "package required by " + b.RequiredBy
	case "RequiredAPI":
		return "API required by " + b.RequiredBy
	case "Rollback":
		return "rollback"
	case "StartingCSV":
		return "starting version of the subscription"
	default:
		return b.Reason
	}
}

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func condition(c events.OperatorConditionChanged) string {
	t := "upgradeable"
	if !c.Upgradeable {
		t = "not upgradeable"
	}
	if c.Overridden {
		t += ", overridden by an administrator"
	}
	if c.Reason != "" {
		t += " (" + c.Reason + ")"
	}
	return t
}

func overridden(v events.OperatorConditionOverridden) string {
	parts := make([]string, len(v.Overrides))
	for i, o := range v.Overrides {
		parts[i] = o.String()
	}
	return "overridden: " + strings.Join(parts, ", ")
}

func groupObserved(g events.OperatorGroupObserved) string {
	t := "serves " + strings.Join(g.Targets, ", ")
	if slices.Contains(g.Targets, "") {
		t = "serves all namespaces"
	}
	if len(g.Targets) == 0 {
		t = "serves no namespace"
	}
	if len(g.ProvidedAPIs) > 0 {
		t += ", provides " + strings.Join(g.ProvidedAPIs, ", ")
	}
	if len(g.Conditions) > 0 {
		t += "; " + strings.Join(g.Conditions, ", ")
	}
	return t
}

// clusterHas tells labels or taints.
func clusterHas(p events.Payload) string {
	var what string
	var now map[string]string
	switch v := p.(type) {
	case events.ClusterConfigured:
		s := v.Settings.WithDefaults()
		return fmt.Sprintf("cluster configured: mirror %s, drift %s, optional %s, events %s, copied CSVs %s", s.Mirror,
			s.Drift, s.Optional, s.Events, s.CopiedCSVs)
	case events.ClusterCredentialRotated:
		return "token of the hub rotated; the new one ends at " + v.Expires.UTC().Format(time.RFC3339)
	case events.ClusterLabelsChanged:
		what, now = "labels", v.Labels
	case events.ClusterTaintsChanged:
		what, now = "taints", v.Taints
	}
	if len(now) == 0 {
		return "cluster has no " + what
	}
	return "cluster has the " + what + " " + pairs(now)
}

func pairs(labels map[string]string) string {
	out := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return strings.Join(out, ", ")
}

// metadataSentence never shows annotations: the log holds only their commitment.
func metadataSentence(p events.Payload) string {
	var m events.Metadata
	switch v := p.(type) {
	case events.SubscriptionMetadataChanged:
		m = v.Metadata
	case events.OperatorGroupMetadataChanged:
		m = v.Metadata
	case events.CatalogMetadataChanged:
		m = v.Metadata
	case events.ApprovalPolicyMetadataChanged:
		m = v.Metadata
	case events.InstallPlanMetadataChanged:
		m = v.Metadata
	}
	s := "has no labels"
	if len(m.Labels) > 0 {
		s = "has the labels " + pairs(m.Labels)
	}
	if m.Annotations == "" {
		return s + " and no annotations"
	}
	return s + ", and annotations"
}

func csvSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.CSVPhaseChanged:
		return fmt.Sprintf("%s %s is %s (%s)", v.Package, v.Version, v.Phase, v.Reason)
	case events.CSVDrifted:
		return fmt.Sprintf("drift in %s; policy: %s", plural(v.Objects, "object"), v.Policy)
	case events.CSVDriftEnded:
		return "drift ended: all objects are as written"
	case events.OperatorConditionChanged:
		return condition(v)
	case events.OperatorConditionOverridden:
		return overridden(v)
	case events.CSVRemoved:
		return "removed from the cluster (" + v.Reason + ")"
	case events.CSVRemovalRequested:
		if len(v.CRDs) == 0 {
			return "uninstall requested; its custom resource definitions and their objects stay"
		}
		return "uninstall requested, with all objects of " + strings.Join(v.CRDs, ", ")
	case events.CSVRemovalDirected:
		if len(v.CRDs) == 0 {
			return "fleet subscription " + v.FleetSubscription + " has it uninstalled; its custom resource definitions " +
				"and their objects stay"
		}
		return "fleet subscription " + v.FleetSubscription + " has it uninstalled, with its custom resource definitions " +
			"and all objects of theirs"
	case events.CSVRemovalStarted:
		return "uninstall started"
	case events.CSVRemovalBlocked:
		return fmt.Sprintf("uninstall waits (%s, %s)", v.Class, v.Reason)
	case events.CSVRemovalRefused:
		return "uninstall refused (" + v.Reason + "); nothing was removed"
	case events.CSVReadinessChanged:
		return readiness(v)
	case events.CSVFlapping:
		return fmt.Sprintf("changed its phase %d times within %s; single changes are not recorded", v.Changes,
			time.Duration(v.Window)*time.Second)
	default:
		return ""
	}
}
