package printer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
)

// path is a JSONPath to a field of an object.
type path struct {
	text string
	*printers.JSONPathPrinter
}

// readPath reads a path as kubectl takes it: name, .name, {name} and {.name} are the same.
func readPath(text string) (path, error) {
	inner := strings.TrimSpace(text)
	if strings.HasPrefix(inner, "{") != strings.HasSuffix(inner, "}") {
		return path{}, fmt.Errorf("the path %q: a brace is missing", text)
	}
	inner = strings.TrimSuffix(strings.TrimPrefix(inner, "{"), "}")
	if !strings.HasPrefix(inner, ".") && !strings.HasPrefix(inner, "[") {
		inner = "." + inner
	}
	p, err := printers.NewJSONPathPrinter("{" + inner + "}")
	if err != nil {
		return path{}, fmt.Errorf("the path %q: %w", text, err)
	}
	p.AllowMissingKeys(true)
	return path{text, p}, nil
}

// find returns the values at the path; what is null or not there is none.
func (p path) find(document any) ([]any, error) {
	results, err := p.FindResults(document)
	if err != nil {
		return nil, fmt.Errorf("the path %q: %w", p.text, err)
	}
	var out []any
	for _, list := range results {
		for _, v := range list {
			if v.IsValid() && v.CanInterface() && v.Interface() != nil {
				out = append(out, v.Interface())
			}
		}
	}
	return out, nil
}

// sorted orders items by the field of --sort-by; those without it come first, as with kubectl.
func (o *Output) sorted(items []Item) ([]Item, error) {
	if o.SortBy == "" || len(items) == 0 {
		return items, nil
	}
	p, err := readPath(o.SortBy)
	if err != nil {
		return nil, command.Usagef("--sort-by: %w", err)
	}
	type keyed struct {
		Item

		key any
	}
	all, found := make([]keyed, len(items)), false
	for i, item := range items {
		v, err := asJSON(item.document())
		if err != nil {
			return nil, err
		}
		keys, err := p.find(v)
		if err != nil {
			return nil, command.Usagef("--sort-by: %w", err)
		}
		all[i].Item = item
		if len(keys) > 0 {
			all[i].key, found = keys[0], true
		}
	}
	if !found {
		return nil, command.Usagef("--sort-by: none of the objects has a field %s; -o json shows their fields", o.SortBy)
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return compareValues(a.key, b.key) })
	out := make([]Item, len(all))
	for i := range all {
		out[i] = all[i].Item
	}
	return out, nil
}

// compareValues orders values of JSON: nothing, then numbers, times, and text with its numbers as numbers.
func compareValues(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(btoi(a != nil), btoi(b != nil))
	}
	x, isNumber := number(a)
	y, both := number(b)
	if isNumber && both {
		return cmp.Compare(x, y)
	}
	s, t := cellText(a), cellText(b)
	u, err := time.Parse(time.RFC3339, s)
	v, err2 := time.Parse(time.RFC3339, t)
	if err == nil && err2 == nil {
		return u.Compare(v)
	}
	return compareNatural(s, t)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// compareNatural orders text so that v1.9 comes before v1.10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := leading(a), leading(b)
		a, b = a[len(x):], b[len(y):]
		if isDigit(x[0]) && isDigit(y[0]) {
			m, n := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
				return c
			}
			continue
		}
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// leading is what text begins with: digits, or one other byte.
func leading(s string) string {
	n := 1
	for isDigit(s[0]) && n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }
