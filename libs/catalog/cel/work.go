package cel

import (
	"fmt"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// bounded replaces the parts of a rule whose work can be large while what they are given was cheap to make: [a, a]
// costs the same whatever a holds. The language pays for a call when it is done; these ask before.
func bounded(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	switch call.Function() {
	case operators.Equals, operators.NotEquals, operators.In, operators.OldIn:
		return comparison{call}, nil
	}
	return i, nil
}

// comparison is a part ==, != or in of a rule, which looks at all that is inside two values.
type comparison struct{ interpreter.InterpretableCall }

// Exec implements interpreter.InterpretableV2.
func (c comparison) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := c.Args()
	a, b := args[0].Exec(frame), args[1].Exec(frame)
	for _, v := range []ref.Val{a, b} {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	if n := comparing(c.Function(), []ref.Val{a, b}); n > MaxCost {
		return types.NewErr("to compare values with more than %d parts costs too much", MaxCost)
	}
	switch c.Function() {
	case operators.Equals:
		return types.Equal(a, b)
	case operators.NotEquals:
		return types.Bool(types.Equal(a, b) != types.True)
	}
	if in, ok := b.(traits.Container); ok {
		return in.Contains(a)
	}
	return types.WrapErr(fmt.Errorf("a value of type %s holds nothing", b.Type().TypeName()))
}

// Eval implements interpreter.Interpretable.
func (c comparison) Eval(values interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(values))
}
