package v2

import "math/bits"

// slot is something that at most one chosen operator may hold: a package, an API, a name. Slots are numbered,
// so that looking whether a node fits is a few array reads.
type slot int32

// Prefixes of slot names.
const (
	slotPackage = "p:"
	slotAPI     = "a:"
	slotName    = "n:"
)

// slotTable numbers the slots of one resolution; all its searches share it.
type slotTable struct {
	ids   map[string]slot
	names []string
	of    map[*operator][]slot
}

func newSlotTable() *slotTable {
	return &slotTable{ids: map[string]slot{}, of: map[*operator][]slot{}}
}

func (t *slotTable) id(name string) slot {
	if s, ok := t.ids[name]; ok {
		return s
	}
	s := slot(len(t.names))
	t.ids[name] = s
	t.names = append(t.names, name)
	return s
}

// slots of an operator; the list must not be changed.
func (t *slotTable) slots(op *operator) []slot {
	if list, ok := t.of[op]; ok {
		return list
	}
	list := make([]slot, 0, len(op.slots))
	for _, name := range op.slots {
		list = append(list, t.id(name))
	}
	t.of[op] = list
	return list
}

// slotSet is a set of slots as bits.
type slotSet struct{ words []uint64 }

const wordBits = 64

func (s *slotSet) add(list ...slot) {
	for _, x := range list {
		word := int(x) / wordBits
		for word >= len(s.words) {
			s.words = append(s.words, 0)
		}
		s.words[word] |= 1 << (x % wordBits)
	}
}

// each calls fn for the slots in order.
func (s *slotSet) each(fn func(slot)) {
	for i, word := range s.words {
		for ; word != 0; word &= word - 1 {
			fn(slot(i*wordBits + bits.TrailingZeros64(word)))
		}
	}
}
