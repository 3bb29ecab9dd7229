package executor

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// waiting are the namespaces that wait for an API to appear. Its methods may be called side by side.
type waiting struct {
	mu     sync.Mutex
	any    map[string]bool     // those that lack what an operator requires
	groups map[string][]string // the API groups of objects that no operator needs, by namespace
}

func newWaiting() *waiting { return &waiting{any: map[string]bool{}, groups: map[string][]string{}} }

// await says whether operators of a namespace lack what they require.
func (w *waiting) await(namespace string, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if waits {
		w.any[namespace] = true
		return
	}
	delete(w.any, namespace)
}

// awaitGroups says for which API groups objects of a namespace wait.
func (w *waiting) awaitGroups(namespace string, groups []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(groups) == 0 {
		delete(w.groups, namespace)
		return
	}
	w.groups[namespace] = groups
}

// of are the namespaces that may wait for a definition, by its name.
func (w *waiting) of(definition string) []string {
	_, group, _ := strings.Cut(definition, ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	out := slices.Collect(maps.Keys(w.any))
	for ns, groups := range w.groups {
		if slices.Contains(groups, group) {
			out = append(out, ns)
		}
	}
	return out
}
