package bus

import (
	"cmp"
	"slices"
)

// Lane is the order in which dirty scopes are taken: a lower lane first.
type Lane int16

// The lanes. Interactive work is what a person waits for; FanOut is what one change touches in many
// places, such as a new catalog revision.
const (
	Interactive Lane = 0
	FanOut      Lane = 1
)

// Scope is one namespace of one cluster, dirty for a reason. Tenant, Cluster and Namespace name it; the
// rest is what the last mark said and does not distinguish scopes.
type Scope struct {
	Tenant    string
	Cluster   string // name
	Namespace string // "" for the cluster as a whole
	// Cause is the id of the event that made it dirty, for causationid. "" where there is none.
	Cause string
	// TraceParent carries the W3C trace context of the cause.
	TraceParent string
	// Lane, Attempts and Generation are set by Work: attempts failed since the last success, and which
	// mark this work answers.
	Lane       Lane
	Attempts   int
	Generation int64
}

// Key is the scope without what does not distinguish it.
func (s Scope) Key() Scope {
	return Scope{Tenant: s.Tenant, Cluster: s.Cluster, Namespace: s.Namespace}
}

// sortScopes puts scopes in the one order in which rows are locked, so that two marks cannot deadlock, and
// leaves one of each.
func sortScopes(scopes []Scope) []Scope {
	sorted := slices.Clone(scopes)
	slices.SortStableFunc(sorted, func(a, b Scope) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Cluster, b.Cluster),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return slices.CompactFunc(sorted, func(a, b Scope) bool { return a.Key() == b.Key() })
}
