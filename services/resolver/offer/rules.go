package offer

import (
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/catalog/cel"
)

// maxVerdicts bounds what one operator remembers of rules.
const maxVerdicts = 16

// verdicts is what rules said of one operator; it is never changed, but replaced.
type verdicts []verdict

type verdict struct {
	rule  string
	holds bool
}

// holds evaluates a rule once and remembers the answer: a search asks the same often, and what a rule looks at
// is many times as large as the answer.
func (op *Operator) holds(rule *cel.Rule) bool {
	old := op.held.Load()
	if old != nil {
		for _, v := range *old {
			if v.rule == rule.Text() {
				return v.holds
			}
		}
	}
	b, ok := cel.Look(op.each)
	ok = ok && rule.Holds(b)
	next := verdicts{{rule.Text(), ok}}
	if old != nil {
		next = append(next, (*old)[:min(len(*old), maxVerdicts-1)]...)
	}
	op.held.CompareAndSwap(old, &next) // who loses asks again
	return ok
}

// each goes through the properties as rules see them.
func (op *Operator) each(yield func(string, json.RawMessage) bool) {
	for _, p := range op.Properties {
		if !yield(p.Type, p.Value) {
			return
		}
	}
}
