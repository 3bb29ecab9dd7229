package v2

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// newChannel orders a channel by its replaces chain, head first, never by version (R-GRA-2). Entries that
// another one skips stay out of the order, though they carry the chain on (R-GRA-3, R-GRA-9); so do
// entries without a bundle (R-GRA-11). A malformed channel keeps its entries by name and an error, which
// is told when the order would matter (R-GRA-15).
func newChannel(p catalog.Package, c catalog.Channel, bundles map[string]*operator) channel {
	out := channel{name: c.Name, isDefault: c.Name == p.DefaultChannel, all: map[string]entry{}}
	for _, e := range c.Entries {
		if op := bundles[e.Name]; op != nil {
			out.all[e.Name] = newEntry(e, op)
		}
	}
	g, err := catalog.NewGraph(c)
	if err != nil {
		out.err = fmt.Errorf("package %q: %w (R-GRA-15)", p.Name, err)
		return out
	}
	for _, e := range g.Ordered() {
		if known, ok := out.all[e.Name]; ok {
			out.entries = append(out.entries, known)
		}
	}
	return out
}

func newEntry(e catalog.Entry, op *operator) entry {
	out := entry{name: e.Name, replaces: e.Replaces, skips: e.Skips, bundle: op}
	if e.SkipRange != "" {
		if r, err := catalog.ParseRange(e.SkipRange); err == nil {
			out.skipRange = r
		}
	}
	return out
}
