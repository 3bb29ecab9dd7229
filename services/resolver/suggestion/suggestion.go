package suggestion

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Bounds of an answer.
const (
	// MaxSuggestions is how many changes are offered: a person chooses among a handful.
	MaxSuggestions = 6
	// MaxTrials bounds the resolutions of one answer; each takes about a millisecond.
	MaxTrials = 120
	// MaxConflicts bounds the searches of all of them together, so that a namespace that is hard to resolve takes
	// about as long for its suggestions as for its resolution.
	MaxConflicts = 10_000
	// trialConflicts bounds the search of one of them in each cluster: what is not found to help with so much work is
	// not offered, and others get their turn.
	trialConflicts = 2_000
	// maxAlike bounds how many changes of one kind to one thing are offered, so that ten good channels
	// do not hide that a policy may be raised.
	maxAlike = 2
	// maxAlso bounds what is said of a change's other effects.
	maxAlso = 6
)

// Kind is what a suggestion changes.
type Kind string

// The kinds.
const (
	StartingCSV    Kind = "starting-csv"        // another one, or none
	Channel        Kind = "channel"             // another one of the package
	Catalog        Kind = "catalog"             // another one that has the package
	PackageName    Kind = "package"             // one of a similar name
	AddGroup       Kind = "add-operator-group"  // the namespace has none
	KeepGroup      Kind = "keep-operator-group" // the namespace has several
	GroupTargets   Kind = "operator-group-targets"
	GlobalCatalogs Kind = "show-global-catalogs" // the operator group hides them
	RaiseBound     Kind = "raise-policy-bound"   // as far as needed
	LiftBound      Kind = "lift-policy-bound"    // altogether
	Subscribe      Kind = "subscribe"            // to an installed operator, so that it is upgraded
	RemoveOperator Kind = "remove-operator"      // with its subscription, where that is another one
	LeaveOut       Kind = "leave-out"            // one of the subscriptions that cannot live together
	DisableCatalog Kind = "disable-catalog"      // an unhealthy one
)

// Suggestion is one change that helps. Target names the thing as kind/name.
type Suggestion struct {
	Kind   Kind     `json:"kind"`
	Target string   `json:"target"`
	Change []Change `json:"change,omitempty"`
	Text   string   `json:"text"`           // one sentence for people
	Also   []string `json:"also,omitempty"` // what would come of it, and what else comes out differently
	// Manifest is the operator group that a change makes, in OLM's YAML, to be applied as it is.
	Manifest string `json:"manifest,omitempty"`

	Group *decide.Group `json:"-"` // of Manifest
}

// Change is one field before and after; an empty To takes it out.
type Change struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// installedPrefix goes before the name of an installed operator where an explanation names it.
const installedPrefix = "installed "

// Fields of changes.
const (
	fieldStartingCSV      = "startingCSV"
	fieldChannel          = "channel"
	fieldCatalog          = "catalog"
	fieldCatalogNamespace = "catalogNamespace"
	fieldPackage          = "package"
	fieldSubscription     = "subscription"
	fieldExclude          = "excludeGlobalCatalogs"
	fieldTargets          = "targetNamespaces"
	fieldPin              = "pin"
	fieldRange            = "range"
	fieldCeiling          = "ceiling"
)

// Answer is what helps a subscription, nearest first.
type Answer struct {
	Suggestions []Suggestion `json:"remedies"`
	// Tried counts the resolutions that were made for it. Exhausted says that there were more changes to try than
	// MaxTrials and MaxConflicts allow, or than anybody waited for.
	Tried     int  `json:"tried"`
	Exhausted bool `json:"exhausted,omitempty"`
	// Resolves says that the subscription resolves as it is, and that nothing is known against what it comes to: it
	// needs no change.
	Resolves bool `json:"resolves,omitempty"`
	// Waits says what a subscription that resolves waits for, such as an operator that is not Succeeded.
	Waits []string `json:"waits,omitempty"`
}

// ClusterFacts answers what is known of bundles' content and of the cluster.
type ClusterFacts interface {
	// Refused says why a component that resolves could not be installed under the operator groups; nil where nothing is
	// known against it.
	Refused(in resolution.Input, groups []decide.Group, c resolution.Component) *resolution.Explanation
	// Unsupported are the names of installed operators that could not go on under the operator groups.
	Unsupported(in resolution.Input, groups []decide.Group) []string
}

// Question is what suggestions are wanted for.
type Question struct {
	Input resolution.Input
	// Before is what came of the input, with what ClusterFacts says against its components as their failures.
	Before       resolution.Result
	Subscription string
	// Groups are the operator groups of the input with their whole intents.
	Groups  []decide.Group
	Cluster ClusterFacts // nil knows nothing
	// Stop is asked in between whether nobody waits for the answer any more; nil is never.
	Stop func() bool
}

// Suggest finds what helps a subscription. For one that resolves there are none, and the answer says so.
func Suggest(q Question) Answer {
	q.Input.Effort = &resolution.Effort{Conflicts: MaxConflicts, Stop: q.Stop}
	s := &search{
		in: q.Input, have: q.Groups, cluster: q.Cluster, before: standing(q.Before),
		answer: Answer{Suggestions: []Suggestion{}},
	}
	for _, c := range q.Before.Components {
		if slices.Contains(c.Subscriptions, q.Subscription) && (c.Failure != nil || c.Blocked != nil) {
			s.component, s.own = c, q.Subscription
			s.run()
			break
		}
	}
	s.answer.Resolves = s.before.ok[q.Subscription]
	return s.answer
}

// search is the work on one answer.
type search struct {
	in          resolution.Input
	have        []decide.Group
	cluster     ClusterFacts
	before      state
	unsupported []string             // before any change
	read        bool                 // that unsupported was read
	component   resolution.Component // that fails
	own         string               // the subscription that is asked about
	answer      Answer
}

// run tries the changes in order of nearness.
func (s *search) run() {
	alike := map[string]int{}
	for r := range s.candidates() {
		if len(s.answer.Suggestions) == MaxSuggestions {
			return
		}
		key := string(r.Kind) + " " + r.Target
		if alike[key] == maxAlike || r.Kind == LiftBound && alike[string(RaiseBound)+" "+r.Target] > 0 {
			continue
		}
		if s.spent() {
			s.answer.Exhausted = true
			return
		}
		if also, ok := s.helps(r); ok {
			alike[key]++
			r.Also = also
			s.answer.Suggestions = append(s.answer.Suggestions, r)
		}
	}
}

// spent says that nothing more may be tried.
func (s *search) spent() bool { return s.answer.Tried >= MaxTrials || s.in.Effort.Spent() }

// blamed are the subscriptions of the conflict that are left with a change.
func (s *search) blamed() []string {
	if e := s.component.Failure; e != nil {
		return e.Subscriptions
	}
	return s.component.Subscriptions
}

// involved are the blamed subscriptions, and those that follow an operator which the explanation names, sorted.
func (s *search) involved() []string {
	out := slices.Clone(s.blamed())
	for _, i := range s.named() {
		if i.Subscription != "" {
			out = append(out, i.Subscription)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// csvs are the installed operators of the conflict that no subscription follows, in the input's order.
func (s *search) csvs() []string {
	var out []string
	for _, i := range s.named() {
		if i.Subscription == "" {
			out = append(out, i.CSV)
		}
	}
	return out
}

// named are the installed operators that the explanation names.
func (s *search) named() []resolution.Installed {
	e := s.component.Failure
	if e == nil {
		return nil
	}
	names := map[string]bool{}
	for _, csv := range e.CSVs {
		names[csv] = true
	}
	for _, st := range e.Statements {
		for _, id := range append([]string{st.Bundle, st.Other}, st.Choices...) {
			names[strings.TrimPrefix(id, installedPrefix)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(s.in.Installed), func(i resolution.Installed) bool { return !names[i.CSV] })
}
