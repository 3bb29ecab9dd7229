package decide

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Event is one event of the log as the state is folded from it.
type Event struct {
	Subject     string
	Incarnation int   // of its stream
	Version     int64 // of its stream
	Created     int64 // orders subscriptions by age; its position in the log
	Correlation string
	Payload     events.Payload
}

// name is the last part of a subject cluster/namespace/name.
func (e Event) name() string { return e.Subject[strings.LastIndex(e.Subject, "/")+1:] }

// EvolveSubscription folds an event of a subscription's streams. nil is one that is not there. An event that is
// folded already changes nothing but the age: a decision writes the row of a subscription that it generates before
// the log gives it a position.
func EvolveSubscription(s *Subscription, e Event) *Subscription {
	switch p := e.Payload.(type) {
	case events.SubscriptionCreated:
		return created(s, e, p.Spec, "")
	case events.SubscriptionGenerated: // for an operator that a finished plan brought
		return created(s, e, p.Spec, p.Spec.StartingCSV)
	case events.SubscriptionPlaced:
		if s == nil || s.Incarnation < e.Incarnation {
			s = created(nil, e, p.Spec, "")
			s.Version = 0 // what is asked of it follows
		}
	}
	if s == nil || s.Incarnation != e.Incarnation {
		return s
	}
	switch e.Payload.(type) {
	case events.SubscriptionDeleted, events.SubscriptionRemoved:
		return nil
	}
	if e.Version <= s.Version {
		return s
	}
	out := *s
	out.Version = e.Version
	switch p := e.Payload.(type) {
	case events.SubscriptionChanged: // it ends a rollback, and what a rollout asked
		out.Spec, out.Rollback, out.Correlation = p.Spec, resolution.Rollback{}, e.Correlation
		out.Owner, out.Target = "", Target{}
	case events.SubscriptionPlaced:
		out.Spec, out.Rollback, out.Correlation = p.Spec, resolution.Rollback(p.Rollback), e.Correlation
		out.Owner = p.Owner
		out.Target = Target{
			RolloutTarget: p.Target, Rollout: p.Owner + "/" + strconv.Itoa(p.Rollout), Back: p.Rollback.To != "",
			Avoids: p.Avoids,
		}
	case events.SubscriptionReleased:
		out.Owner = ""
	case events.SubscriptionRollbackRequested:
		out.Rollback, out.Correlation = resolution.Rollback{From: p.From, To: p.To}, e.Correlation
		out.Target.Back = false
	case events.ResolutionFailed:
		out.Outcome = Outcome{Kind: OutcomeFailed, Reason: p.Reason, Explanation: p.Explanation, Input: p.Input}
		out.Outcome.Directive = answered(out, e)
	case events.ResolutionSucceeded:
		out.Outcome = Outcome{Kind: p.Outcome, CSV: p.CSV, Plan: p.Plan, Input: p.Input}
		if p.Outcome != OutcomeAtLatestKnown || p.CSV != s.Target.CSV || p.Content != "" {
			out.Outcome.Directive = answered(out, e)
		}
	} // labels and annotations decide nothing; what follows them in the stream needs their version
	return &out
}

// answered is the directive that an outcome answers: the one that it carries, which may not be the newest any more.
func answered(s Subscription, e Event) string {
	if s.Target.CSV == "" {
		return ""
	}
	return e.Correlation
}

func created(s *Subscription, e Event, spec events.SubscriptionSpec, installed string) *Subscription {
	if s != nil && s.Incarnation == e.Incarnation {
		out := *s
		out.Created = e.Created
		return &out
	}
	return &Subscription{
		Name: e.name(), Incarnation: e.Incarnation, Version: e.Version, Spec: spec, Created: e.Created,
		Correlation: e.Correlation, InstalledCSV: installed,
	}
}

// EvolveGroup folds an event of an operator group's streams. nil is one that is not there. What the cluster said of a
// group holds for the spec that it saw.
func EvolveGroup(g *Group, e Event) *Group {
	switch p := e.Payload.(type) {
	case events.OperatorGroupCreated:
		return &Group{Name: e.name(), Spec: p.Spec}
	case events.OperatorGroupPlaced:
		return &Group{Name: e.name(), Spec: p.Spec}
	case events.OperatorGroupChanged:
		return &Group{Name: e.name(), Spec: p.Spec}
	case events.OperatorGroupDeleted:
		return nil
	}
	return g
}

// policySubject is the beginning of the subject of approval policies; the name follows.
const policySubject = "approval/"

// EvolvePolicy folds an event of an approval policy's streams. nil is one that is not there.
func EvolvePolicy(p *Policy, e Event) *Policy {
	switch x := e.Payload.(type) {
	case events.ApprovalPolicySet:
		return &Policy{Name: x.Name, Spec: x.Spec}
	case events.ApprovalPolicyDeleted:
		return nil
	}
	return p
}

// CatalogIntent is what a resolution sees of how a catalog is set up.
type CatalogIntent struct {
	Priority   int32
	Visibility events.CatalogVisibility
	Templated  bool
	Disabled   bool
}

// EvolveCatalogIntent folds an event of a catalog's streams. nil is one that is not there.
func EvolveCatalogIntent(c *CatalogIntent, e Event) *CatalogIntent {
	switch p := e.Payload.(type) {
	case events.CatalogAdded:
		return &CatalogIntent{p.Priority, p.Visibility, p.Templated, p.Disabled}
	case events.CatalogChanged:
		return &CatalogIntent{p.Priority, p.Visibility, p.Templated, p.Disabled}
	case events.CatalogRemoved:
		return nil
	}
	return c
}

