package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Decode reads a case. A field that it does not know is an error that names the place: a namespace that says more
// than is understood would be resolved by half of it. What was seen of OLM may say more.
func Decode(raw []byte) (Case, error) {
	var c Case
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&c); err != nil {
		return c, errs.Wrap(errs.Invalid, err, "line %d", lineOf(raw, err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return c, errs.New(errs.Invalid, "unexpected text behind the case: one file holds one case")
	}
	var whole any
	if err := json.Unmarshal(raw, &whole); err != nil {
		return c, err
	}
	if fields, ok := whole.(map[string]any); ok {
		delete(fields, "expect")
	}
	if field := unknown(whole, reflect.TypeFor[Case](), ""); field != "" {
		return c, errs.New(errs.Invalid, "unknown field %s", field).At(field, "")
	}
	return c, c.check()
}

// lineOf is where the decoder stopped.
func lineOf(raw []byte, err error) int {
	at := int64(len(raw))
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = e.Offset
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = e.Offset
	}
	return 1 + bytes.Count(raw[:min(at, int64(len(raw)))], []byte{'\n'})
}

// unknown is the path of a field of a value that a type does not have, "" where there is none. What is kept as it
// is may hold anything.
func unknown(v any, t reflect.Type, path string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return ""
		}
		known := fields(t)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(path+"."+key, ".")
			f, ok := known[key]
			if !ok {
				return at
			}
			if wrong := unknown(v[key], f, at); wrong != "" {
				return wrong
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return ""
		}
		for i, e := range v {
			if wrong := unknown(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// fields are those of a struct by their names in JSON, with those of embedded structs.
func fields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		if f.Anonymous {
			maps.Copy(out, fields(f.Type))
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out[name] = f.Type
	}
	return out
}

// check finds what cannot be meant.
func (c Case) check() error {
	wrong := func(field, format string, args ...any) error {
		return errs.New(errs.Invalid, "%s: %s", field, fmt.Sprintf(format, args...)).At(field, "")
	}
	if c.Namespace == "" {
		return wrong("namespace", "it is missing")
	}
	for i, g := range c.OperatorGroups {
		if g.UpgradeStrategy != "" && g.UpgradeStrategy != "Default" && g.UpgradeStrategy != failForward {
			return wrong(fmt.Sprintf("operatorGroups[%d].upgradeStrategy", i), "%q is neither Default nor %s",
				g.UpgradeStrategy, failForward)
		}
	}
	seen := map[string]bool{}
	for i, k := range c.Catalogs {
		field := fmt.Sprintf("catalogs[%d]", i)
		switch {
		case k.Name == "":
			return wrong(field+".name", "it is missing")
		case k.Namespace == "":
			return wrong(field+".namespace", "it is missing")
		case seen[k.Namespace+"/"+k.Name]:
			return wrong(field+".name", "catalog %s/%s stands there twice", k.Namespace, k.Name)
		case count(k.Inline != nil, k.File != "", k.Unavailable) > 1: // none of them is an empty catalog
			return wrong(field, "at most one of inline, file and unavailable can be")
		}
		seen[k.Namespace+"/"+k.Name] = true
	}
	seen = map[string]bool{}
	for i, s := range c.Subscriptions {
		if s.Name == "" || seen[s.Name] {
			return wrong(fmt.Sprintf("subscriptions[%d].name", i), "%q is missing or stands there twice", s.Name)
		}
		seen[s.Name] = true
	}
	if e := c.Expect; e != nil && e.Result != ResultResolved && (e.Result != ResultError || e.Error == nil) {
		return wrong("expect.result", "%q is neither resolved nor an error that is told", e.Result)
	}
	return nil
}

func count(of ...bool) int {
	n := 0
	for _, b := range of {
		if b {
			n++
		}
	}
	return n
}
