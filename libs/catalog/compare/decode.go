package compare

import (
	"encoding/json"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// decode reads a manifest as an API server does: names of fields count letter by letter. encoding/json would take
// "roleref" for "roleRef", the last one winning, and so let a bundle show another role than the one that it binds.
func decode(raw json.RawMessage, into any) error { return utiljson.Unmarshal(raw, into) }

// manifest reads an object of a bundle into what is compared of it.
func manifest(o bundle.Object, into any) error {
	if err := decode(o.Raw, into); err != nil {
		return errs.New(errs.Invalid, "%s cannot be read: %v", o, err).At("", "R-CAT-53")
	}
	return nil
}

// fields are an object of JSON with the names that were asked for, so that what is left can be told.
type fields map[string]any

func (f fields) object(name string) fields {
	m, _ := f[name].(map[string]any)
	return m
}

func (f fields) list(name string) []fields {
	l, _ := f[name].([]any)
	out := make([]fields, 0, len(l))
	for _, v := range l {
		m, _ := v.(map[string]any)
		out = append(out, m) // an element of another form is one of nothing
	}
	return out
}

func (f fields) text(name string) string {
	s, _ := f[name].(string)
	return s
}

// texts are the strings of a list, or the keys and values of a map, sorted.
func (f fields) texts(name string) []string {
	var out []string
	switch v := f[name].(type) {
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
	case map[string]any:
		for k, e := range v {
			s, _ := e.(string)
			out = append(out, k+"="+s)
		}
	}
	slices.Sort(out)
	return out
}

func (f fields) is(name string, want bool) bool {
	b, ok := f[name].(bool)
	return ok && b == want
}

func (f fields) has(name string) bool { return f[name] != nil }

// compact is a value in one line, for the detail of a demand.
func compact(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // what came out of JSON goes back into it
		return "?"
	}
	return short(string(raw))
}

// words are a set of names.
func words(all string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(all) {
		out[w] = true
	}
	return out
}
