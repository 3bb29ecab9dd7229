package crd

import celconfig "k8s.io/apiserver/pkg/apis/cel"

const (
	// maxBytes is how much of objects one check reads, as text. In memory they are several times as large.
	maxBytes = 64 << 20
	// maxObjectCosts is how many objects one check may evaluate whose rules cost what an API server allows at most.
	maxObjectCosts = 20
)

// Budget is what one check of a plan may still cost, over all its definitions. Whoever makes the objects and the rules
// of a definition is not who runs the check.
type Budget struct {
	Bytes int64 // of objects
	Cost  int64 // of validation rules, in CEL's units
}

// NewBudget returns a whole one.
func NewBudget() *Budget {
	return &Budget{Bytes: maxBytes, Cost: maxObjectCosts * celconfig.RuntimeCELCostBudget}
}

// Spent reports a budget of which nothing is left.
func (b *Budget) Spent() bool { return b.Bytes <= 0 || b.Cost <= 0 }

// scalar is about the text of a number or a mark.
const scalar = 8

// size is about the length of a JSON value as text.
func size(v any) int64 {
	switch v := v.(type) {
	case map[string]any:
		n := int64(scalar)
		for key, of := range v {
			n += int64(len(key)) + size(of)
		}
		return n
	case []any:
		n := int64(scalar)
		for _, of := range v {
			n += size(of)
		}
		return n
	case string:
		return int64(len(v)) + scalar
	}
	return scalar
}
