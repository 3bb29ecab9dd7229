// Package decide turns what a resolution says into what is recorded: plans to propose and to supersede,
// and what to record of each subscription. It is pure: the state of the scope, rendered steps and random
// ids come in as data.
//
// For each component of a resolution, the first rule that applies:
//
//	a catalog that it needs is loading for the first time       → waiting: nothing is recorded yet
//	a plan of it had begun, and no executor can go on with it    → another one takes over (rendering.go)
//	a plan of it is begun, or an operator of it is not Succeeded → held: one step at a time (R-GRA-6, R-RES-45)
//	it cannot be resolved, or what it came to cannot be rendered → failed: recorded once, with an explanation
//	it has nothing to do                                         → settled
//	a bundle's manifests are in an image that is not fetched     → fetching: recorded once
//	a live plan of it does the same                              → kept
//	its last plan did the same, and failed or was rejected       → ended: not tried again until something changes
//	a strict catalog namespace has an unhealthy catalog          → blocked: recorded once (R-CAT-99)
//	the cluster is cordoned                                      → blocked: recorded once
//	otherwise                                                    → proposed
//
// With the operator group's upgradeStrategy TechPreviewUnsafeFailForward a Failed operator does not hold
// its component (R-RES-44). A live plan that is not begun and not kept is superseded; where its component is waiting,
// held, fetching or blocked, only if what it rests on has changed: nothing begins under terms that hold no more.
package decide

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Phases of a ClusterServiceVersion that the resolver distinguishes (R-CSV §6.2).
const (
	phaseSucceeded = "Succeeded"
	phaseFailed    = "Failed"
	phaseReplacing = "Replacing"
	phaseDeleting  = "Deleting"
)

const strategyFailForward = "TechPreviewUnsafeFailForward"

// State is what the resolver's tables say of one scope at one moment.
type State struct {
	Tenant        string
	Scope         resolution.Scope
	Removed       bool  // the cluster was removed: nothing is decided
	Decisions     int64 // made so far
	Generation    int64 // of the newest plan
	Subscriptions []Subscription
	Groups        []Group
	Installed     []Installed
	// Plans are those that live, and the newest that do not, newest first.
	Plans            []Plan
	Catalogs         []Catalog         // visible in the scope
	DisabledCatalogs []Catalog         // that the scope would see if they were enabled, as far as a preview needs them
	Private          []string          // subjects of catalogs of the cluster that other namespaces alone see
	Labels           map[string]string // of the cluster
	Policies         []Policy          // of the tenant, also those that choose nothing here
	PermissionGrowth PermissionGrowth  // of Upgrades
	Cluster          Cluster
}

// Subscription is a live one.
type Subscription struct {
	Name         string
	Incarnation  int
	Version      int64 // of its stream
	Spec         events.SubscriptionSpec
	Rollback     resolution.Rollback // asked for since the last change of the intent
	Created      int64               // orders subscriptions by age
	Correlation  string
	InstalledCSV string
	// Owner is the fleet subscription that asks for it; "" for one of a person.
	Owner string
	// Target is how far a rollout lets it go; its zero value is no bound.
	Target  Target
	Outcome Outcome
	// Explained is what the outcome's explanation says; nil where there is none.
	Explained *resolution.Explanation
}

// Target is what a rollout brings to a subscription.
type Target struct {
	events.RolloutTarget

	Rollout string `json:"rollout,omitempty"` // name of the fleet subscription/number
	// Back says that the rollout asks for the subscription's Rollback, and no person on this cluster.
	Back bool `json:"back,omitempty"`
	// Avoids are CSVs that are not installed again.
	Avoids []string `json:"avoids,omitempty"`
}

// directive is what the outcome of a rollout's subscription answers: the same outcome is news to the next directive,
// since a rollout believes nothing but what it caused (ADR 0071). "" for all others.
func (s Subscription) directive() string {
	if s.Target.CSV == "" {
		return ""
	}
	return s.Correlation
}

