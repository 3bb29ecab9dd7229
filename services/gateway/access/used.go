package access

import (
	"slices"
	"sync"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Used is what rights have allowed while something was carried out: who lost any of it gets no copy of the answer.
type Used struct {
	Allowed []Allowed `json:"allowed"`
	Covered []Covered `json:"covered"`
}

// Allowed is a verb on a resource that was asked about and allowed.
type Allowed struct {
	Verb     Verb     `json:"verb"`
	Resource Resource `json:"resource"`
	At       Target   `json:"at"`
}

// Covered is what was given to others since the rights had it already.
type Covered struct {
	Rules []events.AccessRule `json:"rules"`
	Scope events.AccessScope  `json:"scope"`
}

// notes are written by whatever asks the rights of one request.
type notes struct {
	mu   sync.Mutex
	used Used
}

// Noting are the same rights, which note what they allow; used reads the notes.
func (r *Rights) Noting() (noting *Rights, used func() Used) {
	n := &notes{}
	noting = &Rights{notes: n}
	if r != nil {
		noting.layers = r.layers
	}
	return noting, func() Used {
		n.mu.Lock()
		defer n.mu.Unlock()
		return Used{slices.Clone(n.used.Allowed), slices.Clone(n.used.Covered)}
	}
}

func (n *notes) allowed(a Allowed) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.used.Allowed, a) {
		n.used.Allowed = append(n.used.Allowed, a)
	}
}

func (n *notes) covered(c Covered) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.used.Covered = append(n.used.Covered, c)
}

// Still refuses where something that was allowed before is not any more, or where it is not known what was.
func (r *Rights) Still(u Used) error {
	for _, a := range u.Allowed {
		if !r.Allow(a.Verb, a.Resource, a.At) {
			return Denied(a.Verb, a.Resource, a.At)
		}
	}
	for _, c := range u.Covered {
		if missing, ok := r.covers(c.Rules, c.Scope); !ok {
			return errs.New(errs.Forbidden, "you may not %s %s any more, which you gave to others", missing.verb,
				missing.resource)
		}
	}
	if len(u.Allowed) == 0 {
		return errs.New(errs.Forbidden, "it is not known what allowed this")
	}
	return nil
}
