package cel

import (
	"cmp"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// object is a map that is gone through in the order of its keys. Those of the language come in another order
// each time, so that a rule such as p.map(k, k)[0] == "type" would hold now and then, and its cost would be
// another on each machine.
type object struct {
	traits.Mapper
	keys traits.Lister
}

// newObject returns a map in order, or an error of the language where a key is none of what it has for keys.
func newObject(m traits.Mapper) ref.Val {
	var keys []ref.Val
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		switch key.(type) {
		case types.String, types.Int, types.Uint, types.Bool:
			keys = append(keys, key)
		default:
			return types.NewErr("a map has a key of type %s", key.Type().TypeName())
		}
	}
	slices.SortFunc(keys, compareKeys)
	return object{m, types.NewRefValList(types.DefaultTypeAdapter, keys)}
}

// compareKeys orders keys by type and value; no two in a map are the same in both.
func compareKeys(a, b ref.Val) int {
	if a.Type() != b.Type() {
		return cmp.Compare(a.Type().TypeName(), b.Type().TypeName())
	}
	if c, ok := a.(traits.Comparer); ok {
		if n, ok := c.Compare(b).(types.Int); ok {
			return int(n)
		}
	}
	return 0
}

// Iterator implements traits.Iterable.
func (o object) Iterator() traits.Iterator { return o.keys.Iterator() }

// ConvertToType implements ref.Val: as a map it is itself, with its order.
func (o object) ConvertToType(t ref.Type) ref.Val {
	if t == types.MapType {
		return o
	}
	return o.Mapper.ConvertToType(t)
}

// valueOf is what rules see of decoded JSON.
func valueOf(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		entries := make(map[ref.Val]ref.Val, len(v))
		for key, value := range v {
			entries[types.String(key)] = valueOf(value)
		}
		return newObject(types.NewRefValMap(types.DefaultTypeAdapter, entries))
	case []any:
		values := make([]ref.Val, len(v))
		for i := range v {
			values[i] = valueOf(v[i])
		}
		return types.NewRefValList(types.DefaultTypeAdapter, values)
	}
	return types.DefaultTypeAdapter.NativeToValue(v) // null, a truth, a double or a text
}

// inOrder puts the maps in order that a rule writes itself.
func inOrder(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if c, ok := i.(interpreter.InterpretableConstructor); ok && c.Type() == types.MapType {
		return writtenMap{c}, nil
	}
	return i, nil
}

// writtenMap is the part {key: value, …} of a rule.
type writtenMap struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (w writtenMap) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := w.InterpretableConstructor.Exec(frame)
	if m, ok := v.(traits.Mapper); ok {
		return newObject(m)
	}
	return v // an error in a part
}

// Eval implements interpreter.Interpretable.
func (w writtenMap) Eval(values interpreter.Activation) ref.Val {
	return w.Exec(interpreter.AsFrame(values))
}
