// Package chaos says how much a test tries of what takes long: make chaos all of it, make test a part, another one in
// each run.
package chaos

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// The environment of make chaos, and of a run that is to try what another one has tried.
const (
	allVariable  = "CHANDLER_CHAOS"
	seedVariable = "CHANDLER_CHAOS_SEED"
)

// All reports whether make chaos runs: everything is tried, and faults last as long as they may in production.
func All() bool { return os.Getenv(allVariable) == "all" }

// seeded is the seed of this process.
var seeded = sync.OnceValues(func() (uint64, error) {
	if text := os.Getenv(seedVariable); text != "" {
		return strconv.ParseUint(text, 10, 64)
	}
	return rand.Uint64(), nil //nolint:gosec // it chooses what is tried
})

// Seed is that of this run, which the test's log names.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed, err := seeded()
	if err != nil {
		t.Fatalf("%s has to be a number that an earlier run printed: %v", seedVariable, err)
	}
	t.Logf("%s=%d tries the same again", seedVariable, seed)
	return seed
}

// Some is what this run tries of a list: n of it, in their order, or all.
func Some[T any](t testing.TB, n int, all ...T) []T {
	t.Helper()
	if All() {
		return all
	}
	return Chosen(Seed(t), n, all)
}

// Chosen are the n of a list that a seed chooses, in the order of the list.
func Chosen[T any](seed uint64, n int, all []T) []T {
	left := rand.New(rand.NewPCG(seed, uint64(len(all)))) //nolint:gosec // it chooses what is tried
	some := make([]T, 0, n)
	for i, one := range all {
		// each of those that are left has the same chance
		if left.IntN(len(all)-i) < n-len(some) {
			some = append(some, one)
		}
	}
	return some
}
