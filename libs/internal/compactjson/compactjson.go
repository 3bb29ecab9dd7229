// Package compactjson reads JSON in exactly the form in which encoding/json writes a struct: fields in the order of the
// type, no blanks, nothing unknown. That takes a third of the time of encoding/json,
// which reads every value twice and looks every field up by name; the log is read in this form by every replay.
//
// Anything else is not an error: Read reports false, and the caller lets encoding/json decide. What Read takes,
// encoding/json would have read to the same value.
package compactjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Read reads text into a struct, which must be zero, and reports whether it could; the struct is of no use if not. into
// is a pointer to it. The strings in it share the memory of text.
func Read(text string, into any) bool {
	v := reflect.ValueOf(into).Elem()
	read := readerOf(v.Type())
	if read == nil {
		return false
	}
	c := cursor{rest: text}
	return read(&c, v) && c.rest == ""
}

// reader reads one value of its type; false means that the text is not in the form, or the value does not fit.
type reader func(c *cursor, v reflect.Value) bool

// readers holds the reader of each type that was read before; nil for a type that cannot be read.
var readers sync.Map // reflect.Type → reader

func readerOf(t reflect.Type) reader {
	if r, ok := readers.Load(t); ok {
		return r.(reader) //nolint:forcetypeassert // nothing else is stored
	}
	r := build(t, nil)
	readers.Store(t, r)
	return r
}

var (
	timeType   = reflect.TypeFor[time.Time]()
	jsonReader = reflect.TypeFor[json.Unmarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// build returns the reader of a type, nil where this package has none: a type that holds itself, for instance. outer
// are the types around it.
func build(t reflect.Type, outer []reflect.Type) reader {
	switch {
	case t == timeType:
		return readTime
	case slices.Contains(outer, t), reflect.PointerTo(t).Implements(jsonReader),
		reflect.PointerTo(t).Implements(textReader):
		return nil
	}
	outer = append(outer, t)
	switch t.Kind() {
	case reflect.String:
		return readString
	case reflect.Bool:
		return readBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return readInt
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // bytes are written as base64
			return list(build(t.Elem(), outer))
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && build(t.Key(), outer) != nil {
			return dictionary(t, build(t.Elem(), outer))
		}
	case reflect.Struct:
		return object(t, outer)
	default: // left to encoding/json
	}
	return nil
}

func readString(c *cursor, v reflect.Value) bool {
	s, ok := c.text()
	v.SetString(s)
	return ok
}

func readBool(c *cursor, v reflect.Value) bool {
	is := c.pass("true")
	v.SetBool(is)
	return is || c.pass("false")
}

func readInt(c *cursor, v reflect.Value) bool {
	n, ok := c.number()
	if !ok || v.OverflowInt(n) {
		return false
	}
	v.SetInt(n)
	return true
}

func readTime(c *cursor, v reflect.Value) bool {
	s, ok := c.plain() // time.Time knows no escapes
	if !ok {
		return false
	}
	t, isTime := reflect.TypeAssert[*time.Time](v.Addr())
	return isTime && t.UnmarshalText([]byte(s)) == nil
}

func list(element reader) reader {
	if element == nil {
		return nil
	}
	return func(c *cursor, v reflect.Value) bool {
		if !c.pass("[") {
			return false
		}
		if c.pass("]") {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
			return true
		}
		for n := 0; ; n++ {
			v.Grow(1)
			v.SetLen(n + 1)
			if !element(c, v.Index(n)) {
				return false
			}
			if !c.pass(",") {
				return c.pass("]")
			}
		}
	}
}

func dictionary(t reflect.Type, element reader) reader {
	if element == nil {
		return nil
	}
	return func(c *cursor, v reflect.Value) bool {
		if !c.pass("{") {
			return false
		}
		m := reflect.MakeMap(t)
		v.Set(m)
		if c.pass("}") {
			return true
		}
		for {
			key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
			if !readString(c, key) || !c.pass(":") || !element(c, value) {
				return false
			}
			m.SetMapIndex(key, value)
			if !c.pass(",") {
				return c.pass("}")
			}
		}
	}
}

// field is one field of a struct.
type field struct {
	key   string // as it is written, with quotes and colon
	index int
	read  reader
}

func object(t reflect.Type, outer []reflect.Type) reader {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous || options != "" && options != "omitempty" && options != "omitzero":
			return nil
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		fields = append(fields, field{key: strconv.Quote(name) + ":", index: i, read: build(f.Type, outer)})
	}
	return func(c *cursor, v reflect.Value) bool { return readObject(c, v, fields) }
}

// readObject reads fields in their order; those that are left out stay as they are.
func readObject(c *cursor, v reflect.Value, fields []field) bool {
	if !c.pass("{") {
		return false
	}
	if c.pass("}") {
		return true
	}
	for _, f := range fields {
		if !c.pass(f.key) {
			continue
		}
		if f.read == nil || !f.read(c, v.Field(f.index)) {
			return false
		}
		if !c.pass(",") {
			return c.pass("}")
		}
	}
	return false
}

// cursor walks along the text.
type cursor struct{ rest string }

// pass goes behind what may come next, and reports whether it came.
func (c *cursor) pass(next string) bool {
	rest, ok := strings.CutPrefix(c.rest, next)
	c.rest = rest
	return ok
}

// text reads a string in quotes.
func (c *cursor) text() (string, bool) {
	if s, ok := c.plain(); ok {
		return s, true
	}
	return c.escaped()
}

// plain reads a string in quotes that is ASCII without escapes; from any other it stays where it is.
func (c *cursor) plain() (string, bool) {
	s, quoted := strings.CutPrefix(c.rest, `"`)
	for i := 0; quoted && i < len(s); i++ {
		switch b := s[i]; {
		case b == '"':
			c.rest = s[i+1:]
			return s[:i], true
		case b < ' ' || b >= 0x7f || b == '\\':
			return "", false
		}
	}
	return "", false
}

// escaped reads any string in quotes.
func (c *cursor) escaped() (s string, ok bool) {
	if !strings.HasPrefix(c.rest, `"`) {
		return "", false
	}
	for i := 1; i < len(c.rest); i++ {
		switch c.rest[i] {
		case '\\':
			i++
		case '"':
			ok = json.Unmarshal([]byte(c.rest[:i+1]), &s) == nil
			c.rest = c.rest[i+1:]
			return s, ok
		}
	}
	return "", false
}

// number reads an integer.
func (c *cursor) number() (int64, bool) {
	const digits = 18 // surely no overflow
	negative := c.pass("-")
	var n int64
	i := 0
	for ; i < len(c.rest) && i <= digits && c.rest[i] >= '0' && c.rest[i] <= '9'; i++ {
		n = 10*n + int64(c.rest[i]-'0')
	}
	if i == 0 || i > digits || c.rest[0] == '0' && i > 1 {
		return 0, false
	}
	c.rest = c.rest[i:]
	if negative {
		n = -n
	}
	return n, true
}
