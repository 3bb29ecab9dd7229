package planreview

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
)

// Danger is one kind of what deserves a second look: what an approver reads first.
type Danger struct {
	Code, Words string
	Count       int
	New         bool
	Everywhere  bool // a right that holds in all namespaces, or may
	Example     string
}

// Dangers are those of the rights and demands of a bundle, what is new first; mild demands are none. Rights in all
// namespaces are one kind, and those in some another.
func Dangers(r Rights, at Place) []Danger {
	var out []Danger
	add := func(code, words, example string, isNew, everywhere bool) {
		i := slices.IndexFunc(out, func(d Danger) bool { return d.Code == code && d.Everywhere == everywhere })
		if i < 0 {
			i = len(out)
			out = append(out, Danger{Code: code, Words: words, Everywhere: everywhere})
		}
		d := &out[i]
		d.Count++
		if d.Example == "" || isNew && !d.New {
			d.Example = example
		}
		d.New = d.New || isNew
	}
	for _, x := range r.Rights {
		if x.Sensitive != "" {
			add(x.Sensitive, x.Reason, x.Words, len(x.New) > 0, at.Everywhere(x.Right))
		}
	}
	for _, x := range r.Demands {
		if x.Mild {
			continue
		}
		example := x.Object
		if x.Detail != "" {
			example += ": " + x.Detail
		}
		add(x.Danger, x.Reason, example, x.New, false)
	}
	slices.SortStableFunc(out, func(a, b Danger) int {
		return cmp.Or(compare.First(a.New, b.New), compare.First(a.Everywhere, b.Everywhere))
	})
	return out
}
