// Package preview draws hypothetical events into the state of a scope, says what a decision on it comes to in the
// words of libs/whatif, and tells what such an answer rests on. It is pure. What it supposes follows the folds of
// the resolver's tables: a test of the resolver compares the plans that come of supposed events with those of real
// ones.
package preview

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// state is one while hypotheses are applied to it.
type state struct {
	decide.State
	// hidden are catalogs that the scope does not see since they are disabled.
	hidden []decide.Catalog
}

// Apply returns the state as it would be with the hypotheses in the log, in their order. Those about other scopes
// change nothing. hidden are the disabled catalogs among those that the hypotheses name, as the scope would see them.
// What cannot be supposed is errs.Unprocessable.
func Apply(s decide.State, hidden []decide.Catalog, list []previewapi.Hypothesis) (decide.State, error) {
	w := state{State: s, hidden: hidden}
	w.Subscriptions, w.Groups = slices.Clone(s.Subscriptions), slices.Clone(s.Groups)
	w.Installed, w.Catalogs = slices.Clone(s.Installed), slices.Clone(s.Catalogs)
	for _, h := range list {
		if err := w.suppose(h); err != nil {
			return s, err
		}
	}
	return w.State, nil
}

func (w *state) suppose(h previewapi.Hypothesis) error {
	p, err := h.Payload()
	if err != nil {
		return err
	}
	switch p := p.(type) {
	case events.CatalogRevisionPublished:
		w.published(h.Subject, p.Revision)
		return nil
	case events.CatalogChanged:
		w.catalogChanged(h.Subject, p)
		return nil
	case events.SubscriptionMetadataChanged, events.OperatorGroupMetadataChanged, events.CatalogMetadataChanged,
		events.ApprovalPolicyMetadataChanged:
		return nil // nothing is decided by them
	case events.CatalogRemoved:
		w.Catalogs = slices.DeleteFunc(w.Catalogs, func(c decide.Catalog) bool { return c.Subject == h.Subject })
		w.private(h.Subject, false)
		return nil
	}
	if name, is := strings.CutPrefix(h.Subject, approvalPrefix); is {
		return w.policy(name, p)
	}
	name, here := strings.CutPrefix(h.Subject, w.Scope.Cluster+"/"+w.Scope.Namespace+"/")
	if !here {
		if strings.Count(h.Subject, "/") == 2 { // of another scope
			return nil
		}
		return errs.New(errs.Unprocessable, "it cannot be previewed what %s of %s would do", h.Type, h.Subject)
	}
	switch p := p.(type) {
	case events.SubscriptionCreated:
		w.put(decide.Subscription{Name: name, Incarnation: h.Incarnation, Version: 1, Spec: p.Spec, Created: w.youngest()})
	case events.SubscriptionChanged:
		if i := w.find(name); i >= 0 {
			w.Subscriptions[i].Spec, w.Subscriptions[i].Rollback = p.Spec, resolution.Rollback{}
		}
	case events.SubscriptionRollbackRequested:
		if i := w.find(name); i >= 0 {
			w.Subscriptions[i].Rollback = resolution.Rollback{From: p.From, To: p.To}
		}
	case events.SubscriptionDeleted:
		w.Subscriptions = slices.DeleteFunc(w.Subscriptions, func(s decide.Subscription) bool { return s.Name == name })
	case events.OperatorGroupCreated:
		w.putGroup(decide.Group{Name: name, Spec: p.Spec})
	case events.OperatorGroupChanged:
		w.putGroup(decide.Group{Name: name, Spec: p.Spec})
	case events.OperatorGroupDeleted:
		w.Groups = slices.DeleteFunc(w.Groups, func(g decide.Group) bool { return g.Name == name })
	case events.CSVRemoved:
		w.Installed = slices.DeleteFunc(w.Installed, func(i decide.Installed) bool { return i.Name == name })
	default:
		return errs.New(errs.Unprocessable, "it cannot be previewed what %s of %s would do", h.Type, h.Subject)
	}
	return nil
}

// approvalPrefix goes before the name in the subject of an approval policy.
const approvalPrefix = "approval/"

func (w *state) policy(name string, p events.Payload) error {
	w.Policies = slices.DeleteFunc(slices.Clone(w.Policies), func(o decide.Policy) bool { return o.Name == name })
	switch p := p.(type) {
	case events.ApprovalPolicySet:
		w.Policies = append(w.Policies, decide.Policy{Name: name, Spec: p.Spec})
	case events.ApprovalPolicyDeleted:
	default:
		return errs.New(errs.Unprocessable, "it cannot be previewed what %s of policy %s would do", p.EventType(), name)
	}
	return nil
}

