// Package operatorhub decides which default catalogs are switched off, in the words of OperatorHub
// (R-CFG-10): a word on one catalog goes before the word on all. It is pure.
package operatorhub

import (
	"maps"
	"slices"
)

// Hub is what people said.
type Hub struct {
	DisableAll bool
	Sources    map[string]bool // name of a default catalog: disabled
}

// Disabled says whether a default catalog is switched off.
func (h Hub) Disabled(name string) bool {
	if disabled, said := h.Sources[name]; said {
		return disabled
	}
	return h.DisableAll
}

// With is the hub after a word on one catalog.
func (h Hub) With(name string, disabled bool) Hub {
	sources := maps.Clone(h.Sources)
	if sources == nil {
		sources = map[string]bool{}
	}
	sources[name] = disabled
	return Hub{DisableAll: h.DisableAll, Sources: sources}
}

// Names are those that people spoke of, sorted.
func (h Hub) Names() []string { return slices.Sorted(maps.Keys(h.Sources)) }
