package facts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/services/installer/csv"
)

func definition(name, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "resourceVersion": version},
		"spec":     map[string]any{"versions": []any{map[string]any{"name": "v1", "served": true}}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Established", "status": "True"}, map[string]any{"type": "NamesAccepted", "status": "True"},
		}},
	}}
}

// TestNews: an answer is kept unless there was news of its own matter since the question; news of a version of a CRD that
// was read already is none.
func TestNews(t *testing.T) {
	t.Parallel()
	rows := []csv.Requirement{{Kind: gvkCRD.Kind, Name: "tides.sea.test", Status: csv.Present}}
	operator := Operator{Namespace: "ops", UID: "u"}
	for name, c := range map[string]struct {
		news func(*Cache)
		kept bool
	}{
		"none":                     {func(*Cache) {}, true},
		"of another CRD":           {func(c *Cache) { c.CRDChanged("winds.sea.test", "9") }, true},
		"of another namespace":     {func(c *Cache) { c.ForgetNamespace("other") }, true},
		"of its namespace":         {func(c *Cache) { c.ForgetNamespace("ops") }, false},
		"what is known of its CRD": {func(c *Cache) { c.CRDChanged("tides.sea.test", "7") }, true},
		"what was before":          {func(c *Cache) { c.CRDChanged("tides.sea.test", "6") }, true},
		"a newer version":          {func(c *Cache) { c.CRDChanged("tides.sea.test", "10") }, false},
		"its CRD is gone":          {func(c *Cache) { c.CRDChanged("tides.sea.test", "") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := New(nil, func() time.Time { return time.Unix(1_000_000, 0) })
			cache.NoteCRD(definition("tides.sea.test", "7"))
			turn := cache.Turn()
			c.news(cache)
			cache.SetMet(turn, operator, rows)
			if _, kept := cache.Met(operator); kept != c.kept {
				t.Errorf("news between question and answer: kept %v, want %v", kept, c.kept)
			}
			cache.SetMet(cache.Turn(), operator, rows)
			c.news(cache)
			if _, kept := cache.Met(operator); kept != c.kept {
				t.Errorf("news after the answer: kept %v, want %v", kept, c.kept)
			}
		})
	}
}

// TestUsers: who counts on a CRD is told when it changes, once.
func TestUsers(t *testing.T) {
	t.Parallel()
	cache := New(nil, func() time.Time { return time.Unix(1_000_000, 0) })
	for _, ns := range []string{"b", "a"} {
		cache.SetMet(cache.Turn(), Operator{Namespace: ns, UID: ns}, []csv.Requirement{{Kind: gvkCRD.Kind, Name: "tides.sea.test", Status: csv.Present}})
	}
	if diff := cmp.Diff([]string{"a", "b"}, cache.CRDChanged("tides.sea.test", "8")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := cache.CRDChanged("tides.sea.test", "9"); len(again) != 0 {
		t.Errorf("told again: %v", again)
	}
}
