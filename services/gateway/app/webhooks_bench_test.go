package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// BenchmarkWebhookFanOut sends events of 100 subjects to 20 webhooks, of which one never answers in time: the others do
// not wait for it. The target is 2,000 deliveries a second.
func BenchmarkWebhookFanOut(b *testing.B) {
	const hooks, subjects = 20, 100
	bench := webhookBench(b, &movingClock{})
	var taken atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken.Add(1) }))
	b.Cleanup(receiver.Close)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
	}))
	b.Cleanup(slow.CloseClientConnections)
	for i := range hooks {
		bench.setWebhook(fmt.Sprintf("hook-%d", i), model.WebhookSpec{URL: receiver.URL, Types: []string{"csv.*"}})
	}
	bench.setWebhook("slow", model.WebhookSpec{URL: slow.URL, Types: []string{"csv.*"}})
	var phases []events.Payload
	for i := range 20 {
		phase := []string{"Installing", "Succeeded"}[i%2]
		phases = append(phases, events.CSVPhaseChanged{Phase: phase, Package: "tidegauge"})
	}
	b.ResetTimer()
	for range b.N {
		before := taken.Load()
		for i := range subjects {
			csv := fmt.Sprintf("spoke/ops/tidegauge-%d.v1.0.0", i)
			bench.fact(events.Installer, events.KindCSV, csv, csv, phases...)
		}
		want := before + hooks*subjects*int64(len(phases))
		bench.until(func() bool { return taken.Load() >= want })
	}
	b.StopTimer()
	b.ReportMetric(float64(taken.Load())/b.Elapsed().Seconds(), "deliveries/s")
	bench.stop()
}
