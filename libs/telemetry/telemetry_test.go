package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// One test: Start sets the process's providers.
func TestStart(t *testing.T) {
	var log bytes.Buffer
	spans := tracetest.NewInMemoryExporter()
	tel, err := telemetry.Start(t.Context(), telemetry.Options{
		Service: "tester", LogTo: &log, Spans: []sdktrace.SpanProcessor{sdktrace.NewSimpleSpanProcessor(spans)},
	})
	if err != nil {
		t.Fatal(err)
	}

	ctx := telemetry.WithTraceParent(t.Context(), parent)
	ctx, end := telemetry.Span(ctx, "apply")
	tel.Log.With("plan", "p1").WithGroup("g").InfoContext(ctx, "step", "n", 1)
	inner := telemetry.TraceParent(ctx)
	end(errors.New("refused"))

	if !strings.HasPrefix(inner, parent[:35]) || inner == parent {
		t.Errorf("traceparent %q, want another span of the trace of %q", inner, parent)
	}
	var line map[string]any
	if err := json.Unmarshal(log.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line["service"] != "tester" || line["plan"] != "p1" ||
		!strings.Contains(log.String(), "4bf92f3577b34da6a3ce929d0e0e4736") {
		t.Errorf("log line %s does not hold service, plan and trace", log.String())
	}
	ended := spans.GetSpans()
	if len(ended) != 1 || ended[0].Name != "apply" || ended[0].Status.Code != codes.Error {
		t.Errorf("spans %+v, want one failed apply", ended)
	}
	scrape(t, tel.Metrics)
	if err := tel.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func scrape(t *testing.T, metrics http.Handler) {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "go_goroutines") {
		t.Errorf("metrics: %d\n%.300s", w.Code, w.Body.String())
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]telemetry.Options{
		"a level":  {LogLevel: "loud"},
		"a format": {LogFormat: "xml"},
	} {
		o.LogTo = io.Discard
		if _, err := telemetry.Start(t.Context(), o); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s that does not exist: %v, want invalid", name, err)
		}
	}
}

func TestTraceParentRoundTrip(t *testing.T) {
	t.Parallel()
	if got := telemetry.TraceParent(telemetry.WithTraceParent(t.Context(), parent)); got != parent {
		t.Errorf("traceparent = %q, want %q", got, parent)
	}
	for _, bad := range []string{"", "00-xyz", strings.Repeat("0", 55)} {
		if got := telemetry.TraceParent(telemetry.WithTraceParent(t.Context(), bad)); got != "" {
			t.Errorf("malformed %q gave %q", bad, got)
		}
	}
}
