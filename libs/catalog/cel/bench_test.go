package cel_test

import (
	"fmt"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog/cel"
)

const asksVersion = `properties.exists(p, p.type == "olm.package" && p.value.packageName == "buoy" && semver_compare(p.value.version, "1.0.0") >= 0)`

// BenchmarkCompile compiles rules that are not kept.
func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := cel.Compile(fmt.Sprintf("%s && %d == %d", asksVersion, i, i)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHolds evaluates a rule over a bundle with few properties, from their bytes on.
func BenchmarkHolds(b *testing.B) {
	r, err := cel.Compile(asksVersion)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !holds(r, bundleOf(b, buoy)) {
			b.Fatal("does not hold")
		}
	}
}
