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
	return convert(reflect.ValueOf(v)).Interface()
}

var (
	timeType = reflect.TypeFor[time.Time]()
	// known is by type whether its values may hold times.
	known sync.Map
)

// holds says whether a value of t may hold a time.
func holds(t reflect.Type) bool {
	if found, ok := known.Load(t); ok {
		return found.(bool) //nolint:forcetypeassert // nothing else is stored
	}
	found := search(t, map[reflect.Type]bool{})
	known.Store(t, found)
	return found
}

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

func convert(v reflect.Value) reflect.Value {
	t := v.Type()
	if t == timeType {
		return reflect.ValueOf(Time(v.Interface().(time.Time))) //nolint:forcetypeassert // by its type
	}
	if !holds(t) {
		return v
	}
	switch t.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		out := reflect.New(t).Elem()
		out.Set(convert(v.Elem()))
		return out
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(t.Elem())
		out.Elem().Set(convert(v.Elem()))
		return out
	case reflect.Map:
		return convertMap(v)
	case reflect.Slice, reflect.Array:
		return convertList(v)
	case reflect.Struct:
		out := reflect.New(t).Elem()
		out.Set(v)
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && holds(f.Type) {
				out.Field(i).Set(convert(v.Field(i)))
			}
		}
		return out
	default:
		return v
	}
}

func convertMap(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return v
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for at := v.MapRange(); at.Next(); {
		out.SetMapIndex(at.Key(), convert(at.Value()))
	}
	return out
}

func convertList(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	if v.Kind() == reflect.Slice {
		if v.IsNil() {
			return v
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
	}
	for i := range v.Len() {
		out.Index(i).Set(convert(v.Index(i)))
	}
	return out
}
