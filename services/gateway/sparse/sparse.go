// Package sparse keeps of an answer the fields that a client asks for. What is not asked for is not encoded.
//
//	name,phase            these fields
//	spec.channel          of spec the channel alone
//	conditions.type       of each condition its type
//	labels.example.com/a  of a map one key, which may have points
package sparse

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/chandler-fleet/chandler/libs/spelling"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

const (
	// maxPaths bounds the fields of one request: the largest answer has some 60 with what is in them.
	maxPaths = 100
	// maxNamed bounds the names that an error lists.
	maxNamed = 40
	// place is where a request gives them.
	place = "query.fields"
)

// Fields is what is kept of a value. Its zero value is everything.
type Fields struct{ parts map[string]Fields }

// All says that the whole value is kept.
func (f Fields) All() bool { return f.parts == nil }

// Parse reads fields of values of a type. What the type does not have is a violation that names what is near.
func Parse(v *rule.Violations, t reflect.Type, text string) Fields {
	paths := strings.Split(text, ",")
	if len(paths) > maxPaths {
		v.Addf(place, rule.MaxItems, "fields has %d names, %d are allowed", len(paths), maxPaths)
		return Fields{}
	}
	out := Fields{parts: map[string]Fields{}}
	for _, path := range paths {
		out.add(v, t, path, path)
	}
	return out
}

// add keeps what rest names within a value of t; whole is the path for messages.
func (f Fields) add(v *rule.Violations, t reflect.Type, rest, whole string) {
	t = bare(t)
	if t.Kind() == reflect.Map && !opaque(t) { // the rest is a key, with whatever points are in it
		f.parts[rest] = Fields{}
		return
	}
	name, rest, deeper := strings.Cut(rest, ".")
	known := fieldsOf(t)
	i := slices.IndexFunc(known, func(k field) bool { return k.name == name })
	switch {
	case i < 0:
		v.Addf(place, rule.OneOf, "%s", unknown(known, name, whole))
		return
	case !deeper:
		f.parts[name] = Fields{} // whatever of it was named before
		return
	case !divisible(known[i].typ):
		v.Addf(place, rule.OneOf, "%q names a part of %s, which has no fields", whole, name)
		return
	}
	part, named := f.parts[name]
	if !named || part.All() {
		part = Fields{parts: map[string]Fields{}}
	}
	if !named {
		f.parts[name] = part
	}
	part.add(v, known[i].typ, rest, whole) // where all of it is kept, this only checks
}

func unknown(known []field, name, whole string) string {
	names := make([]string, 0, len(known))
	for _, k := range known {
		names = append(names, k.name)
	}
	slices.Sort(names)
	near := spelling.DidYouMean(name, names)
	if len(names) > maxNamed {
		names = append(names[:maxNamed], "…")
	}
	of := ""
	if at, within := strings.CutSuffix(whole, "."+name); within {
		of = " in " + at
	}
	return fmt.Sprintf("there is no field %q%s%s: want some of %s", name, of, near, strings.Join(names, ", "))
}

// Of is what is kept of v, whose type is that of Parse.
func (f Fields) Of(v any) any {
	if f.All() || v == nil {
		return v
	}
	return f.of(reflect.ValueOf(v))
}

func (f Fields) of(v reflect.Value) any {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch {
	case f.All():
		return v.Interface()
	case v.Kind() == reflect.Slice && v.IsNil():
		return nil
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = f.of(v.Index(i))
		}
		return list
	case v.Kind() == reflect.Map:
		return f.ofMap(v)
	}
	out := make(map[string]any, len(f.parts))
	for _, k := range fieldsOf(v.Type()) {
		part, kept := f.parts[k.name]
		if !kept {
			continue
		}
		at, err := v.FieldByIndexErr(k.index) // of an embedded pointer that is nil there is nothing
		if err != nil || k.omitEmpty && empty(at) || k.omitZero && at.IsZero() {
			continue
		}
		out[k.name] = part.of(at)
	}
	return out
}

func (f Fields) ofMap(v reflect.Value) any {
	if v.IsNil() {
		return nil
	}
	out := map[string]any{}
	for at := v.MapRange(); at.Next(); {
		if part, kept := f.parts[at.Key().String()]; kept {
			out[at.Key().String()] = part.of(at.Value())
		}
	}
	return out
}

// empty is what omitempty leaves out.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// field is a field of a struct, as JSON has it.
type field struct {
	name                string
	index               []int
	typ                 reflect.Type
	omitEmpty, omitZero bool
}

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	byType    sync.Map // []field by reflect.Type of a struct
)

// bare is what a type is of: of pointers and lists their elements.
func bare(t reflect.Type) reflect.Type {
	for !opaque(t) && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		t = t.Elem()
	}
	return t
}

// opaque says that a type writes itself, or is bytes: it has no fields.
func opaque(t reflect.Type) bool {
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) ||
		t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// divisible says whether parts of a type can be named. Maps are, by keys that are text.
func divisible(t reflect.Type) bool {
	t = bare(t)
	if opaque(t) {
		return false
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
}

// fieldsOf are the fields of a type as encoding/json has them; none of what is no struct.
func fieldsOf(t reflect.Type) []field {
	if t.Kind() != reflect.Struct || opaque(t) {
		return nil
	}
	if found, ok := byType.Load(t); ok {
		return found.([]field) //nolint:forcetypeassert // nothing else is stored
	}
	var list []field
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct && !opaque(inner):
			for _, in := range fieldsOf(inner) {
				in.index = append(slices.Clone(f.Index), in.index...)
				list = append(list, in)
			}
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		list = append(list, field{
			name, f.Index, f.Type, has(options, "omitempty"), has(options, "omitzero"),
		})
	}
	list = outermost(list)
	byType.Store(t, list)
	return list
}

func has(options, one string) bool { return slices.Contains(strings.Split(options, ","), one) }

// outermost keeps of fields with one name that which is embedded least deeply.
func outermost(list []field) []field {
	best := map[string]int{}
	for _, f := range list {
		if depth, ok := best[f.name]; !ok || len(f.index) < depth {
			best[f.name] = len(f.index)
		}
	}
	return slices.DeleteFunc(list, func(f field) bool { return len(f.index) > best[f.name] })
}
