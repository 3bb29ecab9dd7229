package cel

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// textUnit is how many bytes of a text a unit of cost pays for, and patternUnit how many parts of a regular
// expression are looked at for one character; it pays for one value inside a value.
const (
	textUnit    = 10
	patternUnit = 10
)

// Meter says what calls cost. The language's own measure takes a call for cheap wherever a type is known only
// when the rule is evaluated, which here is nearly everywhere, and a list for as large as its first level.
//
// A call is paid for when it is done. What looks at a text takes bounded time nevertheless, since a text grows by
// joining, which pays for all of it. What looks at all inside a value asks before: see comparison and matches.
type Meter struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (Meter) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	n := 0
	switch function {
	case operators.Add:
		n = joining(args)
	case operators.Equals, operators.NotEquals, operators.In, operators.OldIn:
		n = comparing(function, args)
	case matchFunction:
		n = matching(args)
	default:
		for _, a := range args {
			n += text(a)
		}
	}
	cost := uint64(1 + n)
	return &cost
}

// comparing two values ends with the smaller one; whether one is in another looks at all of the larger one.
func comparing(function string, args []ref.Val) int {
	switch function {
	case operators.Equals, operators.NotEquals:
		return smallest(args)
	}
	return largest(args)
}

// joining copies texts, and refers to the longer one of two lists.
func joining(args []ref.Val) int {
	n := 0
	for _, a := range args {
		n += text(a)
	}
	if n > 0 {
		return n
	}
	return smallest(args)
}

// matching looks at each part of an expression for each character.
func matching(args []ref.Val) int {
	if len(args) < 2 {
		return 0
	}
	e, ok := args[1].(types.String)
	if !ok {
		return 0
	}
	p, err := patterns.get(string(e), readPattern)
	if err != nil {
		return text(e)
	}
	return p.work(length(args[0]))
}

// smallest is the size of the smaller value, and takes no longer than that: beside a number the other may be as
// large as it likes.
func smallest(args []ref.Val) int {
	for limit := 16; ; limit *= 4 {
		n := min(limit, maxWeighed)
		for _, a := range args {
			n = min(n, weigh(a, n))
		}
		if n < limit {
			return n
		}
	}
}

func largest(args []ref.Val) int {
	n := 0
	for _, a := range args {
		n = max(n, weigh(a, maxWeighed))
	}
	return n
}

// maxWeighed is where weighing a value stops: it costs more than all that an evaluation may.
const maxWeighed = MaxCost + 1

// weigh is the size of a value with all that is inside, at most limit.
func weigh(v ref.Val, limit int) int {
	n := 1 + text(v)
	switch v := v.(type) {
	case traits.Mapper:
		for it := v.Iterator(); n < limit && it.HasNext() == types.True; {
			key := it.Next()
			n += weigh(key, limit-n)
			if n < limit {
				n += weigh(v.Get(key), limit-n)
			}
		}
	case traits.Lister:
		for it := v.Iterator(); n < limit && it.HasNext() == types.True; {
			n += weigh(it.Next(), limit-n)
		}
	}
	return min(n, limit)
}

// text is what a text costs to look at, 0 of anything else.
func text(v ref.Val) int { return (length(v) + textUnit - 1) / textUnit }

// length is that of a text, 0 of anything else.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}