// hiddenFrom says whether a catalog is offered to another namespace of the scope's cluster alone (R-CAT-85).
func (c *CatalogIntent) hiddenFrom(s resolution.Scope) bool {
	return c != nil && !c.Disabled && c.Visibility.Cluster == s.Cluster &&
		c.Visibility.Namespace != "" && c.Visibility.Namespace != s.Namespace
}

// EvolveRevision folds what came of a poll of a catalog's source. A failure leaves the revision before in service.
func EvolveRevision(r CatalogRevision, e Event) CatalogRevision {
	switch p := e.Payload.(type) {
	case events.CatalogRevisionPublished:
		return CatalogRevision{Revision: p.Revision}
	case events.CatalogLoadFailed:
		return CatalogRevision{Revision: r.Revision, Failed: true, Reason: p.Reason}
	}
	return r
}

// Evolve returns the state with an event of a subscription, operator group, catalog, policy or removed operator
// added; known is false for other events. What is of another scope changes nothing. The given state stays as it is.
func (s State) Evolve(e Event) (out State, known bool) {
	switch e.Payload.(type) {
	case events.CatalogRevisionPublished:
		s.Catalogs, s.DisabledCatalogs = evolveRevisions(s.Catalogs, e), evolveRevisions(s.DisabledCatalogs, e)
		return s, true
	case events.CatalogChanged, events.CatalogRemoved:
		return s.evolveCatalog(e), true
	case events.ApprovalPolicySet, events.ApprovalPolicyDeleted:
		name := strings.TrimPrefix(e.Subject, policySubject)
		s.Policies = evolveOne(s.Policies, name, func(p Policy) string { return p.Name },
			func(p *Policy) *Policy { return EvolvePolicy(p, e) })
		return s, true
	case events.SubscriptionMetadataChanged, events.OperatorGroupMetadataChanged, events.CatalogMetadataChanged,
		events.ApprovalPolicyMetadataChanged:
		return s, true // nothing is decided by them
	}
	scope, here := strings.CutSuffix(e.Subject, "/"+e.name())
	if !here || strings.Count(scope, "/") != 1 {
		return s, false
	}
	if scope != s.Scope.Cluster+"/"+s.Scope.Namespace {
		return s, true
	}
	switch e.Payload.(type) {
	case events.SubscriptionCreated, events.SubscriptionGenerated, events.SubscriptionChanged,
		events.SubscriptionRollbackRequested, events.SubscriptionPlaced, events.SubscriptionReleased,
		events.SubscriptionRemoved, events.SubscriptionDeleted:
		s.Subscriptions = evolveOne(s.Subscriptions, e.name(), func(x Subscription) string { return x.Name },
			func(x *Subscription) *Subscription { return EvolveSubscription(x, e) })
	case events.OperatorGroupCreated, events.OperatorGroupPlaced, events.OperatorGroupChanged,
		events.OperatorGroupDeleted:
		s.Groups = evolveOne(s.Groups, e.name(), func(x Group) string { return x.Name },
			func(x *Group) *Group { return EvolveGroup(x, e) })
	case events.CSVRemoved:
		s.Installed = slices.DeleteFunc(slices.Clone(s.Installed), func(i Installed) bool { return i.Name == e.name() })
	default:
		return s, false
	}
	return s, true
}

// evolveOne replaces one element of a list, which stays in the order of its names.
func evolveOne[T any](list []T, name string, nameOf func(T) string, evolve func(*T) *T) []T {
	list = slices.Clone(list)
	var before *T
	at := slices.IndexFunc(list, func(x T) bool { return nameOf(x) == name })
	if at >= 0 {
		before = &list[at]
	}
	after := evolve(before)
	switch {
	case after == nil && before == nil:
		return list
	case after == nil:
		return slices.Delete(list, at, at+1)
	case before != nil:
		list[at] = *after
		return list
	}
	at = slices.IndexFunc(list, func(x T) bool { return nameOf(x) > name })
	if at < 0 {
		at = len(list)
	}
	return slices.Insert(list, at, *after)
}

func evolveRevisions(list []Catalog, e Event) []Catalog {
	list = slices.Clone(list)
	for i := range list {
		if list[i].Subject == e.Subject {
			list[i].CatalogRevision = EvolveRevision(list[i].CatalogRevision, e)
		}
	}
	return list
}

// evolveCatalog shows a catalog that was disabled, hides one that is disabled or removed, or gives it another priority.
func (s State) evolveCatalog(e Event) State {
	now := EvolveCatalogIntent(nil, e)
	is := func(c Catalog) bool { return c.Subject == e.Subject }
	s.Private = slices.DeleteFunc(slices.Clone(s.Private), func(subject string) bool { return subject == e.Subject })
	if now.hiddenFrom(s.Scope) {
		s.Private = append(s.Private, e.Subject)
	}
	s.Catalogs, s.DisabledCatalogs = slices.Clone(s.Catalogs), slices.Clone(s.DisabledCatalogs)
	from, to := &s.DisabledCatalogs, &s.Catalogs
	if now == nil || now.Disabled {
		from, to = to, from
	}
	if i := slices.IndexFunc(*from, is); i >= 0 {
		c := (*from)[i]
		*from = slices.Delete(*from, i, i+1)
		if now == nil {
			return s
		}
		at, _ := slices.BinarySearchFunc(*to, c, func(a, b Catalog) int { return cmp.Compare(a.Subject, b.Subject) })
		*to = slices.Insert(*to, at, c)
	}
	if i := slices.IndexFunc(s.Catalogs, is); i >= 0 {
		s.Catalogs[i].Priority = now.Priority
	}
	return s
}
