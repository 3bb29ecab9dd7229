package drift

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// correctedFor is how long a drift that was put right is reported.
const correctedFor = 10 * time.Minute

// Store remembers the drifts of all namespaces. Its methods may be called side by side.
type Store struct {
	mu    sync.Mutex
	known map[string]map[protocol.ObjectRef]entry // by namespace
}

// entry is one drift with the operator that it concerns.
type entry struct {
	protocol.Drift

	operator string
}

// NewStore returns what a new session knows: nothing.
func NewStore() *Store { return &Store{known: map[string]map[protocol.ObjectRef]entry{}} }

// Of are the drifts of an operator, by object.
func (s *Store) Of(namespace, operator string, now time.Time) []protocol.Drift {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []protocol.Drift
	for ref, d := range s.known[namespace] {
		if d.operator != operator {
			continue
		}
		if age := now.Sub(d.Since); d.Corrected && age > correctedFor {
			delete(s.known[namespace], ref)
			continue
		}
		out = append(out, d.Drift)
	}
	slices.SortFunc(out, func(a, b protocol.Drift) int {
		return strings.Compare(
			a.Group+a.String(), b.Group+b.String())
	})
	return out
}

func (s *Store) note(namespace, operator string, d protocol.Drift) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[namespace] == nil {
		s.known[namespace] = map[protocol.ObjectRef]entry{}
	}
	s.known[namespace][d.ObjectRef] = entry{Drift: d, operator: operator}
}

func (s *Store) remove(namespace string, ref protocol.ObjectRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known[namespace], ref)
}

// forget forgets the drifts of operators that are gone.
func (s *Store) forget(namespace string, lives func(operator string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known[namespace], func(_ protocol.ObjectRef, d entry) bool { return !lives(d.operator) })
}

// has reports an object that is known to have drifted.
func (s *Store) has(namespace string, ref protocol.ObjectRef) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.known[namespace][ref]
	return found
}

// undone marks a drift as not corrected while it waits to be put right once more.
func (s *Store) undone(namespace string, ref protocol.ObjectRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, found := s.known[namespace][ref]; found {
		d.Corrected = false
		s.known[namespace][ref] = d
	}
}

// uncorrected are the drifts of a namespace that were only reported.
func (s *Store) uncorrected(namespace string) []protocol.ObjectRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []protocol.ObjectRef
	for ref, d := range s.known[namespace] {
		if !d.Corrected {
			out = append(out, ref)
		}
	}
	return out
}
