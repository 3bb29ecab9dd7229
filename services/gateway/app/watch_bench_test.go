package app_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// BenchmarkWatch is one change of a subscription until all of 100 watches of the whole list have told of it, in a fleet
// of 200 subscriptions with a namespace each.
func BenchmarkWatch(tb *testing.B) {
	const streams, objects = 100, 200
	b := setupWith(tb, func(c *app.Config) {
		c.Limits.Streams, c.Limits.OwnStreams = 2*streams, 2*streams
		c.Limits.RequestRate = 1_000_000
	})
	b.watchedFleet()
	in := func(i int) string { return strings.Replace(subscriptions, "/ops/", fmt.Sprintf("/ns-%d/", i), 1) }
	for i := range objects {
		must[model.Subscription](b, 201, b.do("POST", in(i), subscribe("gauge", "gauge")))
	}
	all := make([]*watched, streams)
	for i := range all {
		all[i] = b.watch(token, "/api/v1/subscriptions", "")
		all[i].told()
	}
	var told []time.Duration
	n := 0
	for tb.Loop() {
		n++
		change := subscribe("gauge", "gauge")
		change.Channel = fmt.Sprintf("c-%d", n)
		began := time.Now()
		must[model.Subscription](b, 200, b.ask("PUT", in(n%objects)+"/gauge", change.SubscriptionSpec, "If-Match", "*"))
		var mu sync.Mutex
		var wait sync.WaitGroup
		for _, w := range all {
			wait.Go(func() {
				for m, ok := w.next(); ok; m, ok = w.next() {
					if m.of.Spec.Channel == change.Channel {
						break
					}
				}
				mu.Lock()
				defer mu.Unlock()
				told = append(told, time.Since(began))
			})
		}
		wait.Wait()
	}
	slices.Sort(told)
	tb.ReportMetric(float64(told[len(told)/2].Microseconds())/1000, "p50-ms")
	tb.ReportMetric(float64(told[len(told)*99/100].Microseconds())/1000, "p99-ms")
}
