package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/services/installer/crd"
)

// shelf holds objects of one size.
type shelf struct {
	objects, bytes int
	limits         []int64
	read           int
}

func (s *shelf) Page(_ context.Context, _ schema.GroupVersionResource, limit int64, from string) (
	items []unstructured.Unstructured, next string, err error,
) {
	s.limits = append(s.limits, limit)
	first := 0
	if from != "" {
		if first, err = strconv.Atoi(from); err != nil {
			return nil, "", err
		}
	}
	last := min(s.objects, first+int(limit))
	for i := first; i < last; i++ {
		items = append(items, unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "sea.test/v1", "kind": "Gauge", "metadata": map[string]any{"name": fmt.Sprint("g", i)},
			"spec": map[string]any{"size": int64(1), "note": strings.Repeat("x", s.bytes)},
		}})
	}
	s.read += len(items)
	if last < s.objects {
		next = strconv.Itoa(last)
	}
	return items, next, nil
}

func definitionOf(maximum string) json.RawMessage {
	return json.RawMessage(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gauges.sea.test"},
"spec":{"group":"sea.test","scope":"Namespaced","names":{"kind":"Gauge","plural":"gauges"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"note":{"type":"string"},"size":{"type":"integer"` + maximum + `}}}}}}}]},
"status":{"storedVersions":["v1"]}}`)
}

// TestPages: objects are read in pages that hold few of them where they are large, until the budget is used up
// (R-CRD-2).
func TestPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shelf  shelf
		budget int64
		most   int64 // of all pages
		read   int
		more   bool
	}{
		"many small ones":            {shelf{objects: 120, bytes: 10}, 1 << 20, maxPage, 120, false},
		"more than a verdict reads":  {shelf{objects: 3000, bytes: 10}, 1 << 30, maxPage, 2010, true},
		"large ones":                 {shelf{objects: 30, bytes: 1 << 20}, 1 << 30, firstPage, 30, false},
		"more than the budget takes": {shelf{objects: 100, bytes: 1 << 20}, 12 << 20, firstPage, 13, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := crd.NewBudget()
			b.Bytes = c.budget
			j, err := crd.New(crd.Input{Live: definitionOf(""), Next: definitionOf(`,"maximum":5`), Budget: b})
			if err != nil {
				t.Fatal(err)
			}
			more, err := objects(t.Context(), &c.shelf, j, b)
			if err != nil || more != c.more || c.shelf.read != c.read {
				t.Errorf("more %v, read %d, error %v; want more %v, read %d", more, c.shelf.read, err, c.more, c.read)
			}
			for i, limit := range c.shelf.limits {
				if limit > c.most || i > 0 && c.shelf.bytes > 1<<19 && limit > 4 {
					t.Errorf("page %d of %d objects", i, limit)
				}
			}
			if v := j.Verdict(more); v.More != c.more {
				t.Errorf("verdict: %+v", v)
			}
		})
	}
}