func (w *state) find(name string) int {
	return slices.IndexFunc(w.Subscriptions, func(s decide.Subscription) bool { return s.Name == name })
}

// youngest is the age of the subscription that is made next: the log gives them in order, too, and which of two is older
// can decide whom an operator belongs to.
func (w *state) youngest() int64 {
	var newest int64
	for _, s := range w.Subscriptions {
		newest = max(newest, s.Created)
	}
	return newest + 1
}

// put adds a subscription in the order of the table; one of that name is there no more.
func (w *state) put(sub decide.Subscription) {
	w.Subscriptions = slices.DeleteFunc(w.Subscriptions, func(s decide.Subscription) bool { return s.Name == sub.Name })
	at, _ := slices.BinarySearchFunc(w.Subscriptions, sub, func(a, b decide.Subscription) int { return cmp.Compare(a.Name, b.Name) })
	w.Subscriptions = slices.Insert(w.Subscriptions, at, sub)
}

func (w *state) putGroup(g decide.Group) {
	w.Groups = slices.DeleteFunc(w.Groups, func(o decide.Group) bool { return o.Name == g.Name })
	at, _ := slices.BinarySearchFunc(w.Groups, g, func(a, b decide.Group) int { return cmp.Compare(a.Name, b.Name) })
	w.Groups = slices.Insert(w.Groups, at, g)
}

// published puts a revision in service where the scope sees the catalog; the look at it succeeded.
func (w *state) published(subject, revision string) {
	for _, list := range [][]decide.Catalog{w.Catalogs, w.hidden} {
		for i := range list {
			if list[i].Subject == subject {
				list[i].Revision, list[i].Failed, list[i].Reason = revision, false, ""
			}
		}
	}
}

// private says whether a catalog is offered to another namespace of the scope's cluster alone.
func (w *state) private(subject string, is bool) {
	w.Private = slices.DeleteFunc(slices.Clone(w.Private), func(s string) bool { return s == subject })
	if is {
		w.Private = append(w.Private, subject)
	}
}

func (w *state) catalogChanged(subject string, p events.CatalogChanged) {
	is := func(c decide.Catalog) bool { return c.Subject == subject }
	seen := p.Visibility
	w.private(subject, !p.Disabled && seen.Cluster == w.Scope.Cluster && seen.Namespace != "" && seen.Namespace != w.Scope.Namespace)
	at := slices.IndexFunc(w.Catalogs, is)
	switch {
	case at >= 0 && p.Disabled:
		w.hidden = append(w.hidden, w.Catalogs[at])
		w.Catalogs = slices.Delete(w.Catalogs, at, at+1)
	case at >= 0:
		w.Catalogs[at].Priority = p.Priority
	case !p.Disabled:
		if i := slices.IndexFunc(w.hidden, is); i >= 0 {
			c := w.hidden[i]
			c.Priority = p.Priority
			to, _ := slices.BinarySearchFunc(w.Catalogs, c, func(a, b decide.Catalog) int { return cmp.Compare(a.Subject, b.Subject) })
			w.Catalogs = slices.Insert(w.Catalogs, to, c)
		}
	}
}

// ApplyGenerated gives the state the subscriptions that are made for the dependencies of finished plans before anything is
// decided (R-RES-40), and returns their names. A name that is taken stays with who has it.
func ApplyGenerated(s decide.State) (decide.State, []string) {
	subs, settled := decide.Generated(s)
	if len(settled) == 0 {
		return s, nil
	}
	w := state{State: s}
	w.Subscriptions, w.Plans = slices.Clone(s.Subscriptions), slices.Clone(s.Plans)
	var names []string
	for _, g := range subs {
		if w.find(g.Name) < 0 {
			w.put(decide.Subscription{Name: g.Name, Incarnation: 1, Version: 1, Spec: g.Spec, Created: w.youngest(), InstalledCSV: g.Spec.StartingCSV})
			names = append(names, g.Name)
		}
	}
	for i := range w.Plans {
		w.Plans[i].Settled = w.Plans[i].Settled || slices.ContainsFunc(settled, func(p decide.Plan) bool { return p.ID == w.Plans[i].ID })
	}
	return w.State, names
}
