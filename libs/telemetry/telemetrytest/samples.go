// Package telemetrytest helps tests of what services tell in metrics.
package telemetrytest

import (
	"fmt"
	"testing"

	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// Lines are the samples, each as its metric, the quoted values of its labels in brackets, and its value. One of a
// metric that is not declared, or with another number of labels than is declared, fails the test.
func Lines(tb testing.TB, declared []telemetry.Metric, samples []telemetry.Sample) []string {
	tb.Helper()
	labels := map[string]int{}
	for _, m := range declared {
		labels[m.Name] = len(m.Labels)
	}
	var out []string
	for _, s := range samples {
		if n, ok := labels[s.Metric]; !ok || n != len(s.Labels) {
			tb.Errorf("%s has %d labels, declared are %d", s.Metric, len(s.Labels), n)
		}
		out = append(out, fmt.Sprintf("%s%q%g", s.Metric, s.Labels, s.Value))
	}
	return out
}