// alreadyRecorded says whether a failure is what was recorded last. Which revision of a catalog says so is no news: a
// catalog that moves every hour would otherwise repeat the same trouble every hour to all who have it.
func (s Subscription) alreadyRecorded(now Outcome, failure *resolution.Explanation) (bool, error) {
	if s.Outcome.same(now) {
		return true, nil
	}
	if s.Explained == nil || s.Outcome.Kind != now.Kind || s.Outcome.Reason != now.Reason ||
		s.Outcome.Directive != now.Directive {
		return false, nil
	}
	before, err := withoutRevisions(*s.Explained).Digest()
	if err != nil {
		return false, err
	}
	after, err := withoutRevisions(*failure).Digest()
	return before == after, err
}

func withoutRevisions(e resolution.Explanation) resolution.Explanation {
	e.Statements = slices.Clone(e.Statements)
	for i := range e.Statements {
		e.Statements[i].Revision = ""
	}
	return e
}

// Outcome is what was last recorded of a subscription's resolution.
type Outcome struct {
	Kind        string `json:"kind,omitempty"` // an Outcome constant; "" for nothing yet
	CSV         string `json:"csv,omitempty"`
	Plan        string `json:"plan,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Explanation string `json:"explanation,omitempty"`
	Input       string `json:"input,omitempty"` // of the recorded event, for explanations
	// Directive of a rollout that it answers.
	Directive string `json:"directive,omitempty"`
}

// Outcomes.
const (
	OutcomePlanned       = "Planned"
	OutcomeAtLatestKnown = "AtLatestKnown"
	OutcomeFailed        = "Failed"
)

// same leaves out the input: another input with the same outcome is no news.
func (o Outcome) same(p Outcome) bool {
	o.Input, p.Input = "", ""
	return o == p
}

// Group is a live operator group.
type Group struct {
	Name string
	Spec events.OperatorGroupSpec
	// Observed are the namespaces that the group serves, as the cluster reported; nil while unknown.
	Observed []string
}

// Installed is a ClusterServiceVersion of the scope.
type Installed struct {
	Name       string
	Package    string
	Version    string
	Content    string
	Plan       string
	Phase      string // "" while its plan is finished and nothing was heard of it
	Replaces   string
	Properties []catalog.Property
}

// Plan is one install plan of the scope.
type Plan struct {
	ID      string
	Version int64 // of its stream
	Effect  string
	Settled bool
	State   installplan.State
}

// packages are those that the plan installs.
func (p Plan) packages() []string {
	var out []string
	for _, b := range p.State.Proposed.Bundles {
		out = append(out, b.Package)
	}
	return out
}

// Catalog is one that the scope sees.
type Catalog struct {
	Subject  string // name, or cluster/namespace/name
	Key      resolution.CatalogKey
	Priority int32
	CatalogRevision
	// Strict: where it is unhealthy, nothing new is planned in any namespace that sees it (R-CAT-99).
	Strict bool
}

// CatalogRevision is what a catalog has in service, and how the last poll of its source ended.
type CatalogRevision struct {
	Revision string
	Failed   bool
	Reason   string // why it failed
}

// Health is what a resolution knows of the catalog's state.
func (c Catalog) Health() resolution.Health {
	switch {
	case !c.Strict:
		return resolution.HealthIgnored
	case c.Failed:
		return resolution.Unhealthy(c.Reason)
	case c.Revision == "":
		return resolution.Loading
	default:
		return resolution.Healthy
	}
}

// Input is the resolution's input. Operators that are being replaced are on their way out and do not count;
// what takes their place does (R-RES-45 without its message: the component is held meanwhile). Phases are no part of
// the input: which operators leave follows from them here, once, for every strategy, and a passing phase must not
// make a new input of the same question. So the chains that fail-forward searches for (R-RES-44) have their last
// link left, which is what failed.
func (s State) Input(view resolution.View) resolution.Input {
	in := resolution.Input{Scope: s.Scope, View: view, Policy: resolution.Policy{Bounds: s.bounds()}}
	for _, g := range s.Groups {
		in.OperatorGroups = append(in.OperatorGroups, resolution.OperatorGroup{
			Name: g.Name, Shared: g.Spec.Colocation == "shared",
			FailForward:           g.Spec.UpgradeStrategy == strategyFailForward,
			ExcludeGlobalCatalogs: g.Spec.ExcludeGlobalCatalogs,
		})
	}
	followers := s.followers()
	for _, sub := range s.Subscriptions {
		shared := sub.InstalledCSV // by another subscription, which one plan served, too
		if f := followers[shared]; f == "" || f == sub.Name {
			shared = ""
		}
		in.Subscriptions = append(in.Subscriptions, resolution.Subscription{
			Name: sub.Name, Package: sub.Spec.Package, Channel: sub.Spec.Channel, Catalog: sub.Spec.Catalog,
			CatalogNamespace: sub.Spec.CatalogNamespace, CatalogHidden: s.hides(sub.Spec),
			StartingCSV: sub.Spec.StartingCSV, Approval: sub.Spec.Approval, Config: sub.Spec.Config,
			InstalledCSV: shared, Rollback: s.rollback(sub, followers), Avoids: sub.Target.Avoids,
		})
	}
	for _, i := range s.Installed {
		if s.leaving(i) {
			continue
		}
		in.Installed = append(in.Installed, resolution.Installed{
			CSV: i.Name, Package: i.Package, Version: i.Version, Content: contentDigest(i.Content),
			Properties: i.Properties, Subscription: followers[i.Name],
		})
	}
	return in
}

// rollback is the way back that is asked of a subscription. A rollout asks for it wherever a cluster has got to between
// the two: the way up may have more than one step.
func (s State) rollback(sub Subscription, followers map[string]string) resolution.Rollback {
	out := sub.Rollback
	for _, i := range s.Installed {
		if followers[i.Name] == sub.Name && !s.leaving(i) && sub.leaves(i) {
			out.From = i.Name
		}
	}
	return out
}

// leaves says whether an operator is one that a subscription is to go back from.
func (s Subscription) leaves(i Installed) bool {
	switch {
	case s.Rollback.From == "" || s.Rollback.To == i.Name:
		return false
	case s.Rollback.From == i.Name:
		return true
	}
	is, err := semver.Parse(i.Version)
	to, errTo := semver.Parse(s.Target.Version)
	return s.Target.Back && i.Package == s.Spec.Package && err == nil && errTo == nil && is.GT(to)
}

// hides says whether the catalog that a subscription names is there and another namespace's own (R-CAT-85).
func (s State) hides(spec events.SubscriptionSpec) bool {
	return spec.CatalogNamespace != "" && slices.Contains(s.Private, s.Scope.Cluster+"/"+spec.CatalogNamespace+"/"+
		spec.Catalog)
}

// leaving says whether a CSV is being replaced: by its phase, or because what takes its place is there.
func (s State) leaving(i Installed) bool {
	if i.Phase == phaseReplacing || i.Phase == phaseDeleting {
		return true
	}
	return slices.ContainsFunc(s.Installed, func(o Installed) bool { return o.Replaces == i.Name && o.Name != i.Name })
}

// followers binds installed operators to subscriptions: the one that is recorded; else, by package, the
// oldest subscription that has none. So a subscription that was deleted and created again takes its
// operator up again, where OLM wants the ClusterServiceVersion to be deleted first.
func (s State) followers() map[string]string {
	out := map[string]string{}
	bound := map[string]bool{}
	staying := slices.DeleteFunc(slices.Clone(s.Installed), s.leaving)
	subs := slices.Clone(s.Subscriptions)
	slices.SortFunc(subs, func(a, b Subscription) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))
	})
	for _, sub := range subs {
		for _, i := range staying {
			if i.Name == sub.InstalledCSV && out[i.Name] == "" {
				out[i.Name], bound[sub.Name] = sub.Name, true
			}
		}
	}
	for _, sub := range subs {
		for _, i := range staying {
			if !bound[sub.Name] && out[i.Name] == "" && i.Package == sub.Spec.Package {
				out[i.Name], bound[sub.Name] = sub.Name, true
			}
		}
	}
	return out
}

func (s State) subscription(name string) *Subscription {
	for i := range s.Subscriptions {
		if s.Subscriptions[i].Name == name {
			return &s.Subscriptions[i]
		}
	}
	return nil
}
