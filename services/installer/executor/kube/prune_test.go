package kube

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestIntersect: what the server dropped goes, at any depth; what it added does not come.
func TestIntersect(t *testing.T) {
	t.Parallel()
	have := map[string]any{
		"a": "x", "slip": int64(1),
		"list": []any{map[string]any{"name": "n", "slip": true}, "text"},
		"map":  map[string]any{"in": map[string]any{"slip": nil, "out": "y"}},
	}
	kept := map[string]any{
		"a": "changed", "added": "z",
		"list": []any{map[string]any{"name": "n", "default": "d"}, "text", "more"},
		"map":  map[string]any{"in": map[string]any{"out": "y"}},
	}
	removed := intersect(have, kept, "")
	want := map[string]any{
		"a":    "x",
		"list": []any{map[string]any{"name": "n"}, "text"},
		"map":  map[string]any{"in": map[string]any{"out": "y"}},
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/list/0/slip", "/map/in/slip", "/slip"}, removed); diff != "" {
		t.Errorf("told as removed (-want +got):\n%s", diff)
	}
}

// TestUntypable: an internal error of this kind is not one that passes.
func TestUntypable(t *testing.T) {
	t.Parallel()
	unknown := errors.New(
		"failed to create typed patch object (a/b; apps/v1, Kind=Deployment): .spec.slip: field not declared in schema")
	twice := errors.New(
		`failed to create typed patch object (a/b; v1, Kind=Service): .spec.ports: duplicate entries for key [port=1,protocol="TCP"]`)
	if !isUnknownField(unknown) || isUnknownField(twice) || isUnknownField(nil) {
		t.Error("unknown fields are not told apart")
	}
	if !IsUntypable(unknown) || !IsUntypable(twice) || IsUntypable(errors.New("etcd is slow")) {
		t.Error("untypable objects are not told apart")
	}
}

// TestUntried: where the trial ended that was to tell what the API server keeps, its own reason decides what becomes of
// the write, and both are reported.
func TestUntried(t *testing.T) {
	t.Parallel()
	unknown := errors.New(
		"failed to create typed patch object (a/b; apps/v1, Kind=Deployment): .spec.slip: field not declared in schema")
	passing := untried(apierrors.NewTooManyRequests("slow down", 1), unknown)
	wrong := untried(apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "tide", nil), unknown)
	if IsUntypable(passing) || !apierrors.IsTooManyRequests(passing) || IsUntypable(wrong) ||
		!apierrors.IsInvalid(wrong) {
		t.Errorf("%v is taken for untypable: %t, of a wrong object: %t", passing, IsUntypable(passing),
			IsUntypable(wrong))
	}
	for _, part := range []string{"slow down", ".spec.slip"} {
		if !strings.Contains(passing.Error(), part) {
			t.Errorf("%v says nothing of %s", passing, part)
		}
	}
}
