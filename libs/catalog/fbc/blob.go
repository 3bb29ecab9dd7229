package fbc

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Blob is one document. Raw is the whole of it as one JSON object, in canonical form or as it came.
type Blob struct {
	Schema  string
	Package string // of olm.package: its own name
	Name    string
	Raw     json.RawMessage
}

// NewBlob makes a blob of a value that encodes to an object with at least a schema (§1.2).
func NewBlob(v any) (Blob, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return Blob{}, errs.Wrap(errs.Invalid, err, "a catalog document cannot be written as JSON")
	}
	return ParseBlob(raw)
}

// ParseBlob reads the envelope of one document. Its keys are recognised in any case, must be strings and
// may occur once (R-CAT-6).
func ParseBlob(raw json.RawMessage) (Blob, error) {
	t, err := parse(raw)
	if err != nil {
		return Blob{}, err
	}
	if t.kind != '{' {
		return Blob{}, errs.New(errs.Invalid, "a catalog document must be an object with a schema").At("", "R-CAT-6")
	}
	b := Blob{Raw: raw}
	fields := map[string]*string{"schema": &b.Schema, "package": &b.Package, "name": &b.Name}
	seen := map[string]bool{}
	for i, key := range t.keys {
		folded := strings.ToLower(key)
		into := fields[folded]
		switch {
		case into == nil:
			continue
		case seen[folded]:
			return Blob{}, errs.New(errs.Invalid, "duplicate keys for key %q in a catalog document; keep one",
				folded).At("", "R-CAT-6")
		case t.items[i].kind != '"':
			return Blob{}, errs.New(errs.Invalid, "the value of %q of a catalog document must be a string", key).At(
				"", "R-CAT-6")
		}
		seen[folded] = true
		*into = t.items[i].text
	}
	if b.Schema == "" {
		return Blob{}, errs.New(errs.Invalid, "a catalog document is missing root schema field").At("", "R-CAT-6")
	}
	if b.Schema == catalog.SchemaPackage {
		b.Package = b.Name
	}
	return b, nil
}

// String names the document for messages: "olm.channel stable of package tidegauge".
func (b Blob) String() string {
	s := b.Schema
	if b.Name != "" {
		s += " " + b.Name
	}
	if b.Package != "" && b.Schema != catalog.SchemaPackage {
		s = fmt.Sprintf("%s of package %s", s, b.Package)
	}
	return s
}

// With is the document with another value for one of its fields; the others stay as they are.
func (b Blob) With(key string, value any) (Blob, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b.Raw, &fields); err != nil {
		return Blob{}, errs.Wrap(errs.Invalid, err, "%s", b)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return Blob{}, errs.Wrap(errs.Invalid, err, "%s of %s", key, b)
	}
	maps.DeleteFunc(fields, func(k string, _ json.RawMessage) bool { return strings.EqualFold(k, key) })
	fields[key] = raw
	return NewBlob(fields)
}

// known reports whether a schema is one of the four whose meaning does not depend on the order of keys.
func known(schema string) bool {
	switch schema {
	case catalog.SchemaPackage, catalog.SchemaChannel, catalog.SchemaBundle, catalog.SchemaDeprecations:
		return true
	}
	return false
}
