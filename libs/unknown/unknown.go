// Package unknown keeps the members of JSON documents that this release does not know: what a newer release has written
// is still there after an older one has read the document, changed it and written it back.
//
// A document that is read, changed and written has a field of type Fields, and the two methods
//
//	func (s *State) UnmarshalJSON(data []byte) (err error) {
//		type plain State
//		s.Unknown, err = unknown.Read(data, (*plain)(s))
//		return err
//	}
//
//	func (s State) MarshalJSON() ([]byte, error) {
//		type plain State
//		return unknown.Write(plain(s), s.Unknown)
//	}
//
// Members are kept in the document itself and in the structs within it, not in the elements of its lists and maps.
// A struct that is replaced as a whole keeps them, too.
package unknown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Fields are the members of a document that its type does not have. The zero value is none. A copy of a document shares
// them; they never change.
type Fields struct{ at *node }

// node is one object of a document.
type node struct {
	members map[string]json.RawMessage
	under   map[string]*node // objects within, by the name of their member
}

// None reports whether the type has everything that was there.
func (f Fields) None() bool { return f.at == nil }

// Equal reports whether both have the same members.
func (f Fields) Equal(other Fields) bool { return reflect.DeepEqual(f.at, other.at) }

// Read decodes a document and returns what its type does not have. into is a pointer to a struct without an
// UnmarshalJSON of its own.
func Read(data []byte, into any) (Fields, error) {
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if strict.Decode(into) == nil {
		return Fields{}, nil // as nearly always
	}
	zero := reflect.ValueOf(into).Elem()
	zero.SetZero() // of what the strict reading has left
	if err := json.Unmarshal(data, into); err != nil {
		return Fields{}, err
	}
	n, err := read(data, zero.Type())
	return Fields{n}, err
}

// Write encodes a document with what Read returned for it. Members of the type come first in every respect.
func Write(document any, f Fields) ([]byte, error) {
	data, err := json.Marshal(document)
	if err != nil || f.None() {
		return data, err
	}
	return write(data, f.at, reflect.TypeOf(document))
}

func read(data []byte, t reflect.Type) (*node, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("read the members of a document: %w", err)
	}
	n := &node{members: map[string]json.RawMessage{}, under: map[string]*node{}}
	for name, value := range all {
		field, known := lookup(t, name)
		if !known {
			n.members[name] = value
			continue
		}
		within, ok := object(field)
		if !ok || !bytes.HasPrefix(value, []byte("{")) {
			continue
		}
		under, err := read(value, within)
		if err != nil {
			return nil, err
		}
		if under != nil {
			n.under[name] = under
		}
	}
	if len(n.members)+len(n.under) == 0 {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	return n, nil
}

func write(data []byte, n *node, t reflect.Type) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("add the members of a newer release: %w", err)
	}
	for name, value := range n.members {
		if _, there := all[name]; !there {
			all[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.under)) {
		field, _ := lookup(t, name)
		within, ok := object(field)
		value := all[name]
		if value == nil {
			value = json.RawMessage("{}") // left out, since this release knows nothing in it
		}
		if !ok || !bytes.HasPrefix(value, []byte("{")) {
			continue
		}
		written, err := write(value, n.under[name], within)
		if err != nil {
			return nil, err
		}
		all[name] = written
	}
	return json.Marshal(all)
}

// lookup finds the field that takes a member, as encoding/json does: by its name, in whatever case.
func lookup(t reflect.Type, member string) (reflect.Type, bool) {
	var folded reflect.Type
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || f.Tag.Get("json") == "-" || f.Anonymous && name == "":
			continue
		case name == "":
			name = f.Name
		}
		if name == member {
			return f.Type, true
		}
		if strings.EqualFold(name, member) {
			folded = f.Type
		}
	}
	return folded, folded != nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// object is the struct of a field whose members are those of its type.
func object(t reflect.Type) (reflect.Type, bool) {
	if t == nil {
		return nil, false
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(unmarshaler)
}
