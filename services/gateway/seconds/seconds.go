// Package seconds gives the times of answers their one precision: whole seconds in UTC, as the objects of Kubernetes
// have them (ADR 0065). What is decided, sorted and compared keeps the microseconds of PostgreSQL.
package seconds

import (
	"reflect"
	"sync"
	"time"
)

// Pattern is how a time of an answer is written.
const Pattern = `^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$`

// Time is t as answers have it.
func Time(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// Of returns v with every time in it as answers have it. What holds times is copied: read models may hand out values
// that others read meanwhile. Unexported fields keep theirs, and so does encoded JSON.
func Of(v any) any {
	if v == nil {
		return nil
	}
	given := reflect.ValueOf(v)
	if !holds(given.Type()) {
		return v
	}
	out := reflect.New(given.Type()).Elem()
	out.Set(given)
	convert(out)
	return out.Interface()
}

var (
	timeType = reflect.TypeFor[time.Time]()
	// known is by type whether its values may hold times, and of structs in which fields.
	known sync.Map
)

// found is what is known of a type.
type found struct {
	holds  bool
	fields []int // of a struct: exported, and may hold times
}

func of(t reflect.Type) found {
	if f, ok := known.Load(t); ok {
		return f.(found) //nolint:forcetypeassert // nothing else is stored
	}
	f := found{holds: search(t, map[reflect.Type]bool{})}
	if f.holds && t != timeType && t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() && holds(field.Type) {
				f.fields = append(f.fields, i)
			}
		}
	}
	known.Store(t, f)
	return f
}

// holds says whether a value of t may hold a time.
func holds(t reflect.Type) bool { return of(t).holds }

// search looks for times in t; seen are the types around it, which may refer to themselves.
func search(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == timeType {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return search(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() && search(f.Type, seen) {
				return true
			}
		}
		return false
	default:
		return false
	}
}

// convert changes the times of v, which is a copy that nobody else sees and can be set. What v refers to is copied
// before it is changed: lists at once, which takes no allocation for each of their items.
func convert(v reflect.Value) {
	t := v.Type()
	if t == timeType {
		at := v.Addr().Interface().(*time.Time) //nolint:forcetypeassert // by its type
		*at = Time(*at)
		return
	}
	f := of(t)
	if !f.holds {
		return
	}
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		out := reflect.New(v.Elem().Type())
		out.Elem().Set(v.Elem())
		convert(out.Elem())
		if t.Kind() == reflect.Interface {
			out = out.Elem()
		}
		v.Set(out)
	case reflect.Map:
		convertMap(v)
	case reflect.Slice, reflect.Array:
		convertList(v)
	case reflect.Struct:
		for _, i := range f.fields {
			convert(v.Field(i))
		}
	default:
	}
}

func convertMap(v reflect.Value) {
	if v.IsNil() {
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for at := v.MapRange(); at.Next(); {
		one := reflect.New(v.Type().Elem()).Elem()
		one.Set(at.Value())
		convert(one)
		out.SetMapIndex(at.Key(), one)
	}
	v.Set(out)
}

func convertList(v reflect.Value) {
	if v.Kind() == reflect.Slice {
		if v.IsNil() {
			return
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(out, v)
		v.Set(out)
	}
	for i := range v.Len() {
		convert(v.Index(i))
	}
}
