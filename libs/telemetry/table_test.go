package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// fresh is a Telemetry with metrics alone, and what is scraped from it, without comments.
func fresh() (*Telemetry, func() string) {
	r := prometheus.NewRegistry()
	tel := &Telemetry{
		Log: slog.New(slog.DiscardHandler), registry: r,
		Metrics: promhttp.HandlerFor(r, promhttp.HandlerOpts{}),
	}
	return tel, func() string {
		w := httptest.NewRecorder()
		tel.Metrics.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
		var lines []string
		for line := range strings.Lines(w.Body.String()) {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
}

// TestTable is R-MET-1 (names and labels as given) and R-MET-2: the series of what is gone are gone.
func TestTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tel, scrape := fresh()
		var samples []Sample
		var failing error
		reads := 0
		read := func(context.Context) ([]Sample, error) { reads++; return samples, failing }
		metrics := []Metric{
			{Name: "csv_succeeded", Labels: []string{"namespace", "name"}},
			{Name: "csv_upgrade_count", Counter: true},
		}
		if err := tel.Table(read, metrics...); err != nil {
			t.Fatal(err)
		}
		samples = []Sample{
			{"csv_succeeded", 1, []string{"coast", "tide.v1"}},
			{"csv_succeeded", 0, []string{"coast", "ebb.v1"}},
			{"csv_upgrade_count", 7, nil},
		}
		want := "csv_succeeded{name=\"ebb.v1\",namespace=\"coast\"} " +
			"0\ncsv_succeeded{name=\"tide.v1\",namespace=\"coast\"} 1\ncsv_upgrade_count 7\n"
		if got := scrape(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		scrape()
		if reads != 1 {
			t.Errorf("%d reads for two who ask at once, want 1", reads)
		}
		failing = errors.New("away")
		time.Sleep(tableFor) //nolint:forbidigo // the clock of synctest moves at once
		if got := scrape(); got != want {
			t.Errorf("while it cannot be read: got\n%s\nwant\n%s", got, want)
		}
		samples, failing = samples[:1], nil
		if got := scrape(); got != "csv_succeeded{name=\"tide.v1\",namespace=\"coast\"} 1\n" {
			t.Errorf("after one has gone: got\n%s", got)
		}
	})
}

// TestTableAgain: a service that is started again in the same process takes its metrics over.
func TestTableAgain(t *testing.T) {
	t.Parallel()
	tel, scrape := fresh()
	for _, v := range []float64{1, 2} {
		read := func(context.Context) ([]Sample, error) { return []Sample{{Metric: "csv_count", Value: v}}, nil }
		if err := tel.Table(read, Metric{Name: "csv_count"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := scrape(); got != "csv_count 2\n" {
		t.Errorf("got %s", got)
	}
	if err := (&Telemetry{}).Table(nil, Metric{Name: "csv_count"}); err != nil {
		t.Errorf("one that was not started: %v", err)
	}
}

// TestSummary: the summary of R-MET-1 has quantiles by outcome.
func TestSummary(t *testing.T) {
	t.Parallel()
	tel, scrape := fresh()
	observe, err := tel.Summary("olm_resolution_duration_seconds", "resolution attempts", "outcome")
	if err != nil {
		t.Fatal(err)
	}
	observe(2, "failed")
	for _, want := range []string{
		`olm_resolution_duration_seconds{outcome="failed",quantile="0.95"} 2`,
		`olm_resolution_duration_seconds_count{outcome="failed"} 1`,
	} {
		if got := scrape(); !strings.Contains(got, want+"\n") {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
}

// TestTally: what is gone is forgotten, and begins anew when it comes back.
func TestTally(t *testing.T) {
	t.Parallel()
	var tally Tally
	for _, key := range []string{"a", "b", "b"} {
		tally.Add(key)
	}
	if got := tally.Counts([]string{"b", "c"}); len(got) != 1 || got["b"] != 2 {
		t.Errorf("got %v, want b: 2", got)
	}
	tally.Add("b")
	if got := tally.Counts([]string{"a", "b"}); len(got) != 1 || got["b"] != 3 {
		t.Errorf("got %v, want b: 3 alone", got)
	}
}
