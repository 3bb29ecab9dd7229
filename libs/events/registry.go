package events

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/chandler-fleet/chandler/libs/internal/compactjson"
)

// Type is the name of an event type with its version, such as "subscription.created.v1".
type Type string

// Writer is a service that may append.
type Writer string

// The services. A database role of the same name with "_" for "-" and the prefix "chandler_" enforces it.
const (
	Gateway   Writer = "gateway"
	Indexer   Writer = "catalog-indexer"
	Resolver  Writer = "resolver"
	Installer Writer = "installer"
	// Fleet is the fleet controller. It runs in the resolver, whose role is a member of this one's.
	Fleet Writer = "fleet"
)

// Payload is the data of one event.
type Payload interface {
	// EventType names the type and version; it is the only place where the name is written.
	EventType() Type
}

// Definition is one entry of the registry.
type Definition struct {
	Type   Type
	Kind   Kind   // kind of the streams that may have it
	Writer Writer // the one service that may append it
	Doc    string // one sentence for docs/events.md
	zero   Payload
}

// Zero returns the empty payload, for generators that describe its fields.
func (d Definition) Zero() Payload { return d.zero }

func define(k Kind, w Writer, zero Payload, doc string) Definition {
	return Definition{Type: zero.EventType(), Kind: k, Writer: w, Doc: doc, zero: zero}
}

// UnknownTypeError is what a reader gets for a type that it does not know. It must stop at that
// position, visibly (DESIGN §3): skipping would make its state silently wrong.
type UnknownTypeError struct{ Type Type }

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("event type %q is unknown to this version of Chandler; upgrade this service before its writers",
		e.Type)
}

// Lookup returns the definition of a type.
func Lookup(t Type) (Definition, bool) {
	d, ok := byType[t]
	return d, ok
}

// Expand returns the types that a text names: one type, or a family such as subscription.*; none where it names
// nothing.
func Expand(t string) []Type {
	if _, ok := byType[Type(t)]; ok {
		return []Type{Type(t)}
	}
	var out []Type
	family, isFamily := strings.CutSuffix(t, "*")
	for _, d := range All() {
		if isFamily && strings.HasSuffix(family, ".") && strings.HasPrefix(string(d.Type), family) {
			out = append(out, d.Type)
		}
	}
	return out
}

// Decode returns the payload of an envelope as a value of the struct registered for its type. An
// unknown type is an *UnknownTypeError; data that does not fit its type is an error.
func Decode(e Envelope) (Payload, error) {
	d, ok := byType[e.Type]
	if !ok {
		return nil, &UnknownTypeError{Type: e.Type}
	}
	p := reflect.New(reflect.TypeOf(d.zero))
	if !compactjson.Read(string(e.Data), p.Interface()) {
		p = reflect.New(reflect.TypeOf(d.zero))
		if err := json.Unmarshal(e.Data, p.Interface()); err != nil {
			return nil, fmt.Errorf("event %s of type %s: %w", e.ID, e.Type, err)
		}
	}
	return p.Elem().Interface().(Payload), nil //nolint:forcetypeassert // the registry holds payloads only
}

var byType = func() map[Type]Definition {
	m := make(map[Type]Definition)
	for _, d := range All() {
		m[d.Type] = d
	}
	return m
}()
