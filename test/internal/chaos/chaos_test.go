package chaos_test

import (
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/test/internal/chaos"
)

// TestChosen: a seed chooses as many as are asked for, each once and in their order, the same each time; and over some
// seeds everything has its turn.
func TestChosen(t *testing.T) {
	t.Parallel()
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	times := map[int]int{}
	const seeds = 300
	for seed := range uint64(seeds) {
		for n := range len(all) + 1 {
			some := chaos.Chosen(seed, n, all)
			if len(some) != n || !slices.IsSorted(some) || len(slices.Compact(slices.Clone(some))) != n {
				t.Fatalf("seed %d chooses %v, want %d of %v in their order", seed, some, n, all)
			}
			if again := chaos.Chosen(seed, n, all); !slices.Equal(some, again) {
				t.Fatalf("seed %d chooses %v, and then %v", seed, some, again)
			}
		}
		for _, one := range chaos.Chosen(seed, 3, all) {
			times[one]++
		}
	}
	for _, one := range all { // 90 each on the average
		if n := times[one]; n < 50 || n > 130 {
			t.Errorf("%d is chosen %d times of %d", one, n, seeds)
		}
	}
}

func TestChosenOfTooFew(t *testing.T) {
	t.Parallel()
	if got := chaos.Chosen(1, 3, []string{"a", "b"}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("3 of 2 are %v", got)
	}
}

// TestSeed: the environment decides what is tried.
func TestSeed(t *testing.T) {
	t.Setenv("CHANDLER_CHAOS", "")
	t.Setenv("CHANDLER_CHAOS_SEED", "7")
	all := []int{1, 2, 3, 4}
	if got, want := chaos.Some(t, 2, all...), chaos.Chosen(7, 2, all); !slices.Equal(got, want) {
		t.Errorf("with a seed %v are tried, want %v", got, want)
	}
	t.Setenv("CHANDLER_CHAOS", "all")
	if got := chaos.Some(t, 2, all...); !slices.Equal(got, all) {
		t.Errorf("make chaos tries %v, want all of %v", got, all)
	}
}
