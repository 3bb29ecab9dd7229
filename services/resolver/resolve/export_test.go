package resolve

import "github.com/chandler-fleet/chandler/services/resolver/sat"

// Chosen is what is chosen in each cluster of an input that can be solved at once, by the guided search and
// option by option.
func Chosen(in Input) (guided, stepwise [][]string) {
	r := newResolution(in)
	for _, c := range r.clusters() {
		a, status := c.choose(guidedConflicts)
		if status != sat.Sat {
			continue
		}
		b := newChooser(c, newRules(c, false).s)
		if b.stepwise() != sat.Sat {
			stepwise = append(stepwise, nil)
		}
		guided, stepwise = append(guided, a.names()), append(stepwise, b.names())
	}
	return guided, stepwise
}

func (h *chooser) names() []string {
	var out []string
	for _, n := range h.taken {
		out = append(out, h.c.w.id(n))
	}
	return out
}
