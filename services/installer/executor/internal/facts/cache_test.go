package facts

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/services/installer/csv"
)

func definition(name, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "resourceVersion": version},
		"spec":     map[string]any{"versions": []any{map[string]any{"name": "v1", "served": true}}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Established", "status": "True"},
			map[string]any{"type": "NamesAccepted", "status": "True"},
		}},
	}}
}

// TestNews: an answer is kept unless there was news of its own matter since the question; news of a version of a CRD
// that was read already is none.
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

// TestUsers: who counts on a CRD is reported when it changes, once.
func TestUsers(t *testing.T) {
	t.Parallel()
	cache := New(nil, func() time.Time { return time.Unix(1_000_000, 0) })
	for _, ns := range []string{"b", "a"} {
		cache.SetMet(cache.Turn(), Operator{Namespace: ns, UID: ns},
			[]csv.Requirement{{Kind: gvkCRD.Kind, Name: "tides.sea.test", Status: csv.Present}})
	}
	if diff := cmp.Diff([]string{"a", "b"}, cache.CRDChanged("tides.sea.test", "8")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := cache.CRDChanged("tides.sea.test", "9"); len(again) != 0 {
		t.Errorf("told again: %v", again)
	}
}

// TestAdded: what is asked of an account when a target comes is asked in that target, and in the whole cluster; for as
// long as what was found in the others holds.
func TestAdded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	spec := bundle.CSVSpec{}
	rule := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	spec.Install.Spec.Permissions = []bundle.Permissions{{ServiceAccountName: "tide", Rules: []rbacv1.PolicyRule{rule}}}
	spec.Install.Spec.ClusterPermissions = spec.Install.Spec.Permissions
	before := Operator{Namespace: "ops", UID: "u", Generation: 1, Targets: JoinTargets([]string{"a", "b"})}
	after := before
	after.Targets = JoinTargets([]string{"a", "b", "c"})
	other := after
	other.Generation = 2
	cache := New(nil, func() time.Time { return now })
	asked := func(o Operator) []string {
		ask, held := added(spec, "tide", csv.Scopes(spec, "tide", []string{"a", "b", "c"}), cache.satisfied(o))
		for _, ns := range []string{"a", "b", "c"} {
			if lacks := held.Lacks(ns, []rbacv1.PolicyRule{rule}); (len(lacks) > 0) != slices.Contains(ask, ns) {
				t.Errorf("asked in %q, lacking %v in %s", ask, lacks, ns)
			}
		}
		return ask
	}
	all := []string{"", "a", "b", "c"}
	if got := asked(after); !slices.Equal(got, all) {
		t.Errorf("before anything is known it is asked in %q", got)
	}
	cache.SetMet(cache.Turn(), before, nil)
	if got := asked(after); !slices.Equal(got, []string{"", "c"}) {
		t.Errorf("when c comes it is asked in %q", got)
	}
	if got := asked(other); !slices.Equal(got, all) {
		t.Errorf("of another generation it is asked in %q", got)
	}
	now = now.Add(metFor / 2)
	cache.SetMet(cache.Turn(), after, nil)
	now = now.Add(metFor / 2)
	if got := asked(after); !slices.Equal(got, all) {
		t.Errorf("when what was found in a and b is old it is asked in %q", got)
	}
	cache.SetMet(cache.Turn(), after, nil)
	cache.ForgetNamespace("ops")
	if got := asked(after); !slices.Equal(got, all) {
		t.Errorf("after news of its namespace it is asked in %q", got)
	}
}

// TestNewsIsBounded: whatever comes and goes in a cluster, what is remembered of it is bounded, and no answer from
// before is kept for that.
func TestNewsIsBounded(t *testing.T) {
	t.Parallel()
	cache := New(nil, func() time.Time { return time.Unix(1_000_000, 0) })
	operator := Operator{Namespace: "ops", UID: "u"}
	turn := cache.Turn()
	cache.ForgetNamespace("ops")
	for i := range maxNews {
		cache.ForgetCRD(fmt.Sprint("tides", i))
	}
	if len(cache.news) > maxNews {
		t.Errorf("%d news are remembered", len(cache.news))
	}
	cache.SetMet(turn, operator, nil)
	if _, kept := cache.Met(operator); kept {
		t.Error("an answer from before forgotten news is kept")
	}
	cache.SetMet(cache.Turn(), operator, nil)
	if _, kept := cache.Met(operator); !kept {
		t.Error("an answer from after it is not kept")
	}
}
