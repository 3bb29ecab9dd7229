package offer

import (
	"encoding/json"
	"iter"
	"sync"
	"weak"

	"github.com/chandler-fleet/chandler/libs/catalog/cel"
)

// maxVerdicts bounds what one operator remembers of rules.
const maxVerdicts = 16

// rule is compiled when a resolution first reaches it. Most are never reached, and compiling takes a thousand
// times as long as reading.
type rule struct {
	text     string
	compiled func() (*cel.Rule, error)
}

func newRule(text string) *rule {
	return &rule{text, sync.OnceValues(func() (*cel.Rule, error) { return cel.Compile(text) })}
}

// rules goes through the rules of a requirement in the order of its parts.
func (r *Requirement) rules(yield func(*rule) bool) { r.eachRule(yield) }

func (r *Requirement) eachRule(yield func(*rule) bool) bool {
	if r.op == needRule {
		return yield(r.rule)
	}
	for _, p := range r.parts {
		if !p.eachRule(yield) {
			return false
		}
	}
	return true
}

// CompileCost is what it costs to compile the rules of the requirement, in the units of Compare; 0 where it has
// none. They are compiled once, when they are first needed.
func (r *Requirement) CompileCost() int {
	n := 0
	for q := range r.rules {
		n += cel.CompileCost(q.text)
	}
	return n
}

// weight is about how many bytes the requirement takes in memory beside its key, with all its rules compiled.
func (r *Requirement) weight() int {
	n := len(r.Text)
	for _, p := range r.parts {
		n += requirementWeight + p.weight()
	}
	if r.op == needRule {
		n += cel.Weight(r.rule.text)
	}
	return n
}

// judgements is what rules have read and said of one operator.
type judgements struct {
	mu    sync.Mutex
	seen  weak.Pointer[cel.Bundle] // what they read; some ten times as large as the properties
	known []verdict                // newest first
}

type verdict struct {
	rule  string
	holds bool
	cost  int
}

// judge evaluates a rule once and remembers the answer with its cost: a search asks the same often. What rules
// read is shared by all that ask in a row, and given back with the next collection of garbage.
func (op *Operator) judge(r *rule) (holds bool, cost int) {
	j := &op.judged
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, v := range j.known {
		if v.rule == r.text {
			return v.holds, v.cost
		}
	}
	compiled, err := r.compiled()
	if err != nil {
		return false, 1
	}
	b := j.seen.Value()
	if b == nil {
		b = cel.NewBundle(op.each())
		j.seen = weak.Make(b)
	}
	holds, cost = compiled.Eval(b)
	j.known = append([]verdict{{r.text, holds, cost}}, j.known[:min(len(j.known), maxVerdicts-1)]...)
	return holds, cost
}

// each goes through the properties as rules see them.
func (op *Operator) each() iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for _, p := range op.Properties {
			if !yield(p.Type, p.Value) {
				return
			}
		}
	}
}
