package crd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/services/installer/crd"
)

// checked returns how many of 100 objects a judge takes under a budget, and its verdict.
func checked(ctx context.Context, t *testing.T, b *crd.Budget) int {
	t.Helper()
	j, err := crd.New(crd.Input{
		Live: definition(t, namespaced+version("v1", true, true, size)),
		Next: definition(t, namespaced+version("v1", true, true, ruled)), Budget: b,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range 100 {
		o := gauge(fmt.Sprintf("g%02d", i), `{"size":1}`)
		o["ballast"] = strings.Repeat("x", 1000)
		if !j.Add(ctx, "v1", o) {
			break
		}
		n++
	}
	if v := j.Verdict(n < 100); v.Checked != n || v.More != (n < 100) || !v.Safe ||
		v.More != strings.Contains(strings.Join(v.Warnings, ""), "there are more") {
		t.Errorf("after %d objects: %+v", n, v)
	}
	return n
}

// TestBudget: what one check costs is bounded in bytes and in what rules cost, over all definitions of a plan; beyond
// it the verdict says that there are more objects (R-CRD-2).
func TestBudget(t *testing.T) {
	t.Parallel()
	whole := crd.NewBudget()
	if n := checked(t.Context(), t, whole); n != 100 {
		t.Fatalf("%d of 100 objects under a whole budget", n)
	}
	full := crd.NewBudget()
	bytes, cost := full.Bytes-whole.Bytes, full.Cost-whole.Cost
	if bytes < 100_000 || bytes > 200_000 || cost <= 0 {
		t.Errorf("100 objects of a kilobyte cost %d bytes and %d", bytes, cost)
	}
	small := &crd.Budget{Bytes: bytes / 2, Cost: full.Cost}
	if n := checked(t.Context(), t, small); n != 50 {
		t.Errorf("half of the bytes: %d objects", n)
	}
	if n := checked(t.Context(), t, small); n != 0 {
		t.Errorf("the next definition of the plan: %d objects", n)
	}
	if n := checked(t.Context(), t, &crd.Budget{Bytes: full.Bytes, Cost: cost / 2}); n != 50 {
		t.Errorf("half of the cost: %d objects", n)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if n := checked(ended, t, crd.NewBudget()); n != 0 {
		t.Errorf("nobody waits any more: %d objects", n)
	}
}
