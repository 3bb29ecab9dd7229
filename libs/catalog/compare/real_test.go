package compare_test

import (
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest/installset"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
)

// upgrades are the pairs of the install set, but for the first ones of their channels.
func upgrades(tb testing.TB) ([]installset.Pair, map[string]bundle.Content) {
	tb.Helper()
	pairs, contents := installset.Load(tb)
	return slices.DeleteFunc(pairs, func(p installset.Pair) bool { return p.Previous == "" }), contents
}

// TestRealUpgrades compares fifty real operators with their predecessors. A bundle does not differ from
// itself, what one way gains the other way loses, and some of them do break something: were it none, the
// comparison would see nothing.
func TestRealUpgrades(t *testing.T) {
	t.Parallel()
	pairs, contents := upgrades(t)
	breaking, more, grown := 0, 0, 0
	for _, p := range pairs {
		from, to := contents[p.Previous], contents[p.Head]
		if from.Manifests == nil || to.Manifests == nil {
			t.Errorf("%s: %s or %s is not there", p.Package, p.Previous, p.Head)
			continue
		}
		if d := difference(t, to, to); !d.Empty() {
			t.Errorf("%s differs from itself: %+v", p.Head, d)
		}
		forth, back := difference(t, from, to), difference(t, to, from)
		if len(forth.Gained) != len(back.Lost) || len(forth.Lost) != len(back.Gained) {
			t.Errorf("%s: %d rights gained and %d lost, on the way back %d and %d", p.Head,
				len(forth.Gained), len(forth.Lost), len(back.Gained), len(back.Lost))
		}
		if forth.Breaking() {
			breaking++
		}
		if len(forth.Gained) > 0 {
			more++
		}
		if forth.Growth() > 0 {
			grown++
		}
		t.Logf("%-45s crds %2d, breaking %-5v, rights +%d -%d, demands +%d, unknown %d", p.Head, len(forth.CRDs),
			forth.Breaking(), len(forth.Gained), len(forth.Lost), len(forth.Demands), forth.Unknown())
	}
	t.Logf("of %d upgrades %d break something, %d gain rights, %d gain rights or ask for more", len(pairs), breaking,
		more, grown)
	if most := len(pairs) / 2; grown > most {
		t.Errorf("%d of %d upgrades are said to ask for more: who is always warned reads no warning", grown, len(pairs))
	}
	if breaking < 5 || more < 5 || breaking == len(pairs) {
		t.Errorf("of %d upgrades %d break something and %d gain rights", len(pairs), breaking, more)
	}
}

func BenchmarkUpgrades(b *testing.B) {
	pairs, contents := upgrades(b)
	n := 0
	for b.Loop() {
		for _, p := range pairs {
			if _, err := compare.Bundles(contents[p.Previous], contents[p.Head]); err != nil {
				b.Fatal(err)
			}
		}
		n += len(pairs)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n), "µs/upgrade")
}
